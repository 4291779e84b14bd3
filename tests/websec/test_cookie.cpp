#include "plugins/websec-http/cookie/cookie_date.hpp"
#include "plugins/websec-http/cookie/jar.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

constexpr int64_t kNow = 1700000000;
constexpr Requester kSameSite;
constexpr Requester kCrossImage{false, false, true};  // an image on another site
constexpr Requester kCrossLink{false, true, true};    // a link there that is followed
constexpr Requester kCrossForm{false, true, false};   // a form there that is posted

const SuffixList& suffixes() {
  static const SuffixList list = *SuffixList::from_bytes("// VERSION: 2024-05-01_10-11-12_UTC\ncom\nio\ngithub.io\nuk\nco.uk\n*.ck\n!www.ck\n");
  return list;
}

Url url(const char* text) {
  auto parsed = Url::parse(text);
  INFO(text);
  REQUIRE(parsed);
  return *parsed;
}

std::string store(Jar& jar, const char* from, std::string_view line, const Requester& who = kSameSite, int64_t now = kNow) {
  return std::string(name(jar.store(url(from), line, who, suffixes(), now).reason));
}

std::string sent(Jar& jar, const char* to, const Requester& who = kSameSite, int64_t now = kNow) {
  return jar.select(url(to), who, suffixes(), now).header;
}

// "name: reason" of each cookie that was looked at.
std::string why(Jar& jar, const char* to, const Requester& who = kSameSite, int64_t now = kNow, const SuffixList& list = suffixes()) {
  std::string out;
  for (const CookieVerdict& v : jar.select(url(to), who, list, now).verdicts)
    out += (out.empty() ? "" : ", ") + v.cookie_name + ": " + std::string(name(v.reason));
  return out;
}

}  // namespace

TEST_CASE("several Set-Cookie lines are several cookies in their order", "[cookie]") {
  Jar jar;
  CHECK(store(jar, "https://a.com/", "a=1") == "stored");
  CHECK(store(jar, "https://a.com/", "b=2, c=3; Path=/") == "stored");
  CHECK(store(jar, "https://a.com/", "d=4; Expires=Wed, 01 Jan 2025 00:00:00 GMT") == "stored");
  CHECK(jar.cookies().size() == 3);
  CHECK(sent(jar, "https://a.com/") == "a=1; b=2, c=3; d=4");
}

TEST_CASE("a cookie for a public suffix is refused, and of the suffix itself host-only", "[cookie]") {
  Jar jar;
  auto own = jar.store(url("https://github.io/"), "a=1; Domain=github.io", kSameSite, suffixes(), kNow);
  CHECK(own.stored());
  CHECK(own.made_host_only);
  CHECK(sent(jar, "https://github.io/") == "a=1");
  CHECK(sent(jar, "https://a.github.io/") == "");
  CHECK(why(jar, "https://a.github.io/") == "a: host-only");
  CHECK(store(jar, "https://x.github.io/", "b=1; Domain=github.io") == "public-suffix");
  CHECK(store(jar, "https://x.github.io/", "b=1; Domain=x.github.io") == "stored");
  for (const char* suffix : {"com", ".com", "COM", "co.uk", "uk", "foo.ck", "unlisted"})
    CHECK(store(jar, "https://a.com/", std::string("c=1; Domain=") + suffix) == "public-suffix");
  CHECK(store(jar, "https://a.www.ck/", "c=1; Domain=www.ck") == "stored");
  CHECK(store(jar, "https://a.foo.ck/", "c=1; Domain=foo.ck") == "public-suffix");
  CHECK(store(jar, "http://localhost/", "c=1; Domain=localhost") == "stored");
}

TEST_CASE("a plain response does not stand in for a Secure cookie of its parents or children", "[cookie]") {
  Jar jar;
  CHECK(store(jar, "https://example.com/", "a=1; Secure; Domain=example.com") == "stored");
  CHECK(store(jar, "http://www.example.com/", "a=2") == "overwrites-secure");
  CHECK(store(jar, "http://www.example.com/", "a=2; Domain=example.com") == "overwrites-secure");
  CHECK(store(jar, "http://example.com/", "a=2") == "overwrites-secure");
  CHECK(store(jar, "http://www.example.com/", "b=2") == "stored");
  CHECK(store(jar, "https://www.example.com/", "a=3") == "stored");
  CHECK(store(jar, "http://other.com/", "a=2") == "stored");
  CHECK(store(jar, "https://www.example.com/x/y", "p=1; Secure; Path=/x") == "stored");
  CHECK(store(jar, "http://www.example.com/x/y", "p=2; Path=/x/y") == "overwrites-secure");
  CHECK(store(jar, "http://www.example.com/", "p=2; Path=/") == "stored");
  CHECK(store(jar, "http://example.com/", "c=1; Secure") == "secure-from-plain");
  CHECK(store(jar, "wss://example.com/", "c=1; Secure") == "stored");
}

