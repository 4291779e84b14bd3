#include "plugins/websec-http/http/response.hpp"
#include "plugins/websec-http/http/websocket_handshake.hpp"
#include "tests/support/catch.hpp"

using namespace h5i::websec;

namespace {

std::array<uint8_t, 16> sample() {
  std::array<uint8_t, 16> out{};
  for (size_t i = 0; i < 16; i++) out[i] = static_cast<uint8_t>("the sample nonce"[i]);
  return out;
}
Request ask(const std::vector<std::string>& lines = {}) {
  Request r;
  r.authority = "a.test";
  r.target = "/chat";
  for (const std::string& l : lines) REQUIRE(!r.headers.add_line(l));
  return r;
}
std::string head_of(const Request& r) {
  Written w;
  REQUIRE(!write_request(r, &w));
  return w.head;
}
std::string ids(const Oddities& oddities) {
  std::string out;
  for (const Oddity& o : oddities.list()) out += (out.empty() ? "" : " ") + std::string(oddity_id(o.id)) + (o.count > 1 ? "*" + std::to_string(o.count) : "");
  return out;
}
WsAnswer judge(const std::string& lines, bool strict = true, const std::vector<std::string>& protocols = {"chat", "v2"}, const char* status = "101") {
  Request r = ask();
  WsHandshake asked;
  REQUIRE(!open_websocket(&r, sample(), protocols, &asked));
  ResponseRules rules;
  rules.upgrade = true;
  ResponseParser p(rules);
  StringSink sink;
  p.feed("HTTP/1.1 " + std::string(status) + " X\r\n" + lines + "\r\n", sink);
  REQUIRE(p.has_head());
  return judge_websocket(p.head(), asked, strict);
}

const std::string kUp = "Upgrade: WebSocket\r\n", kConnection = "Connection: keep-alive, Upgrade\r\n",
                  kAccept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", kGood = kUp + kConnection + kAccept;

// Shut when strict, open when lenient, with this fact in both.
void ambiguous(const std::string& lines, const std::string& facts, const std::vector<std::string>& protocols = {}) {
  INFO(lines);
  WsAnswer no = judge(lines, true, protocols), yes = judge(lines, false, protocols);
  CHECK_FALSE(no.open);
  CHECK(ids(no.oddities) == facts);
  CHECK(yes.open);
  CHECK(ids(yes.oddities) == facts);
}

}  // namespace

