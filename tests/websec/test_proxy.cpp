// CONNECT through a proxy: the bytes, the answer, and whether scope lets both machines be reached.
#include "plugins/websec-http/http/proxy.hpp"
#include "plugins/websec-http/scope/route.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

HeaderList lines(const std::vector<std::string>& of) {
  HeaderList out;
  for (const std::string& l : of) REQUIRE(!out.add_line(l));
  return out;
}
std::string refused(std::string_view authority, const std::vector<std::string>& headers = {}) {
  ProxyAsk ask;
  auto no = write_connect(authority, lines(headers), &ask);
  CHECK(ask.head.empty() == no.has_value());
  return no ? std::string(no->id) : "";
}
std::string ids(const Oddities& oddities) {
  std::string out;
  for (const Oddity& o : oddities.list()) out += (out.empty() ? "" : " ") + std::string(oddity_id(o.id));
  return out;
}
struct Said {
  ProxyAnswer answer;
  ResponseParser::State state;
  std::string head_facts;
};
Said answered(const std::string& bytes, bool strict = true) {
  ResponseRules rules;
  rules.strict = strict;
  rules.connect = true;
  ResponseParser p(rules);
  StringSink sink;
  size_t used = p.feed(bytes, sink);
  return {judge_proxy(p, std::string_view(bytes).substr(used), strict), p.state(), ids(p.oddities())};
}

Url url(const char* text) {
  auto u = Url::parse(text);
  REQUIRE(u);
  return *u;
}
std::string route(const char* scope_text, const char* target, const char* proxy) {
  auto scope = Scope::parse(scope_text);
  INFO(scope_text);
  REQUIRE(scope);
  auto p = parse_proxy(proxy);
  REQUIRE(p);
  Route r = decide_route(*scope, url(target), *p);
  CHECK(r.allowed == (r.reason == RouteReason::ALLOWED));
  std::string told = explain_route(*scope, url(target), *p, r).text();
  CHECK(told.starts_with(r.allowed ? "allowed" : "denied"));
  CHECK(told.find("\n  " + url(target).protocol()) != std::string::npos);
  CHECK(told.find("\n  " + p->protocol()) != std::string::npos);
  return std::string(name(r.reason));
}

}  // namespace

TEST_CASE("CONNECT names host and port, and credentials are told by name") {
  ProxyAsk ask;
  REQUIRE(!write_connect("203.0.113.7:443", lines({"User-Agent: t", "proxy-authorization: Basic c2VjcmV0"}), &ask));
  CHECK(ask.head == "CONNECT 203.0.113.7:443 HTTP/1.1\r\nHost: 203.0.113.7:443\r\nUser-Agent: t\r\nproxy-authorization: Basic c2VjcmV0\r\n\r\n");
  CHECK(ask.computed == std::vector<std::string>{"Host: 203.0.113.7:443"});
  CHECK(ask.credentials == std::vector<std::string>{"proxy-authorization"});
  CHECK(refused("[2001:db8::1]:443") == "");
  CHECK(refused("a.test:443", {"Host: a.test:443"}) == "");
}

TEST_CASE("what is for the target, or no authority, does not go to a proxy") {
  for (const char* header : {"Authorization: Basic x", "cookie: a=b", "Content-Length: 0", "Transfer-Encoding: chunked", "Host: b.test:443"})
    CHECK(refused("a.test:443", {header}) == "proxy-connect");
  CHECK(refused("a.test:443", {"Host: a.test:443", "Host: a.test:443"}) == "proxy-connect");
  for (const char* authority : {"", ":443", "a.test", "a.test:", "a.test:0", "a.test:65536", "a.test:443x", "a.test:4 3", "a b:443", "a/b:443", "u@a.test:443",
                                "::1:443", "[]:443", "a.test:000443", "a\r\n.test:443"})
    CHECK(refused(authority) == "proxy-connect");
}

