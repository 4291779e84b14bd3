// What egress rules mean on a host, with a resolver that says what the test wants.
#include "core/session/egress.hpp"

#include "core/policy/egress.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;
using namespace h5i::test;

namespace {

Address address(const char* text) { return std::string_view(text).find(':') == std::string_view::npos ? *parse_ipv4(text) : *parse_ipv6(text); }

Json profile(const std::vector<std::string>& rules, bool private_ok = false) {
  Json list = json::Array{};
  for (const std::string& r : rules) list.push(policy::parse_egress(r, private_ok)->to_json());
  Json p = json::Object{};
  p["net"]["mode"] = "deny";
  p["net"]["egress"] = list;
  return p;
}

Lookup knows(std::map<std::string, std::vector<std::string>> names, int* asked = nullptr) {
  return [=](const std::vector<std::string>& wanted) -> Result<Addresses> {
    Addresses out;
    for (const std::string& n : wanted) {
      if (asked) ++*asked;
      if (auto it = names.find(n); it != names.end())
        for (const std::string& a : it->second) out[n].push_back(address(a.c_str()));
    }
    return out;
  };
}

UserDirs dirs_in(const Scratch& s) {
  UserDirs d;
  d.config = s / "config";
  return d;
}

const Json& allow(const EgressNow& e, size_t i) { return e.network["egress"]["allow"].array().at(i); }

}  // namespace

TEST_CASE("names are pinned once: addresses for the rules, and lines for the box's hosts file") {
  Scratch s;
  int asked = 0;
  auto e = egress_now(profile({"api.example.org", "api.example.org:8443", "93.184.216.0/24:80"}), dirs_in(s), knows({{"api.example.org", {"93.184.216.34", "2606:2800:220::1"}}}, &asked));
  REQUIRE(e);
  CHECK(asked == 1);
  CHECK(e->network["hosts"].string() == "93.184.216.34 api.example.org\n2606:2800:220::1 api.example.org\n");
  REQUIRE(e->network["egress"]["allow"].array().size() == 3);
  CHECK(json::canonical(allow(*e, 0)) == R"({"about":"93.184.216.0/24:80","addresses":["93.184.216.0-93.184.216.255"],"id":"r1","pinned":false,"ports":["80"],"protocol":"tcp"})");
  CHECK(json::canonical(allow(*e, 1)) == R"({"about":"api.example.org:443","addresses":["93.184.216.34","2606:2800:220::1"],"id":"r2","pinned":true,"ports":["443"],"protocol":"tcp"})");
  CHECK(allow(*e, 2)["ports"].array()[0].string() == "8443");
}

TEST_CASE("a name that points where no box may go gives no address, and none at all is a refusal that says where") {
  Scratch s;
  for (const char* where : {"127.0.0.1", "169.254.169.254", "::1", "fe80::1", "0.0.0.0", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "10.0.0.1", "192.168.1.1", "fd00::1", "224.0.0.1"}) {
    INFO(where);
    auto e = egress_now(profile({"rebind.example.org"}), dirs_in(s), knows({{"rebind.example.org", {where}}}));
    REQUIRE_FALSE(e);
    CHECK(e.error().code == Errc::EGRESS_RESOLVE);
    CHECK(e.error().evidence.find(to_text(address(where))) != std::string::npos);
    // Beside one that is fine it is left out, and that is told.
    auto mixed = egress_now(profile({"rebind.example.org"}), dirs_in(s), knows({{"rebind.example.org", {where, "93.184.216.34"}}}));
    REQUIRE(mixed);
    CHECK(json::canonical(allow(*mixed, 0)["addresses"]) == R"(["93.184.216.34"])");
    CHECK(mixed->network["hosts"].string() == "93.184.216.34 rebind.example.org\n");
    CHECK(json::canonical(mixed->refused) == "[{\"address\":\"" + to_text(address(where)) + "\",\"rule\":\"rebind.example.org:443\"}]");
  }
  // The control: private ranges when the rule says so.
  auto e = egress_now(profile({"ci.example.org"}, true), dirs_in(s), knows({{"ci.example.org", {"10.0.0.1"}}}));
  REQUIRE(e);
  CHECK(json::canonical(allow(*e, 0)["addresses"]) == R"(["10.0.0.1"])");
  auto none = egress_now(profile({"nowhere.example.org"}), dirs_in(s), knows({}));
  CHECK((!none && none.error().code == Errc::EGRESS_RESOLVE && none.error().evidence.find("no address") != std::string::npos));
}

TEST_CASE("a suffix cannot be pinned, and no rule is no destination") {
  Scratch s;
  auto suffix = egress_now(profile({"*.example.org"}), dirs_in(s), knows({}));
  CHECK((!suffix && suffix.error().code == Errc::POLICY_EGRESS_TIER));
  auto none = egress_now(profile({}), dirs_in(s), knows({}));
  REQUIRE(none);
  CHECK(none->network["egress"]["allow"].array().empty());
  CHECK(none->network["hosts"].string() == "");
}

TEST_CASE("the host's allow-list is merged into a profile that has a rule, and never into one that has none") {
  Scratch s;
  std::filesystem::create_directories(s / "config");
  chmod((s / "config").c_str(), 0700);
  write_file(s / "config/egress-allow", "mirror.example.org\n");
  chmod((s / "config/egress-allow").c_str(), 0600);
  auto names = knows({{"mirror.example.org", {"93.184.216.40"}}, {"api.example.org", {"93.184.216.34"}}});
  auto e = egress_now(profile({"api.example.org"}), dirs_in(s), names);
  REQUIRE(e);
  CHECK(e->network["egress"]["allow"].array().size() == 2);
  CHECK(json::canonical(e->added) == R"(["mirror.example.org:443"])");
  auto none = egress_now(profile({}), dirs_in(s), names);
  REQUIRE(none);
  CHECK(none->network["egress"]["allow"].array().empty());
  CHECK(none->added.array().empty());
}

TEST_CASE("the C library's own answers are read whole") {
  auto found = look_up({"127.0.0.1", "::1", "..invalid.."});  // numbers: nobody is asked
  REQUIRE(found);
  CHECK((*found)["127.0.0.1"] == std::vector<Address>{address("127.0.0.1")});
  CHECK((*found)["::1"] == std::vector<Address>{address("::1")});
  CHECK(found->size() == 2);
  CHECK(look_up({})->empty());
}
