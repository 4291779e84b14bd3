// The client's side of HTTP/2: against a server that nghttp2 makes, in memory, and against frames that no server should write.
#include <nghttp2/nghttp2.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>

#include "plugins/websec-http/decode/decode.hpp"
#include "plugins/websec-http/h2/connection.hpp"
#include "tests/support/catch.hpp"
#include "tests/websec/h2_frames.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

const std::string kPreface = NGHTTP2_CLIENT_MAGIC;

std::string list(const Oddities& oddities) {
  std::string out;
  for (const Oddity& o : oddities.list())
    out += (out.empty() ? "" : " ") + std::string(oddity_id(o.id)) + "@" + std::to_string(o.offset) + (o.count > 1 ? "*" + std::to_string(o.count) : "");
  return out;
}
std::string ids(const Oddities& oddities) {
  std::string out;
  for (const Oddity& o : oddities.list()) out += (out.empty() ? "" : " ") + std::string(oddity_id(o.id));
  return out;
}
std::string lines_of(const H2Fields& fields) {
  std::string out;
  for (const H2Field& f : fields) out += f.name + "=" + f.value + ";";
  return out;
}

// Everything that was told, in order; pieces of one body together, however they came.
struct Log : H2Sink {
  struct Body : BodySink {
    Log* log = nullptr;
    int32_t stream = 0;
    bool take(std::string_view bytes) override {
      if (bytes.empty()) return true;
      std::string line = std::to_string(stream) + " body ";
      if (log->events.empty() || !log->events.back().starts_with(line)) log->events.push_back(line);
      log->events.back().append(bytes);
      log->bodies[stream].append(bytes);
      if (log->throws) throw std::runtime_error("full");
      return log->bodies[stream].size() < log->stop_at;
    }
  };
  std::vector<std::string> events;
  std::map<int32_t, std::string> bodies;
  std::map<int32_t, H2Head> heads;
  std::map<int32_t, H2End> ends;
  size_t stop_at = SIZE_MAX;
  bool throws = false;
  Body at;

  void say(int32_t stream, const std::string& what) { events.push_back(std::to_string(stream) + " " + what); }
  void interim(int32_t stream, const H2Head& h) override { say(stream, "interim " + std::to_string(h.status) + " " + lines_of(h.fields)); }
  void head(int32_t stream, const H2Head& h) override {
    say(stream, "head " + std::to_string(h.status) + "@" + std::to_string(h.offset) + " " + lines_of(h.fields));
    heads[stream] = h;
  }
  BodySink& body(int32_t stream) override {
    at.log = this;
    at.stream = stream;
    return at;
  }
  void trailers(int32_t stream, const H2Fields& f) override { say(stream, "trailers " + lines_of(f)); }
  void ended(int32_t stream, const H2End& e) override {
    say(stream, "ended " + std::string(h2_end_name(e.why)) + " " + std::string(e.code_name) + " [" + list(e.oddities) + "] " + lines_of(e.refused));
    CHECK(ends.count(stream) == 0);
    ends.emplace(stream, e);
  }
  void goaway(const H2Goaway& g) override {
    events.push_back("goaway " + std::to_string(g.last_stream) + " " + std::string(g.code_name) + " " + g.debug);
  }
  std::string text() const {
    std::string out;
    for (const std::string& e : events) out += e + "\n";
    return out;
  }
};

Request get(std::string target = "/") {
  Request r;
  r.scheme = "https";
  r.authority = "a.test";
  r.target = std::move(target);
  return r;
}
Request post(std::string body) {
  Request r = get("/in");
  r.method = "POST";
  r.body = std::move(body);
  return r;
}

struct Heard {
  Log log;
  std::string facts, refusal, pending;
  bool dead = false;
};

// `requests` are asked, then the bytes come, cut in pieces of `step`.
Heard hear_in(const std::string& bytes, size_t step, bool strict, const std::vector<Request>& requests, const H2Limits& limits, bool closes) {
  Heard h;
  H2Connection c(strict, limits);
  CHECK(c.start().starts_with(kPreface));
  for (const Request& r : requests) {
    H2Submitted s;
    REQUIRE(!c.submit(r, {}, &s));
  }
  for (size_t at = 0; at < bytes.size() && !c.dead(); at += step) {
    std::string_view piece = std::string_view(bytes).substr(at, step);
    size_t used = c.feed(piece, h.log);
    CHECK((used == piece.size() || c.dead()));
    h.pending += c.pending();
  }
  if (closes) c.end(h.log);
  h.facts = list(c.oddities());
  if (auto why = c.oddities().refusal()) h.refusal = oddity_id(*why);
  h.dead = c.dead();
  return h;
}
// The same events and facts in whatever pieces the bytes come.
Heard hear(const std::string& bytes, bool strict = true, const std::vector<Request>& requests = {get()}, const H2Limits& limits = {}, bool closes = false) {
  Heard whole = hear_in(bytes, bytes.size() + 1, strict, requests, limits, closes);
  std::vector<size_t> steps = {2, 3, 7, 8, 9, 10, 64, 1000};
  if (bytes.size() < 20000) steps.push_back(1);
  for (size_t step : steps) {
    Heard h = hear_in(bytes, step, strict, requests, limits, closes);
    INFO("in steps of " << step);
    CHECK(h.log.text() == whole.log.text());
    CHECK(h.facts == whole.facts);
    CHECK(h.dead == whole.dead);
  }
  return whole;
}

const Lines kOk = {{":status", "200"}};
std::string answer(const Lines& lines, const std::string& body = "hello") { return settings() + headers(1, lines) + data(1, body, true); }

