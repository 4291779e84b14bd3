#include "plugins/websec-http/scope/address.hpp"

#include "plugins/websec-http/scope/dial.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

Address address(const char* text) {
  auto a = parse_address(text);
  INFO(text);
  REQUIRE(a);
  return *a;
}

Dial dial(const char* rules, const char* url, std::vector<const char*> resolved) {
  auto scope = Scope::parse(rules);
  REQUIRE(scope);
  auto parsed = Url::parse(url);
  REQUIRE(parsed);
  std::vector<Address> addresses;
  for (const char* a : resolved) addresses.push_back(address(a));
  return choose_address(*scope, scope->decide(*parsed), *parsed, addresses);
}

// The pinned address, or "" when the host is refused.
std::string pinned(const char* rules, const char* url, std::vector<const char*> resolved) {
  Dial d = dial(rules, url, std::move(resolved));
  CHECK(d.pinned.has_value() == d.refusal.empty());
  return d.pinned ? d.pinned->text() : "";
}

}  // namespace

TEST_CASE("each kind of address has its name at both ends of its range", "[address]") {
  struct Case {
    const char* text;
    const char* kind;
  };
  for (const Case& c : {Case{"8.8.8.8", "public"},
                        {"1.0.0.0", "public"},
                        {"0.0.0.0", "unspecified"},
                        {"0.255.255.255", "unspecified"},
                        {"127.0.0.0", "loopback"},
                        {"127.255.255.255", "loopback"},
                        {"128.0.0.0", "public"},
                        {"126.255.255.255", "public"},
                        {"10.0.0.0", "private"},
                        {"10.255.255.255", "private"},
                        {"11.0.0.0", "public"},
                        {"172.15.255.255", "public"},
                        {"172.16.0.0", "private"},
                        {"172.31.255.255", "private"},
                        {"172.32.0.0", "public"},
                        {"192.168.0.0", "private"},
                        {"192.167.255.255", "public"},
                        {"192.169.0.0", "public"},
                        {"169.254.0.0", "link-local"},
                        {"169.254.255.255", "link-local"},
                        {"169.254.169.254", "metadata"},
                        {"169.254.170.2", "metadata"},
                        {"100.100.100.200", "metadata"},
                        {"168.63.129.16", "metadata"},
                        {"192.0.0.192", "metadata"},
                        {"100.63.255.255", "public"},
                        {"100.64.0.0", "shared"},
                        {"100.127.255.255", "shared"},
                        {"100.128.0.0", "public"},
                        {"192.0.0.1", "protocol"},
                        {"192.0.2.1", "documentation"},
                        {"198.51.100.1", "documentation"},
                        {"203.0.113.1", "documentation"},
                        {"192.88.99.1", "6to4-relay"},
                        {"198.18.0.0", "benchmark"},
                        {"198.19.255.255", "benchmark"},
                        {"198.20.0.0", "public"},
                        {"223.255.255.255", "public"},
                        {"224.0.0.0", "multicast"},
                        {"239.255.255.255", "multicast"},
                        {"240.0.0.0", "reserved"},
                        {"255.255.255.254", "reserved"},
                        {"255.255.255.255", "broadcast"},
                        {"::", "unspecified"},
                        {"::1", "loopback"},
                        {"::2", "compatible"},
                        {"::7f00:1", "compatible"},
                        {"::ffff:8.8.8.8", "mapped"},
                        {"::ffff:127.0.0.1", "mapped"},
                        {"::ffff:0:127.0.0.1", "translated"},
                        {"64:ff9b::8.8.8.8", "nat64"},
                        {"64:ff9b:1::1", "nat64-local"},
                        {"64:ff9b:2::1", "reserved"},
                        {"100::1", "discard"},
                        {"2002:7f00:1::", "6to4"},
                        {"2001::1", "teredo"},
                        {"2001:db8::1", "documentation"},
                        {"3fff:fff::1", "documentation"},
                        {"3fff:1000::1", "public"},
                        {"2001:1ff::1", "protocol"},
                        {"2001:200::1", "public"},
                        {"2606:4700::1111", "public"},
                        {"2606:4700::5efe:7f00:1", "isatap"},
                        {"2606:4700::200:5efe:7f00:1", "isatap"},
                        {"fe80::5efe:7f00:1", "link-local"},
                        {"fc00::1", "private"},
                        {"fdff::1", "private"},
                        {"fd00:ec2::254", "metadata"},
                        {"fd20:ce::254", "metadata"},
                        {"fe80::1", "link-local"},
                        {"febf::1", "link-local"},
                        {"fec0::1", "site-local"},
                        {"feff::1", "site-local"},
                        {"ff00::", "multicast"},
                        {"ff02::1", "multicast"},
                        {"4000::1", "reserved"},
                        {"1fff::1", "reserved"},
                        {"fbff::1", "reserved"},
                        {"fe00::1", "reserved"},
                        {"200::1", "reserved"},
                        {"5f00::1", "reserved"}}) {
    INFO(c.text);
    CHECK(classify(address(c.text)).name == c.kind);
  }
}

