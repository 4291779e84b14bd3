#include "core/policy/quantity.hpp"

namespace h5i::policy {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 50;
constexpr int64_t kMaxCount = 1'000'000'000'000;
constexpr int64_t kMaxDuration = 366 * 86400;

// Takes digits off the front. Leading zeros are refused: "010" is eight to some readers.
std::optional<int64_t> take_number(std::string_view& s) {
  size_t n = 0;
  int64_t v = 0;
  while (n < s.size() && s[n] >= '0' && s[n] <= '9') {
    if (n >= 16) return {};
    v = v * 10 + (s[n++] - '0');
  }
  if (!n || (s[0] == '0' && n > 1)) return {};
  s.remove_prefix(n);
  return v;
}

std::optional<int64_t> scaled(int64_t n, int64_t unit, int64_t max) {
  if (n > max / unit) return {};
  return n * unit;
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view s) {
  auto n = take_number(s);
  if (!n) return {};
  int64_t unit = 0;
  if (s.empty()) unit = 1;
  else if (s == "K") unit = int64_t{1} << 10;
  else if (s == "M") unit = int64_t{1} << 20;
  else if (s == "G") unit = int64_t{1} << 30;
  else if (s == "T") unit = int64_t{1} << 40;
  return unit ? scaled(*n, unit, kMaxSize) : std::nullopt;
}

std::optional<int64_t> parse_count(std::string_view s) {
  auto n = take_number(s);
  if (!n) return {};
  int64_t unit = s.empty() ? 1 : s == "k" ? 1000 : s == "m" ? 1'000'000 : 0;
  return unit ? scaled(*n, unit, kMaxCount) : std::nullopt;
}

std::optional<int64_t> parse_duration(std::string_view s) {
  int64_t total = 0, last = INT64_MAX;
  if (s.empty()) return {};
  while (!s.empty()) {
    auto n = take_number(s);
    if (!n || s.empty()) return {};
    int64_t unit = s[0] == 'h' ? 3600 : s[0] == 'm' ? 60 : s[0] == 's' ? 1 : 0;
    if (!unit || unit >= last) return {};
    last = unit;
    s.remove_prefix(1);
    auto part = scaled(*n, unit, kMaxDuration);
    if (!part || total + *part > kMaxDuration) return {};
    total += *part;
  }
  return total;
}

std::string size_text(int64_t n) {
  static constexpr char kUnits[] = {'T', 'G', 'M', 'K'};
  for (int i = 0; i < 4; i++) {
    int shift = 40 - 10 * i;
    if (n && n % (int64_t{1} << shift) == 0) return std::to_string(n >> shift) + kUnits[i];
  }
  return std::to_string(n);
}

std::string count_text(int64_t n) {
  if (n && n % 1'000'000 == 0) return std::to_string(n / 1'000'000) + "m";
  if (n && n % 1000 == 0) return std::to_string(n / 1000) + "k";
  return std::to_string(n);
}

std::string duration_text(int64_t s) {
  if (s && s % 3600 == 0) return std::to_string(s / 3600) + "h";
  if (s && s % 60 == 0) return std::to_string(s / 60) + "m";
  return std::to_string(s) + "s";
}

}  // namespace h5i::policy
