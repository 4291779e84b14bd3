#include "plugins/websec-http/scope/scope.hpp"

#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

Scope scope_of(const char* text) {
  auto scope = Scope::parse(text);
  INFO(text);
  REQUIRE(scope);
  return *scope;
}

// "allowed", or the word for why not.
std::string decide(const Scope& scope, const char* url) {
  auto parsed = Url::parse(url);
  INFO(url);
  REQUIRE(parsed);
  Decision d = scope.decide(*parsed);
  CHECK(d.allowed == (d.reason == Reason::ALLOWED));
  CHECK((!d.allowed || !d.by.empty()));
  return std::string(name(d.reason));
}

std::string refused(const char* text) {
  auto scope = Scope::parse(text);
  return scope ? "accepted as " + scope->text() : scope.error().text;
}

struct Case {
  const char* url;
  const char* want;
};

}  // namespace

TEST_CASE("a bare host is https on its default port and nothing else", "[scope]") {
  Scope scope = scope_of("allow example.com");
  CHECK(scope.text() == "allow https://example.com\n");
  for (const Case& c : {Case{"https://example.com/", "allowed"},
                        {"https://EXAMPLE.com:443/x?y#z", "allowed"},
                        {"wss://example.com/", "allowed"},
                        {"http://example.com/", "no-allow"},
                        {"https://example.com:444/", "no-allow"},
                        {"https://www.example.com/", "no-allow"},
                        {"https://example.com.evil.test/", "no-allow"},
                        {"https://example.com@evil.test/", "no-allow"},
                        {"https://evil.test/example.com", "no-allow"},
                        {"https://notexample.com/", "no-allow"},
                        {"https://example.com./", "no-allow"},
                        {"ftp://example.com/", "scheme"},
                        {"file:///etc/passwd", "scheme"},
                        {"data:,x", "scheme"},
                        {"blob:https://example.com/1", "scheme"},
                        {"javascript:alert(1)", "scheme"},
                        {"foo://example.com/", "scheme"}}) {
    INFO(c.url);
    CHECK(decide(scope, c.url) == c.want);
  }
}

TEST_CASE("a wildcard is what lies below a name and not the name", "[scope]") {
  Scope scope = scope_of("allow *.example.com\nallow http://*.example.com:8080");
  for (const Case& c : {Case{"https://a.example.com/", "allowed"},
                        {"https://a.b.example.com/", "allowed"},
                        {"http://a.example.com:8080/", "allowed"},
                        {"ws://a.example.com:8080/", "allowed"},
                        {"https://example.com/", "no-allow"},
                        {"https://.example.com/", "no-allow"},
                        {"https://aexample.com/", "no-allow"},
                        {"https://evilexample.com/", "no-allow"},
                        {"https://a.example.com.evil.test/", "no-allow"},
                        {"http://a.example.com/", "no-allow"},
                        {"https://a.example.com:8080/", "no-allow"},
                        {"https://a.EXAMPLE%2Ecom/", "allowed"},
                        {"https://evil.test%2f.example.com/", "parse"},
                        {"https://127.0.0.1/", "no-allow"}}) {
    INFO(c.url);
    if (std::string(c.want) == "parse")
      CHECK(!Url::parse(c.url));
    else
      CHECK(decide(scope, c.url) == c.want);
  }
  CHECK(decide(scope_of("allow *.example.com\nallow example.com"), "https://example.com/") == "allowed");
}