TEST_CASE("a form that carries a restricted address is known to", "[address]") {
  for (const char* bad : {"::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe",
                          "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::", "2001:0:808:808:0:0:80ff:fffe", "2606:4700::5efe:10.0.0.1",
                          "::127.0.0.1", "64:ff9b:1:7f00:0:100::", "64:ff9b:1:7f:0:1::", "64:ff9b:1:0:7f:0:100::", "64:ff9b:1::127.0.0.1"}) {
    INFO(bad);
    CHECK(classify(address(bad)).carries_restricted);
  }
  for (const char* other : {"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::", "2606:4700::5efe:8.8.8.8", "127.0.0.1", "::1", "8.8.8.8"}) {
    INFO(other);
    CHECK(!classify(address(other)).carries_restricted);
  }
}

TEST_CASE("an address is read in one spelling", "[address]") {
  for (const char* bad : {"", "127.1", "0x7f.0.0.1", "2130706433", "127.0.0.01", "127.0.0.1.", " 127.0.0.1", "127.0.0.1/8", "[::1]", "::1%lo", "::g",
                          "1.2.3", "256.1.1.1", "\xef\xbc\x91.1.1.1"})
    CHECK(!parse_address(bad));
  for (const char* bad : {"10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.1/8", "10.0.0.0/-1", "::/129", "fc00::1/7", "10.0.0.0/8/8"})
    CHECK(!parse_prefix(bad));
  CHECK(parse_prefix("fc00::/7")->text() == "fc00::/7");
  CHECK(parse_prefix("0.0.0.0/0")->contains(address("1.2.3.4")));
  CHECK(!parse_prefix("0.0.0.0/0")->contains(address("::1")));
  CHECK(parse_prefix("10.128.0.0/9")->contains(address("10.255.0.1")));
  CHECK(!parse_prefix("10.128.0.0/9")->contains(address("10.127.0.1")));
}

