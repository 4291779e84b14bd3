// WebSocket frames: first byte who speaks and how strictly, second byte how the bytes are cut. What strict mode takes from a server is
// what the writer makes of the same frames.
#include <cstdlib>
#include <string>

#include "plugins/websec-http/http/websocket.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

struct Seen : WsSink {
  std::string frames, messages, again;
  bool frame(const WsFrame& f, std::string_view p) override {
    want(p.size() <= 300);
    frames += std::to_string(f.opcode) + (f.final ? "." : "+") + std::to_string(f.offset) + ":" + std::string(p) + ";";
    again += websocket_frame(f, p, {});
    return true;
  }
  bool message(uint8_t opcode, std::string_view p) override {
    want(p.size() <= 500 && opcode != kWsContinuation);
    messages += std::to_string(opcode) + ":" + std::string(p) + ";";
    return true;
  }
};
struct Read {
  Seen seen;
  std::string facts;
  std::optional<uint16_t> code, failure;
  size_t used = 0;
  bool refused = false;
};
Read read(std::string_view s, bool client, bool strict, size_t step) {
  Read r;
  WebsocketReader w(client, strict, {.frame_bytes = 300, .message_bytes = 500});
  while (r.used < s.size()) {
    size_t n = w.feed(s.substr(r.used, step), r.seen);
    if (n == 0) break;
    r.used += n;
  }
  want(w.oddities().refused() || w.closed() || r.used == s.size());
  r.refused = w.oddities().refused();
  w.end();
  for (const Oddity& o : w.oddities().list()) r.facts += std::string(oddity_id(o.id)) + "@" + std::to_string(o.offset) + " ";
  r.code = w.close_code();
  r.failure = w.failure_code();
  return r;
}
void same(const Read& a, const Read& b) {
  want(a.seen.frames == b.seen.frames && a.seen.messages == b.seen.messages && a.facts == b.facts && a.code == b.code && a.failure == b.failure);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  bool client = data[0] & 1;
  size_t step = 1 + data[1] % 16;
  std::string_view s(reinterpret_cast<const char*>(data) + 2, size - 2);
  Read strict = read(s, client, true, s.size() + 1), lenient = read(s, client, false, s.size() + 1);
  same(strict, read(s, client, true, step));
  same(lenient, read(s, client, false, step));
  if (!strict.refused) same(strict, lenient);
  if (!client) want(strict.refused || s.starts_with(strict.seen.again));
  return 0;
}
