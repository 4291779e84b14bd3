#include "plugins/websec-http/budget/budget.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {

constexpr int64_t kMostOfOne = int64_t{1} << 40;  // bytes or microseconds: what no single send reaches, and what eight million of them can be added up of
constexpr uint64_t kSecond = 1'000'000;

uint64_t amount(const json::Value& v) {
  if (v.is_number() && !v.is_int()) return static_cast<uint64_t>(kMostOfOne);
  return static_cast<uint64_t>(std::clamp<int64_t>(v.integer(), 0, kMostOfOne));
}

std::optional<uint64_t> limit(const json::Value& v, uint64_t unit = 1) {
  if (!v.is_int()) return std::nullopt;
  const auto n = static_cast<uint64_t>(std::max<int64_t>(0, v.integer()));
  return n > UINT64_MAX / unit ? UINT64_MAX : n * unit;
}

}  // namespace

Amounts amounts_of(const json::Value& outcome) {
  Amounts a{.sends = 1};
  if (!outcome.is_object()) return a;
  const json::Value& frames = outcome["frames"];
  a.wire = amount(outcome["sent_bytes"]) + amount(outcome["wire_bytes"]) + amount(frames["bytes"]) + amount(frames["sent_bytes"]);
  a.decoded = amount(outcome["decoded_bytes"].is_null() ? outcome["body_bytes"] : outcome["decoded_bytes"]);
  a.time_us = amount(outcome["times"]["total_us"]);
  return a;
}

Budget::Budget(const json::Value& limits, Amounts spent)
    : spent_(spent), sends_(limit(limits["sends"])), wire_(limit(limits["wire_bytes"])), decoded_(limit(limits["decoded_bytes"])), time_us_(limit(limits["time_s"], kSecond)) {}

std::optional<std::string> Budget::take() {
  auto over = [](const std::string& what) { return "the session has used up its budget: " + what; };
  auto of = [](uint64_t spent, uint64_t most, const char* unit) { return std::to_string(spent) + " of " + std::to_string(most) + " " + unit; };
  if (sends_ && spent_.sends >= *sends_) return over(of(spent_.sends, *sends_, "sends"));
  if (wire_ && spent_.wire >= *wire_) return over(of(spent_.wire, *wire_, "bytes on the wire"));
  if (decoded_ && spent_.decoded >= *decoded_) return over(of(spent_.decoded, *decoded_, "decoded bytes"));
  if (time_us_ && spent_.time_us >= *time_us_) return over(of(spent_.time_us / kSecond, *time_us_ / kSecond, "seconds of sending"));
  spent_.sends++;
  return std::nullopt;
}

void Budget::add(const json::Value& outcome) {
  const Amounts a = amounts_of(outcome);
  spent_.wire += a.wire;
  spent_.decoded += a.decoded;
  spent_.time_us += a.time_us;
}

std::string Budget::text() const {
  std::string out;
  auto add = [&](uint64_t spent, const std::optional<uint64_t>& of, uint64_t unit, const char* what) {
    if (of) out += (out.empty() ? "" : ", ") + std::to_string(spent / unit) + " of " + std::to_string(*of / unit) + " " + what;
  };
  add(spent_.sends, sends_, 1, "sends");
  add(spent_.wire, wire_, 1, "bytes on the wire");
  add(spent_.decoded, decoded_, 1, "decoded bytes");
  add(spent_.time_us, time_us_, kSecond, "seconds of sending");
  return out;
}

json::Value Budget::value() const {
  json::Value out = json::Object{};
  auto add = [&](const char* name, uint64_t spent, const std::optional<uint64_t>& of) {
    if (of) out[name] = json::Object{{"spent", spent}, {"of", *of}};
  };
  add("sends", spent_.sends, sends_);
  add("wire_bytes", spent_.wire, wire_);
  add("decoded_bytes", spent_.decoded, decoded_);
  add("time_us", spent_.time_us, time_us_);
  return out;
}

}  // namespace h5i::websec
