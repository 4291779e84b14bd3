#include "plugins/websec-http/http/response.hpp"

#include "tests/support/catch.hpp"

using namespace h5i::websec;
using State = ResponseParser::State;

namespace {

struct Read {
  State state;
  int status = 0;
  std::string body, raw_head;
  std::string facts;  // "id@offset" or "id@offset*count", by order of appearance
  std::string refusal;
  size_t used = 0, fields = 0, interim = 0;
  std::string reuse;
  std::string trailer;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view bytes, const ResponseRules& rules, size_t step, bool close) {
  ResponseParser p(rules);
  StringSink sink;
  Read r;
  while (r.used < bytes.size() && !p.finished()) r.used += p.feed(bytes.substr(r.used, step), sink);
  if (r.used < bytes.size() && p.state() == State::DONE) CHECK(p.feed(bytes.substr(r.used), sink) == 0);
  r.reuse = p.no_reuse();
  if (close && !p.finished()) p.end();
  r.state = p.state();
  r.status = p.has_head() ? p.head().status : 0;
  r.fields = p.has_head() ? p.head().fields.size() : 0;
  r.body = sink.bytes;
  r.raw_head = p.raw_head();
  r.interim = p.interim().size();
  CHECK(p.body_bytes() == sink.bytes.size());
  CHECK(p.wire_bytes() == r.used);
  if (auto why = p.oddities().refusal()) r.refusal = oddity_id(*why);
  for (const Oddity& o : p.oddities().list()) {
    r.facts += (r.facts.empty() ? "" : " ") + std::string(oddity_id(o.id)) + "@" + std::to_string(o.offset);
    if (o.count > 1 && o.id != OddityId::TRAILING_BYTES) r.facts += "*" + std::to_string(o.count);
  }
  if (!p.trailers().empty()) r.trailer = p.trailers().field(0).name;
  return r;
}

// The answer is the same however the bytes are split.
Read lenient(std::string_view bytes, ResponseRules rules = {}) {
  rules.strict = false;
  Read whole = read(bytes, rules, bytes.size() + 1, true);
  for (size_t step : {size_t(1), size_t(2), size_t(3), size_t(7), size_t(64)}) {
    Read r = read(bytes, rules, step, true);
    INFO("in steps of " << step << ": " << r.facts << " for " << whole.facts);
    CHECK(r.body == whole.body);
    CHECK(r == whole);
  }
  return whole;
}
Read strict(std::string_view bytes, ResponseRules rules = {}) {
  rules.strict = true;
  Read whole = read(bytes, rules, bytes.size() + 1, true);
  for (size_t step : {size_t(1), size_t(2), size_t(5), size_t(64)}) {
    Read r = read(bytes, rules, step, true);
    INFO("in steps of " << step << ": " << r.facts << " for " << whole.facts);
    CHECK(r.body == whole.body);
    CHECK(r.state == whole.state);
    CHECK(r.facts == whole.facts);
    CHECK(r.raw_head == whole.raw_head);
  }
  return whole;
}

// An oddity of the weight STRICT: strict mode refuses with the head kept, lenient mode reads this body.
void ambiguous(const std::string& bytes, const std::string& fact, const std::string& body, ResponseRules rules = {}) {
  INFO(bytes);
  Read no = strict(bytes, rules);
  CHECK(no.state == State::REFUSED);
  CHECK((" " + no.facts).find(" " + fact) != std::string::npos);
  CHECK(!no.raw_head.empty());
  CHECK(bytes.find(no.raw_head) == 0);
  CHECK(no.reuse == "refused");
  Read yes = lenient(bytes, rules);
  CHECK((yes.state == State::DONE || yes.state == State::TUNNEL));
  CHECK((" " + yes.facts).find(" " + fact) != std::string::npos);
  CHECK(yes.body == body);
  CHECK(yes.reuse != "");
}
// A note: both modes read this body.
Read noted(const std::string& bytes, const std::string& facts, const std::string& body, ResponseRules rules = {}) {
  INFO(bytes);
  Read r = strict(bytes, rules);
  CHECK(r.facts == facts);
  CHECK(r.body == body);
  CHECK(r.refusal == "");
  Read l = lenient(bytes, rules);
  CHECK(l.facts == facts);
  CHECK(l.body == body);
  return r;
}
void fatal(const std::string& bytes, const std::string& refusal, ResponseRules rules = {}) {
  INFO(bytes.substr(0, 200));
  CHECK(strict(bytes, rules).refusal == refusal);
  CHECK(lenient(bytes, rules).refusal == refusal);
  CHECK(lenient(bytes, rules).state == State::REFUSED);
}

const std::string kOk = "HTTP/1.1 200 OK\r\n";
ResponseRules asked(bool head, bool connect = false, bool upgrade = false) {
  ResponseRules r;
  r.head = head;
  r.connect = connect;
  r.upgrade = upgrade;
  return r;
}

}  // namespace

