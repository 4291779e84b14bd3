// Server-sent events: first byte how the bytes are cut. However they are cut the same events come out, and none is larger than its limit.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "plugins/websec-http/http/server_events.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

struct Seen : EventSink {
  std::string all;
  uint64_t last = 0;
  bool event(const ServerEvent& e) override {
    want(e.data.size() <= 200 && !e.type.empty() && e.id.find('\0') == std::string_view::npos && e.offset >= last);
    last = e.offset;
    all += std::string(e.type) + "|" + std::string(e.data) + "|" + std::string(e.id) + "|" + std::to_string(e.offset) + "\n";
    return true;
  }
};
std::string read(std::string_view s, size_t step) {
  Seen seen;
  ServerEvents e({.line_bytes = 100, .data_bytes = 200}, seen);
  bool on = true;
  for (size_t at = 0; at < s.size() && on; at += step) on = e.take(s.substr(at, step));
  want(on != e.oddities().refused());
  if (on) e.end();
  for (const Oddity& o : e.oddities().list()) seen.all += std::string(oddity_id(o.id)) + "@" + std::to_string(o.offset) + "*" + std::to_string(o.count) + "\n";
  return seen.all + e.last_id() + "|" + std::to_string(e.retry_ms().value_or(0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view s(reinterpret_cast<const char*>(data) + 1, size - 1);
  want(read(s, s.size() + 1) == read(s, 1 + data[0] % 16));
  return 0;
}