TEST_CASE("a deny comes first, and without scheme or port it is every one", "[scope]") {
  Scope scope = scope_of(
      "allow *.example.com\nallow http://*.example.com\nallow https://*.example.com:8443\n"
      "deny admin.example.com\ndeny *.internal.example.com\ndeny x.example.com:8443\ndeny http://y.example.com");
  for (const Case& c : {Case{"https://admin.example.com/", "deny-rule"},
                        {"http://admin.example.com/", "deny-rule"},
                        {"https://admin.example.com:8443/", "deny-rule"},
                        {"wss://admin.example.com/", "deny-rule"},
                        {"https://ADMIN.example.com/", "deny-rule"},
                        {"https://admin.example.com./", "deny-rule"},
                        {"https://a.internal.example.com/", "deny-rule"},
                        {"https://internal.example.com/", "allowed"},
                        {"https://x.example.com:8443/", "deny-rule"},
                        {"https://x.example.com/", "allowed"},
                        {"http://y.example.com/", "deny-rule"},
                        {"ws://y.example.com/", "deny-rule"},
                        {"https://y.example.com/", "allowed"},
                        {"https://a.admin.example.com/", "allowed"}}) {
    INFO(c.url);
    CHECK(decide(scope, c.url) == c.want);
  }
  CHECK(decide(scope_of("allow notexample.com\ndeny *.example.com"), "https://notexample.com/") == "allowed");
  CHECK(decide(scope_of("allow http://[::ffff:127.0.0.1]\nallow http://127.0.0.1\ndeny 127.0.0.1:80"), "http://[::ffff:7f00:1]/") == "deny-rule");
  CHECK(decide(scope_of("allow http://[::ffff:127.0.0.1]"), "http://[::ffff:7f00:1]/") == "allowed");
}

TEST_CASE("a scope with only denies is refused and says why", "[scope]") {
  CHECK(refused("deny example.com") == "scope: only denies, so nothing could be sent: a deny takes away from what an allow gives; add an allow");
  CHECK(refused("") == "scope: no rule, so nothing could be sent; add an allow");
  CHECK(refused("# nothing\n\n") == "scope: no rule, so nothing could be sent; add an allow");
}

TEST_CASE("an address in a scope is that address in all its spellings", "[scope]") {
  Scope scope = scope_of("allow http://127.0.0.1:8080\nallow http://[::1]");
  for (const Case& c : {Case{"http://127.0.0.1:8080/", "allowed"},
                        {"http://0x7f.1:8080/", "allowed"},
                        {"http://2130706433:8080/", "allowed"},
                        {"http://[0:0::1]/", "allowed"},
                        {"http://127.0.0.2:8080/", "no-allow"},
                        {"http://[::ffff:127.0.0.1]:8080/", "no-allow"},
                        {"http://localhost:8080/", "no-allow"},
                        {"http://127.0.0.1/", "no-allow"}}) {
    INFO(c.url);
    CHECK(decide(scope, c.url) == c.want);
  }
  CHECK(scope_of("allow http://0177.1:8080").text() == "allow http://127.0.0.1:8080\n");
}

TEST_CASE("an allowed path is that path and what is below, in every reading", "[scope]") {
  Scope scope = scope_of("allow https://a.test/app\nallow https://b.test/x/*.json\nallow https://c.test/dir/");
  for (const Case& c : {Case{"https://a.test/app", "allowed"},
                        {"https://a.test/app/", "allowed"},
                        {"https://a.test/app/x?y=/z", "allowed"},
                        {"https://a.test/app/a%20b", "allowed"},
                        {"https://a.test/apple", "other-path"},
                        {"https://a.test/", "other-path"},
                        {"https://a.test/APP", "other-path"},
                        {"https://a.test/app/../admin", "other-path"},
                        {"https://a.test/app/%2e%2e/admin", "other-path"},
                        {"https://a.test/app/..%2fadmin", "other-path"},
                        {"https://a.test/app/%2e%2e%2fadmin", "other-path"},
                        {"https://a.test/app/%252e%252e%252fadmin", "other-path"},
                        {"https://a.test/app/..%5cadmin", "other-path"},
                        {"https://a.test/app/..;/admin", "other-path"},
                        {"https://a.test/%61pp", "other-path"},
                        {"https://a.test//app", "other-path"},
                        {"https://a.test/app/x/../y", "allowed"},
                        {"https://a.test/app//x", "allowed"},
                        {"https://b.test/x/y.json", "allowed"},
                        {"https://b.test/x/y/z.json", "allowed"},
                        {"https://b.test/x/y.json.php", "other-path"},
                        {"https://b.test/x/.json", "allowed"},
                        {"https://b.test/x/..%2fy.json", "other-path"},
                        {"https://c.test/dir", "other-path"},
                        {"https://c.test/dir/", "allowed"},
                        {"https://c.test/dir/x", "allowed"}}) {
    INFO(c.url);
    CHECK(decide(scope, c.url) == c.want);
  }
}