TEST_CASE("a Secure cookie goes out encrypted and in no other way", "[cookie]") {
  Jar jar;
  CHECK(store(jar, "https://a.com/", "a=1; Secure") == "stored");
  CHECK(store(jar, "https://a.com/", "b=1") == "stored");
  CHECK(sent(jar, "https://a.com/") == "a=1; b=1");
  CHECK(sent(jar, "wss://a.com/") == "a=1; b=1");
  CHECK(why(jar, "http://a.com/") == "b: sent, a: not-secure");
  CHECK(why(jar, "ws://a.com/") == "b: sent, a: not-secure");
}

TEST_CASE("a cookie whose domain became a public suffix is no longer sent, and the reason is given", "[cookie]") {
  Jar jar;
  CHECK(store(jar, "https://a.hosting.com/", "a=1; Domain=hosting.com") == "stored");
  CHECK(store(jar, "https://a.hosting.com/", "b=1") == "stored");
  CHECK(store(jar, "https://a.hosting.com/", "c=1; Domain=a.hosting.com") == "stored");
  CHECK(store(jar, "https://a.hosting.com/", "d=1; Domain=hosting.com") == "stored");
  CHECK(sent(jar, "https://a.hosting.com/") == "a=1; b=1; c=1; d=1");
  auto newer = SuffixList::from_bytes("com\nhosting.com\n", "2026-01-01");
  REQUIRE(newer);
  CHECK(why(jar, "https://a.hosting.com/", kSameSite, kNow, *newer) == "b: sent, c: sent, a: public-suffix, d: public-suffix");
  CHECK(newer->date() == "2026-01-01");
  CHECK(newer->digest() != suffixes().digest());
  CHECK(suffixes().date() == "2024-05-01");
  CHECK(suffixes().digest().starts_with("sha256:"));
  CHECK(suffixes().digest().size() == 71);
}

TEST_CASE("a suffix list without a rule is none", "[cookie]") {
  for (const char* bad : {"", "\n", "// com\n", "com\nroot:x:0:0:root:/root:/bin/bash\n", "<html>\n", "com\n{}", "com_mon"})
    CHECK(!SuffixList::from_bytes(bad));
  CHECK(SuffixList::from_bytes("com // why\r\n\xe4\xb8\xad\xe5\x9b\xbd\n\n*.ck"));
  auto built_in = SuffixList::builtin();
  REQUIRE(built_in);
  CHECK(built_in->date().size() == 10);
  CHECK(built_in->digest().starts_with("sha1:"));
  CHECK(built_in->is_public_suffix("co.uk"));
  for (const char* none : {"", ".com", "com.", "a..com"}) {
    CHECK(!built_in->registrable_domain(none));
    CHECK(!built_in->is_public_suffix(none));
  }
}

TEST_CASE("the prefixes of a name hold, in any case of letters", "[cookie]") {
  Jar jar(Nameless::KEEP);
  const char* s = "https://www.example.com/";
  CHECK(store(jar, s, "__Secure-a=1") == "prefix-secure");
  CHECK(store(jar, s, "__SECURE-a=1") == "prefix-secure");
  CHECK(store(jar, s, "__Secure-a=1; Secure; Domain=example.com") == "stored");
  CHECK(store(jar, "http://www.example.com/", "__Secure-a=1; Secure") == "secure-from-plain");
  for (const char* bad :
       {"__Host-a=1", "__Host-a=1; Secure", "__Host-a=1; Path=/", "__host-a=1; Secure; Path=/x", "__Host-a=1; Secure; Path=/; Domain=www.example.com",
        "__HOST-a=1; Secure; Path=/; Domain=example.com", "__Host-a=1; Secure; Path"})
    CHECK(store(jar, s, bad) == "prefix-host");
  CHECK(store(jar, s, "__Host-a=1; Secure; Path=/") == "stored");
  for (const char* bad : {"__Host-a=1", "=__Host-a=1", "=__secure-a=1", "__Secure-", "=__HOST-"}) {
    INFO(bad);
    CHECK(store(jar, s, std::string(bad) + "; Secure; Path=/x").starts_with("prefix-"));
  }
  CHECK(store(jar, s, "=__Host-a=1; Secure; Path=/") == "prefix-nameless");
}

