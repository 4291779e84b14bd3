#include "core/nft/codec.hpp"
#include "core/nft/egress.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::nft;

namespace {

Json document(const std::string& addresses, const std::string& ports, const std::string& more = "") {
  auto d = json::parse(R"({"schema":"h5i.egress/1","log_group":5,"allow":[{"id":"a","about":"x","protocol":"tcp","addresses":)" + addresses + R"(,"ports":)" + ports + "}]" + more + "}");
  REQUIRE(d);
  return *d;
}
std::string ranges(const std::string& addresses) {
  auto e = Egress::from_json(document(addresses, R"(["443"])"));
  if (!e) return "refused: " + e.error().what;
  std::string out;
  for (const AddressRange& r : e->allow[0].addresses) out += (out.empty() ? "" : " ") + to_text(r);
  return out;
}
std::string ports(const std::string& list) {
  auto e = Egress::from_json(document(R"(["10.0.0.1"])", list));
  if (!e) return "refused: " + e.error().what;
  std::string out;
  for (const PortRange& r : e->allow[0].ports) out += (out.empty() ? "" : " ") + to_text(r);
  return out;
}

}  // namespace

TEST_CASE("ranges of addresses are sorted, joined where they touch, and written in one way") {
  CHECK(ranges(R"(["10.0.0.1"])") == "10.0.0.1");
  CHECK(ranges(R"(["10.0.0.2","10.0.0.1","10.0.0.3"])") == "10.0.0.1-10.0.0.3");
  CHECK(ranges(R"(["10.0.0.0/25","10.0.0.128/25"])") == "10.0.0.0/24");
  CHECK(ranges(R"(["10.0.0.0/8","10.1.2.3"])") == "10.0.0.0/8");
  CHECK(ranges(R"(["10.0.0.1-10.0.0.4","10.0.0.6"])") == "10.0.0.1-10.0.0.4 10.0.0.6");
  CHECK(ranges(R"(["255.255.255.255","0.0.0.0"])") == "0.0.0.0 255.255.255.255");
  CHECK(ranges(R"(["0.0.0.0/0"])") == "0.0.0.0/0");
  // The last IPv4 address and the first IPv6 one do not touch.
  CHECK(ranges(R"(["::","255.255.255.255"])") == "255.255.255.255 ::");
  CHECK(ranges(R"(["2001:db8::/33","2001:db8:8000::/33"])") == "2001:db8::/32");
  CHECK(ranges(R"(["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff","ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"])") == "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127");
}

TEST_CASE("ports are sorted and joined") {
  CHECK(ports(R"(["443"])") == "443");
  CHECK(ports(R"(["80","443","81-90","8000-8100","8050-9000"])") == "80-90 443 8000-9000");
  CHECK(ports(R"(["65535","1-65534"])") == "1-65535");
}

TEST_CASE("a document that says something else than it seems is refused") {
  for (const char* bad : {R"([])", R"(["10.0.0.300"])", R"(["10.0.0.1/8"])", R"(["10.0.0.0/33"])", R"(["010.0.0.1"])", R"(["10.0.0.2-10.0.0.1"])", R"(["10.0.0.1-::1"])",
                          R"(["host"])", R"([""])", R"(["10.0.0.1-10.0.0.2-10.0.0.3"])", R"(["10.0.0.0/ 8"])", R"(["10.0.0.0/08"])", R"([10])", R"(["fe80::1%eth0"])", R"("10.0.0.1")"}) {
    INFO(bad);
    CHECK_FALSE(Egress::from_json(document(bad, R"(["443"])")));
  }
  for (const char* bad : {R"([])", R"(["0"])", R"(["65536"])", R"(["-1"])", R"(["9-8"])", R"(["0-9"])", R"(["+80"])", R"(["080"])", R"(["80-"])", R"([443])", R"(["http"])"}) {
    INFO(bad);
    CHECK_FALSE(Egress::from_json(document(R"(["10.0.0.1"])", bad)));
  }
  Json good = document(R"(["10.0.0.1"])", R"(["443"])");
  REQUIRE(Egress::from_json(good));
  auto changed = [&](const std::function<void(Json&)>& change) {
    Json d = good;
    change(d);
    return Egress::from_json(d).ok();
  };
  CHECK_FALSE(changed([](Json& d) { d["schema"] = "h5i.egress/2"; }));
  CHECK_FALSE(changed([](Json& d) { d["policy"] = "accept"; }));
  CHECK_FALSE(changed([](Json& d) { d["log_group"] = 0; }));
  CHECK_FALSE(changed([](Json& d) { d["log_group"] = 65536; }));
  CHECK_FALSE(changed([](Json& d) { d["allow"] = Json(); }));
  auto entry = [&](const char* key, Json value) {
    return changed([&](Json& d) {
      Json a = d["allow"].array()[0];
      a[key] = std::move(value);
      d["allow"] = json::Array{a};
    });
  };
  CHECK(entry("id", "a-b-1"));
  for (const char* id : {"", "A", "a b", "a\"", "a;", "abcdefghijklmnopqrstuvwxy"}) CHECK_FALSE(entry("id", id));
  CHECK_FALSE(entry("protocol", "icmp"));
  CHECK_FALSE(entry("verdict", "accept"));
  CHECK_FALSE(changed([](Json& d) { d["allow"].push(d["allow"].array()[0]); }));  // an id twice
  Json many = json::Array{};
  for (int i = 0; i < 1025; i++) many.push("10.0." + std::to_string(i / 100) + "." + std::to_string(i % 100 * 2));
  CHECK_FALSE(entry("addresses", many));
}