TEST_CASE("the handshake's key and its answer, as in RFC 6455 section 1.3") {
  CHECK(websocket_key(sample()) == "dGhlIHNhbXBsZSBub25jZQ==");
  CHECK(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST_CASE("a request becomes the opening of a WebSocket: what it lacks is added and named") {
  Request r = ask({"Origin: https://a.test"});
  WsHandshake w;
  REQUIRE(!open_websocket(&r, sample(), {"chat", "v2"}, &w));
  CHECK(head_of(r) ==
        "GET /chat HTTP/1.1\r\nHost: a.test\r\nOrigin: https://a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: chat, v2\r\n\r\n");
  CHECK(w.computed.size() == 5);
  CHECK(w.computed.front() == "Upgrade: websocket");
  CHECK(w.notes.empty());
  CHECK(w.protocols == std::vector<std::string>{"chat", "v2"});
  Request plain = ask();
  REQUIRE(!open_websocket(&plain, {}, {}, &w));
  CHECK_FALSE(plain.headers.find("sec-websocket-protocol"));
  CHECK(plain.headers.find("sec-websocket-key")->value() == "AAAAAAAAAAAAAAAAAAAAAA==");
  CHECK(w.notes.empty());
}

TEST_CASE("what the author wrote stays, and is noted where a server should turn it down") {
  Request r = ask({"upgrade: foo", "connection: close", "sec-websocket-version: 8", "sec-websocket-key: short", "Sec-WebSocket-Protocol: x"});
  r.method = "POST";
  std::string before = head_of(r);
  WsHandshake w;
  REQUIRE(!open_websocket(&r, sample(), {}, &w));
  CHECK(head_of(r) == before);
  CHECK(w.computed.empty());
  CHECK(w.notes == std::vector<std::string_view>{"method", "upgrade", "connection", "version", "key"});
  CHECK(w.key == "short");
  CHECK(w.protocols == std::vector<std::string>{"x"});
  for (const char* key : {"dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25jZ-==", "dGhlIHNhbXBsZSBub25jZQ=="}) {
    Request own = ask({std::string("Sec-WebSocket-Key: ") + key});
    REQUIRE(!open_websocket(&own, sample(), {}, &w));
    CHECK(w.notes.empty() == (std::string_view(key) == "dGhlIHNhbXBsZSBub25jZQ=="));
    CHECK(w.key == key);
  }
}

TEST_CASE("what could not be read or is no handshake is refused, and the request stays as it was") {
  auto refused = [](Request r, const std::vector<std::string>& protocols = {}) {
    size_t before = r.headers.lines().size();
    WsHandshake w;
    bool no = open_websocket(&r, sample(), protocols, &w).has_value();
    if (no) CHECK(r.headers.lines().size() == before);
    return no;
  };
  CHECK_FALSE(refused(ask()));
  CHECK(refused(ask({"Sec-WebSocket-Extensions: permessage-deflate"})));
  CHECK(refused(ask({"Sec-WebSocket-Key: a", "Sec-WebSocket-Key: b"})));
  CHECK(refused(ask({"Sec-WebSocket-Protocol: a"}), {"b"}));
  CHECK(refused(ask(), {"a b"}));
  CHECK(refused(ask(), {""}));
  CHECK(refused(ask(), {"a", "a"}));
  CHECK(refused(ask({"Sec-WebSocket-Protocol: a, a"})));
  Request body = ask();
  body.body = "";
  CHECK(refused(body));
  Request old = ask();
  old.minor = 0;
  CHECK(refused(old));
}

TEST_CASE("an answer to the handshake is judged by each of its headers") {
  WsAnswer good = judge(kGood + "Sec-WebSocket-Protocol: v2\r\n");
  CHECK(good.open);
  CHECK(good.protocol == "v2");
  CHECK(ids(good.oddities) == "");
  CHECK(judge(kGood, true, {}).open);
  CHECK(ids(judge(kGood, true, {}).oddities) == "");
  WsAnswer none = judge(kGood);
  CHECK(none.open);
  CHECK(ids(none.oddities) == "ws-no-protocol");
  ambiguous(kConnection + kAccept, "ws-upgrade");
  ambiguous(kUp + kAccept, "ws-upgrade");
  ambiguous(kAccept, "ws-upgrade*2");
  ambiguous("Upgrade: h2c\r\n" + kConnection + kAccept, "ws-upgrade");
  ambiguous(kUp + kConnection, "ws-accept");
  ambiguous(kUp + kConnection + "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", "ws-accept");
  ambiguous(kGood + kAccept, "ws-accept");
  ambiguous(kGood + "Sec-WebSocket-Protocol: v3\r\n", "ws-protocol", {"v2"});
  ambiguous(kGood + "Sec-WebSocket-Protocol: V2\r\n", "ws-protocol", {"v2"});
  ambiguous(kGood + "Sec-WebSocket-Protocol: v2\r\nSec-WebSocket-Protocol: v2\r\n", "ws-protocol", {"v2"});
  ambiguous(kGood + "Sec-WebSocket-Protocol: v2\r\n", "ws-protocol");
}

TEST_CASE("another status and an extension leave the socket shut in both modes") {
  for (bool strict : {true, false}) {
    for (const char* status : {"200", "400", "426"}) {
      WsAnswer a = judge(kGood, strict, {}, status);
      CHECK_FALSE(a.open);
      CHECK(ids(a.oddities) == "ws-not-opened");
      CHECK(a.oddities.list().front().detail == status);
    }
    WsAnswer a = judge(kGood + "Sec-WebSocket-Extensions: permessage-deflate\r\n", strict, {});
    CHECK_FALSE(a.open);
    CHECK(ids(a.oddities) == "ws-extension");
  }
}