TEST_CASE("a line without a name is dropped, or kept and sent as its value alone", "[cookie]") {
  Jar drop, keep(Nameless::KEEP);
  CHECK(store(drop, "https://a.com/", "x") == "nameless");
  CHECK(store(drop, "https://a.com/", "=x") == "nameless");
  CHECK(drop.cookies().empty());
  CHECK(store(keep, "https://a.com/", "x") == "stored");
  CHECK(store(keep, "https://a.com/", "a=1") == "stored");
  CHECK(store(keep, "https://a.com/", "=y") == "stored");
  CHECK(sent(keep, "https://a.com/") == "y; a=1");
  for (Jar* jar : {&drop, &keep})
    for (const char* nothing : {"", "=", " ", "; Path=/", " = ;"}) CHECK(store(*jar, "https://a.com/", nothing) == "empty");
}

TEST_CASE("SameSite keeps a cookie from what another site began", "[cookie]") {
  Jar jar;
  const char* s = "https://a.com/";
  CHECK(store(jar, s, "strict=1; SameSite=Strict") == "stored");
  CHECK(store(jar, s, "lax=1; SameSite=lax") == "stored");
  CHECK(store(jar, s, "usual=1") == "stored");
  CHECK(store(jar, s, "odd=1; SameSite=Sometimes") == "stored");
  CHECK(store(jar, s, "none=1; SameSite=None; Secure") == "stored");
  CHECK(store(jar, s, "plain=1; SameSite=None") == "none-not-secure");
  CHECK(sent(jar, s) == "strict=1; lax=1; usual=1; odd=1; none=1");
  CHECK(sent(jar, s, kCrossLink) == "lax=1; usual=1; odd=1; none=1");
  CHECK(sent(jar, s, kCrossForm) == "none=1");
  CHECK(sent(jar, s, kCrossImage) == "none=1");
  CHECK(why(jar, s, kCrossLink).ends_with("strict: same-site"));
  CHECK(store(jar, s, "lax=2; SameSite=Lax", kCrossImage) == "cross-site");
  CHECK(store(jar, s, "usual=2", kCrossImage) == "cross-site");
  CHECK(store(jar, s, "strict=2; SameSite=Strict", kCrossForm) == "stored");
  CHECK(store(jar, s, "none=2; SameSite=None; Secure", kCrossImage) == "stored");
}

TEST_CASE("two URLs are one site by scheme and registrable domain", "[cookie]") {
  auto same = [](const char* a, const char* b) { return same_site(url(a), url(b), suffixes()); };
  CHECK(same("https://a.example.com/", "https://b.example.com:8443/"));
  CHECK(same("https://example.com/", "wss://example.com/"));
  CHECK(same("http://127.0.0.1:1/", "http://127.0.0.1:2/"));
  CHECK(same("http://localhost/", "http://localhost/"));
  CHECK(!same("https://example.com/", "http://example.com/"));
  CHECK(!same("https://a.github.io/", "https://b.github.io/"));
  CHECK(!same("https://a.co.uk/", "https://b.co.uk/"));
  CHECK(!same("http://127.0.0.1/", "http://1.0.0.1/"));
  CHECK(!same("https://example.com/", "https://example.com.evil.com/"));
  CHECK(!same("data:,x", "data:,x"));
  CHECK(!same("file:///x", "file:///x"));
}

TEST_CASE("domain and path are matched by whole labels and segments", "[cookie]") {
  Jar jar;
  CHECK(store(jar, "https://www.example.com/a/b/c", "d=1; Domain=.Example.COM") == "stored");
  CHECK(store(jar, "https://www.example.com/a/b/c", "h=1; Path=/a") == "stored");
  CHECK(jar.cookies()[0].path == "/a/b");
  CHECK(sent(jar, "https://www.example.com/a/b") == "d=1; h=1");
  CHECK(sent(jar, "https://example.com/a/b/") == "d=1");
  CHECK(sent(jar, "https://notexample.com/a/b") == "");
  CHECK(why(jar, "https://www.example.com/ab") == "d: other-path, h: other-path");
  CHECK(why(jar, "https://shop.example.com/a/b") == "d: sent, h: other-host");
  for (const char* other :
       {"other.com", "ample.com", "a.www.example.com", "..example.com", "example.com.", "\"example.com\"", "www.example.com:443", "127.0.0.1"})
    CHECK(store(jar, "https://www.example.com/", std::string("x=1; Domain=") + other) == "domain-mismatch");
  CHECK(store(jar, "https://www.example.com/", "x=1; Domain=ex\xc3\xa4mple.com") == "domain-invalid");
  CHECK(store(jar, "http://10.0.0.1/", "x=1; Domain=0.0.1") == "domain-mismatch");
  CHECK(store(jar, "http://10.0.0.1/", "x=1; Domain=10.0.0.1") == "stored");
  CHECK(store(jar, "http://[::1]/", "x=1") == "stored");
  CHECK(sent(jar, "http://[::1]:8080/") == "x=1");
  CHECK(sent(jar, "http://10.0.0.1:99/") == "x=1");
}

