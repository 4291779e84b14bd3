#include "plugins/websec-http/facts/facts.hpp"

#include <chrono>

#include "plugins/websec-http/http/response.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/slower.hpp"

using namespace h5i::websec;

namespace {

struct Given {
  std::string lines;  // of the response, each with CRLF
  std::string body;
  std::string request = "GET /p HTTP/1.1\r\nHost: a.test\r\n\r\n";
  bool secure = true;
  int status = 200;
};
// A page that shows nothing: each case changes one thing of it.
const std::string kPage = "Content-Type: text/html; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nStrict-Transport-Security: max-age=31536000\r\n"
                          "Content-Security-Policy: default-src 'self'; base-uri 'none'; frame-ancestors 'none'\r\nCache-Control: no-store\r\n";

// "id@place:offset(detail)"; the place and the offset as the bytes that stand there.
std::string facts(const Given& g) {
  ResponseRules rules;
  rules.strict = false;
  ResponseParser p(rules);
  StringSink sink;
  std::string head = "HTTP/1.1 " + std::to_string(g.status) + " X\r\n" + g.lines + "\r\n";
  p.feed(head, sink);
  REQUIRE(p.has_head());
  PassiveFacts f = passive_facts({g.secure, g.secure ? "https://a.test" : "http://a.test", g.request, &p.head(), g.body});
  std::string out;
  for (const PassiveFact& one : f.list()) {
    const std::string& where = one.place == FactPlace::BODY ? g.body : one.place == FactPlace::REQUEST_HEAD ? g.request : head;
    REQUIRE(one.offset <= where.size());
    out += (out.empty() ? "" : " ") + std::string(passive_id(one.id)) + "@" + where.substr(one.offset, 4) + "(" + one.detail + ")";
  }
  return out;
}
std::string with(const std::string& lines, const std::string& body = "x", Given g = {}) {
  g.lines = kPage + lines;
  g.body = body;
  return facts(g);
}
// The page with one of its own lines replaced.
std::string replaced(const std::string& name, const std::string& line) {
  std::string lines = kPage;
  size_t at = lines.find(name + ":");
  REQUIRE(at != std::string::npos);
  lines.replace(at, lines.find("\r\n", at) + 2 - at, line);
  return facts({.lines = lines, .body = "x"});
}
std::string in_body(const std::string& body, bool secure = true) {
  std::string lines = kPage;
  if (!secure) lines.erase(lines.find("Strict-Transport"), lines.find("Content-Security") - lines.find("Strict-Transport"));
  return facts({.lines = lines, .body = body, .secure = secure});
}

}  // namespace

TEST_CASE("a careful page shows nothing") {
  CHECK(with("") == "");
  CHECK(with("Set-Cookie: __Host-id=1; Secure; HttpOnly; Path=/; SameSite=Lax\r\n") == "");
  CHECK(with("Server: nginx\r\nVia: 1.1 cache\r\n") == "");
  CHECK(with("", "<script src=/a.js></script><script src='https://a.test/b'></script><img src='https://b.test/i'><!-- <script src='http://x.test/'> --><form action='/p'>10.0.0 1.2.3.4.5 8.8.8.8") == "");
}

TEST_CASE("cookies by name, each at its header") {
  CHECK(with("Set-Cookie: id=secret\r\n") == "cookie-no-secure@Set-(id) cookie-no-httponly@Set-(id) cookie-no-samesite@Set-(id)");
  CHECK(with("set-cookie: id=1; SECURE; httponly; samesite=NONE; domain=.test\r\n") == "cookie-samesite-none@set-(id) cookie-domain@set-(id)");
  CHECK(with("Set-Cookie: __Host-a=1; HttpOnly; SameSite=Lax; Secure\r\n") == "cookie-prefix-broken@Set-(__Host-a)");
  CHECK(with("Set-Cookie: __Host-a=1; HttpOnly; SameSite=Lax; Secure; Path=/; Domain=a.test\r\n") == "cookie-domain@Set-(__Host-a) cookie-prefix-broken@Set-(__Host-a)");
  CHECK(with("Set-Cookie: __Secure-a=1; HttpOnly; SameSite=Lax; Secure\r\n") == "");
  CHECK(with("Set-Cookie: id=; Max-Age=0\r\n") == "");
}

