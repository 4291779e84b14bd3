#include <algorithm>
#include <random>

#include "core/policy/allow_list.hpp"
#include "core/policy/egress.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::policy;

static std::string canon(std::string_view text) {
  auto r = parse_egress(text);
  return r ? r->text() : "refused: " + r.error().evidence;
}
static AddressClass class_of(std::string_view text) {
  auto v4 = parse_ipv4(text);
  auto v6 = parse_ipv6(text);
  REQUIRE((v4 || v6));
  return classify(v4 ? *v4 : *v6);
}
static EgressRule rule(std::string_view text, bool private_ok = false) {
  auto r = parse_egress(text, private_ok);
  REQUIRE(r);
  return *r;
}

TEST_CASE("a rule has one canonical form") {
  struct { const char *in, *out; } rows[] = {
      {"api.github.com", "api.github.com:443"}, {"API.GitHub.COM.", "api.github.com:443"}, {"a:1", "a:1"},
      {"host.example:8000-8010", "host.example:8000-8010"}, {"host.example:80-80", "host.example:80"},
      {"*.Example.com", "*.example.com:443"}, {"*.example.com:8443", "*.example.com:8443"},
      {"xn--bcher-kva.example", "xn--bcher-kva.example:443"}, {"93.184.216.34", "93.184.216.34:443"},
      {"10.1.0.0/16:5432", "10.1.0.0/16:5432"}, {"[2001:DB8:0:0::5]:8443", "[2001:db8::5]:8443"},
      {"[2001:db8::]/32", "[2001:db8::]/32:443"}, {"[2001:db8::5]/128", "[2001:db8::5]:443"}, {"1.2.3.4/32", "1.2.3.4:443"},
      {"0.0.0.0/0", "0.0.0.0/0:443"}, {"1host.example", "1host.example:443"}};
  for (auto& r : rows) {
    INFO(r.in);
    CHECK(canon(r.in) == r.out);
    CHECK(canon(canon(r.in)) == r.out);
  }
}

TEST_CASE("what the grammar does not admit is refused with its reason") {
  struct { const char *in, *why; } rows[] = {
      {"*", "every host"}, {"*.com", "two labels"}, {"*.", "empty"}, {"a.*.com", "first label"}, {"*a.example.com", "first label"},
      {"host:0", "1 to 65535"}, {"host:65536", "1 to 65535"}, {"host:", "1 to 65535"}, {"host:080", "1 to 65535"},
      {"host:1-", "1 to 65535"}, {"host:9-8", "downwards"}, {"host:443:443", "twice"}, {"host:https", "1 to 65535"},
      {"user@host", "user information"}, {"user:pw@host", "user information"}, {"host/path", "path"}, {"host/", "path"},
      {"https://host", "URL"}, {"a..b", "label is empty"}, {".example.com", "label is empty"}, {"host..", "label is empty"},
      {"ho st", "white space"}, {" host", "white space"}, {"host\t", "white space"}, {"host\n", "white space"}, {"host\x7f", "control"},
      {"", "empty"}, {"a,b", "comma"}, {"-a.example", "hyphen"}, {"a-.example", "hyphen"}, {"a_b.example", "not allowed"},
      {"b\xc3\xbc" "cher.example", "A-label"}, {"*.10.0.0.1", "no wildcard"}, {"*.1.2", "number"}, {"2001:db8::5", "brackets"},
      {"[2001:db8::5", "not closed"}, {"[2001:db8::g]", "not an IPv6"}, {"[1.2.3.4]", "not an IPv6"}, {"[fe80::1%25eth0]:1", "not part"},
      {"[2001:db8::5]443", "PORT or /LENGTH"}, {"127.1", "number"}, {"2130706433", "number"}, {"0x7f000001", "number"},
      {"0x7f.1", "number"}, {"010.0.0.1", "number"}, {"1.2.3.256", "number"}, {"1.2.3.4.", "number"}, {"host.0x1f", "number"}, {"10.1.0.1/16", "10.1.0.0/16"},
      {"10.0.0.0/33", "0 to 32"}, {"10.0.0.0/", "0 to 32"}, {"10.0.0.0/8/8", "0 to 32"}, {"[2001:db8::]/129", "0 to 128"},
      {"localhost", "loopback"}, {"a.localhost", "loopback"}, {"*.a.localhost", "loopback"}, {"127.0.0.1:80", "never reachable"},
      {"169.254.169.254", "never reachable"}, {"0.0.0.0", "never reachable"}, {"224.0.0.1", "never reachable"},
      {"255.255.255.255", "never reachable"}, {"[::1]:80", "never reachable"}, {"[::]", "never reachable"}, {"[fe80::1]", "never reachable"},
      {"[ff02::1]", "never reachable"}, {"[::ffff:127.0.0.1]", "never reachable"}, {"[64:ff9b::7f00:1]", "never reachable"},
      {"[2002:7f00:1::]", "never reachable"}, {"127.0.0.0/8", "never reachable"}, {"[::ffff:127.0.0.0]/104", "never reachable"},
      {"host\\x", "not part"}, {"host?x", "not part"}, {"host#x", "not part"}};
  for (auto& r : rows) {
    INFO(r.in);
    auto p = parse_egress(r.in);
    REQUIRE_FALSE(p);
    CHECK(p.error().id() == "policy.egress-rule");
    INFO(p.error().evidence);
    CHECK(p.error().evidence.find(r.why) != std::string::npos);
  }
  std::string long_label(64, 'a'), longest;
  while (longest.size() < 250) longest += "abcdefg.";
  CHECK_FALSE(parse_egress(long_label + ".example"));
  CHECK(parse_egress(std::string(63, 'a') + ".example"));
  CHECK_FALSE(parse_egress(longest + "toolong"));
  CHECK_FALSE(parse_egress(std::string(100000, 'a')));
}

