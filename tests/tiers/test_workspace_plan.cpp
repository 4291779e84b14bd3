#include "plugins/tier-workspace/plan.hpp"
#include "tests/support/catch.hpp"
#include "tests/tiers/sample_request.hpp"

using namespace h5i;
using namespace h5i::tests;

namespace {
json::Value planned(const json::Value& request, bool namespaces) {
  auto p = tier_workspace::build_plan(request, {namespaces});
  REQUIRE(p.ok());
  return *p;
}
bool listed(const json::Value& plan, std::string_view field) {
  for (const json::Value& n : plan["not_enforced"].array())
    if (n["field"].string() == field) return !n["detail"].string().empty();
  return false;
}
}  // namespace

TEST_CASE("workspace confines nothing and lists every field but what the core holds") {
  json::Value p = planned(sample_request(), true);
  for (const char* field : {"fs.read", "fs.write", "fs.deny", "fs.private", "net.mode", "net.unix", "net.loopback",
                            "resources.mem", "resources.procs", "resources.cpus", "resources.cpu", "resources.fsize",
                            "resources.disk", "resources.inodes", "proc.tools"}) {
    INFO(field);
    CHECK(listed(p, field));
  }
  for (const char* field : {"resources.wall", "resources.output", "env.pass", "env.set", "tools"})
    CHECK_FALSE(listed(p, field));
  CHECK(p["not_enforced"].array()[0]["detail"].string().find("nothing was confined") == 0);
  CHECK(p["landlock"].is_null());
  CHECK(p["seccomp"].is_null());
  CHECK(p["root"].is_null());
}

TEST_CASE("workspace uses user and pid namespaces with the caller's ids where they are, and says so where not") {
  json::Value with = planned(sample_request(), true), without = planned(sample_request(), false);
  CHECK(with["namespaces"].array().size() == 2);
  CHECK(with["identity_map"].boolean());
  CHECK(with["init"].boolean());
  CHECK(with["ids"]["outside_uid"].integer() == 1000);
  CHECK_FALSE(listed(with, "proc.kill-tree"));
  CHECK(without["namespaces"].array().empty());
  CHECK_FALSE(without["init"].boolean());
  CHECK(listed(without, "proc.kill-tree"));
}

TEST_CASE("workspace refuses egress rules") {
  json::Value v = sample_request();
  profile_of(v)["net"]["egress"].push(json::Object{{"to", "api.example:443"}});
  auto p = tier_workspace::build_plan(v, {true});
  REQUIRE_FALSE(p.ok());
  CHECK(p.error().code == H5I_E_POLICY_EGRESS_TIER);
}