TEST_CASE("content security policies") {
  auto csp = [](const std::string& p) { return replaced("Content-Security-Policy", "Content-Security-Policy: " + p + "\r\n"); };
  std::string rest = "; base-uri 'none'; frame-ancestors 'none'";
  CHECK(replaced("Content-Security-Policy", "X-Frame-Options: DENY\r\n") == "csp-missing@HTTP()");
  CHECK(replaced("Content-Security-Policy", "X-Frame-Options: DENY\r\nContent-Security-Policy-Report-Only: default-src 'none'\r\n") == "csp-report-only@Cont() csp-missing@HTTP()");
  CHECK(csp("img-src 'self'" + rest) == "csp-no-script-src@Cont() csp-no-object-src@Cont()");
  CHECK(csp("default-src 'self' 'unsafe-inline'" + rest) == "csp-unsafe-inline@Cont()");
  CHECK(csp("default-src 'self' 'unsafe-inline' 'nonce-x'" + rest) == "");
  CHECK(csp("script-src 'self' 'unsafe-eval'; object-src 'none'" + rest) == "csp-unsafe-eval@Cont()");
  for (std::string any : {"*", "https:", "data:"}) CHECK(csp("script-src " + any + "; object-src 'none'" + rest) == "csp-wildcard@Cont()");
  CHECK(csp("script-src 'strict-dynamic' 'nonce-x' https: 'unsafe-inline'; object-src 'none'" + rest) == "");
  CHECK(csp("default-src 'self'; frame-ancestors 'none'") == "csp-no-base-uri@Cont()");
  // Two policies hold together.
  CHECK(csp("script-src *" + rest + ", default-src 'self'") == "");
  CHECK(csp("script-src *" + rest + "\r\nContent-Security-Policy: default-src 'self'") == "");
  CHECK(csp("default-src 'self'; default-src *" + rest) == "");
}

TEST_CASE("transport") {
  auto hsts = [](const std::string& v) { return replaced("Strict-Transport-Security", v.empty() ? "" : "Strict-Transport-Security: " + v + "\r\n"); };
  CHECK(hsts("") == "hsts-missing@HTTP()");
  CHECK(hsts("max-age=0") == "hsts-off@Stri()");
  CHECK(hsts("max-age=3600; includeSubDomains") == "hsts-short@Stri(3600)");
  CHECK(hsts("includeSubDomains; MAX-AGE=\"99999999999999999999\"") == "");
  for (std::string bad : {"x", "max-age", "max-age=-1", "max-age=1;max-age=2"}) CHECK(hsts(bad).starts_with("hsts-invalid@Stri("));
  Given plain{.lines = kPage, .body = "x", .request = "GET / HTTP/1.1\r\nHost: a.test\r\nCookie: id=1\r\nauthorization: Basic eA==\r\n\r\n", .secure = false};
  CHECK(facts(plain) == "credentials-in-clear@auth(authorization) credentials-in-clear@Cook(Cookie) hsts-on-http@Stri()");
}

TEST_CASE("who may read a response") {
  Given asks{.request = "GET / HTTP/1.1\r\nHost: a.test\r\nOrigin: https://b.test\r\n\r\n"};
  CHECK(with("Access-Control-Allow-Origin: *\r\n", "x", asks) == "cors-any@Acce()");
  CHECK(with("Access-Control-Allow-Origin: https://a.test\r\n", "x", asks) == "");
  CHECK(with("Access-Control-Allow-Origin: null\r\nVary: accept, ORIGIN\r\n", "x", asks) == "cors-null@Acce()");
  CHECK(with("Access-Control-Allow-Origin: https://b.test\r\nVary: Origin\r\n", "x", asks) == "cors-reflected@Acce(https://b.test)");
  CHECK(with("Access-Control-Allow-Origin: https://b.test\r\nAccess-Control-Allow-Credentials: true\r\n", "x", asks) ==
        "cors-reflected@Acce(https://b.test) cors-credentials@Acce(https://b.test) cors-no-vary@Acce(https://b.test)");
  CHECK(with("Access-Control-Allow-Origin: https://c.test\r\nVary: *\r\n", "x", asks) == "");
}