TEST_CASE("a plain response, for every split of its bytes, and the connection may be used again") {
  Read r = noted(kOk + "Content-Length: 5\r\nA: b\r\n\r\nhello", "", "hello");
  CHECK(r.state == State::DONE);
  CHECK(r.status == 200);
  CHECK(r.fields == 2);
  CHECK(r.reuse == "");
  CHECK(noted(kOk + "Content-Length: 0\r\n\r\n", "", "").reuse == "");
  CHECK(noted(kOk + "Content-Length: 5\r\nConnection: x, Close\r\n\r\nhello", "", "hello").reuse == "connection-close");
  CHECK(noted("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "", "hello").reuse == "http-1.0");
  CHECK(noted("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\nhello", "", "hello").reuse == "");
  CHECK(noted(kOk + "\r\nhello", "", "hello").reuse == "not-complete");
  CHECK(noted("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "", "").reuse == "");
}

TEST_CASE("headers keep their case, order and place") {
  ResponseParser p({});
  StringSink sink;
  std::string bytes = kOk + "sET-cookie: a=1\r\nX:  spaced\t \r\nSet-Cookie: b=2\r\nEmpty:\r\nContent-Length: 0\r\n\r\n";
  p.feed(bytes, sink);
  REQUIRE(p.state() == State::DONE);
  const FieldBlock& f = p.head().fields;
  REQUIRE(f.size() == 5);
  CHECK(f.field(0).name == "sET-cookie");
  CHECK(f.field(0).offset == 17);
  CHECK(f.field(1).value == "spaced");
  CHECK(f.field(2).value == "b=2");
  CHECK(bytes.substr(f.field(2).offset, 10) == "Set-Cookie");
  CHECK(f.field(3).value == "");
  CHECK(f.count("set-cookie") == 2);
  CHECK(f.bytes() == bytes);
  CHECK(p.head().reason() == "OK");
}

TEST_CASE("statuses and methods without a body") {
  CHECK(noted("HTTP/1.1 204 No Content\r\n\r\n", "", "").state == State::DONE);
  noted("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "length-without-body@25", "");
  noted("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", "");
  noted(kOk + "Content-Length: 5\r\n\r\n", "", "", asked(true));
  noted(kOk + "Transfer-Encoding: chunked\r\n\r\n", "", "", asked(true));
  Read body = noted(kOk + "Content-Length: 5\r\n\r\nhello", "trailing-bytes@38", "", asked(true));
  CHECK(body.reuse == "trailing-bytes");
  // Without a body a length frames nothing, but what would be odd elsewhere is odd here.
  ambiguous(kOk + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "te-and-cl@17", "", asked(true));
  ambiguous(kOk + "Content-Length: 05\r\n\r\n", "cl-not-canonical@17", "", asked(true));
  ambiguous(kOk + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "cl-repeated@36", "", asked(true));
  ResponseParser p(asked(true));
  StringSink sink;
  p.feed(kOk + "Content-Length: 5\r\n\r\n", sink);
  CHECK(p.announced() == 5u);
}

TEST_CASE("tunnels and upgrades leave the rest alone") {
  Read r = noted(kOk + "\r\nTLS", "", "", asked(false, true));
  CHECK(r.state == State::TUNNEL);
  CHECK(r.used == kOk.size() + 2);
  CHECK(r.reuse == "tunnel");
  noted(kOk + "Content-Length: 5\r\n\r\nTLS", "length-on-connect@17", "", asked(false, true));
  CHECK(noted("HTTP/1.1 407 No\r\nContent-Length: 1\r\n\r\nx", "", "x", asked(false, true)).state == State::DONE);
  CHECK(noted("HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n\x81", "", "", asked(false, false, true)).state == State::TUNNEL);
  ambiguous("HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\nrest", "upgrade-unasked@0", "");
}

TEST_CASE("interim heads come before the final one, and not without end") {
  Read r = noted("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + kOk + "Content-Length: 1\r\n\r\nx", "", "x");
  CHECK(r.interim == 2);
  CHECK(r.status == 200);
  std::string many;
  for (int i = 0; i < 16; i++) many += "HTTP/1.1 100 C\r\n\r\n";
  CHECK(lenient(many + kOk + "Content-Length: 1\r\n\r\nx").body == "x");
  fatal(many + "HTTP/1.1 100 C\r\n\r\n" + kOk + "\r\n", "too-many-interim");
  noted("HTTP/1.1 100 C\r\nContent-Length: 3\r\n\r\n" + kOk + "Content-Length: 1\r\n\r\nx", "length-without-body@16", "x");
}

TEST_CASE("a connection that ends too early is told apart from one that ends well") {
  fatal("", "empty-response");
  fatal("HT", "head-cut");
  fatal("HTTP/1.1 200 OK\r\nA: b\r\n", "head-cut");
  CHECK(lenient("HTTP/1.1 200 OK\r\nA: b\r\n").raw_head == "HTTP/1.1 200 OK\r\nA: b\r\n");
  Read r = noted(kOk + "Content-Length: 5\r\n\r\nhel", "short-body@41", "hel");
  CHECK(r.state == State::SHORT);
  CHECK(r.reuse == "not-complete");
  for (std::string cut : {"5", "5\r", "5\r\n", "5\r\nhel", "5\r\nhello", "5\r\nhello\r\n", "5\r\nhello\r\n0\r\n", "5\r\nhello\r\n0\r\nA: b\r\n"})
    CHECK(lenient(kOk + "Transfer-Encoding: chunked\r\n\r\n" + cut).state == State::SHORT);
  CHECK(noted(kOk + "\r\n", "", "").state == State::DONE);
}

TEST_CASE("what is no HTTP is told by its first bytes") {
  fatal("SSH-2.0-OpenSSH_9.2\r\n", "not-http");
  fatal("<html>", "not-http");
  fatal("HTTP/1.1\r\n\r\n", "not-http");
  fatal("HTTP/1.1 OK\r\n\r\n", "not-http");
  fatal("HTTP/1.1 20x OK\r\n\r\n", "not-http");
  fatal("HTTP/1.1 9999999999 OK\r\n\r\n", "not-http");
  fatal(std::string("\0\0\x12\x04\0\0\0\0\0", 9), "not-http");
}

TEST_CASE("status lines that readers differ about") {
  std::string rest = "Content-Length: 1\r\n\r\nx";
  ambiguous("\r\n\r\n" + kOk + rest, "bytes-before-head@0*2", "x");
  ambiguous("http/1.1 200 OK\r\n" + rest, "bad-status-line@0", "x");
  ambiguous("HTTP/1.1  200 OK\r\n" + rest, "bad-status-line@0", "x");
  ambiguous("HTTP/1.1\t200 OK\r\n" + rest, "bad-status-line@0", "x");
  ambiguous("HTTP/1.1 200\tOK\r\n" + rest, "bad-status-line@0", "x");
  ambiguous("HTTP/1.1 0200 OK\r\n" + rest, "bad-status-line@0", "x");
  ambiguous("HTTP/1.2 200 OK\r\n" + rest, "bad-version@5", "x");
  ambiguous("HTTP/2 200 OK\r\n" + rest, "bad-version@5", "x");
  ambiguous("HTTP/1.10 200 OK\r\n" + rest, "bad-version@5", "x");
  ambiguous("HTTP/1.1 600 OK\r\n" + rest, "status-out-of-range@0", "x");
  ambiguous("HTTP/1.1 099 OK\r\n" + rest, "status-out-of-range@0", "x");
  noted("HTTP/1.1 200\r\n" + rest, "no-reason-space@12", "x");
}

TEST_CASE("header lines that readers differ about") {
  std::string rest = "Content-Length: 1\r\n\r\nx";
  ambiguous("HTTP/1.1 200 OK\nContent-Length: 1\n\nx", "bare-lf@15*3", "x");
  ambiguous(kOk + "A: b\n" + rest, "bare-lf@21", "x");
  ambiguous(kOk + "Content-Length: 1\r\n\nx", "bare-lf@36", "x");
  ambiguous(kOk + "A: b\rX: y\r\n" + rest, "bare-cr@21", "x");
  ambiguous(kOk + "A: b\r\r\n" + rest, "bare-cr@21", "x");
  ambiguous(kOk + std::string("A: \0b\r\n", 7) + rest, "nul-byte@20", "x");
  ambiguous(kOk + "A: b\r\n c\r\n\td\r\n" + rest, "obs-fold@23*2", "x");
  ambiguous(kOk + " A: b\r\n" + rest, "fold-without-header@17", "x");
  ambiguous(kOk + "nonsense\r\n" + rest, "no-colon@17", "x");
  ambiguous(kOk + "nonsense\r\n fold\r\n" + rest, "fold-without-header@27", "x");
  ambiguous(kOk + ": b\r\n" + rest, "empty-name@17", "x");
  ambiguous(kOk + "A(: b\r\n" + rest, "bad-name@17", "x");
  ambiguous(kOk + "A b: c\r\n" + rest, "bad-name@17", "x");
  ambiguous(kOk + "A : b\r\n" + rest, "space-before-colon@17", "x");
  ambiguous(kOk + "Content-Length : 1\r\n\r\nx", "space-before-colon@17", "x");
  noted(kOk + "A: \x1b[2J\r\n" + rest, "control-byte@20", "x");
  noted(kOk + "A: \xc3\xa9\r\n" + rest, "eight-bit@20*2", "x");
}

TEST_CASE("a folded value is joined, and a folded length counts") {
  ResponseRules rules;
  rules.strict = false;
  ResponseParser p(rules);
  StringSink sink;
  p.feed(kOk + "A:\r\n  one \r\n\ttwo\r\nContent-Length:\r\n 1\r\n\r\nx", sink);
  REQUIRE(p.state() == State::DONE);
  CHECK(unfolded(p.head().fields.field(0).value) == "one two");
  CHECK(sink.bytes == "x");
  CHECK(unfolded("a \r\n b\r\n\tc\nd") == "a b c d");
}

TEST_CASE("lengths that readers differ about") {
  auto with = [](const std::string& lines, const std::string& body) { return kOk + lines + "\r\n\r\n" + body; };
  ambiguous(with("Content-Length: 1\r\nContent-Length: 1", "x"), "cl-repeated@36", "x");
  ambiguous(with("Content-Length: 1, 1", "x"), "cl-list@17", "x");
  ambiguous(with("Content-Length: 01", "x"), "cl-not-canonical@17", "x");
  ambiguous(with("Content-Length: +1", "xyz"), "cl-invalid@17", "xyz");
  ambiguous(with("Content-Length: -1", "xyz"), "cl-invalid@17", "xyz");
  ambiguous(with("Content-Length: 0x1", "xyz"), "cl-invalid@17", "xyz");
  ambiguous(with("Content-Length:", "xyz"), "cl-invalid@17", "xyz");
  ambiguous(with("Content-Length: 9223372036854775808", "xyz"), "cl-too-large@17", "xyz");
  ambiguous(with("Content-Length: 18446744073709551617", "xyz"), "cl-too-large@17", "xyz");
  CHECK(lenient(with("Content-Length: 1", "xyz")).facts == "trailing-bytes@39");
}

TEST_CASE("lengths that contradict each other are read by nobody") {
  for (std::string lines : {"Content-Length: 1\r\nContent-Length: 2", "Content-Length: 1, 2", "Content-Length: 1,", "Content-Length: ,1", "Content-Length: 01, 1"}) {
    Read r = lenient(kOk + lines + "\r\n\r\nxyz");
    CHECK(r.state == State::REFUSED);
    CHECK(r.refusal == "cl-conflict");
    CHECK(r.raw_head == kOk + lines + "\r\n\r\n");
    CHECK(r.body == "");
    CHECK(strict(kOk + lines + "\r\n\r\nxyz").state == State::REFUSED);
  }
}

TEST_CASE("transfer codings that readers differ about") {
  auto with = [](const std::string& lines, const std::string& body = "1\r\nx\r\n0\r\n\r\n") { return kOk + lines + "\r\n\r\n" + body; };
  noted(with("Transfer-Encoding: chunked"), "", "x");
  noted(with("transfer-encoding:CHUNKED"), "", "x");
  ambiguous(with("Transfer-Encoding: chunked\r\nContent-Length: 3"), "te-and-cl@45", "x");
  ambiguous(with("Content-Length: 3\r\nTransfer-Encoding: chunked"), "te-and-cl@17", "x");
  ambiguous(with("Transfer-Encoding: chunked, chunked", "7\r\n0\r\n\r\nab\r\n0\r\n\r\n"), "te-chunked-twice@17", "0\r\n\r\nab");
  ambiguous(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), "te-chunked-twice@45", "x");
  ambiguous(with("Transfer-Encoding: chunked, identity", "raw"), "te-not-chunked-last@17", "raw");
  ambiguous(with("Transfer-Encoding: identity", "raw"), "te-not-chunked-last@17", "raw");
  ambiguous(with("Transfer-Encoding: gzip, chunked"), "te-coding@17", "x");
  ambiguous(with("Transfer-Encoding: xchunked", "raw"), "te-unknown@17", "raw");
  ambiguous(with("Transfer-Encoding: \x0b" "chunked", "raw"), "te-unknown@17", "raw");
  ambiguous(with("Transfer-Encoding: chunked;q=1", "raw"), "te-unknown@17", "raw");
  ambiguous(with("Transfer-Encoding: chunked,"), "te-malformed@17", "x");
  ambiguous(with("Transfer-Encoding:", "raw"), "te-malformed@17", "raw");
  ambiguous("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "te-on-1.0@17", "x");
  ambiguous(with("Transfer-Encoding : chunked"), "space-before-colon@17", "x");
}

TEST_CASE("chunks, their extensions and trailers") {
  std::string head = kOk + "Transfer-Encoding: chunked\r\n\r\n";
  auto at = [&](size_t n) { return std::to_string(head.size() + n); };
  CHECK(noted(head + "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n", "", "hello0123456789").reuse == "");
  noted(head + "0\r\n\r\n", "", "");
  noted(head + "1;a=b\r\nx\r\n0;c\r\n\r\n", "chunk-extension@" + at(1) + "*2", "x");
  noted(head + "0001\r\nx\r\n000\r\n\r\n", "chunk-size-zeros@" + at(5) + "*2", "x");
  Read t = noted(head + "1\r\nx\r\n0\r\nDigest: y\r\n\r\n", "trailers@" + at(9), "x");
  CHECK(t.trailer == "Digest");
  CHECK(noted(head + "1\r\nx\r\n0\r\n\r\nmore", "trailing-bytes@" + at(11), "x").reuse == "trailing-bytes");
  ambiguous(head + "1\nx\r\n0\r\n\r\n", "bare-lf@" + at(1), "x");
  ambiguous(head + "1\r\nx\n0\r\n\r\n", "bare-lf@" + at(4), "x");
  ambiguous(head + "1\r\nx\r\n0\n\n", "bare-lf@" + at(7), "x");
  ambiguous(head + "1 \r\nx\r\n0\r\n\r\n", "chunk-size-space@" + at(1), "x");
  ambiguous(head + " 1\r\nx\r\n0\r\n\r\n", "chunk-size-space@" + at(0), "x");
  ambiguous(head + "1;a\rb\r\nx\r\n0\r\n\r\n", "bare-cr@" + at(4), "x");
  ambiguous(head + "1;a\nx\r\n0\r\n\r\n", "bare-lf@" + at(3), "x");
  ambiguous(head + "1\r\nx\r\n0\r\nContent-Length: 5\r\n\r\n", "trailer-framing@" + at(9), "x");
  ambiguous(head + "1\r\nx\r\n0\r\nA: b\r\n c\r\n\r\n", "obs-fold@" + at(15), "x");
  for (const char* bad : {"x\r\n", "-1\r\n", "0x1\r\nx\r\n", "\r\n", ";a\r\n", "1x\r\n", "1\rx", "1\r\r\n"}) fatal(head + bad, "chunk-size-invalid");
  fatal(head + "8000000000000000\r\n", "chunk-size-too-large");
  fatal(head + "10000000000000001\r\nx", "chunk-size-too-large");
  fatal(head + std::string(65, '0') + "\r\n", "chunk-size-too-large");
  fatal(head + "1\r\nxy", "chunk-overrun");
  fatal(head + "1\r\nx\r\r\n", "chunk-overrun");
}

TEST_CASE("each limit is a fact of its own, and what lies at the limit passes") {
  ResponseRules rules;
  rules.limits.head_bytes = 64;
  std::string head = kOk + "Content-Length: 1\r\n";
  std::string at_limit = head + "A: " + std::string(64 - head.size() - 7, 'a') + "\r\n\r\n";
  REQUIRE(at_limit.size() == 64);
  noted(at_limit + "x", "", "x", rules);
  std::string over = head + "A: " + std::string(64 - head.size() - 6, 'a') + "\r\n\r\n";
  fatal(over + "x", "head-too-large", rules);
  CHECK(lenient(over + "x", rules).raw_head == over.substr(0, 64));
  fatal("HTTP/1.1 200 " + std::string(100000, 'a'), "head-too-large", rules);
  fatal(std::string(100000, '\n'), "head-too-large", rules);

  rules = {};
  rules.limits.fields = 2;
  noted(kOk + "Content-Length: 1\r\nA: b\r\n\r\nx", "", "x", rules);
  fatal(kOk + "Content-Length: 1\r\nA: b\r\nC: d\r\n\r\nx", "too-many-headers", rules);

  std::string chunked = kOk + "Transfer-Encoding: chunked\r\n\r\n";
  rules = {};
  rules.limits.chunks.extension_bytes = 4;
  CHECK(lenient(chunked + "1;aa\r\nx\r\n0\r\n\r\n", rules).body == "x");
  fatal(chunked + "1;aaaaaaaa\r\nx\r\n0\r\n\r\n", "chunk-extensions-too-long", rules);
  fatal(chunked + "1;aa\r\nx\r\n1;aa\r\nx\r\n0\r\n\r\n", "chunk-extensions-too-long", rules);
  CHECK(lenient(chunked + "1" + std::string(1000, ' '), rules).refusal == "chunk-extensions-too-long");
  CHECK(lenient(chunked + std::string(1000, ' ') + "1", rules).refusal == "chunk-size-invalid");

  rules = {};
  rules.limits.chunks.trailer_bytes = 8;
  noted(chunked + "0\r\nA: b\r\n\r\n", "trailers@" + std::to_string(chunked.size() + 3), "", rules);
  fatal(chunked + "0\r\nA: bc\r\n\r\n", "trailers-too-large", rules);
  rules = {};
  rules.limits.chunks.trailer_fields = 1;
  fatal(chunked + "0\r\nA: b\r\nC: d\r\n\r\n", "too-many-headers", rules);

  rules = {};
  std::string ten = kOk + "Content-Length: 10\r\n\r\n0123456789";
  rules.limits.bytes = ten.size();
  noted(ten, "", "0123456789", rules);
  rules.limits.bytes = ten.size() - 1;
  fatal(ten, "too-many-bytes", rules);
  CHECK(lenient(ten, rules).body == "012345678");
  rules.limits.bytes = kOk.size() + 12;
  fatal(kOk + "\r\n0123456789a", "too-many-bytes", rules);
}

TEST_CASE("a sink that wants no more stops the reading") {
  struct Full : BodySink {
    bool take(std::string_view) override { return false; }
  } full;
  for (std::string bytes : {kOk + "Content-Length: 9\r\n\r\nx", kOk + "\r\nx", kOk + "Transfer-Encoding: chunked\r\n\r\n5\r\nx"}) {
    ResponseParser p({});
    p.feed(bytes, full);
    CHECK(p.state() == State::REFUSED);
    CHECK(p.oddities().refusal() == OddityId::READER_STOPPED);
  }
}

TEST_CASE("facts do not grow with the input") {
  std::string bytes = kOk;
  for (int i = 0; i < 20000; i++) bytes += "a\n";
  ResponseRules rules;
  rules.strict = false;
  ResponseParser p(rules);
  StringSink sink;
  p.feed(bytes + "\n", sink);
  REQUIRE(p.has_head());
  CHECK(p.oddities().list().size() == 2);
  CHECK(p.oddities().list()[1].count == 20000);
}

TEST_CASE("the id of each oddity is one, and leads back to it") {
  for (size_t i = 0; i < oddity_kinds(); i++) {
    auto id = static_cast<OddityId>(i);
    CHECK(oddity_from_id(oddity_id(id)) == id);
    CHECK(!oddity_meaning(id).empty());
  }
  CHECK_FALSE(oddity_from_id("none"));
}