// A malformed message of the weight STRICT: the stream is refused with the block kept, in lenient mode it is read; the connection lives in both.
void ambiguous(const std::string& bytes, const std::string& fact, const std::string& lenient_body = "hello", const std::vector<Request>& requests = {get()}) {
  Heard no = hear(bytes, true, requests);
  INFO(no.log.text());
  REQUIRE(no.log.ends.count(1) == 1);
  CHECK(no.log.ends.at(1).why == H2End::Why::REFUSED);
  CHECK((" " + ids(no.log.ends.at(1).oddities) + " ").find(" " + fact + " ") != std::string::npos);
  CHECK(!no.dead);
  CHECK(no.pending.find(reset(1, NGHTTP2_PROTOCOL_ERROR)) != std::string::npos);
  Heard yes = hear(bytes, false, requests);
  INFO(yes.log.text());
  REQUIRE(yes.log.ends.count(1) == 1);
  CHECK(yes.log.ends.at(1).why == H2End::Why::WHOLE);
  CHECK((" " + ids(yes.log.ends.at(1).oddities) + " ").find(" " + fact + " ") != std::string::npos);
  CHECK(yes.log.bodies[1] == lenient_body);
}
void noted(const std::string& bytes, const std::string& fact) {
  Heard h = hear(bytes);
  INFO(h.log.text());
  REQUIRE(h.log.ends.count(1) == 1);
  CHECK(h.log.ends.at(1).why == H2End::Why::WHOLE);
  CHECK(ids(h.log.ends.at(1).oddities) == fact);
}
// Refused in both modes, the stream alone.
void stream_fatal(const std::string& bytes, const std::string& fact) {
  for (bool strict : {true, false}) {
    Heard h = hear(bytes, strict);
    INFO(h.log.text());
    REQUIRE(h.log.ends.count(1) == 1);
    CHECK(h.log.ends.at(1).why == H2End::Why::REFUSED);
    REQUIRE(h.log.ends.at(1).oddities.refusal());
    CHECK((" " + ids(h.log.ends.at(1).oddities) + " ").find(" " + fact + " ") != std::string::npos);
    if (!strict) CHECK(oddity_id(*h.log.ends.at(1).oddities.refusal()) == fact);
    CHECK(!h.dead);
  }
}
// Refused in both modes, and the connection with it: the peer is told with this code.
void fatal(const std::string& bytes, const std::string& fact, uint32_t code, const H2Limits& limits = {}) {
  for (bool strict : {true, false}) {
    Heard h = hear(bytes, strict, {get()}, limits);
    INFO(h.log.text() << h.facts);
    CHECK(h.refusal == fact);
    CHECK(h.dead);
    size_t at = h.pending.rfind(std::string("\x07\x00\x00\x00\x00\x00", 6));
    REQUIRE(at != std::string::npos);
    CHECK(h.pending.substr(at + 10, 4) == number(code));
  }
}

// A server of nghttp2, in memory.
class Server {
 public:
  struct Asked {
    Lines lines;
    std::string body;
    bool whole = false;
  };
  std::map<int32_t, Asked> asked;
  std::map<int32_t, std::string> answers;  // bodies, as they are being sent
  std::map<int32_t, Lines> trailers;
  std::function<void(Server&, int32_t)> on_request;
  nghttp2_session* session = nullptr;

  Server(const std::vector<nghttp2_settings_entry>& settings, std::function<void(Server&, int32_t)> answer) : on_request(std::move(answer)) {
    nghttp2_session_callbacks* cb = nullptr;
    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_header_callback(
        cb, [](nghttp2_session*, const nghttp2_frame* f, const uint8_t* n, size_t ns, const uint8_t* v, size_t vs, uint8_t, void* u) {
          static_cast<Server*>(u)->asked[f->hd.stream_id].lines.emplace_back(std::string(reinterpret_cast<const char*>(n), ns),
                                                                             std::string(reinterpret_cast<const char*>(v), vs));
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* d, size_t n, void* u) {
      static_cast<Server*>(u)->asked[id].body.append(reinterpret_cast<const char*>(d), n);
      return 0;
    });
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, [](nghttp2_session*, const nghttp2_frame* f, void* u) {
      auto& self = *static_cast<Server*>(u);
      if ((f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA) && f->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        self.asked[f->hd.stream_id].whole = true;
        if (self.on_request) self.on_request(self, f->hd.stream_id);
      }
      return 0;
    });
    nghttp2_session_server_new(&session, cb, this);
    nghttp2_session_callbacks_del(cb);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  }
  ~Server() { nghttp2_session_del(session); }
  Server(const Server&) = delete;

  void take(std::string_view bytes) {
    REQUIRE(nghttp2_session_mem_recv(session, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  std::string say() {
    std::string out;
    const uint8_t* bytes = nullptr;
    while (ssize_t n = nghttp2_session_mem_send(session, &bytes)) {
      REQUIRE(n > 0);
      out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
    }
    return out;
  }
  static std::vector<nghttp2_nv> nv(const Lines& lines) {
    std::vector<nghttp2_nv> out;
    for (const auto& [n, v] : lines)
      out.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(n.data())), reinterpret_cast<uint8_t*>(const_cast<char*>(v.data())), n.size(), v.size(), 0});
    return out;
  }
  void reply(int32_t id, const Lines& lines, std::string body, Lines after = {}) {
    answers[id] = std::move(body);
    trailers[id] = std::move(after);
    nghttp2_data_provider p{};
    p.read_callback = [](nghttp2_session* s, int32_t stream, uint8_t* into, size_t size, uint32_t* flags, nghttp2_data_source*, void* u) -> ssize_t {
      auto& self = *static_cast<Server*>(u);
      std::string& left = self.answers[stream];
      size_t n = std::min(size, left.size());
      memcpy(into, left.data(), n);
      left.erase(0, n);
      if (left.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (!self.trailers[stream].empty()) {
          *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
          auto lines_after = nv(self.trailers[stream]);
          nghttp2_submit_trailer(s, stream, lines_after.data(), lines_after.size());
        }
      }
      return static_cast<ssize_t>(n);
    };
    auto block = nv(lines);
    REQUIRE(nghttp2_submit_response(session, id, block.data(), block.size(), &p) == 0);
  }
};