TEST_CASE("addresses that reach the host or a cloud's credentials are never reachable, however spelt") {
  for (const char* a : {"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.170.2", "100.100.100.200",
                        "168.63.129.16", "224.0.0.251", "239.255.255.250", "255.255.255.255", "240.0.0.1", "::", "::1", "fe80::1",
                        "febf::1", "ff02::1", "fd00:ec2::254", "fd20:ce::254", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
                        "::7f00:1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1",
                        "2001:0:7f00:1::", "2001::ffff:ffff:80ff:fffe", "64:ff9b:1::127.0.0.1", "64:ff9b:1:a9fe:a9:fe00::",
                        "2001:db8::5efe:127.0.0.1", "2001:db8::200:5efe:169.254.169.254", "fe80::5efe:8.8.8.8"}) {
    INFO(a);
    CHECK(class_of(a).reach == Reach::NEVER);
    auto any = rule("0.0.0.0/0:1-65535", true), any6 = rule("[::]/0:1-65535", true), name = rule("host.example:1-65535", true);
    auto address = parse_ipv4(a) ? *parse_ipv4(a) : *parse_ipv6(a);
    CHECK_FALSE(admits_address(any, address, 80));
    CHECK_FALSE(admits_address(any6, address, 80));
    CHECK_FALSE(admits_address(name, address, 80));
  }
}

TEST_CASE("private ranges need to be meant") {
  for (const char* a : {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fc00::1", "fd12::1", "fec0::1",
                        "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::", "198.18.0.1"}) {
    INFO(a);
    CHECK(class_of(a).reach == Reach::PRIVATE);
    auto address = parse_ipv4(a) ? *parse_ipv4(a) : *parse_ipv6(a);
    CHECK_FALSE(admits_address(rule("host.example"), address, 443));
    CHECK(admits_address(rule("host.example", true), address, 443));
    CHECK_FALSE(admits_address(rule("0.0.0.0/0"), address, 443));
    CHECK_FALSE(admits_address(rule("[::]/0"), address, 443));
  }
  for (const char* a : {"8.8.8.8", "172.32.0.1", "11.0.0.1", "100.128.0.1", "2001:db8::5", "2606:4700::1111", "::ffff:8.8.8.8"}) {
    INFO(a);
    CHECK(class_of(a).reach == Reach::OPEN);
    CHECK(admits_address(rule("host.example"), parse_ipv4(a) ? *parse_ipv4(a) : *parse_ipv6(a), 443));
  }
  CHECK(rule("10.1.0.0/16:5432").private_ok);
  CHECK(rule("[fd00::]/8").private_ok);
  CHECK_FALSE(rule("0.0.0.0/0").private_ok);
  CHECK_FALSE(rule("8.0.0.0/5").private_ok);  // wider than 10.0.0.0/8, so 10.x in it was not meant
  CHECK(admits_address(rule("10.1.0.0/16:5432"), *parse_ipv4("10.1.2.3"), 5432));
  CHECK_FALSE(admits_address(rule("10.1.0.0/16:5432"), *parse_ipv4("10.2.2.3"), 5432));
  CHECK_FALSE(admits_address(rule("10.1.0.0/16:5432"), *parse_ipv4("10.1.2.3"), 5433));
}

