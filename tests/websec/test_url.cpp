#include "plugins/websec-http/url/url.hpp"

#include <chrono>

#include "plugins/websec-http/url/charset.hpp"
#include "plugins/websec-http/url/idna.hpp"
#include "plugins/websec-http/url/percent.hpp"
#include "plugins/websec-http/url/utf8.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

// The serialised URL, or "!" and why there is none.
std::string read(std::string_view input, const char* base = nullptr) {
  std::optional<Url> against;
  if (base) against = *Url::parse(base);
  auto url = Url::parse(input, against ? &*against : nullptr);
  return url ? url->href() : "!" + url.error().text;
}

struct Case {
  const char* input;
  const char* want;
};

}  // namespace

TEST_CASE("what stands before the last @ is credentials and never the host", "[url]") {
  for (const Case& c : {Case{"http://good.example@evil.test/", "evil.test"},
                        {"http://a@b@evil.test/", "evil.test"},
                        {"http://good.example:80@evil.test/", "evil.test"},
                        {"http://good.example%2f@evil.test/", "evil.test"},
                        {"http://good.example/@evil.test/", "good.example"},
                        {"http://good.example\\@evil.test/", "good.example"},
                        {"http://good.example?@evil.test/", "good.example"},
                        {"http://good.example#@evil.test/", "good.example"},
                        {"http://:@evil.test", "evil.test"}}) {
    INFO(c.input);
    auto url = Url::parse(c.input);
    REQUIRE(url);
    CHECK(url->hostname() == c.want);
  }
  CHECK(read("http://a@b@c.test/") == "http://a%40b@c.test/");
  CHECK(read("http://u:p:q@c.test/") == "http://u:p%3Aq@c.test/");
  CHECK(read("http://u:@c.test/") == "http://u@c.test/");
  CHECK(read("http://user@/").starts_with("!"));
  CHECK(Url::parse("http://:p@c.test/")->has_credentials());
  CHECK(!Url::parse("http://@c.test/")->has_credentials());
}

TEST_CASE("a reference that swaps the origin is seen to do so", "[url]") {
  const char* base = "http://good.example/a/b?c";
  for (const Case& c : {Case{"//evil.test/x", "http://evil.test/x"},
                        {"\\\\evil.test", "http://evil.test/"},
                        {"/\\evil.test", "http://evil.test/"},
                        {"\\/evil.test", "http://evil.test/"},
                        {"///evil.test", "http://evil.test/"},
                        {"http:evil.test", "http://good.example/a/evil.test"},
                        {"http:/evil.test", "http://good.example/evil.test"},
                        {"https:evil.test", "https://evil.test/"},
                        {"https:/evil.test", "https://evil.test/"},
                        {"/\t/evil.test", "http://evil.test/"},
                        {"\n//evil.test", "http://evil.test/"},
                        {"ht\ntp://evil.test", "http://evil.test/"},
                        {"/.//evil.test", "http://good.example//evil.test"},
                        {"..//evil.test", "http://good.example//evil.test"},
                        {"@evil.test", "http://good.example/a/@evil.test"},
                        {".evil.test", "http://good.example/a/.evil.test"},
                        {"?//evil.test", "http://good.example/a/b?//evil.test"},
                        {"", "http://good.example/a/b?c"},
                        {"#x", "http://good.example/a/b?c#x"},
                        {"javascript:alert(1)", "javascript:alert(1)"}}) {
    INFO(c.input);
    CHECK(read(c.input, base) == c.want);
  }
  CHECK(read("\\\\evil.test", "foo://good.example/a") == "foo://good.example/\\\\evil.test");
  CHECK(read("x", "mailto:a@b.test").starts_with("!"));
  CHECK(read("#x", "mailto:a@b.test") == "mailto:a@b.test#x");
}

TEST_CASE("tabs and newlines go wherever they stand, other controls only around", "[url]") {
  CHECK(read("  \x01 http://a\t.te\r\nst:8\n0/x\ty \x1f") == "http://a.test/xy");
  CHECK(read("http://a.test/x\x01y z") == "http://a.test/x%01y%20z");
  CHECK(read("http://a.te\x01st/").starts_with("!"));
  CHECK(read("http://a.te st/").starts_with("!"));
  CHECK(read(std::string_view("http://a.te\0st/", 15)).starts_with("!"));
}