// Both talk until neither has anything to say. The server's bytes come in pieces of `step`.
void talk(H2Connection& c, Server& s, Log& log, size_t step) {
  for (int quiet = 0; quiet < 2;) {
    std::string ours = c.pending(), theirs;
    if (!ours.empty()) s.take(ours);
    theirs = s.say();
    for (size_t at = 0; at < theirs.size(); at += step) c.feed(std::string_view(theirs).substr(at, step), log);
    quiet = ours.empty() && theirs.empty() ? quiet + 1 : 0;
  }
}

std::string letters(size_t n) {
  std::string out;
  out.reserve(n);
  for (size_t i = 0; i < n; i++) out.push_back(static_cast<char>('a' + i * 7 % 26));
  return out;
}

}  // namespace

TEST_CASE("a connection begins with the preface, settings without push and a window, in these very bytes") {
  H2Connection c(true, {});
  CHECK(c.no_submit() == "not-started");
  std::string bytes = c.start();
  std::string entries = std::string("\0\x2", 2) + number(0) + std::string("\0\x3", 2) + number(0) + std::string("\0\x4", 2) + number(1024 * 1024) +
                        std::string("\0\x6", 2) + number(256 * 1024);
  CHECK(bytes == kPreface + settings(entries) + h2_frame_of(kH2WindowUpdate, 0, 0, number(16 * 1024 * 1024 - 65535)));
  CHECK(c.start() == "");
  CHECK(c.no_submit() == "");
  CHECK(c.pending() == "");
}

TEST_CASE("a request is whole and final when submit returns: pseudo headers first, then the others in their order, and it reads back") {
  H2Connection c(true, {});
  c.start();
  Request r = post("a=1");
  REQUIRE(!r.headers.add("X-First", "1"));
  REQUIRE(!r.headers.add("Cookie", "sid=2"));
  REQUIRE(!r.headers.add("x-first", "3"));
  H2Submitted s;
  REQUIRE(!c.submit(r, {}, &s));
  CHECK(s.stream == 1);
  CHECK(s.whole);
  CHECK(s.data == data(1, "a=1", true));
  CHECK(s.last_frame == s.data.size());
  CHECK(c.pending() == "");
  H2Fields back;
  REQUIRE(read_h2_request_head(s.head, &back));
  CHECK(back == s.fields.fields);
  CHECK(lines_of(back) == ":method=POST;:scheme=https;:authority=a.test;:path=/in;x-first=1;cookie=sid=2;x-first=3;content-length=3;");
  CHECK(s.fields.computed == std::vector<std::string>{"content-length: 3"});
  std::string body;
  REQUIRE(read_h2_request_data(s.data, &body));
  CHECK(body == "a=1");
  // The next head, too, can be read without this one.
  H2Submitted second;
  REQUIRE(!c.submit(r, {}, &second));
  CHECK(second.stream == 3);
  REQUIRE(read_h2_request_head(second.head, &back));
  CHECK(back == s.fields.fields);
  CHECK_FALSE(read_h2_request_head(s.head + second.head, &back));
  CHECK_FALSE(read_h2_request_head(s.head.substr(0, s.head.size() - 1), &back));
  CHECK_FALSE(read_h2_request_head("", &back));
  CHECK_FALSE(read_h2_request_data(s.data.substr(0, 10), &body));
}

TEST_CASE("headers of HTTP/1 framing are left out and named; a Host header is the authority") {
  Request r = get("?q=1");
  r.headers.add("Host", "b.test");
  for (auto [n, v] : Lines{{"Connection", "close, X-Hop, Content-Length"}, {"Keep-Alive", "1"}, {"Proxy-Connection", "x"},
                           {"Transfer-Encoding", "chunked"}, {"Upgrade", "h2c"}, {"HTTP2-Settings", "AA"}, {"TE", "gzip"}, {"X-Hop", "1"},
                           {"Accept", "*/*"}, {"Host", "c.test"}, {"TE", "trailers"}})
    REQUIRE(!r.headers.add(n, v));
  r.form = TargetForm::ABSOLUTE;
  r.body = "12";
  H2RequestFields f;
  REQUIRE(!h2_request_fields(r, &f));
  CHECK(lines_of(f.fields) == ":method=GET;:scheme=https;:authority=b.test;:path=/?q=1;accept=*/*;host=c.test;te=trailers;content-length=2;");
  CHECK(f.dropped == std::vector<std::string>{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "HTTP2-Settings", "TE", "X-Hop"});
  CHECK(f.notes == std::vector<std::string_view>{"host-as-authority"});
  Request odd = get();
  REQUIRE(!odd.headers.add("Content-Length", "9"));
  REQUIRE(!h2_request_fields(odd, &f));
  CHECK(f.notes == std::vector<std::string_view>{"content-length-differs"});
  CHECK(f.computed.empty());
  Request star = get("");
  star.method = "OPTIONS";
  star.form = TargetForm::ASTERISK;
  REQUIRE(!h2_request_fields(star, &f));
  CHECK(lines_of(f.fields).ends_with(":path=*;"));
}

TEST_CASE("what is no request is refused before the connection knows of it") {
  H2Connection c(true, {.head_bytes = 400, .fields = 8});
  c.start();
  H2Submitted s;
  auto refused = [&](const Request& r) {
    auto no = c.submit(r, {}, &s);
    return no ? std::string(no->id) : std::string();
  };
  Request r = get();
  r.method = "CONNECT";
  CHECK(refused(r) == "h2-connect");
  r = get("/a b");
  CHECK(refused(r) == "target-bytes");
  r = get("nowhere");
  CHECK(refused(r) == "target-form");
  r = get();
  r.method = "G T";
  CHECK(refused(r) == "method");
  r = get();
  r.authority = "";
  CHECK(refused(r) == "no-host");
  r = get("/" + letters(400));
  CHECK(refused(r) == "h2-head-too-large");
  r = get();
  for (int i = 0; i < 5; i++) REQUIRE(!r.headers.add("a", "b"));
  CHECK(refused(r) == "h2-head-too-large");
  CHECK(c.open_streams() == 0);
  CHECK(refused(get()) == "");
  CHECK(s.stream == 1);
}