TEST_CASE("what is written is what is read") {
  auto e = Egress::from_json(document(R"(["10.0.0.7","10.0.0.0/30","2001:db8::1-2001:db8::9"])", R"(["8000-8100","443"])"));
  REQUIRE(e);
  auto again = Egress::from_json(e->to_json());
  REQUIRE(again);
  CHECK(json::canonical(again->to_json()) == json::canonical(e->to_json()));
}

TEST_CASE("the rules of a document: own loopback, replies inwards, neighbours, the destinations, and nothing else") {
  auto e = Egress::from_json(document(R"(["10.0.0.7","10.1.0.0/16","2001:db8::1"])", R"(["443","8000-8100"])"));
  REQUIRE(e);
  CHECK(ruleset_of(*e).to_text() ==
        "table inet h5i {\n"
        "\tset to-a-v4 {\n"
        "\t\ttype ipv4_addr . inet_service\n"
        "\t\tflags interval\n"
        "\t\telements = { 10.0.0.7 . 443,\n"
        "\t\t\t     10.0.0.7 . 8000-8100,\n"
        "\t\t\t     10.1.0.0/16 . 443,\n"
        "\t\t\t     10.1.0.0/16 . 8000-8100 }\n"
        "\t}\n"
        "\n"
        "\tset to-a-v6 {\n"
        "\t\ttype ipv6_addr . inet_service\n"
        "\t\tflags interval\n"
        "\t\telements = { 2001:db8::1 . 443,\n"
        "\t\t\t     2001:db8::1 . 8000-8100 }\n"
        "\t}\n"
        "\n"
        "\tchain input {\n"
        "\t\ttype filter hook input priority filter; policy drop;\n"
        "\t\tiifname \"lo\" counter accept comment \"loopback\"\n"
        "\t\tct state established,related counter accept comment \"replies\"\n"
        "\t\ticmpv6 type nd-router-advert counter accept comment \"neighbours\"\n"
        "\t\ticmpv6 type nd-neighbor-solicit counter accept comment \"neighbours\"\n"
        "\t\ticmpv6 type nd-neighbor-advert counter accept comment \"neighbours\"\n"
        "\t}\n"
        "\n"
        "\tchain forward {\n"
        "\t\ttype filter hook forward priority filter; policy drop;\n"
        "\t}\n"
        "\n"
        "\tchain output {\n"
        "\t\ttype filter hook output priority filter; policy drop;\n"
        "\t\toifname \"lo\" counter accept comment \"loopback\"\n"
        "\t\ticmpv6 type nd-router-solicit counter accept comment \"neighbours\"\n"
        "\t\ticmpv6 type nd-neighbor-solicit counter accept comment \"neighbours\"\n"
        "\t\ticmpv6 type nd-neighbor-advert counter accept comment \"neighbours\"\n"
        "\t\tip daddr . tcp dport @to-a-v4 counter accept comment \"allow a v4\"\n"
        "\t\tip6 daddr . tcp dport @to-a-v6 counter accept comment \"allow a v6\"\n"
        "\t\tcounter log prefix \"h5i-refused\" group 5 snaplen 128 comment \"refused\"\n"
        "\t\tmeta l4proto tcp counter reject with tcp reset comment \"reset\"\n"
        "\t\tcounter reject with icmpx admin-prohibited comment \"prohibited\"\n"
        "\t}\n"
        "}\n");
}

TEST_CASE("differences are told line by line") {
  CHECK(difference("a\nb\n", "a\nb\n").empty());
  CHECK(difference("a\nb\nb\n", "a\nb\nc\n") == std::vector<std::string>{"unexpected: c", "missing: b"});
  CHECK(difference("", "x\n") == std::vector<std::string>{"unexpected: x"});
}