TEST_CASE("2xx opens the tunnel, whatever length it claims; nothing else does") {
  Said ok = answered("HTTP/1.1 200 Connection established\r\n\r\n");
  CHECK(ok.answer.tunnel);
  CHECK(ok.answer.status == 200);
  CHECK(ids(ok.answer.oddities) == "");
  Said length = answered("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  CHECK(length.answer.tunnel);
  CHECK(length.head_facts == "length-on-connect");
  for (bool strict : {true, false}) {
    for (const char* status : {"302", "403", "502"}) {
      Said no = answered("HTTP/1.1 " + std::string(status) + " X\r\nContent-Length: 0\r\n\r\n", strict);
      CHECK_FALSE(no.answer.tunnel);
      CHECK(ids(no.answer.oddities) == "proxy-refused");
      CHECK(no.answer.oddities.list().front().detail == status);
    }
  }
  CHECK(answered("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").answer.tunnel);
  CHECK_FALSE(answered("HTTP/1.1 200 OK\r\n").answer.tunnel);
  CHECK_FALSE(answered("SSH-2.0-x\r\n\r\n").answer.tunnel);
  CHECK_FALSE(answered("HTTP/1.1 200 OK\nA: b\n\n").answer.tunnel);
  CHECK(answered("HTTP/1.1 200 OK\nA: b\n\n", false).answer.tunnel);
}

TEST_CASE("407 tells the schemes, as tokens only and not more than a few") {
  Said no = answered("HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"a\"\r\nProxy-Authenticate: Digest realm=b\r\nproxy-authenticate: Basic\r\n"
                     "Proxy-Authenticate: \x1b[31m\r\nContent-Length: 0\r\n\r\n",
                     false);
  CHECK_FALSE(no.answer.tunnel);
  CHECK(ids(no.answer.oddities) == "proxy-authentication");
  CHECK(no.answer.schemes == std::vector<std::string>{"Basic", "Digest"});
  std::string many = "HTTP/1.1 407 X\r\n";
  for (int i = 0; i < 50; i++) many += "Proxy-Authenticate: s" + std::to_string(i) + "\r\n";
  CHECK(answered(many + "\r\n").answer.schemes.size() == ProxyAnswer::kSchemes);
}

TEST_CASE("bytes in the tunnel before we spoke leave it shut, and open when lenient") {
  std::string bytes = "HTTP/1.1 200 OK\r\n\r\n\x16\x03";
  Said no = answered(bytes), yes = answered(bytes, false);
  CHECK_FALSE(no.answer.tunnel);
  CHECK(yes.answer.tunnel);
  CHECK(ids(no.answer.oddities) == "proxy-early-bytes");
  CHECK(no.answer.oddities.list().front().offset == 19);
  CHECK(ids(yes.answer.oddities) == "proxy-early-bytes");
}

TEST_CASE("a proxy is an address without anything else") {
  for (const char* text : {"http://proxy.test:3128", "https://proxy.test", "http://127.0.0.1:8080/", "http://[::1]:3128"}) CHECK(parse_proxy(text));
  for (const char* text : {"socks5://proxy.test:1080", "ftp://proxy.test", "proxy.test:3128", "proxy.test", "",
                           "http://u:hunter2@proxy.test", "http://proxy.test/x",
                           "http://proxy.test/?q", "http://proxy.test/#f", "ws://proxy.test"}) {
    auto no = parse_proxy(text);
    INFO(text);
    REQUIRE_FALSE(no);
    CHECK(no.error().text.find("hunter2") == std::string::npos);
  }
}

TEST_CASE("target and proxy both need the scope, and the proxy a rule of its own") {
  const char* both = "allow a.test\nallow http://proxy.test:3128";
  CHECK(route(both, "https://a.test/x", "http://proxy.test:3128") == "allowed");
  CHECK(route(both, "wss://a.test/x", "http://proxy.test:3128") == "allowed");
  CHECK(route(both, "https://b.test/", "http://proxy.test:3128") == "target");
  CHECK(route(both, "https://b.test/", "http://other.test:3128") == "target");
  CHECK(route(both, "https://a.test/", "http://other.test:3128") == "proxy");
  CHECK(route(both, "https://a.test/", "http://proxy.test:3129") == "proxy");
  CHECK(route(both, "https://a.test/", "https://proxy.test:3128") == "proxy");
  CHECK(route("allow a.test", "https://a.test/", "http://proxy.test:3128") == "proxy");
  // What the proxy is allowed by was not written for it.
  CHECK(route("allow *.test\nallow http://*.test:3128", "https://a.test/", "http://proxy.test:3128") == "proxy-rule");
  CHECK(route("allow a.test\nallow http://proxy.test:3128/", "https://a.test/", "http://proxy.test:3128") == "proxy-rule");
  CHECK(route("allow a.test\nallow http://*.test:3128\nallow http://proxy.test:3128", "https://a.test/", "http://proxy.test:3128") == "allowed");
  // A deny of either holds.
  CHECK(route("allow a.test\nallow http://proxy.test:3128\ndeny proxy.test", "https://a.test/", "http://proxy.test:3128") == "proxy");
  CHECK(route("allow a.test\nallow http://proxy.test:3128\ndeny a.test/admin", "https://a.test/admin", "http://proxy.test:3128") == "target");
  CHECK(route("allow a.test\nallow http://proxy.test:3128\ndeny a.test/admin", "https://a.test/b", "http://proxy.test:3128") == "allowed");
  // Through itself.
  CHECK(route(both, "http://proxy.test:3128/", "http://proxy.test:3128") == "proxy-loop");
  CHECK(route("allow proxy.test:3128\nallow http://proxy.test:3128", "https://proxy.test:3128/", "http://proxy.test:3128") == "proxy-loop");
  CHECK(route("allow proxy.test\nallow http://proxy.test:3128", "https://proxy.test/", "http://proxy.test:3128") == "allowed");
}

TEST_CASE("the proxy's address is judged by the proxy's rule, the target's by the target's") {
  auto scope = Scope::parse("allow a.test\nallow http://proxy.test:3128 at loopback");
  REQUIRE(scope);
  Url target = url("https://a.test/"), proxy = url("http://proxy.test:3128");
  Route r = decide_route(*scope, target, proxy);
  REQUIRE(r.allowed);
  Address loopback = *parse_address("127.0.0.1"), outside = *parse_address("203.0.114.7");
  CHECK(choose_address(*scope, r.proxy, proxy, {loopback}).pinned);
  CHECK_FALSE(choose_address(*scope, r.proxy, proxy, {outside}).pinned);
  CHECK(choose_address(*scope, r.target, target, {outside}).pinned);
  CHECK_FALSE(choose_address(*scope, r.target, target, {loopback}).pinned);
}

TEST_CASE("the tunnel goes to the pinned address; by name only when there is none") {
  Url target = url("https://a.test/x");
  CHECK(tunnel_authority(target, parse_address("203.0.113.7")) == "203.0.113.7:443");
  CHECK(tunnel_authority(target, parse_address("2001:db8::1")) == "[2001:db8::1]:443");
  CHECK(tunnel_authority(target, std::nullopt) == "a.test:443");
  CHECK(tunnel_authority(url("http://a.test:8080/"), std::nullopt) == "a.test:8080");
  CHECK(tunnel_authority(url("wss://[::1]/"), std::nullopt) == "[::1]:443");
  for (const char* t : {"203.0.113.7:443", "[2001:db8::1]:443", "a.test:443"}) CHECK(refused(t) == "");
}

TEST_CASE("a refused route says what to write, and shows no credentials of the target") {
  auto scope = Scope::parse("allow a.test\nallow http://*.test:3128");
  REQUIRE(scope);
  Url target = url("https://u:hunter2@a.test/?hunter2"), proxy = url("http://proxy.test:3128");
  std::string told = explain_route(*scope, target, proxy, decide_route(*scope, target, proxy)).text();
  CHECK(told.starts_with(
      "denied: the proxy needs a rule of its own, without a wildcard and without a path: \"allow http://proxy.test:3128\"\n  https://a.test/"));
  CHECK(told.find("hunter2") == std::string::npos);
  CHECK(Scope::parse("allow a.test\nallow http://proxy.test:3128"));
}
