#include "plugins/websec-http/http/websocket.hpp"

#include "tests/support/catch.hpp"

using namespace h5i::websec;

namespace {

struct Seen : WsSink {
  std::string frames, messages;
  size_t left = SIZE_MAX;
  bool frame(const WsFrame& f, std::string_view p) override {
    frames += std::to_string(f.opcode) + (f.final ? "" : "+") + ":" + std::string(p) + "@" + std::to_string(f.offset) + ";";
    return --left > 0;
  }
  bool message(uint8_t opcode, std::string_view p) override {
    messages += std::to_string(opcode) + ":" + std::string(p) + ";";
    return true;
  }
};
struct Out {
  std::string frames, messages, facts;
  size_t used = 0;
  bool closed = false;
  std::optional<uint16_t> close_code, failure;
  bool operator==(const Out&) const = default;
};
Out run(std::string_view s, bool client, bool strict, WsLimits limits, size_t step) {
  Seen seen;
  WebsocketReader r(client, strict, limits);
  Out o;
  while (o.used < s.size()) {
    size_t n = r.feed(s.substr(o.used, step), seen);
    o.used += n;
    if (n < std::min(step, s.size() - o.used + n)) break;
  }
  if (!r.oddities().refused()) r.end();
  o.frames = seen.frames;
  o.messages = seen.messages;
  o.closed = r.closed();
  o.close_code = r.close_code();
  o.failure = r.failure_code();
  for (const Oddity& f : r.oddities().list()) o.facts += (o.facts.empty() ? "" : " ") + std::string(oddity_id(f.id)) + "@" + std::to_string(f.offset);
  return o;
}
Out read(std::string_view s, bool strict = true, bool client = false, WsLimits limits = {}) {
  Out whole = run(s, client, strict, limits, s.size() + 1);
  for (size_t step : {size_t(1), size_t(2), size_t(3), size_t(7)}) {
    Out o = run(s, client, strict, limits, step);
    CHECK(o.messages == whole.messages);
    CHECK(o.frames == whole.frames);
    CHECK(o.facts == whole.facts);
    CHECK(o.failure == whole.failure);
  }
  return whole;
}
std::string frame(uint8_t opcode, std::string_view payload, bool final = true, uint8_t reserved = 0) {
  return websocket_frame({.final = final, .reserved = reserved, .opcode = opcode}, payload, {});
}
// Strict mode refuses with this fact and this code; lenient mode reads these messages.
void ambiguous(const std::string& s, const std::string& fact, uint16_t code, const std::string& messages) {
  INFO(fact);
  Out no = read(s);
  CHECK(no.facts == fact + "@0");
  CHECK(no.failure == code);
  Out yes = read(s, false);
  CHECK(yes.facts.starts_with(fact));
  CHECK(yes.messages == messages);
  CHECK_FALSE(yes.failure);
}

}  // namespace