TEST_CASE("the last frame can be held back, so that requests end at the same moment") {
  H2Connection c(true, {});
  c.start();
  H2Submitted one, two;
  REQUIRE(!c.submit(get(), {.end_apart = true}, &one));
  REQUIRE(!c.submit(post("abc"), {.end_apart = true}, &two));
  CHECK(one.data == data(1, "", true));
  CHECK(two.data == data(3, "abc") + data(3, "", true));
  CHECK(one.last_frame == 9);
  CHECK(two.last_frame == 9);
  CHECK((one.whole && two.whole));
}

TEST_CASE("head, body, trailers and end come from a server of nghttp2, several requests on one connection, in whatever pieces") {
  for (size_t step : {size_t(1), size_t(3), size_t(17), size_t(1) << 30}) {
    Server server({}, [](Server& s, int32_t id) {
      s.reply(id, {{":status", "200"}, {"set-cookie", "a=1"}, {"x-id", std::to_string(id)}, {"set-cookie", "b=2"}}, "body of " + std::to_string(id),
              id == 3 ? Lines{{"grpc-status", "0"}} : Lines{});
    });
    H2Connection c(true, {});
    Log log;
    server.take(c.start());
    for (int i = 0; i < 3; i++) {
      H2Submitted s;
      REQUIRE(!c.submit(post("n=" + std::to_string(i)), {}, &s));
      server.take(s.head + s.data);
      talk(c, server, log, step);
      CHECK(server.asked[s.stream].body == "n=" + std::to_string(i));
      CHECK(server.asked[s.stream].lines.front() == std::pair<std::string, std::string>{":method", "POST"});
      REQUIRE(log.ends.count(s.stream) == 1);
      CHECK(log.ends.at(s.stream).why == H2End::Why::WHOLE);
      CHECK(log.bodies[s.stream] == "body of " + std::to_string(s.stream));
    }
    CHECK(lines_of(log.heads[1].fields) == ":status=200;set-cookie=a=1;x-id=1;set-cookie=b=2;");
    CHECK(log.text().find("3 trailers grpc-status=0;") != std::string::npos);
    CHECK(ids(log.ends.at(3).oddities) == "trailers");
    CHECK(ids(log.ends.at(5).oddities) == "");
    CHECK(c.oddities().list().empty());
    CHECK(c.open_streams() == 0);
  }
}

TEST_CASE("as lines, a head reads like one of HTTP/1: cookies stay apart, codings are found, nothing can add a line") {
  Heard h = hear(answer({{":status", "200"}, {"set-cookie", "a=1"}, {"content-encoding", "gzip, br"}, {"set-cookie", "b=2"}, {"x-note", " c\r\nx-in: 1"},
                         {"bad name", "v"}}),
                 false);
  ResponseHead head = h.log.heads[1].as_lines();
  CHECK(head.status == 200);
  CHECK(head.reason() == "");
  CHECK(head.fields.bytes() == "HTTP/2 200\r\nset-cookie: a=1\r\ncontent-encoding: gzip, br\r\nset-cookie: b=2\r\nx-note:  c  x-in: 1\r\n\r\n");
  CHECK(head.fields.size() == 4);
  CHECK(head.fields.count("set-cookie") == 2);
  CHECK(head.fields.count("x-in") == 0);
  CHECK(content_codings(head.fields) == std::vector<std::string>{"gzip", "br"});
  CHECK(fields_as_lines({{"a", "1"}, {"a", "2"}}).count("a") == 2);
}