TEST_CASE("time ends a cookie, and none lives longer than 400 days", "[cookie]") {
  Jar jar;
  const char* s = "https://a.com/";
  CHECK(store(jar, s, "a=1; Max-Age=10") == "stored");
  CHECK(sent(jar, s, kSameSite, kNow + 9) == "a=1");
  CHECK(why(jar, s, kSameSite, kNow + 10) == "a: expired");
  CHECK(store(jar, s, "a=2; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT") == "stored");
  CHECK(store(jar, s, "a=3; Max-Age=0; Expires=Wed, 01 Jan 2030 00:00:00 GMT") == "deleted");
  CHECK(jar.cookies().empty());
  for (const char* line : {"b=1; Max-Age=99999999999999999999999999", "b=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT"}) {
    CHECK(store(jar, s, line) == "stored");
    CHECK(jar.cookies()[0].expires == kNow + 400 * 86400);
  }
  for (const char* line : {"b=1; Max-Age=", "b=1; Max-Age=-", "b=1; Max-Age=1x", "b=1; Max-Age=+5", "b=1; Expires=soon", "b=1; Max-Age=5 5"}) {
    INFO(line);
    CHECK(store(jar, s, line) == "stored");
    CHECK(!jar.cookies()[0].expires);
  }
  CHECK(store(jar, s, "b=1; Max-Age=-99999999999999999999999999") == "deleted");
}

TEST_CASE("what is replaced keeps its place, and longer paths go first", "[cookie]") {
  Jar jar;
  const char* s = "https://a.com/x/y";
  CHECK(store(jar, s, "a=1; Path=/") == "stored");
  CHECK(store(jar, s, "b=1; Path=/") == "stored");
  CHECK(store(jar, s, "c=1; Path=/x") == "stored");
  CHECK(jar.store(url(s), "a=2; Path=/", kSameSite, suffixes(), kNow + 5).replaced);
  CHECK(sent(jar, s, kSameSite, kNow + 6) == "c=1; a=2; b=1");
}

TEST_CASE("a line has limits, and what is longer is refused or not seen", "[cookie]") {
  Jar jar;
  const char* s = "https://a.com/";
  CHECK(store(jar, s, "a=" + std::string(4095, 'x')) == "stored");
  CHECK(store(jar, s, "b=" + std::string(4096, 'x')) == "malformed");
  CHECK(store(jar, s, "c=1; Path=/" + std::string(1023, 'x')) == "stored");
  CHECK(jar.cookies()[1].path.size() == 1024);
  CHECK(store(jar, s, "d=1; Path=/x; Path=/" + std::string(1024, 'x')) == "stored");
  CHECK(jar.cookies()[2].path == "/x");
  CHECK(store(jar, s, std::string_view("e=1\0", 4)) == "malformed");
  CHECK(store(jar, s, "e=1\r\nX: y") == "malformed");
  CHECK(store(jar, s, "e=1; x=\x7f") == "malformed");
  CHECK(store(jar, s, "e=a\tb") == "stored");
  CHECK(store(jar, s, "f=" + std::string(1 << 20, ';') + std::string(200, ' ') + "Secure") == "stored");
  CHECK(jar.cookies().back().secure);
}

TEST_CASE("a domain and a jar have limits; what is not Secure and was not used goes first", "[cookie]") {
  Jar jar;
  const char* s = "https://a.com/";
  CHECK(store(jar, s, "first=1; Secure; Path=/s", kSameSite, kNow - 10) == "stored");
  CHECK(store(jar, s, "plain=1; Path=/p", kSameSite, kNow - 5) == "stored");
  for (size_t i = 2; i < kMaxCookiesOfDomain; i++) CHECK(store(jar, s, "c" + std::to_string(i) + "=1") == "stored");
  CHECK(jar.cookies().size() == kMaxCookiesOfDomain);
  auto more = jar.store(url(s), "more=1", kSameSite, suffixes(), kNow);
  CHECK(more.evicted == 1);
  CHECK(jar.cookies().size() == kMaxCookiesOfDomain);
  CHECK(sent(jar, "https://a.com/s").find("first=1") != std::string::npos);
  CHECK(sent(jar, "https://a.com/p").find("plain=1") == std::string::npos);
  Jar wide;
  for (size_t i = 0; i < kMaxCookies + 10; i++) CHECK(store(wide, ("https://h" + std::to_string(i) + ".com/").c_str(), "a=1") == "stored");
  CHECK(wide.cookies().size() == kMaxCookies);
  CHECK(sent(wide, "https://h9.com/") == "");
  CHECK(sent(wide, "https://h10.com/") == "a=1");
}

