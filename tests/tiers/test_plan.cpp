#include <cstdlib>
#include <fstream>

#include "limits.hpp"
#include "plan.hpp"
#include "tests/support/text_file.hpp"
#include "tests/tiers/fake_host.hpp"
#include "tests/tiers/not_enforced.hpp"
#include "tests/tiers/sample_request.hpp"

using namespace h5i;
using namespace h5i::tests;
using test::reason;

namespace {

confined::HostFacts facts(bool with_cgroup = false) {
  confined::HostFacts f;
  f.landlock_abi = 7;
  f.kernel_major = 6;
  f.kernel_minor = 12;
  if (with_cgroup)
    f.cgroup = json::Object{{"available", true},
                            {"base", "/sys/fs/cgroup/u"},
                            {"via", "delegated"},
                            {"controllers", json::Array{"cpu", "memory", "pids"}}};
  return f;
}

json::Value planned(const json::Value& request, const confined::HostFacts& f = facts()) {
  auto p = confined::build_plan(read(request), f, debian());
  INFO((p.ok() ? std::string() : p.error().text));
  REQUIRE(p.ok());
  return p->document;
}

const json::Value* rlimit(const json::Value& plan, std::string_view name) {
  for (const json::Value& r : plan["rlimits"].array())
    if (r["name"].string() == name) return &r;
  return nullptr;
}

// Compares with tests/tiers/golden/NAME; H5I_UPDATE_GOLDENS=1 writes it instead.
void check_golden(const std::string& name, json::Value plan) {
  plan["seccomp"]["program"] = "(the filter of this architecture)";
  plan["seccomp"]["sha256"] = "(its digest)";
  plan["seccomp"]["notify"] = json::Object{{"default", plan["seccomp"]["notify"]["default"]}};
  const char* source = getenv("H5I_SOURCE_DIR");
  std::string path = std::string(source ? source : ".") + "/tests/tiers/golden/" + name;
  std::string text = json::pretty(plan) + "\n";
  if (getenv("H5I_UPDATE_GOLDENS") != nullptr) std::ofstream(path) << text;
  CHECK(test::read_file(path) == text);
}

}  // namespace

TEST_CASE("plan of the default profile, ordinary user") {
  check_golden("process_default.json", planned(sample_request()));
}

TEST_CASE("plan of the default profile, root with a cgroup") {
  json::Value v = sample_request();
  v["ids"] = json::Object{{"uid", 0}, {"gid", 0}, {"box_uid", 165536}, {"box_gid", 165536}};
  check_golden("process_root.json", planned(v, facts(true)));
}

TEST_CASE("a plan confines: every mechanism is in it") {
  json::Value p = planned(sample_request());
  CHECK(p["namespaces"].array().size() == 7);
  CHECK(p["nested_user"].boolean());
  CHECK(p["no_new_privs"].boolean());
  CHECK(p["capabilities"].string() == "none");
  CHECK(p["landlock"]["handled_fs"].integer() == 0xffff);
  CHECK(p["landlock"]["scoped"].integer() == 3);
  CHECK(p["seccomp"]["program"].string().size() > 1000);
  CHECK(p["seccomp"]["notify"]["default"].integer() == 38);
  CHECK(p["init"].boolean());
  CHECK(p["ids"]["outside_uid"].integer() == 1000);
  CHECK_FALSE(p["identity_map"].boolean());
}

TEST_CASE("without Landlock there is no plan") {
  confined::HostFacts f = facts();
  f.landlock_abi = 0;
  auto p = confined::build_plan(read(sample_request()), f, debian());
  REQUIRE_FALSE(p.ok());
  CHECK(p.error().code == H5I_E_TIER_PROBE_MISSING);
}

TEST_CASE("an older Landlock is asked only for what it has") {
  confined::HostFacts f = facts();
  f.landlock_abi = 2;
  json::Value p = planned(sample_request(), f);
  CHECK(p["landlock"]["handled_fs"].integer() == 0x3fff);
  CHECK(p["landlock"]["scoped"].integer() == 0);
  for (const json::Value& r : p["landlock"]["rules"].array()) CHECK((r["access"].integer() & ~0x3fff) == 0);
}

TEST_CASE("net.mode host: no network namespace, and what that means is said") {
  json::Value v = sample_request();
  profile_of(v)["net"]["mode"] = "host";
  json::Value p = planned(v);
  CHECK(p["namespaces"].array().size() == 6);
  CHECK_FALSE(p["loopback"].boolean());
  CHECK(reason(p, "net.host-loopback") == "host-network");
  CHECK(reason(planned(sample_request()), "net.host-loopback").empty());
  confined::HostFacts f = facts();
  f.landlock_abi = 5;
  profile_of(v)["net"]["unix"] = true;
  CHECK(reason(planned(v, f), "net.abstract-sockets") == "landlock-abi");
  CHECK(reason(planned(v), "net.abstract-sockets").empty());
}

TEST_CASE("the profile decides which filter") {
  json::Value v = sample_request();
  profile_of(v)["net"]["unix"] = true;
  CHECK_FALSE(planned(v)["seccomp"]["sha256"] == planned(sample_request())["seccomp"]["sha256"]);
}