TEST_CASE("a denied path is denied in any reading", "[scope]") {
  Scope scope = scope_of("allow a.test\ndeny a.test/admin\ndeny https://a.test/*/delete*\ndeny a.test/a%20b");
  for (const Case& c : {Case{"https://a.test/admin", "deny-path"},
                        {"https://a.test/admin/x", "deny-path"},
                        {"https://a.test/%61dmin", "deny-path"},
                        {"https://a.test/%2561dmin", "deny-path"},
                        {"https://a.test//admin", "deny-path"},
                        {"https://a.test/x/..%2fadmin", "deny-path"},
                        {"https://a.test/admin;x", "deny-path"},
                        {"https://a.test/.%2fadmin", "deny-path"},
                        {"https://a.test/%5cadmin", "deny-path"},
                        {"https://a.test/admin%00", "deny-path"},
                        {"https://a.test/admin%2500.css", "deny-path"},
                        {"https://a.test/admin.", "deny-path"},
                        {"https://a.test/admin%20./x", "deny-path"},
                        {"https://a.test/x/%2e%2e./admin", "allowed"},  // three dots are a name
                        {"https://a.test/%252525252561dmin", "deny-path"},
                        {"https://a.test/x%2f..%2fadmin", "deny-path"},
                        {"https://a.test/public%00/admin", "allowed"},
                        {"https://a.test/ad%00min", "allowed"},
                        {"https://a.test\\admin", "deny-path"},
                        {"https://a.test/administrator", "allowed"},
                        {"https://a.test/x?/admin", "allowed"},
                        {"https://a.test/x#/admin", "allowed"},
                        {"https://a.test/u/delete", "deny-path"},
                        {"https://a.test/u/1/delete-all", "deny-path"},
                        {"https://a.test/delete", "allowed"},
                        {"https://a.test/a b", "deny-path"},
                        {"https://a.test/", "allowed"}}) {
    INFO(c.url);
    CHECK(decide(scope, c.url) == c.want);
  }
}

TEST_CASE("a rule is refused when it could be read in two ways", "[scope]") {
  for (const char* bad : {"allow x.test/*/..", "allow x.test/pub/%2e%2e/*", "allow x.test/a/./b", "allow x.test/%252e%252E/a", "deny x.test/..", "example.com",
                          "allow",
                          "allow ",
                          "Allow a.test",
                          "allow  a.test",
                          "permit a.test",
                          "allow https://user@a.test",
                          "allow https://a.test?x",
                          "allow https://a.test#x",
                          "allow a.test\\x",
                          "allow https:a.test/x y",
                          "allow ftp://a.test",
                          "allow ws://a.test",
                          "allow HTTP://a.test",
                          "allow //a.test",
                          "allow https:///a.test",
                          "allow *",
                          "allow *.",
                          "allow *a.test",
                          "allow a.*.test",
                          "allow a.test.*",
                          "allow https://*",
                          "allow a.test:",
                          "allow a.test:x",
                          "allow a.test:65536",
                          "allow a.test:80:80",
                          "allow *:80",
                          "allow a.test.",
                          "allow *.127.0.0.1",
                          "allow *.[::1]",
                          "allow [::1",
                          "allow ::1",
                          "allow 256.1.1.1",
                          "allow a%00b.test",
                          "allow a%2ab.test",
                          "allow 10.0.0.0/8",
                          "deny 10.0.0.0/8",
                          "deny 10.0.0.0/8 at loopback",
                          "deny a.test at loopback",
                          "allow a.test at",
                          "allow a.test at ",
                          "allow a.test at home",
                          "allow a.test at 10.0.0.1/8",
                          "allow a.test at loopback,",
                          "allow a.test at 127.1",
                          "allow a.test at loopback at private",
                          "allow 10.0.0.1 at private",
                          "allow https://a.test/%2a",
                          "allow a.test\x7f"}) {
    INFO(bad);
    CHECK(!parse_rule(bad));
    CHECK(!Scope::parse(std::string("allow good.test\n") + bad));
  }
  CHECK(refused("allow a.test\n\ndeny b.test at loopback").starts_with("line 3: "));
  CHECK(!parse_rule("allow a.test/" + std::string(kMaxRule, 'a')));
  std::string encoded = "allow a.test/";  // one byte here is nine of text
  for (size_t i = 0; i < kMaxRule / 3; i++) encoded += '\xff';
  CHECK(parse_rule(encoded).error().code == H5I_E_TOO_LARGE);
  std::string many;
  for (size_t i = 0; i <= kMaxRules; i++) many += "allow h" + std::to_string(i) + ".test\n";
  CHECK(Scope::parse(many).error().code == H5I_E_TOO_LARGE);
}