TEST_CASE("the default port of a scheme is no port", "[url]") {
  for (const Case& c : {Case{"http://a.test:80/", "http://a.test/"},
                        {"https://a.test:443/", "https://a.test/"},
                        {"ws://a.test:80/", "ws://a.test/"},
                        {"wss://a.test:443/", "wss://a.test/"},
                        {"ftp://a.test:21/", "ftp://a.test/"},
                        {"http://a.test:443/", "http://a.test:443/"},
                        {"https://a.test:80/", "https://a.test:80/"},
                        {"http://a.test:/", "http://a.test/"},
                        {"http://a.test:00000000000000000080/", "http://a.test/"},
                        {"http://a.test:65535/", "http://a.test:65535/"},
                        {"http://a.test:0/", "http://a.test:0/"},
                        {"foo://a.test:80/", "foo://a.test:80/"}}) {
    INFO(c.input);
    CHECK(read(c.input) == c.want);
  }
  for (const char* bad : {"http://a.test:65536/", "http://a.test:4294967376/", "http://a.test:-1/", "http://a.test:+80/", "http://a.test:8 0/",
                          "http://a.test:80:80/", "http://:80/", "http://a.test:0x50/"})
    CHECK(read(bad).starts_with("!"));
}

TEST_CASE("every spelling of an IPv4 address is that address", "[url]") {
  for (const char* loopback : {"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "0X7F.0.0.0x1",
                               "127.0.0.1.", "127.0.0.01", "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",
                               "127\xe3\x80\x82"
                               "0.0.1",
                               "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1", "127.0.0.0x00000000000000000001"}) {
    INFO(loopback);
    auto host = parse_host(loopback, true);
    REQUIRE(host);
    CHECK(host->kind == Host::Kind::IPV4);
    CHECK(host->text == "127.0.0.1");
  }
  CHECK(parse_host("0x", true)->text == "0.0.0.0");
  CHECK(parse_host("0xffffffff", true)->text == "255.255.255.255");
  for (const char* bad : {"256.0.0.1", "1.2.3.4.5", "127.0.0.256", "4294967296", "0x100000000", "1.2.3.08", "1..2", "a.1", "a.0x1", "1.a.1", "09",
                          "99999999999999999999", "1.16777216", "1.2.65536"})
    CHECK(!parse_host(bad, true));
  for (const char* name : {"1.2.3.a", "127.0.0.1.x", "0x7g", "a1", "1-2", ".", "127.0.0.1.."}) {
    INFO(name);
    auto host = parse_host(name, true);
    REQUIRE(host);
    CHECK(host->kind == Host::Kind::DOMAIN);
  }
  CHECK(parse_host("127.0.0.1", false)->kind == Host::Kind::OPAQUE);
}

TEST_CASE("every spelling of an IPv6 address has one text", "[url]") {
  for (const Case& c : {Case{"[0:0:0:0:0:0:0:1]", "[::1]"},
                        {"[::0001]", "[::1]"},
                        {"[0::1]", "[::1]"},
                        {"[::]", "[::]"},
                        {"[::ffff:127.0.0.1]", "[::ffff:7f00:1]"},
                        {"[::FFFF:7F00:0001]", "[::ffff:7f00:1]"},
                        {"[64:ff9b::10.0.0.1]", "[64:ff9b::a00:1]"},
                        {"[1:0:0:2:0:0:0:3]", "[1:0:0:2::3]"},
                        {"[1:0:0:2:3:0:0:4]", "[1::2:3:0:0:4]"},
                        {"[1:2:3:4:5:6:7:0]", "[1:2:3:4:5:6:7:0]"},
                        {"[1:2:3:4:5:6:7::]", "[1:2:3:4:5:6:7:0]"},
                        {"[::2:3:4:5:6:7:8]", "[0:2:3:4:5:6:7:8]"},
                        {"[2001:DB8::]", "[2001:db8::]"},
                        {"[1::]", "[1::]"},
                        {"[1:2:3:4:5:6:1.2.3.4]", "[1:2:3:4:5:6:102:304]"}}) {
    INFO(c.input);
    for (bool special : {true, false}) {
      auto host = parse_host(c.input, special);
      REQUIRE(host);
      CHECK(host->kind == Host::Kind::IPV6);
      CHECK(host->text == c.want);
    }
  }
  for (const char* bad : {"[]",
                          "[:]",
                          "[:::]",
                          "[1]",
                          "[1:2:3:4:5:6:7:8:9]",
                          "[1:2:3:4:5:6:7:8::]",
                          "[::1:2:3:4:5:6:7:8]",
                          "[1::2::3]",
                          "[12345::]",
                          "[g::]",
                          "[::1",
                          "::1]",
                          "[::1%25eth0]",
                          "[::1%eth0]",
                          "[::127.0.0]",
                          "[::127.0.0.1.1]",
                          "[::127.0.0.256]",
                          "[::127.0.0.01]",
                          "[::127.0.0.1:1]",
                          "[1:2:3:4:5:6:7:1.2.3.4]",
                          "[::.1.2.3]",
                          "[:1::2]",
                          "[1:]",
                          "[::1]x",
                          "x[::1]",
                          "[::1.2.3.4567]",
                          "[1:2:3:4:5:6:7:]"}) {
    INFO(bad);
    CHECK(!parse_host(bad, true));
    CHECK(!parse_host(bad, false));
  }
  CHECK(parse_ipv6("::1"));
  CHECK(!parse_ipv6("[::1]"));
  CHECK(!parse_ipv6(""));
}