TEST_CASE("a name that leads to an address of ours is refused, in every spelling, and the control is not", "[address]") {
  CHECK(pinned("allow a.test", "https://a.test/", {"8.8.8.8"}) == "8.8.8.8");
  CHECK(pinned("allow a.test", "https://a.test/", {"2606:4700::1111", "8.8.8.8"}) == "2606:4700::1111");
  for (const char* bad : {"127.0.0.1",
                          "127.0.0.2",
                          "::1",
                          "10.0.0.1",
                          "172.16.0.1",
                          "192.168.1.1",
                          "fd00::1",
                          "169.254.169.254",
                          "169.254.1.1",
                          "fe80::1",
                          "fd00:ec2::254",
                          "100.100.100.200",
                          "100.64.0.1",
                          "224.0.0.1",
                          "ff02::1",
                          "240.0.0.1",
                          "255.255.255.255",
                          "0.0.0.0",
                          "::",
                          "::ffff:127.0.0.1",
                          "::ffff:8.8.8.8",
                          "::127.0.0.1",
                          "64:ff9b::127.0.0.1",
                          "64:ff9b::8.8.8.8",
                          "64:ff9b:1::10.0.0.1",
                          "2002:7f00:1::",
                          "2001:0:7f00:1::",
                          "2606:4700::5efe:127.0.0.1",
                          "192.0.2.1",
                          "198.18.0.1",
                          "2001:db8::1"}) {
    INFO(bad);
    for (const char* rule : {"allow a.test", "allow *.test", "allow a.test at public"}) {
      CHECK(pinned(rule, "https://a.test/", {bad}) == "");
      CHECK(pinned(rule, "https://a.test/", {"8.8.8.8", bad}) == "");
      CHECK(pinned(rule, "https://a.test/", {bad, "8.8.8.8"}) == "");
    }
  }
  CHECK(pinned("allow a.test", "https://a.test/", {}) == "");
  CHECK(pinned("allow a.test", "https://b.test/", {"8.8.8.8"}) == "");
  Dial d = dial("allow a.test", "https://a.test/", {"8.8.8.8", "::ffff:127.0.0.1"});
  CHECK(d.refusal == "a.test leads to ::ffff:7f00:1: mapped, and the rule grants public");
  REQUIRE(d.verdicts.size() == 2);
  CHECK(d.verdicts[0].admitted);
  CHECK(!d.verdicts[1].admitted);
}

