#include "plugins/websec-http/engine/event_lines.hpp"

#include "plugins/websec-http/digest/sha256.hpp"
#include "plugins/websec-http/engine/answer.hpp"

namespace h5i::websec {
namespace {

constexpr uint64_t kMostEvents = 100'000;
constexpr size_t kWord = 200;  // of a type or an id

}  // namespace

bool EventLines::event(const ServerEvent& e) {
  if (count_ == kMostEvents) return false;
  count_++;
  json::Value line = json::Object{{"of", sent_.seq()}, {"type", log_text(e.type.substr(0, kWord))}, {"bytes", e.data.size()}, {"sha256", sha256_hex(e.data)}, {"offset", e.offset}};
  if (!e.id.empty()) line["id"] = log_text(e.id.substr(0, kWord));
  if (capture_) {
    auto kept = recorder_.keep(e.data);
    if (kept.ok()) line["payload"] = *kept;
  }
  auto written = recorder_.note("event", line);
  if (!written.ok()) failed_ = written.error();
  return failed_.ok();
}

}  // namespace h5i::websec