TEST_CASE("names that look alike are the name they map to or another one, never both", "[url]") {
  for (const Case& c : {Case{"EXAMPLE.com", "example.com"},
                        {"\xef\xbd\x85xample.com", "example.com"},
                        {"ex\xc2\xad"
                         "ample.com",
                         "example.com"},
                        {"example\xe3\x80\x82"
                         "com",
                         "example.com"},
                        {"ex%61mple.com", "example.com"},
                        {"%65%78%61mple%2Ecom", "example.com"},
                        {"\xd0\xb5xample.com", "xn--xample-2of.com"},
                        {"fa\xc3\x9f.de", "xn--fa-hia.de"},
                        {"fa\xe1\xba\x9e.de", "xn--fa-hia.de"},
                        {"fass.de", "fass.de"},
                        {"b\xc3\xbc"
                         "cher.de",
                         "xn--bcher-kva.de"},
                        {"bu\xcc\x88"
                         "cher.de",
                         "xn--bcher-kva.de"},
                        {"XN--bcher-kva.de", "xn--bcher-kva.de"},
                        {"example.com.", "example.com."},
                        {"a_b.test", "a_b.test"},
                        {"-a-.test", "-a-.test"},
                        {"a..b.test", "a..b.test"}}) {
    INFO(c.input);
    auto host = parse_host(c.input, true);
    REQUIRE(host);
    CHECK(host->text == c.want);
  }
}

TEST_CASE("a domain with a forbidden code point is refused, however it came in", "[url]") {
  for (const char* bad : {"a%00b",
                          "a%20b",
                          "a%23b",
                          "a%2fb",
                          "a%3ab",
                          "a%3fb",
                          "a%40b",
                          "a%5bb",
                          "a%5cb",
                          "a%5eb",
                          "a%7cb",
                          "a%7fb",
                          "a%25b",
                          "a%0ab",
                          "a%3cb",
                          "a%",
                          "a%zz",
                          "a<b",
                          "a|b",
                          "a^b",
                          "a b",
                          "a\x7f"
                          "b",
                          "\xe2\x84\x80.test",
                          "a\xef\xbc\x8f"
                          "b",
                          "a\xef\xbc\xa0"
                          "b",
                          "a\xef\xbc\x9a"
                          "80",
                          "\xc2\xad",
                          "%ff",
                          "\xff.test",
                          "\xef\xbf\xbd",
                          "a\xe2\x80\xae.test",
                          "xn--a.\xc3\x9f",
                          "xn--.\xc3\x9f",
                          "xn--a-.\xc3\x9f",
                          "\xe2\x80\x8d.test",
                          "",
                          "a..\xd8\xa7"
                          "b"}) {
    INFO(bad);
    CHECK(!parse_host(bad, true));
  }
  CHECK(parse_host("a%20b", false)->text == "a%20b");
  CHECK(parse_host("A\xc3\xbc", false)->text == "A%C3%BC");
  for (const char* bad : {"a b", "a<b", "a>b", "a^b", "a|b", "a[b", "a\\b", "a@b"}) CHECK(!parse_host(bad, false));
}

