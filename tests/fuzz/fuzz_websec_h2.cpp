// A peer of HTTP/2: first byte what was asked and how strictly and narrowly it is read, second byte how the bytes are cut. However they are cut
// the events and facts are the same, each stream ends once, nothing is beyond its limit; what strict mode takes lenient mode reads alike.
#include <cstdlib>
#include <set>
#include <string>

#include "plugins/websec-http/h2/connection.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

struct Log : H2Sink {
  struct Body : BodySink {
    std::string bytes;
    bool take(std::string_view more) override {
      bytes.append(more);
      return bytes.size() < 3000;
    }
  };
  std::string events, oddities;
  std::set<int32_t> headed, ended_streams;
  std::map<int32_t, Body> bodies;
  bool refused = false;

  void lines(const H2Fields& fields) {
    size_t size = 0;
    for (const H2Field& f : fields) {
      events += f.name + "=" + f.value + ";";
      size += f.name.size() + f.value.size() + 32;
    }
    want(size <= 256 * 1024);
  }
  void interim(int32_t id, const H2Head& h) override {
    want(h.status >= 100 && h.status < 200 && !headed.contains(id) && !ended_streams.contains(id));
    events += std::to_string(id) + " interim ";
    lines(h.fields);
  }
  void head(int32_t id, const H2Head& h) override {
    want(h.status >= 200 && headed.insert(id).second && !ended_streams.contains(id));
    events += std::to_string(id) + " head ";
    lines(h.fields);
    ResponseHead text = h.as_lines();
    want(text.fields.size() <= h.fields.size());
  }
  BodySink& body(int32_t id) override {
    want(headed.contains(id) && !ended_streams.contains(id));
    return bodies[id];
  }
  void trailers(int32_t id, const H2Fields& f) override {
    want(headed.contains(id) && !ended_streams.contains(id));
    events += std::to_string(id) + " trailers ";
    lines(f);
  }
  void ended(int32_t id, const H2End& e) override {
    want(ended_streams.insert(id).second && e.has_head == headed.contains(id));
    want(e.oddities.refused() == (e.why == H2End::Why::REFUSED) || e.why == H2End::Why::CONNECTION);
    want(e.body_bytes == bodies[id].bytes.size());
    events += std::to_string(id) + " ended " + std::string(h2_end_name(e.why)) + std::to_string(e.code) + bodies[id].bytes;
    refused = refused || e.oddities.refused();
    for (const Oddity& o : e.oddities.list()) oddities += std::string(oddity_id(o.id)) + "@" + std::to_string(o.offset) + "*" + std::to_string(o.count) + " ";
  }
  void goaway(const H2Goaway& g) override { events += "goaway" + std::to_string(g.last_stream) + g.debug; }
};

struct Read {
  std::string events, oddities, facts, pending;
  bool refused = false;
};

Read read(std::string_view s, uint8_t how, bool strict, size_t step) {
  H2Limits limits;
  if (how & 1)
    limits = {.window = 100, .connection_window = 70000, .head_bytes = 400, .fields = 6, .continuations = 2, .interim = 2, .idle_frames = 8,
              .streams = 3, .body_bytes = 200, .bytes = 1500};
  H2Connection c(strict, limits);
  want(!c.start().empty());
  Request r;
  r.scheme = "https";
  r.authority = "a.test";
  if (how & 2) r.method = "HEAD";
  if (how & 4) {
    r.method = "POST";
    r.body = std::string(how & 8 ? 100000 : 10, 'x');
  }
  size_t asked = 1 + (how >> 4 & 1) * 2;
  for (size_t i = 0; i < asked; i++) {
    H2Submitted made;
    want(!c.submit(r, {.end_apart = (how & 32) != 0}, &made));
    H2Fields back;
    want(read_h2_request_head(made.head, &back) && back == made.fields.fields);
    std::string body;
    want(read_h2_request_data(made.data, &body) && body.size() <= (r.body ? r.body->size() : 0));
    want(made.last_frame <= made.head.size() + made.data.size());
  }
  Log log;
  Read out;
  for (size_t at = 0; at < s.size() && !c.dead(); at += step) {
    size_t n = c.feed(s.substr(at, step), log);
    want(n == std::min(step, s.size() - at) || c.dead());
    out.pending += c.pending();
  }
  want(c.wire_bytes() <= limits.bytes + kH2FrameHeader + kH2MaxPayload);
  want(c.dead() == c.oddities().refused());
  if (!c.dead()) {
    H2Submitted made;
    bool can = c.no_submit().empty();
    want(can == !c.submit(r, {}, &made));
    c.cancel(made.stream, log);
  }
  out.refused = c.oddities().refused() || log.refused;
  c.end(log);
  want(c.open_streams() == 0 && log.ended_streams.size() >= asked);
  out.events = log.events;
  out.oddities = log.oddities;
  for (const Oddity& o : c.oddities().list()) out.facts += std::string(oddity_id(o.id)) + "@" + std::to_string(o.offset) + "*" + std::to_string(o.count) + " ";
  return out;
}
void same(const Read& a, const Read& b) {
  want(a.events == b.events && a.oddities == b.oddities && a.facts == b.facts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  size_t step = 1 + data[1] % 64;
  std::string_view s(reinterpret_cast<const char*>(data) + 2, size - 2);
  H2Fields fields;
  std::string body;
  if (read_h2_request_head(s, &fields)) want(!s.empty());
  if (read_h2_request_data(s, &body)) want(body.size() <= s.size());
  Read strict = read(s, data[0], true, s.size() + 1);
  Read cut = read(s, data[0], true, step);
  same(strict, cut);
  want(strict.pending == cut.pending);
  Read lenient = read(s, data[0], false, s.size() + 1);
  same(lenient, read(s, data[0], false, step));
  if (!strict.refused) same(strict, lenient);
  return 0;
}