TEST_CASE("limits with a cgroup are of the whole box") {
  json::Value v = sample_request();
  profile_of(v)["resources"]["cpus"] = 1.5;
  profile_of(v)["resources"]["cpu"] = 60;
  json::Value p = planned(v, facts(true));
  const json::Value& limits = p["cgroup"]["limits"];
  CHECK(p["cgroup"]["base"].string() == "/sys/fs/cgroup/u");
  CHECK(limits["memory.max"].string() == "4294967296");
  CHECK(limits["memory.swap.max"].string() == "0");
  CHECK(limits["pids.max"].string() == "256");
  CHECK(limits["cpu.max"].string() == "150000 100000");
  CHECK(rlimit(p, "data") == nullptr);
  CHECK((*rlimit(p, "nproc"))["hard"].integer() == 257);  // the group refuses first, and counts
  for (const char* field : {"resources.mem", "resources.cpu", "resources.cpus", "resources.procs"})
    CHECK(reason(p, field).empty());
}

TEST_CASE("limits without a cgroup are rlimits, and labelled per process") {
  json::Value v = sample_request();
  profile_of(v)["resources"]["cpu"] = 60;
  profile_of(v)["resources"]["fsize"] = 1048576;
  profile_of(v)["resources"]["cpus"] = 2;
  json::Value p = planned(v);
  CHECK(p["cgroup"].is_null());
  REQUIRE(rlimit(p, "data"));
  CHECK((*rlimit(p, "data"))["hard"].integer() == 4294967296);
  CHECK((*rlimit(p, "nproc"))["hard"].integer() == 256);
  CHECK((*rlimit(p, "cpu"))["soft"].integer() == 60);
  CHECK((*rlimit(p, "fsize"))["hard"].integer() == 1048576);
  CHECK((*rlimit(p, "core"))["hard"].integer() == 0);
  CHECK(rlimit(p, "as") == nullptr);
  CHECK(reason(p, "resources.mem") == "per-process");
  CHECK(reason(p, "resources.cpu") == "per-process");
  CHECK(reason(p, "resources.procs").empty());
  CHECK(reason(p, "resources.cpus") == "no-cgroup");
}

TEST_CASE("RLIMIT_NPROC is used only where it counts the box: a named limit is refused before Linux 5.14") {
  confined::HostFacts old = facts();
  old.kernel_major = 5;
  old.kernel_minor = 13;
  json::Value p = planned(sample_request(), old);
  CHECK(rlimit(p, "nproc") == nullptr);
  CHECK(reason(p, "resources.procs") == "no-cgroup");
  json::Value v = sample_request();
  profile_of(v)["resources"]["explicit"].push("procs");
  auto refused = confined::build_plan(read(v), old, debian());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == H5I_E_POLICY_LIMIT_TIER);
}

TEST_CASE("what this tier never holds is always listed") {
  json::Value p = planned(sample_request());
  CHECK(reason(p, "proc.tools") == "first-program-only");
  CHECK(reason(p, "resources.disk") == "no-limit");
  CHECK(reason(p, "resources.inodes") == "no-limit");
  json::Value v = sample_request();
  profile_of(v)["resources"]["disk"] = 1000000;
  profile_of(v)["resources"]["inodes"] = 1000;
  profile_of(v)["net"]["loopback"].push(3000);
  json::Value named = planned(v);
  CHECK(reason(named, "resources.disk") == "no-backing");
  CHECK(reason(named, "resources.inodes") == "no-backing");
  CHECK(reason(named, "net.loopback") == "no-uplink");
}

TEST_CASE("descriptors are limited, never raised") {
  confined::HostFacts f = facts();
  f.nofile_soft = 1024;
  f.nofile_hard = 1048576;
  const json::Value p = planned(sample_request(), f);
  CHECK((*rlimit(p, "nofile"))["soft"].integer() == 1024);
  CHECK((*rlimit(p, "nofile"))["hard"].integer() == 65536);
}

TEST_CASE("what Landlock does not double of a box's network is told by what this kernel's has") {
  json::Value v = sample_request();
  v["network"] = json::Object{{"egress", json::Object{{"schema", "h5i.egress/1"}, {"allow", json::Array{}}, {"log_group", 5}}}, {"hosts", ""}};
  struct {
    int abi;
    const char *reason, *says, *outside;  // `outside`: of the way out, "" when nothing is missing
  } const rows[] = {{2, "landlock-abi", "(ABI 2) has no rules for the network, which came with ABI 4", "the host's TCP ports, its abstract sockets and its processes, which takes ABI 4 and 6"},
                    {4, "ports-without-addresses", "names a port and no address", "is not kept from its abstract sockets and its processes, which takes ABI 6"},
                    {7, "ports-without-addresses", "names a port and no address", ""}};
  for (const auto& row : rows) {
    CAPTURE(row.abi);
    confined::HostFacts f = facts(true);
    f.landlock_abi = row.abi;
    auto request = confined::read_request(v, confined::kSupervised);
    REQUIRE(request.ok());
    auto p = confined::build_plan(*request, f, debian());
    INFO((p.ok() ? std::string() : p.error().text));
    REQUIRE(p.ok());
    CHECK(reason(p->document, "net.landlock-ports") == row.reason);
    std::string detail;
    for (const json::Value& n : p->document["not_enforced"].array())
      if (n["field"].string() == "net.landlock-ports") detail = n["detail"].string();
    CHECK(detail.find(row.says) != std::string::npos);
    CHECK((detail.find("the way out") != std::string::npos) == (row.outside[0] != '\0'));
    CHECK(detail.find(row.outside) != std::string::npos);
  }
  CHECK(reason(planned(sample_request()), "net.landlock-ports").empty());  // `process` has no network to double
}