TEST_CASE("paths are walked before anything is decided on them", "[url]") {
  for (const Case& c : {Case{"http://a.test/x/../y", "/y"},
                        {"http://a.test/x/%2e%2E/y", "/y"},
                        {"http://a.test/x/.%2e/", "/"},
                        {"http://a.test/../../..", "/"},
                        {"http://a.test/x/.", "/x/"},
                        {"http://a.test/x/%2e", "/x/"},
                        {"http://a.test/x\\..\\y", "/y"},
                        {"http://a.test/x%2f..%2fy", "/x%2f..%2fy"},
                        {"http://a.test/x/...", "/x/..."},
                        {"http://a.test//x", "//x"},
                        {"http://a.test/x//..", "/x/"},
                        {"http://a.test", "/"},
                        {"http://a.test/a b\"<>`{}^", "/a%20b%22%3C%3E%60%7B%7D%5E"},
                        {"http://a.test/'|~", "/'|~"},
                        {"foo:/a/../b", "/b"},
                        {"foo://a.test", ""},
                        {"foo:/..//x", "//x"},
                        {"file:///C|/x", "/C:/x"},
                        {"file:///C:/..", "/C:/"},
                        {"file://localhost/x", "/x"},
                        {"foo:a b", "a b"},
                        {"foo:a ?b", "a%20"},
                        {"foo:a/../b", "a/../b"}}) {
    INFO(c.input);
    auto url = Url::parse(c.input);
    REQUIRE(url);
    CHECK(url->path() == c.want);
    auto again = Url::parse(url->href());
    REQUIRE(again);
    CHECK(*again == *url);
  }
  CHECK(read("foo:/..//x") == "foo:/.//x");
  CHECK(read("/x", "file:///C:/y/z") == "file:///C:/x");
  CHECK(read("D|/x", "file:///C:/y/z") == "file:///D:/x");
}

TEST_CASE("query and fragment are encoded by the set of their scheme", "[url]") {
  CHECK(read("http://a.test/?a'b\"c<d e#f`g<h'") == "http://a.test/?a%27b%22c%3Cd%20e#f%60g%3Ch'");
  CHECK(read("foo://a.test/?a'b") == "foo://a.test/?a'b");
  CHECK(read("http://a.test/?%zz%41\xff") == "http://a.test/?%zz%41%EF%BF%BD");
  auto empty = Url::parse("http://a.test/?#");
  CHECK(empty->href() == "http://a.test/?#");
  CHECK(empty->search() == "");
  CHECK(empty->hash() == "");
  CHECK(Url::parse("http://a.test/x#y")->href_without_fragment() == "http://a.test/x");
  CHECK(percent_encode("a b/c$&+,", EncodeSet::COMPONENT) == "a%20b%2Fc%24%26%2B%2C");
  CHECK(percent_decode("%41%4g%") == "A%4g%");
  CHECK(!percent_encode_in("no-such", "x", EncodeSet::QUERY));
  CHECK(percent_encode_in("windows-1252", "\xe2\x82\xac\xe2\x98\x83", EncodeSet::QUERY) == "%80%26%239731%3B");
}

TEST_CASE("an origin is scheme, host and port, and what has none is equal to nothing", "[url]") {
  auto origin = [](const char* s) { return Url::parse(s)->origin(); };
  CHECK(origin("https://A.test:443/x").same(origin("https://u@a.test/y?z")));
  CHECK(!origin("https://a.test/").same(origin("http://a.test/")));
  CHECK(!origin("https://a.test/").same(origin("https://a.test:444/")));
  CHECK(!origin("https://a.test/").same(origin("https://a.test./")));
  CHECK(!origin("data:,x").same(origin("data:,x")));
  CHECK(!origin("file:///x").same(origin("file:///x")));
  CHECK(origin("http://[::1]:8080/").text() == "http://[::1]:8080");
  CHECK(origin("blob:https://a.test/1").text() == "https://a.test");
  CHECK(origin("blob:ftp://a.test/1").text() == "null");
  CHECK(origin("blob:blob:https://a.test/1").text() == "null");
  CHECK(origin("foo://a.test/").text() == "null");
}