TEST_CASE("a rule that says where a name may be is held to it", "[address]") {
  const char* loop = "allow a.test at loopback";
  CHECK(pinned(loop, "https://a.test/", {"127.0.0.2"}) == "127.0.0.2");
  CHECK(pinned(loop, "https://a.test/", {"::1"}) == "::1");
  for (const char* bad : {"8.8.8.8", "10.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "0.0.0.0"})
    CHECK(pinned(loop, "https://a.test/", {bad}) == "");
  const char* site = "allow a.test at private";
  CHECK(pinned(site, "https://a.test/", {"10.0.0.1", "fd00::1"}) == "10.0.0.1");
  for (const char* bad : {"127.0.0.1", "8.8.8.8", "fd00:ec2::254", "100.64.0.1", "169.254.1.1"}) CHECK(pinned(site, "https://a.test/", {bad}) == "");
  CHECK(pinned("allow a.test at private,public", "https://a.test/", {"10.0.0.1", "8.8.8.8"}) == "10.0.0.1");
  CHECK(pinned("allow a.test at 169.254.169.254", "https://a.test/", {"169.254.169.254"}) == "169.254.169.254");
  CHECK(pinned("allow a.test at 169.254.169.254", "https://a.test/", {"169.254.170.2"}) == "");
}

TEST_CASE("a granted network grants addresses of its own kind only", "[address]") {
  CHECK(pinned("allow a.test at 10.1.0.0/16", "https://a.test/", {"10.1.2.3"}) == "10.1.2.3");
  CHECK(pinned("allow a.test at 10.1.0.0/16", "https://a.test/", {"10.2.2.3"}) == "");
  CHECK(pinned("allow a.test at 0.0.0.0/0", "https://a.test/", {"8.8.8.8"}) == "8.8.8.8");
  for (const char* bad : {"127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1"})
    CHECK(pinned("allow a.test at 0.0.0.0/0", "https://a.test/", {bad}) == "");
  for (const char* bad : {"::1", "::ffff:8.8.8.8", "fd00::1", "64:ff9b::8.8.8.8", "4000::1"})
    CHECK(pinned("allow a.test at ::/0", "https://a.test/", {bad}) == "");
  CHECK(pinned("allow a.test at 169.254.0.0/16", "https://a.test/", {"169.254.1.1"}) == "169.254.1.1");
  CHECK(pinned("allow a.test at 169.254.0.0/16", "https://a.test/", {"169.254.169.254"}) == "");
  CHECK(pinned("allow a.test at 100.64.0.0/10", "https://a.test/", {"100.64.0.1"}) == "100.64.0.1");
  CHECK(pinned("allow a.test at 100.64.0.0/10", "https://a.test/", {"100.100.100.200"}) == "");
  CHECK(pinned("allow a.test at 64:ff9b::/96", "https://a.test/", {"64:ff9b::8.8.8.8"}) == "64:ff9b::808:808");
  CHECK(pinned("allow a.test at 64:ff9b::/96", "https://a.test/", {"64:ff9b::127.0.0.1"}) == "");
}

TEST_CASE("localhost is loopback unless its rule says otherwise, whatever a resolver says", "[address]") {
  for (const char* url : {"https://localhost/", "https://a.localhost/"}) {
    CHECK(pinned("allow localhost\nallow *.localhost", url, {"127.0.0.1"}) == "127.0.0.1");
    CHECK(pinned("allow localhost\nallow *.localhost", url, {"8.8.8.8"}) == "");
  }
  CHECK(pinned("allow localhost.test", "https://localhost.test/", {"127.0.0.1"}) == "");
  CHECK(pinned("allow notlocalhost", "https://notlocalhost/", {"127.0.0.1"}) == "");
}

TEST_CASE("an address in the URL is dialled as it is granted, and no other", "[address]") {
  CHECK(pinned("allow http://127.0.0.1:8080", "http://127.1:8080/", {"127.0.0.1"}) == "127.0.0.1");
  CHECK(pinned("allow http://127.0.0.1:8080", "http://127.0.0.1:8080/", {"127.0.0.2"}) == "");
  CHECK(pinned("allow http://127.0.0.1:8080", "http://127.0.0.1:8080/", {"::ffff:127.0.0.1"}) == "");
  CHECK(pinned("allow http://[::ffff:127.0.0.1]", "http://[::ffff:127.0.0.1]/", {"::ffff:127.0.0.1"}) == "::ffff:7f00:1");
  CHECK(pinned("allow http://169.254.169.254", "http://169.254.169.254/", {"169.254.169.254"}) == "169.254.169.254");
  CHECK(pinned("allow http://*.test", "http://127.0.0.1/", {"127.0.0.1"}) == "");
}

TEST_CASE("the exact rule of a name says where it may be, and a wildcard only where there is none", "[address]") {
  const char* rules = "allow *.example.com\nallow dev.example.com at loopback\nallow *.lab.example.com at private";
  CHECK(pinned(rules, "https://dev.example.com/", {"127.0.0.1"}) == "127.0.0.1");
  CHECK(pinned(rules, "https://dev.example.com/", {"8.8.8.8"}) == "");
  CHECK(pinned(rules, "https://www.example.com/", {"127.0.0.1"}) == "");
  CHECK(pinned(rules, "https://x.lab.example.com/", {"10.0.0.1"}) == "10.0.0.1");
}

TEST_CASE("a denied address is not reached by way of a name", "[address]") {
  const char* rules =
      "allow a.test at private\nallow b.test at 64:ff9b::8.8.8.8\ndeny 10.0.0.5\ndeny 10.0.0.6:8443\ndeny 10.0.0.7/admin\ndeny 8.8.8.8";
  CHECK(pinned(rules, "https://a.test/", {"10.0.0.4"}) == "10.0.0.4");
  CHECK(pinned(rules, "https://a.test/", {"10.0.0.4", "10.0.0.5"}) == "");
  CHECK(pinned(rules, "https://a.test/", {"10.0.0.6"}) == "10.0.0.6");
  CHECK(pinned(rules, "https://a.test/", {"10.0.0.7"}) == "10.0.0.7");
  CHECK(pinned(rules, "https://a.test/admin/x", {"10.0.0.7"}) == "");
  CHECK(pinned(rules, "https://b.test/", {"64:ff9b::8.8.8.8"}) == "");
}