TEST_CASE("IPv6 is written as RFC 5952 says and read strictly") {
  struct { const char *in, *out; } rows[] = {
      {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"}, {"2001:DB8::0001", "2001:db8::1"}, {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"}, {"::", "::"}, {"1::", "1::"}, {"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
      {"::ffff:102:304", "::ffff:1.2.3.4"}, {"64:ff9b::1.2.3.4", "64:ff9b::102:304"}};
  for (auto& r : rows) {
    INFO(r.in);
    auto a = parse_ipv6(r.in);
    REQUIRE(a);
    CHECK(to_text(*a) == r.out);
    CHECK(*parse_ipv6(to_text(*a)) == *a);
  }
  for (const char* bad : {"", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "::1:2:3:4:5:6:7:8", "12345::", "g::",
                          "1:2:3:4:5:6:7:", ":1:2:3:4:5:6:7", "1.2.3.4::", "::1.2.3", "::1.2.3.4:5", "fe80::1%eth0", "1:2:3:4:5:6:7:1.2.3.4"}) {
    INFO(bad);
    CHECK_FALSE(parse_ipv6(bad));
  }
}

TEST_CASE("a name matches on label boundaries, and a wildcard leaves its apex out") {
  CHECK(matches_name(rule("*.example.com"), "a.example.com", 443));
  CHECK(matches_name(rule("*.example.com"), "b.a.example.com", 443));
  CHECK_FALSE(matches_name(rule("*.example.com"), "example.com", 443));
  CHECK_FALSE(matches_name(rule("*.example.com"), "badexample.com", 443));
  CHECK_FALSE(matches_name(rule("*.example.com"), "a.example.com", 80));
  CHECK_FALSE(matches_name(rule("example.com"), "a.example.com", 443));
  CHECK(matches_name(rule("example.com:80-90"), "example.com", 85));
  CHECK_FALSE(matches_name(rule("10.0.0.0/8"), "10.0.0.1", 443));
}

TEST_CASE("one rule covers another only when it admits all of it") {
  CHECK(covers(rule("*.example.com:1-100"), rule("a.example.com:50")));
  CHECK(covers(rule("*.example.com"), rule("*.a.example.com")));
  CHECK_FALSE(covers(rule("*.a.example.com"), rule("*.example.com")));
  CHECK_FALSE(covers(rule("*.example.com"), rule("example.com")));
  CHECK_FALSE(covers(rule("a.example.com"), rule("a.example.com", true)));
  CHECK(covers(rule("10.0.0.0/8"), rule("10.1.0.0/16")));
  CHECK_FALSE(covers(rule("10.1.0.0/16"), rule("10.0.0.0/8")));
  CHECK_FALSE(covers(rule("0.0.0.0/0"), rule("10.0.0.0/8")));
  CHECK_FALSE(covers(rule("a.example.com"), rule("a.example.com:444")));
}

TEST_CASE("the host's list never widens a profile that denies all") {
  std::vector<EgressRule> host = {rule("b.example"), rule("a.example")};
  auto none = merge_allow_list({}, host);
  CHECK(none.rules.empty());
  CHECK(none.added.empty());
  CHECK(none.ignored);
  auto some = merge_allow_list({rule("a.example")}, host);
  REQUIRE(some.rules.size() == 2);
  REQUIRE(some.added.size() == 1);
  CHECK(some.added[0].text() == "b.example:443");
  CHECK_FALSE(some.ignored);
  CHECK_FALSE(merge_allow_list({}, {}).ignored);
}

TEST_CASE("the allow-list file is read by the same grammar and written in one form") {
  auto list = parse_allow_list("# comment\n\nB.example:8080 # why\n  a.example  \r\nci.corp.example private\na.example:443\n", "allow");
  REQUIRE(list);
  std::string text = allow_list_text(*list);
  CHECK(text.find("\na.example:443\nb.example:8080\nci.corp.example:443 private\n") != std::string::npos);
  auto again = parse_allow_list(text, "allow");
  REQUIRE(again);
  CHECK(*again == *list);
  auto bad = parse_allow_list("a.example\nhttp://x\n", "allow");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().id() == "policy.egress-rule");
  CHECK(bad.error().what.find("allow:2") != std::string::npos);
}