TEST_CASE("a jar belongs to one identity", "[cookie]") {
  Jars jars;
  REQUIRE(jars.of("alice"));
  CHECK(store(**jars.of("alice"), "https://a.com/", "a=1") == "stored");
  CHECK(sent(**jars.of("bob"), "https://a.com/") == "");
  CHECK(sent(**jars.of("alice"), "https://a.com/") == "a=1");
  for (const char* bad : {"", "A", "a/b", "a b", "a\n"}) CHECK(!jars.of(bad));
  CHECK(!jars.of(std::string(65, 'a')));
  for (size_t i = jars.all().size(); i < kMaxJars; i++) CHECK(jars.of("j" + std::to_string(i)));
  CHECK(jars.of("one-more").error().code == H5I_E_TOO_LARGE);
  CHECK(jars.of("alice"));
}

TEST_CASE("no reason holds a value", "[cookie]") {
  Jar jar;
  CHECK(store(jar, "https://a.com/", "a=hunter2; Path=/x") == "stored");
  Selection s = jar.select(url("https://a.com/"), kSameSite, suffixes(), kNow);
  REQUIRE(s.verdicts.size() == 1);
  for (const std::string& text :
       {s.verdicts[0].cookie_name, s.verdicts[0].domain, s.verdicts[0].path, std::string(words(s.verdicts[0].reason)), s.header})
    CHECK(text.find("hunter2") == std::string::npos);
  for (const char* bad : {"b=hunter2\x01", "hunter2", "b=hunter2; Domain=com"}) {
    auto r = jar.store(url("https://a.com/"), bad, kSameSite, suffixes(), kNow);
    CHECK(!r.stored());
    CHECK((r.detail + r.cookie_name + std::string(words(r.reason))).find("hunter2") == std::string::npos);
  }
  CHECK(store(jar, "https://unrelated.io/", "z=1") == "stored");
  CHECK(jar.select(url("https://a.com/"), kSameSite, suffixes(), kNow).elsewhere == 1);
}

TEST_CASE("dates are read as cookies write them", "[cookie]") {
  auto read = [](const char* text) {
    auto date = parse_cookie_date(text);
    return date ? imf_fixdate(*date) : std::string("none");
  };
  for (const char* same : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "1994 nov 6 8:49:37",
                           "08:49:37 6 November 94 and more", "6x Nov 94 8:49:37pm"}) {
    INFO(same);
    CHECK(read(same) == "Sun, 06 Nov 1994 08:49:37 GMT");
  }
  CHECK(read("1 2:3 06 Nov 1994 08:49:37") == "Wed, 01 Nov 2006 08:49:37 GMT");  // the first of each kind
  CHECK(read("1 Jan 69 0:0:0") == "Tue, 01 Jan 2069 00:00:00 GMT");
  CHECK(read("1 Jan 70 0:0:0") == "Thu, 01 Jan 1970 00:00:00 GMT");
  CHECK(read("29 Feb 2024 0:0:0") == "Thu, 29 Feb 2024 00:00:00 GMT");
  CHECK(read("1 Jan 1601 0:0:0") == "Mon, 01 Jan 1601 00:00:00 GMT");
  for (const char* bad : {"", "6 Nov 1994", "Nov 1994 8:49:37", "6 1994 8:49:37", "6 Nov 8:49:37", "32 Jan 2000 0:0:0", "0 Jan 2000 0:0:0",
                          "29 Feb 2023 0:0:0", "1 Jan 1600 0:0:0", "1 Jan 2000 24:0:0", "1 Jan 2000 0:60:0", "1 Jan 2000 0:0:60", "1 Jan 20000 0:0:0",
                          "1 Jan 2 0:0:0", "1 Jan 2000 000:0:0", "1 Jan 2000 0:0", "001 Jan 2000 0:0:0", "31 Apr 2000 0:0:0"}) {
    INFO(bad);
    CHECK(read(bad) == "none");
  }
}
