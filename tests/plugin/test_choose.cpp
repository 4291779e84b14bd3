#include "core/plugin/choose.hpp"

#include <map>

#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::plugin;

namespace {

// What each tier of a made-up host answers; a tier that is not here is not installed.
struct Host {
  std::map<std::string, std::string> tiers;  // id -> "ok", "unavailable", "unsuitable", "unproved", "refused"
  std::vector<std::string> verified;

  ChooseCalls calls() {
    return {
        [this](std::string_view id) -> Result<PluginInfo> {
          auto it = tiers.find(std::string(id));
          if (it == tiers.end())
            return make_error(Errc::TIER_NOT_INSTALLED, "tier " + std::string(id) + " is not installed",
                              "h5i-tier-" + std::string(id));
          if (it->second == "refused") return make_error(Errc::TIER_REFUSED, "refused");
          PluginInfo p;
          p.id = std::string(id);
          return p;
        },
        [this](const PluginInfo& p) -> Result<Json> {
          bool ok = tiers[p.id] != "unavailable";
          return Json(json::Object{
              {"available", ok},
              {"missing", ok ? json::Array{} : json::Array{"user-namespace"}},
              {"components", json::Array{json::Object{{"id", "user-namespace"}, {"ok", ok}, {"evidence", "EPERM"}}}}});
        },
        [this](const PluginInfo& p, const Json&) -> Result<void> {
          if (tiers[p.id] == "unsuitable") return make_error(Errc::POLICY_EGRESS_TIER, "egress cannot be held");
          return {};
        },
        [this](const PluginInfo& p) -> Result<void> {
          verified.push_back(p.id);
          if (tiers[p.id] == "unproved") return make_error(Errc::TIER_VERIFY_FAILED, "not proved");
          return {};
        }};
  }
  Result<TierChoice> choose(ChooseInput in) { return choose_tier(in, calls()); }
};

std::string chosen(const Result<TierChoice>& r) {
  return r ? r->plugin.id + "/" + r->from : std::string(r.error().id());
}

}  // namespace

TEST_CASE("a tier that is named is met or refused, whoever names it") {
  Host h{{{"process", "ok"},
          {"supervised", "unavailable"},
          {"container", "unproved"},
          {"microvm", "refused"},
          {"workspace", "ok"}},
         {}};
  CHECK(chosen(h.choose({.flag = "process"})) == "process/flag");
  CHECK(chosen(h.choose({.flag = "supervised"})) == "tier.probe.missing");
  CHECK(chosen(h.choose({.flag = "container"})) == "tier.verify.failed");
  CHECK(chosen(h.choose({.flag = "microvm"})) == "tier.refused");
  CHECK(chosen(h.choose({.flag = "seatbelt"})) == "tier.not-installed");
  CHECK(chosen(h.choose({.flag = "workspace"})) == "workspace/flag");
  CHECK(chosen(h.choose({.profile = "supervised"})) == "tier.probe.missing");
  CHECK(chosen(h.choose({.environment = "supervised"})) == "tier.probe.missing");
}

TEST_CASE("the flag goes before the profile, the profile before the environment") {
  Host h{{{"process", "ok"}, {"supervised", "ok"}, {"workspace", "ok"}}, {}};
  CHECK(chosen(h.choose({.flag = "process", .profile = "supervised", .environment = "workspace"})) == "process/flag");
  CHECK(chosen(h.choose({.profile = "process", .environment = "supervised"})) == "process/profile");
  CHECK(chosen(h.choose({.environment = "process"})) == "process/environment");
  CHECK(chosen(h.choose({.flag = "auto", .environment = "process"})) == "supervised/auto");
  CHECK(chosen(h.choose({.flag = "auto", .profile = "process"})) == "process/profile");
  CHECK(chosen(h.choose({})) == "supervised/auto");
}

TEST_CASE("auto takes the first that is there, could, suits and was proved, with one reason for each that lost") {
  Host h{{{"process", "ok"}, {"supervised", "unavailable"}, {"container", "ok"}}, {}};
  auto r = h.choose({});
  REQUIRE(chosen(r) == "process/auto");
  REQUIRE(r->skipped.size() == 3);
  CHECK(r->skipped[0].tier == "microvm");
  CHECK(r->skipped[1].tier == "supervised");
  CHECK(r->skipped[1].why.evidence.find("user-namespace") != std::string::npos);
  CHECK(r->skipped[2].tier == "container");
  CHECK(r->lines().size() == 5);
  CHECK(r->lines()[2].find("skipped supervised: tier.probe.missing") == 0);
  CHECK(h.verified == std::vector<std::string>{"process"});
}

TEST_CASE("image tiers are tried only with an image, and a tip names those that are installed") {
  Host h{{{"process", "ok"}, {"container", "ok"}}, {}};
  auto without = h.choose({});
  CHECK(chosen(without) == "process/auto");
  CHECK(without->tip == "tip: with --image, auto would also try container");
  CHECK(chosen(h.choose({.image = true})) == "container/auto");
  CHECK(h.choose({.flag = "process"})->tip.empty());
  Host bare{{{"process", "ok"}}, {}};
  CHECK(bare.choose({})->tip.empty());
}

TEST_CASE("auto never ends at workspace unless somebody agreed to it") {
  Host h{{{"process", "unavailable"}, {"workspace", "ok"}}, {}};
  auto r = h.choose({});
  CHECK(chosen(r) == "tier.none");
  CHECK(r.error().evidence.find("skipped process") != std::string::npos);
  CHECK(r.error().evidence.find("workspace") == std::string::npos);
  CHECK(chosen(h.choose({.allow_unconfined = true})) == "workspace/auto");
  CHECK(chosen(h.choose({.order = {"process", "workspace"}})) == "workspace/auto");
  CHECK(chosen(h.choose({.profile = "workspace"})) == "workspace/profile");
}

TEST_CASE("with --allow-unconfined a tier that confines still goes first") {
  Host h{{{"process", "ok"}, {"workspace", "ok"}}, {}};
  CHECK(chosen(h.choose({.allow_unconfined = true})) == "process/auto");
}

TEST_CASE("what the profile rules out is skipped, and refused when it was named") {
  Host h{{{"process", "unsuitable"}, {"supervised", "ok"}}, {}};
  CHECK(chosen(h.choose({.order = {"process", "supervised"}})) == "supervised/auto");
  CHECK(chosen(h.choose({.flag = "process"})) == "policy.egress-unenforceable");
}

TEST_CASE("an outside tier is considered only where host policy puts it") {
  Host h{{{"com.example.my", "ok"}, {"process", "ok"}}, {}};
  CHECK(chosen(h.choose({})) == "process/auto");
  CHECK(chosen(h.choose({.order = {"com.example.my", "process"}})) == "com.example.my/auto");
  CHECK(chosen(h.choose({.flag = "com.example.my"})) == "com.example.my/flag");
}