namespace {

std::string parts(const char* rule, bool private_ok) {
  auto r = parse_egress(rule, private_ok);
  REQUIRE(r);
  std::string out;
  for (const auto& [from, to] : reachable_parts(r->network, r->private_ok)) out += (out.empty() ? "" : " ") + to_text(from) + (from == to ? "" : "-" + to_text(to));
  return out;
}

}  // namespace

TEST_CASE("of a wide network what no box may reach is left out, at both of its ends") {
  CHECK(parts("93.184.216.0/24", false) == "93.184.216.0-93.184.216.255");
  CHECK(parts("93.184.216.34", false) == "93.184.216.34");
  CHECK(parts("168.63.129.0/24", false) == "168.63.129.0-168.63.129.15 168.63.129.17-168.63.129.255");
  CHECK(parts("126.0.0.0/7", true) == "126.0.0.0-126.255.255.255");
  CHECK(parts("10.0.0.0/8", true) == "10.0.0.0-10.255.255.255");
  CHECK(parts("0.0.0.0/0", true) ==
        "1.0.0.0-100.100.100.199 100.100.100.201-126.255.255.255 128.0.0.0-168.63.129.15 168.63.129.17-169.253.255.255 169.255.0.0-192.0.0.191 192.0.0.193-223.255.255.255");
  CHECK(parts("[2001:db8::]/32", false) == "2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
  CHECK(parts("[fd00:ec2::]/31", true) == "fd00:ec3::-fd00:ec3:ffff:ffff:ffff:ffff:ffff:ffff");
  // 6to4, Teredo, NAT64 and mapped addresses carry an IPv4 address that could be any.
  CHECK(parts("[2000::]/3", false) == "2000::-2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:1::-2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003::-3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
  // Every address that is let through is one that may be dialled, and the neighbours of each part are not.
  std::mt19937 dice(7);
  auto below = [&](unsigned n) { return static_cast<unsigned>(dice() % n); };
  for (int round = 0; round < 400; round++) {
    bool private_ok = below(2) == 1;
    EgressRule r;
    r.kind = EgressRule::Kind::NETWORK;
    r.private_ok = private_ok;
    r.network.length = static_cast<int>(below(33));
    for (int i = 0; i < 4; i++) r.network.base.bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(below(256));
    for (int bit = r.network.length; bit < 32; bit++) r.network.base.bytes[static_cast<size_t>(bit / 8)] &= static_cast<uint8_t>(~(1u << (7 - bit % 8)));
    auto list = reachable_parts(r.network, private_ok);
    auto in_list = [&](const Address& a) { return std::any_of(list.begin(), list.end(), [&](auto& p) { return p.first.bytes <= a.bytes && a.bytes <= p.second.bytes; }); };
    for (int probe = 0; probe < 200; probe++) {
      Address a = r.network.base;
      for (int bit = r.network.length; bit < 32; bit++) a.bytes[static_cast<size_t>(bit / 8)] |= static_cast<uint8_t>(below(2) << (7 - bit % 8));
      Reach reach = classify(a).reach;
      bool may = reach == Reach::OPEN || (reach == Reach::PRIVATE && private_ok);
      INFO(r.host_text() << " " << to_text(a));
      REQUIRE(in_list(a) == may);
    }
  }
}