TEST_CASE("sniffing, framing, referrers, versions") {
  CHECK(replaced("X-Content-Type-Options", "") == "nosniff-missing@HTTP()");
  CHECK(replaced("X-Content-Type-Options", "X-Content-Type-Options: yes\r\n") == "nosniff-missing@X-Co(yes)");
  CHECK(facts({.lines = "Strict-Transport-Security: max-age=31536000\r\nX-Content-Type-Options: nosniff\r\n", .body = "x"}) == "content-type-missing@HTTP()");
  std::string loose = "Content-Security-Policy: default-src 'self'; base-uri 'none'\r\n";
  CHECK(replaced("Content-Security-Policy", loose) == "framing-allowed@HTTP()");
  CHECK(replaced("Content-Security-Policy", loose + "X-Frame-Options: ALLOW-FROM x\r\n") == "framing-allowed@X-Fr(ALLOW-FROM x)");
  CHECK(replaced("Content-Security-Policy", loose + "X-Frame-Options: sameorigin\r\n") == "");
  CHECK(with("Location: /a\r\nlocation: /b\r\nLocation: /c\r\nVary: a\r\nVary: b\r\n") == "header-repeated@loca(location)");
  CHECK(with("Alt-Svc: h3=\":443\"; ma=86400\r\n") == "alt-svc@Alt-(h3=\":443\"; ma=86400)");
  CHECK(with("Referrer-Policy: no-referrer, Unsafe-URL\r\n") == "referrer-unsafe@Refe()");
  CHECK(with("Server: Apache/2.4.1\r\nX-Powered-By: PHP/7\r\nVia: 1.1 squid/3\r\n") == "leak-version@Serv(Apache/2.4.1) leak-version@X-Po(PHP/7) leak-version@Via:(1.1 squid/3)");
}

TEST_CASE("what a shared cache may keep") {
  Given login{.request = "GET / HTTP/1.1\r\nHost: a.test\r\nCookie: id=1\r\n\r\n"};
  std::string cookie = "Set-Cookie: id=1; Secure; HttpOnly; SameSite=Lax\r\n";
  auto cached = [&](const std::string& v, Given g) {
    g.lines = kPage;
    size_t at = g.lines.find("Cache-Control: no-store\r\n");
    g.lines.replace(at, 25, v.empty() ? "" : "Cache-Control: " + v + "\r\n");
    g.body = "x";
    return facts(g);
  };
  CHECK(cached("max-age=60", login) == "cache-credentials@Cach(max-age=60)");
  CHECK(cached("private, max-age=60", login) == "");
  CHECK(cached("private=\"x\", max-age=60", login) == "cache-credentials@Cach(private=\"x\", max-age=60)");
  CHECK(cached("", login) == "cache-not-said@HTTP()");
  CHECK(cached("", {}) == "");
  CHECK(cached("public\r\n" + cookie.substr(0, cookie.size() - 2), {}) == "cache-cookie@Cach(public)");
  login.request = "GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: x\r\n\r\n";
  CHECK(cached("max-age=60", login) == "");  // RFC 9111 section 3.5 keeps it out by itself
  CHECK(cached("s-maxage=60", login) == "cache-credentials@Cach(s-maxage=60)");
  login.request = "POST / HTTP/1.1\r\nHost: a.test\r\nCookie: id=1\r\n\r\n";
  CHECK(cached("public", login) == "");
}