TEST_CASE("what was wrong is said without the input", "[url]") {
  for (const char* bad : {"http://secret:hunter2@a.test:x/", "http://secret hunter2/", "hunter2", "http://[hunter2]/", "http://1.hunter2.1/"}) {
    auto url = Url::parse(bad);
    REQUIRE(!url);
    CHECK(url.error().code == H5I_E_INVALID);
    CHECK(url.error().text.find("hunter2") == std::string::npos);
  }
}

TEST_CASE("bytes that are no UTF-8 become one replacement for each longest wrong start", "[url]") {
  const std::string r = "\xef\xbf\xbd";
  CHECK(to_valid_utf8("a\xff"
                      "b") == "a" + r + "b");
  CHECK(to_valid_utf8("\xc0\xaf") == r + r);
  CHECK(to_valid_utf8("\xe2\x82"
                      "a") == r + "a");
  CHECK(to_valid_utf8("\xed\xa0\x80") == r + r + r);
  CHECK(to_valid_utf8("\xf4\x90\x80\x80") == r + r + r + r);
  CHECK(to_valid_utf8("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
  CHECK(to_valid_utf8("\xf0\x9f\x98") == r);
}

TEST_CASE("a URL has a length, and reading one takes time that grows with it alone", "[url]") {
  CHECK(Url::parse("http://a.test/" + std::string(kMaxUrl, 'a')).error().code == H5I_E_TOO_LARGE);
  CHECK(parse_host(std::string(kMaxHost + 1, 'a'), true).error().code == H5I_E_TOO_LARGE);
  CHECK(parse_host(std::string(kMaxHost + 1, 'a'), false).error().code == H5I_E_TOO_LARGE);
  CHECK(parse_host(std::string(kMaxHost, 'a'), true));
  // What is written is as long as what may be read: escapes, Punycode and compatibility forms make some longer.
  std::string bytes(kMaxHost / 3, '\xff'), half(kMaxUrl / 2, '\xff'), ligatures;
  while (ligatures.size() + 3 < kMaxHost) ligatures += "\xef\xb7\xba";  // eighteen letters in one
  CHECK(Url::parse("foo://" + bytes + "/").error().code == H5I_E_TOO_LARGE);
  CHECK(Url::parse("http://a.test/" + half).error().code == H5I_E_TOO_LARGE);
  auto folded = parse_host(ligatures, true);
  CHECK((!folded || folded->text.size() <= kMaxHost));
  auto base = Url::parse("http://a.test/" + std::string(kMaxUrl / 2, 'a') + "/");
  REQUIRE(base);
  CHECK(Url::parse(std::string(kMaxUrl / 2, 'b'), &*base).error().code == H5I_E_TOO_LARGE);
  CHECK(Url::parse("b", &*base));
  auto repeated = [](std::string_view unit, size_t total) {
    std::string s;
    while (s.size() + unit.size() <= total) s += unit;
    return s;
  };
  std::string wide;  // one label of another script, as long as a host may be
  for (unsigned i = 0; wide.size() + 3 < kMaxHost; i++) wide += {'\xe5', static_cast<char>(0x80 + i % 64), static_cast<char>(0x80 + i * 7 % 64)};
  CHECK(parse_host(wide, true));
  const size_t n = kMaxUrl - 64;
  for (const std::string& hostile :
       {"http://a.test/" + repeated("../a/", n), "http://a.test/" + repeated("a/", n), "http://" + repeated("@", n) + "a.test/",
        "http://" + repeated(":", n), repeated("\t", n), "http://a.test/" + repeated("%2e%2e/", n), "http:" + repeated("/", n),
        "http:" + repeated("\\", n), "foo:" + repeated(" ", n) + "#", "blob:" + repeated("blob:", n), "http://" + wide + "/",
        "http://" + repeated("[", n), "http://" + repeated("1.", kMaxHost), "http://a.test/" + repeated("\xff", n),
        "http://a.test/" + repeated("a/", n / 2) + repeated("../", n / 2)}) {
    INFO(hostile.substr(0, 40));
    auto begin = std::chrono::steady_clock::now();
    auto url = Url::parse(hostile);
    if (url) (void)url->origin();
    auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
    CHECK(took < 20000);  // some tens are usual; what is quadratic takes minutes
  }
}