TEST_CASE("a scope has one text, whatever order and spelling it came in", "[scope]") {
  Scope scope = scope_of(
      "# c\n\n  deny X.test  \r\nallow http://B.test:80/a%2fb\nallow https://b\xc3\xbc"
      "cher.de:443\nallow a.test\nallow https://a.test\n"
      "allow l.test at private,loopback,10.0.0.0/8,::1,private\n");
  CHECK(
      scope.text() ==
      "allow http://b.test/a%2Fb\nallow https://a.test\nallow https://l.test at 10.0.0.0/8,::1,loopback,private\n"
      "allow https://xn--bcher-kva.de\ndeny x.test\n");
  CHECK(*Scope::parse(scope.text()) == scope);
  for (const char* same : {"deny a.test:443", "deny https://a.test", "deny http://a.test:8080/x/", "deny *.a.test", "deny [::1]:80", "deny 127.0.0.1",
                           "allow https://localhost", "allow https://a.localhost at public", "allow https://*.a.test:8443/x*y at loopback",
                           "allow https://[2001:db8::1]:1"})
    CHECK(parse_rule(same)->text() == same);
}

TEST_CASE("a decision is explained by its rule and by what each other rule was about", "[scope]") {
  Scope scope = scope_of("allow *.example.com\nallow http://www.example.com\ndeny admin.example.com\ndeny www.example.com/logout");
  auto explained = [&](const char* text) {
    auto url = Url::parse(text);
    return scope.explain(*url, scope.decide(*url)).text();
  };
  CHECK(explained("https://admin.example.com/x") ==
        "https://admin.example.com/x: denied by \"deny admin.example.com\"\n"
        "  1. hosts that are denied\n"
        "    deny admin.example.com: matches\n"
        "  2. hosts that are allowed\n"
        "    allow http://www.example.com: not looked at\n"
        "    allow https://*.example.com: not looked at\n"
        "  3. paths that are denied\n"
        "    deny www.example.com/logout: not looked at\n");
  CHECK(explained("https://www.example.com/logout").find("denied by \"deny www.example.com/logout\"") != std::string::npos);
  CHECK(explained("https://www.example.com/").starts_with("https://www.example.com/: allowed by \"allow https://*.example.com\"\n"));
  CHECK(explained("http://www.example.com:8080/").find("allow http://www.example.com: this host, another port") != std::string::npos);
  CHECK(explained("ftp://www.example.com/") == "ftp://www.example.com/: denied: only http, https, ws and wss are sent\n");
  std::string secret = explained("https://u:hunter2@www.example.com/?token=hunter2#hunter2");
  CHECK(secret.find("hunter2") == std::string::npos);
}

TEST_CASE("of the rules that grant a URL the exact ones come first", "[scope]") {
  Scope scope = scope_of("allow *.example.com\nallow www.example.com at loopback");
  Decision d = scope.decide(*Url::parse("https://www.example.com/"));
  REQUIRE(d.by.size() == 2);
  CHECK(scope.rule_text(d) == "allow https://www.example.com at loopback");
}