TEST_CASE("mixed content, at the URL in the page") {
  CHECK(in_body("<SCRIPT async src=http://a.test/x></script>") == "mixed-active@http(a.test)");
  CHECK(in_body("<iframe\nsrc = \" http://b.test:8/x\">") == "mixed-active@ htt(b.test:8)");
  CHECK(in_body("<link href='http://b.test/c' rel=Stylesheet>") == "mixed-active@http(b.test)");
  CHECK(in_body("<a><img alt='>' src='http://b.test?x'/>") == "mixed-passive@http(b.test)");
  CHECK(in_body("<form method=post action=http://b.test>") == "mixed-form@http(b.test)");
  CHECK(in_body("<script src='//cdn.test/x'></script>") == "no-integrity@//cd(cdn.test)");
  CHECK(in_body("<script src='https://cdn.test/x' integrity='sha256-x'></script>") == "");
  CHECK(in_body("<script>var s = \"<img src='http://b.test'>\";</script><img src=\"http://c.test\">") == "mixed-passive@http(c.test)");
  CHECK(in_body("<input type=password><img src='http://b.test/'>", false) == "password-in-clear@pass()");
  for (std::string cut : {"<", "<img", "<img src", "<img src=", "<img src='http://b.test", "<!--", "<script>", "<script", "</"}) CHECK((in_body(cut) == "" || cut.find("http") != std::string::npos));
  // Text that is no page is not read as one.
  CHECK(facts({.lines = "Content-Type: text/plain\r\nX-Content-Type-Options: nosniff\r\nStrict-Transport-Security: max-age=31536000\r\n", .body = "<img src='http://b.test'>"}) == "");
}

TEST_CASE("what should not have been in a body or a URL, without its value") {
  CHECK(in_body("-----BEGIN RSA PRIVATE KEY-----\nMIIE") == "leak-private-key@----(RSA PRIVATE KEY)");
  CHECK(in_body("-----BEGIN CERTIFICATE-----\nMIIE") == "");
  CHECK(in_body("k=AKIAABCDEFGHIJKLMNOP;") == "leak-cloud-key@AKIA(AKIA)");
  CHECK(in_body("AKIAABCDEFGHIJKLMNOPQ xAKIAABCDEFGHIJKLMNOP AKIAabc") == "");
  CHECK(in_body("\"eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln\"") == "leak-token@eyJh()");
  CHECK(in_body("eyJh.eyJz eyJh.x.y") == "");
  CHECK(in_body("see 192.168.1.20, v10.0.0.1.2 and 172.32.0.1, 172.31.0.1.") == "leak-address@192.(192.168.1.20) leak-address@172.(172.31.0.1)");
  CHECK(with("X-Backend: 10.1.2.3:8080\r\n") == "leak-address@10.1(10.1.2.3)");
  CHECK(in_body("Traceback (most recent call last):\n") == "leak-trace@Trac(Traceback (most recent call last))");
  CHECK(in_body("<title>Index of /backup</title>") == "leak-listing@<tit(<title>Index of /)");
  CHECK(in_body("//# sourceMappingURL=a.js.map") == "leak-source-map@sour(sourceMappingURL=)");
  Given asks{.request = "GET /p?a=1&Access_Token=s3cret&token=&key HTTP/1.1\r\nHost: a.test\r\n\r\n"};
  CHECK(with("", "x", asks) == "secret-in-url@Acce(Access_Token)");
}

TEST_CASE("facts are bounded and cost what reading costs") {
  std::string body;
  for (int i = 0; i < 20000; i++) body += "<img src='http://b.test'> 10.0.0.1 ";
  ResponseParser p({});
  StringSink sink;
  p.feed("HTTP/1.1 200 X\r\n" + kPage + "\r\n", sink);
  PassiveFacts f = passive_facts({true, "https://a.test", "GET / HTTP/1.1\r\n\r\n", &p.head(), body});
  CHECK(f.list().size() == 2 * PassiveFacts::kOfAKind);
  CHECK(f.count(PassiveId::MIXED_PASSIVE) == 20000);
  for (std::string piece : {"<", "<a ", "<script>", "<!--", "</", "eyJ", "eyJ.", "AKIA", "-----BEGIN ", "<a b='", "1.", "10.0.0.", "<x =", "< "}) {
    std::string hostile;
    while (hostile.size() < (1u << 21)) hostile += piece;
    auto start = std::chrono::steady_clock::now();
    passive_facts({true, "https://a.test", "GET / HTTP/1.1\r\n\r\n", &p.head(), hostile});
    INFO(piece);
    CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 5 * h5i::test::kSlower);
  }
}