TEST_CASE("bodies larger than the windows flow both ways") {
  const std::string up = letters(300'000), down = letters(5'000'000);
  Server server({{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 20000}}, [&](Server& s, int32_t id) { s.reply(id, kOk, down); });
  H2Connection c(true, {.window = 70000, .connection_window = 100000});
  Log log;
  server.take(c.start());
  H2Submitted s;
  REQUIRE(!c.submit(post(up), {}, &s));
  CHECK_FALSE(s.whole);
  std::string first;
  REQUIRE(read_h2_request_data(s.data, &first));
  CHECK(first == up.substr(0, 65535));
  server.take(s.head + s.data);
  talk(c, server, log, 1000);
  CHECK(server.asked[1].body == up);
  CHECK(log.bodies[1] == down);
  REQUIRE(log.ends.count(1) == 1);
  CHECK(log.ends.at(1).why == H2End::Why::WHOLE);
  CHECK(log.ends.at(1).request_whole);
  CHECK(log.ends.at(1).body_bytes == down.size());
}

TEST_CASE("no more streams than either side allows") {
  H2Connection c(true, {.streams = 2});
  c.start();
  H2Submitted s;
  REQUIRE(!c.submit(get(), {}, &s));
  REQUIRE(!c.submit(get(), {}, &s));
  CHECK(c.no_submit() == "busy");
  auto no = c.submit(get(), {}, &s);
  REQUIRE(no);
  CHECK(no->id == "h2-no-submit");
  Log log;
  c.feed(settings() + headers(1, kOk, true), log);
  CHECK(c.no_submit() == "");
  c.feed(settings(std::string("\0\x3", 2) + number(1)), log);
  CHECK(c.no_submit() == "busy");
  c.feed(headers(3, kOk, true), log);
  CHECK(c.no_submit() == "");
}

TEST_CASE("interim heads are told, and only so many") {
  Lines hints = {{":status", "103"}, {"link", "</a>; rel=preload"}};
  Heard h = hear(settings() + headers(1, {{":status", "100"}}) + headers(1, hints) + headers(1, kOk) + data(1, "x", true));
  CHECK(h.log.text() ==
        "1 interim 100 :status=100;\n1 interim 103 :status=103;link=</a>; rel=preload;\n1 head 200@77 :status=200;\n1 body x\n1 ended whole NO_ERROR [] \n");
  std::string many = settings();
  for (int i = 0; i < 17; i++) many += headers(1, hints);
  stream_fatal(many, "too-many-interim");
  stream_fatal(settings() + headers(1, hints, true), "h2-interim-end");
  stream_fatal(settings() + headers(1, {{":status", "101"}}), "h2-status-101");
}

TEST_CASE("a head needs one status of three digits") {
  for (const Lines& lines : {Lines{}, Lines{{"a", "b"}}, Lines{{":status", "20"}}, Lines{{":status", "2000"}}, Lines{{":status", "abc"}},
                             Lines{{":status", "099"}}, Lines{{":status", "200"}, {":status", "200"}}, Lines{{":status", "+20"}}})
    stream_fatal(answer(lines), "h2-status");
  ambiguous(answer({{":status", "600"}}), "status-out-of-range");
}

TEST_CASE("malformed headers refuse the stream, or are read when lenient, and are kept in both") {
  ambiguous(answer({{":status", "200"}, {"X-Upper", "1"}}), "h2-name-case");
  ambiguous(answer({{":status", "200"}, {"a b", "1"}}), "bad-name");
  ambiguous(answer({{":status", "200"}, {"", "1"}}), "empty-name");
  ambiguous(answer({{":status", "200"}, {"a", "1\r\nb: 2"}}), "h2-value-break");
  ambiguous(answer({{":status", "200"}, {"a", "1\n"}}), "h2-value-break");
  ambiguous(answer({{":status", "200"}, {"a", std::string("1\0", 2)}}), "h2-value-break");
  for (const char* name : {"connection", "Transfer-Encoding", "keep-alive", "proxy-connection", "upgrade"})
    ambiguous(answer({{":status", "200"}, {name, "chunked"}}), "h2-connection-header");
  ambiguous(answer({{":status", "200"}, {":path", "/"}}), "h2-pseudo");
  ambiguous(answer({{"a", "1"}, {":status", "200"}}), "h2-pseudo");
  noted(answer({{":status", "200"}, {"a", " 1"}}), "h2-value-space");
  noted(answer({{":status", "200"}, {"a", "1\x80"}}), "eight-bit");
  noted(answer({{":status", "200"}, {"a", "1\x01"}}), "control-byte");
  Heard h = hear(answer({{":status", "200"}, {"X-Upper", "1"}}));
  CHECK(lines_of(h.log.ends.at(1).refused) == ":status=200;X-Upper=1;");
  CHECK(h.log.heads.empty());
}

TEST_CASE("trailers are told apart from the head, and change nothing") {
  auto with = [&](const Lines& lines, bool ends = true) { return settings() + headers(1, kOk) + data(1, "hello") + headers(1, lines, ends); };
  noted(with({{"x-sum", "1"}, {"x-sum", "2"}}), "trailers");
  ambiguous(with({{":status", "500"}}), "h2-pseudo-in-trailers");
  ambiguous(with({{"content-length", "3"}}), "trailer-framing");
  ambiguous(with({{"Upper", "3"}}), "h2-name-case");
  stream_fatal(with({{"a", "b"}}, false), "h2-trailers-open");
}

TEST_CASE("a length that is not the body's refuses it, and bytes beyond it are not passed on") {
  auto say = [](std::string length) { return Lines{{":status", "200"}, {"content-length", length}}; };
  noted(answer(say("5")), "");
  ambiguous(answer(say("6")), "h2-length-differs");
  ambiguous(answer(say("4")), "h2-length-differs");
  ambiguous(settings() + headers(1, say("5"), true), "h2-length-differs", "");
  CHECK(hear(answer(say("4"))).log.bodies[1] == "hell");
  CHECK(hear(settings() + headers(1, say("4")) + data(1, "he") + data(1, "llo", true)).log.bodies[1] == "hell");
  ambiguous(answer(say("+5")), "cl-invalid");
  ambiguous(answer(say("05")), "cl-not-canonical");
  ambiguous(answer(say("5, 5")), "cl-list");
  ambiguous(answer({{":status", "200"}, {"content-length", "5"}, {"Content-Length", "5"}}), "cl-repeated");
  ambiguous(answer(say("99999999999999999999")), "cl-too-large");
  stream_fatal(answer({{":status", "200"}, {"content-length", "5"}, {"content-length", "6"}}), "cl-conflict");
}

TEST_CASE("an answer without a body has none") {
  Request head = get();
  head.method = "HEAD";
  Lines ok = {{":status", "200"}, {"content-length", "5"}};
  Heard h = hear(settings() + headers(1, ok, true), true, {head});
  CHECK(h.log.ends.at(1).why == H2End::Why::WHOLE);
  CHECK(ids(h.log.ends.at(1).oddities) == "");
  h = hear(settings() + headers(1, ok) + data(1, "", true), true, {head});
  CHECK(h.log.ends.at(1).why == H2End::Why::WHOLE);
  ambiguous(answer(ok), "h2-body-unexpected", "hello", {head});
  ambiguous(answer({{":status", "204"}}), "h2-body-unexpected");
  ambiguous(answer({{":status", "304"}}), "h2-body-unexpected");
  h = hear(settings() + headers(1, {{":status", "304"}, {"content-length", "5"}}, true));
  CHECK(ids(h.log.ends.at(1).oddities) == "");
  noted(settings() + headers(1, {{":status", "204"}, {"content-length", "0"}}, true), "length-without-body");
}

TEST_CASE("padding is no body, and more padding than frame ends the connection") {
  std::string padded = settings() + headers(1, kOk) + h2_frame_of(kH2Data, kH2Padded | kH2EndStream, 1, std::string("\4hello\0\0\0\0", 10));
  Heard h = hear(padded);
  CHECK(h.log.bodies[1] == "hello");
  std::string head = hpack(kOk);
  h = hear(settings() + h2_frame_of(kH2Headers, kH2Padded | kH2HasPriority | kH2EndHeaders | kH2EndStream, 1,
                                    std::string("\2\0\0\0\0\20", 6) + head + std::string(2, '\0')));
  CHECK(h.log.text() == "1 head 200@9 :status=200;\n1 ended whole NO_ERROR [] \n");
  fatal(settings() + headers(1, kOk) + h2_frame_of(kH2Data, kH2Padded, 1, std::string("\x0bhello\0\0\0\0", 10)), "h2-protocol", NGHTTP2_PROTOCOL_ERROR);
}

TEST_CASE("a reset ends one stream with its code; a reset after the end is nothing") {
  Heard h = hear(settings() + headers(1, kOk) + data(1, "he") + reset(1, NGHTTP2_INTERNAL_ERROR) + headers(3, kOk, true), true, {get(), get()});
  CHECK(h.log.text() == "1 head 200@9 :status=200;\n1 body he\n1 ended reset INTERNAL_ERROR [] \n3 head 200@55 :status=200;\n3 ended whole NO_ERROR [] \n");
  h = hear(settings() + headers(1, kOk, true) + reset(1, 0), true, {get(), get()});
  CHECK(h.log.events.size() == 2);
  CHECK(h.facts == "");
  h = hear(settings() + reset(1, 0xdead), true, {get()});
  CHECK(h.log.text() == "1 ended reset unknown [] \n");
  CHECK(h.log.ends.at(1).code == 0xdead);
  CHECK_FALSE(h.log.ends.at(1).has_head);
}

TEST_CASE("frames on a stream that had ended are passed over and noted") {
  Heard h = hear(settings() + headers(1, kOk, true) + data(1, "late") + headers(3, kOk, true), true, {get(), get()});
  CHECK(h.facts == "h2-after-end@31");
  CHECK(h.log.bodies.empty());
  CHECK(h.log.ends.size() == 2);
}

TEST_CASE("GOAWAY tells which requests were not looked at; the others go on, and no more can be asked") {
  Heard h = hear(settings() + headers(1, kOk) + goaway(1, NGHTTP2_ENHANCE_YOUR_CALM, "too\x1bmany") + data(1, "x", true), true, {get(), get()});
  CHECK(h.log.text() ==
        "1 head 200@9 :status=200;\ngoaway 1 ENHANCE_YOUR_CALM too\x1bmany\n3 ended unprocessed REFUSED_STREAM [] \n1 body x\n1 ended whole NO_ERROR [] \n");
  H2Connection c(true, {});
  c.start();
  Log log;
  H2Submitted s;
  REQUIRE(!c.submit(get(), {}, &s));
  c.feed(settings() + goaway(1, 0, std::string(5000, 'x')), log);
  CHECK(c.no_submit() == "goaway");
  CHECK(c.submit(get(), {}, &s));
  CHECK_FALSE(c.dead());
  CHECK(log.events.front().size() == std::string("goaway 1 NO_ERROR ").size() + H2Goaway::kDebug);
}

TEST_CASE("an answer that does not wait for the request's end is whole, and the rest of the request stays here") {
  H2Connection c(true, {});
  c.start();
  Log log;
  H2Submitted s;
  REQUIRE(!c.submit(post(letters(100000)), {}, &s));
  c.feed(settings() + headers(1, {{":status", "413"}}, true), log);
  CHECK(log.ends.at(1).why == H2End::Why::WHOLE);
  CHECK_FALSE(log.ends.at(1).request_whole);
  std::string out = c.pending();
  CHECK(out.find(reset(1, NGHTTP2_CANCEL)) != std::string::npos);
  c.feed(h2_frame_of(kH2WindowUpdate, 0, 0, number(100000)), log);
  CHECK(c.pending() == "");
}

TEST_CASE("the peer closes: what is open is cut") {
  Heard h = hear(settings() + headers(1, kOk) + data(1, "he"), true, {get(), get()}, {}, true);
  CHECK(h.log.text() == "1 head 200@9 :status=200;\n1 body he\n1 ended cut NO_ERROR [short-body@42] \n3 ended cut NO_ERROR [] \n");
  CHECK(h.facts == "");
  CHECK(hear("", true, {get()}, {}, true).facts == "empty-response@0");
  std::string cut = settings() + headers(1, kOk);
  cut.pop_back();
  CHECK(hear(cut, true, {get()}, {}, true).facts == "h2-cut@9");
}

TEST_CASE("cancel and abandon") {
  H2Connection c(true, {});
  c.start();
  Log log;
  H2Submitted s;
  REQUIRE(!c.submit(get(), {}, &s));
  c.feed(settings() + headers(1, kOk), log);
  c.pending();
  c.cancel(1, log);
  CHECK(c.pending() == reset(1, NGHTTP2_CANCEL));
  CHECK(log.events.back() == "1 ended cancelled CANCEL [] ");
  c.cancel(1, log);
  CHECK(log.events.size() == 2);
  REQUIRE(!c.submit(get(), {}, &s));
  c.abandon();
  CHECK(c.no_submit() == "dead");
  CHECK(c.submit(get(), {}, &s)->id == "h2-no-submit");
  CHECK(c.feed(headers(3, kOk, true), log) == 0);
  CHECK(c.pending() == "");
  CHECK(log.events.size() == 2);
}

TEST_CASE("a reader that wants no more has the stream reset, one that throws ends the connection") {
  for (bool throws : {false, true}) {
    H2Connection c(true, {});
    c.start();
    Log log;
    log.stop_at = 1;
    log.throws = throws;
    H2Submitted s;
    REQUIRE(!c.submit(get(), {}, &s));
    c.feed(settings() + headers(1, kOk) + data(1, "hello") + data(1, "more", true), log);
    CHECK(log.bodies[1] == "hello");
    CHECK(c.dead() == throws);
    CHECK(log.ends.at(1).why == (throws ? H2End::Why::CONNECTION : H2End::Why::REFUSED));
    if (!throws) CHECK(ids(log.ends.at(1).oddities) == "reader-stopped");
    else CHECK(c.oddities().has(OddityId::READER_STOPPED));
  }
}

TEST_CASE("pings and settings are acknowledged") {
  Heard h = hear(settings() + ping());
  CHECK(h.pending == h2_frame_of(kH2Settings, kH2Ack, 0, "") + h2_frame_of(kH2Ping, kH2Ack, 0, "12345678"));
}

TEST_CASE("what is not HTTP/2, or not in its order, ends the connection") {
  fatal("HTTP/1.1 400 Bad Request\r\n\r\n", "not-h2", NGHTTP2_PROTOCOL_ERROR);
  fatal(headers(1, kOk, true), "not-h2", NGHTTP2_PROTOCOL_ERROR);
  fatal(h2_frame_of(kH2Settings, kH2Ack, 0, ""), "not-h2", NGHTTP2_PROTOCOL_ERROR);
  fatal(settings() + data(1, "x"), "h2-data-before-head", NGHTTP2_PROTOCOL_ERROR);
  fatal(settings() + headers(1, {{":status", "100"}}) + data(1, "x"), "h2-data-before-head", NGHTTP2_PROTOCOL_ERROR);
  for (uint32_t stream : {0U, 2U, 3U, 0x7fffffffU}) {
    fatal(settings() + headers(stream, kOk, true), "h2-stream-id", NGHTTP2_PROTOCOL_ERROR);
    fatal(settings() + data(stream, "x", true), "h2-stream-id", NGHTTP2_PROTOCOL_ERROR);
    fatal(settings() + reset(stream, 0), "h2-stream-id", NGHTTP2_PROTOCOL_ERROR);
  }
  fatal(settings() + h2_frame_of(kH2Ping, 0, 1, "12345678"), "h2-stream-id", NGHTTP2_PROTOCOL_ERROR);
  fatal(settings() + h2_frame_of(kH2WindowUpdate, 0, 3, number(1)), "h2-stream-id", NGHTTP2_PROTOCOL_ERROR);
  fatal(settings() + h2_frame_of(kH2Push, kH2EndHeaders, 1, number(2) + hpack({{":method", "GET"}})), "h2-push", NGHTTP2_PROTOCOL_ERROR);
  fatal(settings() + std::string("\xff\xff\xff\0\0\0\0\0\1", 9), "h2-frame-size", NGHTTP2_FRAME_SIZE_ERROR);
  fatal(settings() + h2_frame_of(kH2Data, 0, 1, std::string(16385, 'x')), "h2-frame-size", NGHTTP2_FRAME_SIZE_ERROR);
  fatal(settings() + h2_frame_of(kH2Headers, 0, 1, hpack(kOk)) + ping(), "h2-block-broken", NGHTTP2_PROTOCOL_ERROR);
  fatal(settings() + h2_frame_of(kH2Continuation, kH2EndHeaders, 1, hpack(kOk)), "h2-block-broken", NGHTTP2_PROTOCOL_ERROR);
  fatal(settings() + h2_frame_of(kH2Headers, 0, 1, "") + h2_frame_of(kH2Continuation, kH2EndHeaders, 3, hpack(kOk)), "h2-block-broken", NGHTTP2_PROTOCOL_ERROR);
  // These nghttp2 finds.
  fatal(settings() + h2_frame_of(kH2Ping, 0, 0, "1234"), "h2-protocol", NGHTTP2_FRAME_SIZE_ERROR);
  fatal(settings() + h2_frame_of(kH2Settings, 0, 0, "1234"), "h2-protocol", NGHTTP2_FRAME_SIZE_ERROR);
  fatal(settings(std::string("\0\4", 2) + number(0x80000000)), "h2-protocol", NGHTTP2_FLOW_CONTROL_ERROR);
  fatal(settings() + h2_frame_of(kH2WindowUpdate, 0, 0, number(0x7fffffff)), "h2-protocol", NGHTTP2_FLOW_CONTROL_ERROR);
  fatal(settings() + h2_frame_of(kH2Goaway, 0, 0, "1234"), "h2-protocol", NGHTTP2_FRAME_SIZE_ERROR);
}

TEST_CASE("a window that the peer oversteps ends what it overstepped: the stream, or the connection") {
  H2Limits limits{.window = 1000, .connection_window = 70000};
  std::string begin = settings() + h2_frame_of(kH2Settings, kH2Ack, 0, "") + headers(1, kOk);
  Heard h = hear(begin + data(1, letters(600)) + data(1, letters(600), true), true, {get()}, limits);
  CHECK(h.log.ends.at(1).why == H2End::Why::WHOLE);
  CHECK(h.log.bodies[1].size() == 1200);
  for (bool strict : {true, false}) {
    h = hear(begin + data(1, letters(1500), true) + headers(3, kOk, true), strict, {get(), get()}, limits);
    CHECK(h.log.ends.at(1).why == H2End::Why::REFUSED);
    CHECK(h.log.ends.at(1).code_name == "FLOW_CONTROL_ERROR");
    CHECK(ids(h.log.ends.at(1).oddities) == "h2-stream-error");
    CHECK(h.log.ends.at(3).why == H2End::Why::WHOLE);
  }
}

TEST_CASE("header blocks that do not decode end the connection") {
  auto block = [&](std::string_view bytes) { return settings() + h2_frame_of(kH2Headers, kH2EndHeaders, 1, bytes); };
  fatal(block("\x80"), "h2-hpack", NGHTTP2_COMPRESSION_ERROR);                                       // index 0
  fatal(block("\xff\xff\xff\xff\xff\xff\xff\xff"), "h2-hpack", NGHTTP2_COMPRESSION_ERROR);           // an index beyond all tables
  fatal(block(std::string("\0\x05" "ab", 4)), "h2-hpack", NGHTTP2_COMPRESSION_ERROR);                // a name that is cut
  fatal(block(std::string("\0\x81\xff\0", 4)), "h2-hpack", NGHTTP2_COMPRESSION_ERROR);               // Huffman padding that is none
  fatal(block("\x3f\xff\xff\xff\x07"), "h2-hpack", NGHTTP2_COMPRESSION_ERROR);                       // a table larger than ours
}

TEST_CASE("header blocks have bounds, whatever they unpack to") {
  H2Limits limits{.head_bytes = 2000, .fields = 10};
  auto lines = [](size_t n, size_t size) {
    Lines out = kOk;
    for (size_t i = 1; i < n; i++) out.emplace_back("a", std::string(size, 'v'));
    return out;
  };
  CHECK(hear(settings() + headers(1, lines(10, 1), true), true, {get()}, limits).log.ends.at(1).why == H2End::Why::WHOLE);
  fatal(settings() + headers(1, lines(11, 1), true), "too-many-headers", NGHTTP2_ENHANCE_YOUR_CALM, limits);
  fatal(settings() + headers(1, lines(2, 2000), true), "head-too-large", NGHTTP2_ENHANCE_YOUR_CALM, limits);
  // One entry of the table, then a byte for each time that it is said again.
  std::string bomb;
  bomb.push_back('\x40');
  bomb += std::string("\1a", 2);
  append_hpack_number(&bomb, 0, 7, 3000);
  bomb += std::string(3000, 'v') + std::string(10000, '\xbe');
  fatal(settings() + h2_frame_of(kH2Headers, kH2EndHeaders, 1, bomb), "head-too-large", NGHTTP2_ENHANCE_YOUR_CALM);

  auto continued = [&](size_t n) {
    std::string out = settings() + h2_frame_of(kH2Headers, 0, 1, hpack(kOk));
    for (size_t i = 1; i <= n; i++) out += h2_frame_of(kH2Continuation, i == n ? kH2EndHeaders : 0, 1, hpack({{"a", "b"}}));
    return out;
  };
  CHECK(hear(continued(8)).log.heads[1].fields.size() == 9);
  fatal(continued(9), "h2-continuations", NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_CASE("frames that bring nothing have a bound, and what brings something resets it") {
  H2Limits limits{.idle_frames = 20};
  const std::vector<std::string> nothing = {
      ping(), settings(), data(1, ""), h2_frame_of(kH2Priority, 0, 1, number(0) + "1"), h2_frame_of(kH2WindowUpdate, 0, 0, number(1)),
      h2_frame_of(0x77, 0, 0, "x"), h2_frame_of(kH2Data, kH2Padded, 1, std::string("\3\0\0\0", 4)), goaway(0x7fffffff, 0)};
  for (const std::string& frame : nothing) {
    std::string flood = settings() + headers(1, kOk);
    for (int i = 0; i < 21; i++) flood += frame;
    fatal(flood, "h2-no-progress", NGHTTP2_ENHANCE_YOUR_CALM, limits);
    std::string slow = settings() + headers(1, kOk);
    for (int i = 0; i < 60; i++) slow += i % 15 == 0 ? data(1, "x") : frame;
    slow += data(1, "", true);
    Heard h = hear(slow, true, {get()}, limits);
    INFO(h.facts);
    CHECK(h.log.bodies[1] == "xxxx");
    CHECK(h.log.ends.at(1).why == H2End::Why::WHOLE);
  }
  // Resets of streams that are long gone.
  std::string resets = settings() + headers(1, kOk, true);
  for (int i = 0; i < 21; i++) resets += reset(1, 0);
  fatal(resets, "h2-no-progress", NGHTTP2_ENHANCE_YOUR_CALM, limits);
  // A thousand pings in one piece are no more than a thousand one by one.
  std::string pings = settings();
  for (int i = 0; i < 999; i++) pings += ping();
  CHECK(hear(pings).facts == "");
  fatal(pings + ping(), "h2-no-progress", NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_CASE("bytes have bounds, of a stream and of the connection") {
  Heard h = hear(answer(kOk), true, {get()}, {.body_bytes = 4});
  CHECK(h.log.bodies[1] == "hell");
  CHECK(ids(h.log.ends.at(1).oddities) == "too-many-bytes");
  CHECK_FALSE(h.dead);
  fatal(answer(kOk), "too-many-bytes", NGHTTP2_ENHANCE_YOUR_CALM, {.bytes = 40});
  CHECK_FALSE(hear(answer(kOk), true, {get()}, {.bytes = answer(kOk).size()}).dead);
}

TEST_CASE("frames of other types are passed over and noted") {
  Heard h = hear(settings() + h2_frame_of(0xa, 0, 0, std::string("\0\0h3=\":443\"", 12)) + headers(1, kOk, true));
  CHECK(h.facts == "h2-extension-frame@9");
  CHECK(h.log.ends.at(1).why == H2End::Why::WHOLE);
}

TEST_CASE("every fact of HTTP/2 has an id of its own") {
  std::map<std::string, int> seen;
  for (size_t i = 0; i < oddity_kinds(); i++) seen[std::string(oddity_id(static_cast<OddityId>(i)))]++;
  CHECK(seen.size() == oddity_kinds());
  CHECK(oddity_from_id("h2-value-break") == OddityId::H2_VALUE_BREAK);
}
