#include "plugins/websec-http/rate/rate.hpp"

#include <algorithm>
#include <numeric>

namespace h5i::websec {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// Of the window, at most: the mean stays above 97 % of the ceiling.
constexpr int64_t kGuardPart = 50;
constexpr int64_t kMostGuard = 20'000'000;
// What is made up for at most, when threads woke late: how many may then start at once is bounded by it.
constexpr int64_t kMakeUp = 50'000'000;

}  // namespace

sdk::Result<Rate> parse_rate(std::string_view text) {
  auto bad = [](const char* why) { return sdk::failure(H5I_E_INVALID, std::string("not a rate: ") + why + "; a rate is N/s, N/min or N/h, as 20/s, 100/min or 0.5/s"); };
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return bad("no unit");
  const std::string_view number = text.substr(0, slash), unit = text.substr(slash + 1);
  const int64_t unit_s = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  if (unit_s == 0) return bad("no such unit");
  int64_t value = 0, scale = 1;
  bool point = false, digit = false;
  for (char c : number) {
    if (c == '.' && !point && digit) {
      point = true;
      digit = false;
      continue;
    }
    if (c < '0' || c > '9') return bad("no such number");
    digit = true;
    value = value * 10 + (c - '0');
    if (point) scale *= 10;
    if (value > kMostStarts * 100 || scale > 100) return bad("too large, or more than two decimals");
  }
  if (!digit) return bad("no such number");
  if (value == 0) return bad("none at all");
  const int64_t common = std::gcd(value, scale);
  value /= common;
  scale /= common;
  if (value > kMostStarts) return bad("too large");
  return Rate{value, scale * unit_s * kSecond};
}

Gate::Gate(const Rate& rate) : last_(static_cast<size_t>(rate.starts)) {
  window_ = rate.window_ns + std::min(rate.window_ns / kGuardPart, kMostGuard);
  spacing_ = (window_ + rate.starts - 1) / rate.starts;
}

int64_t Gate::next(int64_t now) const {
  int64_t at = std::max(now, due_);
  if (full_) at = std::max(at, last_[at_] + window_);
  return at;
}

void Gate::take(int64_t now, int64_t asked) {
  if (due_ != INT64_MIN) late_ -= std::clamp<int64_t>(asked - due_, 0, late_);  // nobody asked: that is past
  late_ = std::min(late_ + now - next(asked), kMakeUp);
  const int64_t made_up = std::min(late_, spacing_);
  late_ -= made_up;
  due_ = now + spacing_ - made_up;
  last_[at_] = now;
  at_ = (at_ + 1) % last_.size();
  full_ = full_ || at_ == 0;
}

}  // namespace h5i::websec