TEST_CASE("the frames of RFC 6455 section 5.7") {
  CHECK(frame(kWsText, "Hello") == "\x81\x05Hello");
  CHECK(websocket_frame({}, "Hello", std::array<uint8_t, 4>{0x37, 0xfa, 0x21, 0x3d}) == "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
  CHECK(frame(kWsText, "Hel", false) + frame(kWsContinuation, "lo") == std::string("\x01\x03Hel\x80\x02lo", 9));
  CHECK(frame(kWsBinary, std::string(256, 'x')).substr(0, 4) == std::string("\x82\x7e\x01\x00", 4));
  CHECK(frame(kWsBinary, std::string(65536, 'x')).substr(0, 10) == std::string("\x82\x7f\0\0\0\0\0\x01\0\0", 10));
}

TEST_CASE("what was written is read, masked and not, at every length that changes the header") {
  for (size_t n : {size_t(0), size_t(1), size_t(125), size_t(126), size_t(127), size_t(65535), size_t(65536)}) {
    std::string payload(n, 'p');
    Seen seen;
    WebsocketReader server(false, true, {}), client(true, true, {});
    std::string plain = frame(kWsBinary, payload), masked = websocket_frame({.opcode = kWsBinary}, payload, std::array<uint8_t, 4>{1, 2, 3, 4});
    CHECK(server.feed(plain, seen) == plain.size());
    CHECK(client.feed(masked, seen) == masked.size());
    CHECK(seen.messages == "2:" + payload + ";2:" + payload + ";");
    CHECK(server.oddities().list().empty());
    CHECK(client.oddities().list().empty());
  }
}

TEST_CASE("messages in pieces, with control frames between them") {
  Out o = read(frame(kWsText, "a\xe2\x82", false) + frame(kWsPing, "p") + frame(kWsContinuation, "\xac", false) + frame(kWsContinuation, "") + frame(kWsBinary, "\xff"));
  CHECK(o.messages == "9:p;1:a\xe2\x82\xac;2:\xff;");
  CHECK(o.facts == "");
  CHECK(o.frames == "1+:a\xe2\x82@0;9:p@5;0+:\xac@8;0:@11;2:\xff@13;");
  CHECK(read(frame(kWsText, "a", false)).facts == "ws-cut@3");
  CHECK(read("\x81").facts == "ws-cut@1");
  CHECK(read("\x81\x05Hel").facts == "ws-cut@5");
}

TEST_CASE("frames that break a rule are refused, and read on leniently") {
  ambiguous(frame(kWsText, "x", true, 4), "ws-reserved-bits", 1002, "1:x;");
  ambiguous(frame(3, "x"), "ws-opcode", 1002, "");
  ambiguous(frame(11, "x"), "ws-opcode", 1002, "");
  ambiguous(websocket_frame({}, "x", std::array<uint8_t, 4>{1, 2, 3, 4}), "ws-masked", 1002, "1:x;");
  ambiguous(std::string("\x81\x7e\0\x01x", 5), "ws-length-not-minimal", 1002, "1:x;");
  ambiguous(std::string("\x81\x7f\0\0\0\0\0\0\0\x01x", 11), "ws-length-not-minimal", 1002, "1:x;");
  ambiguous(frame(kWsPing, "x", false), "ws-control-fragmented", 1002, "9:x;");
  ambiguous(frame(kWsPing, std::string(126, 'x')), "ws-control-long", 1002, "9:" + std::string(126, 'x') + ";");
  ambiguous(frame(kWsContinuation, "x"), "ws-continues-nothing", 1002, "");
  ambiguous(frame(kWsText, "\xff"), "ws-text-not-utf8", 1007, "1:\xff;");
  ambiguous(frame(kWsText, "\xed\xa0\x80"), "ws-text-not-utf8", 1007, "1:\xed\xa0\x80;");
  ambiguous(frame(kWsText, "\xe2\x82"), "ws-text-not-utf8", 1007, "1:\xe2\x82;");
  Out inside = read(frame(kWsText, "a", false) + frame(kWsText, "b"), false);
  CHECK(inside.facts == "ws-message-inside@3");
  CHECK(inside.messages == "1:b;");
  CHECK(read(frame(kWsText, "a", false) + frame(kWsText, "b")).failure == 1002);
  CHECK(read(frame(kWsText, "x"), true, true).facts == "ws-unmasked@0");
  // A text that cannot become UTF-8 is refused in the frame that breaks it, not at the message's end.
  CHECK(read(frame(kWsText, "a", false) + frame(kWsContinuation, "\xff", false) + frame(kWsContinuation, "b")).facts == "ws-text-not-utf8@3");
}

TEST_CASE("closing") {
  Out o = read(frame(kWsClose, websocket_close(1000, "bye")) + "rest");
  CHECK(o.closed);
  CHECK(o.close_code == 1000);
  CHECK(o.used == 7);
  CHECK(o.facts == "ws-after-close@7");
  CHECK(o.messages == std::string("8:\x03\xe8" "bye;"));
  CHECK(read(frame(kWsClose, "")).facts == "");
  CHECK_FALSE(read(frame(kWsClose, "")).close_code);
  ambiguous(frame(kWsClose, "x"), "ws-close-length", 1002, "8:x;");
  for (int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000}) {
    std::string payload = websocket_close(static_cast<uint16_t>(code), "");
    ambiguous(frame(kWsClose, payload), "ws-close-code", 1002, "8:" + payload + ";");
  }
  for (int code : {1000, 1003, 1007, 1011, 1014, 3000, 4999}) CHECK(read(frame(kWsClose, websocket_close(static_cast<uint16_t>(code), ""))).facts == "");
  ambiguous(frame(kWsClose, websocket_close(1000, "\xff")), "ws-close-not-utf8", 1007, "8:\x03\xe8\xff;");
  std::string cut = websocket_close(1000, std::string(122, 'a') + "\xe2\x82\xac");
  CHECK(cut.size() == 124);
  CHECK(websocket_close(1000, std::string(200, 'a')).size() == 125);
}

TEST_CASE("frames and messages have limits, and the highest bit of a length is no length") {
  WsLimits limits{8, 12};
  CHECK(read(frame(kWsText, "12345678"), true, false, limits).messages == "1:12345678;");
  CHECK(read(frame(kWsText, "123456789"), true, false, limits).facts == "ws-frame-too-large@0");
  CHECK(read(frame(kWsText, "123456789"), true, false, limits).failure == 1009);
  CHECK(read(frame(kWsText, "12345678", false) + frame(kWsContinuation, "1234"), true, false, limits).messages == "1:123456781234;");
  CHECK(read(frame(kWsText, "12345678", false) + frame(kWsContinuation, "12345"), false, false, limits).facts == "ws-message-too-large@10");
  CHECK(read(std::string("\x82\x7f\x80\0\0\0\0\0\0\0", 10), false).facts.starts_with("ws-length-too-large@0"));
  CHECK(read(std::string("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", 10), false).facts.starts_with("ws-frame-too-large@0"));
  Seen seen;
  seen.left = 1;
  WebsocketReader r(false, true, {});
  r.feed(frame(kWsText, "a") + frame(kWsText, "b"), seen);
  CHECK(r.oddities().refusal() == OddityId::READER_STOPPED);
  CHECK(seen.messages == "");
}
