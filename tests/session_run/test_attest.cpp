#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/session/attest.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;

namespace {

// A box that is exactly what its plan says; each test changes one thing.
AttestInput honest() {
  AttestInput in;
  auto plan = json::parse(R"({
    "namespaces":["user","mnt","pid","net","ipc","uts","cgroup"],"nested_user":true,"identity_map":false,
    "ids":{"inside_uid":1000,"inside_gid":1000,"outside_uid":1000,"outside_gid":1000},
    "root":{"size":1,"inodes":1},
    "mounts":[{"kind":"bind","source":"/usr","target":"/usr","flags":["ro","nosuid","nodev"],"recursive":true},
              {"kind":"bind","source":"/w","target":"/w","flags":["nosuid","nodev"]},
              {"kind":"tmpfs","target":"/tmp","flags":["nosuid","nodev"]},
              {"kind":"proc","target":"/proc"},
              {"kind":"mask","target":"/w/.env"},
              {"kind":"mask","target":"/proc/absent","optional":true}],
    "rlimits":[{"name":"nofile","soft":1024,"hard":1024}],
    "cgroup":{"base":"/sys/fs/cgroup/x","limits":{"memory.max":"67108865","pids.max":"20"}},
    "capabilities":"none","no_new_privs":true,"landlock":{"abi":7},"seccomp":{"sha256":"x"},"init":true,"not_enforced":[]})");
  REQUIRE(plan);
  in.plan = *plan;
  auto policy = json::parse(R"({"profile":{"net":{"mode":"deny","unix":false}}})");
  in.policy = *policy;
  in.claims = {"fs.read", "fs.write", "net.mode", "net.unix"};
  in.spawner = 50;
  in.init_dev = 1, in.init_ino = 2;
  ProcessFacts p;
  p.no_new_privs = 1, p.seccomp = 2, p.seccomp_filters = 1;
  for (const char* set : {"Inh", "Prm", "Eff", "Bnd", "Amb"}) p.capabilities[set] = "0000000000000000";
  p.uids = p.gids = {1000, 1000, 1000, 1000};
  p.uid_map = p.gid_map = {{1000, 1000, 1}};
  p.cgroup = "/x/box";
  p.cgroup_files = {{"memory.max", "67108864"}, {"pids.max", "20"}};
  p.limits["Max open files"] = "1024";
  in.self.seccomp_filters = 0;
  in.self.cgroup = "/";
  for (const char* ns : kNamespaces) {
    in.self.namespaces[ns] = std::string(ns) + ":[1]";
    p.namespaces[ns] = std::string(ns) + ":[2]";
  }
  in.init = p;
  in.init->pid = 51, in.init->parent = 50, in.init->exe_dev = 1, in.init->exe_ino = 2;
  p.descriptors = 4;
  p.user_depth = 2;
  p.pid = 52, p.parent = 51;
  p.mounts = {{"/", "tmpfs", {"ro", "nosuid"}},        {"/usr", "ext4", {"ro", "nosuid", "nodev"}}, {"/usr/share", "ext4", {"ro", "nosuid", "nodev"}},
              {"/w", "ext4", {"rw", "nosuid", "nodev"}}, {"/tmp", "tmpfs", {"rw", "nosuid", "nodev"}}, {"/proc", "proc", {"rw"}},
              {"/w/.env", "tmpfs", {"ro"}}};
  in.workload = p;
  return in;
}

}  // namespace

TEST_CASE("a box that is what its plan says attests; with any one thing different it does not") {
  Attestation good = judge(honest());
  for (const std::string& m : good.mismatches) UNSCOPED_INFO(m);
  REQUIRE(good.mismatches.empty());
  CHECK(good.facts["matches_plan"].boolean());

  struct Case {
    const char* name;
    void (*change)(AttestInput&);
  };
  const Case cases[] = {
      {"workload may gain privileges", [](AttestInput& i) { i.workload.no_new_privs = 0; }},
      {"init may gain privileges", [](AttestInput& i) { i.init->no_new_privs = 0; }},
      {"no filter", [](AttestInput& i) { i.workload.seccomp = 0; }},
      {"only our own filter", [](AttestInput& i) { i.self.seccomp_filters = 1; }},
      {"effective capability", [](AttestInput& i) { i.workload.capabilities["Eff"] = "0000000000000001"; }},
      {"bounding capability", [](AttestInput& i) { i.workload.capabilities["Bnd"] = "000001ffffffffff"; }},
      {"ambient capability of init", [](AttestInput& i) { i.init->capabilities["Amb"] = "8"; }},
      {"capabilities unreadable", [](AttestInput& i) { i.workload.capabilities.clear(); }},
      {"the host's network", [](AttestInput& i) { i.workload.namespaces["net"] = i.self.namespaces["net"]; }},
      {"the host's pids", [](AttestInput& i) { i.workload.namespaces["pid"] = i.self.namespaces["pid"]; }},
      {"a namespace unreadable", [](AttestInput& i) { i.workload.namespaces.erase("mnt"); }},
      {"a namespace that is not planned", [](AttestInput& i) { i.plan["namespaces"] = json::Array{"user", "mnt", "pid", "net", "ipc", "uts"}; }},
      {"mounts that are not locked", [](AttestInput& i) { i.workload.user_depth = 1; }},
      {"no user namespace", [](AttestInput& i) { i.workload.user_depth = 0; }},
      {"the user namespace unreadable", [](AttestInput& i) { i.workload.user_depth = -1; }},
      {"fs claimed, mounts not locked by plan", [](AttestInput& i) { i.plan["nested_user"] = false, i.workload.user_depth = 1; }},
      {"fs claimed, the host's pids by plan", [](AttestInput& i) {
         i.plan["namespaces"] = json::Array{"user", "mnt", "net", "ipc", "uts", "cgroup"};
         i.workload.namespaces["pid"] = i.self.namespaces["pid"];
       }},
      {"map to root", [](AttestInput& i) { i.workload.uid_map = {{1000, 0, 1}}; }},
      {"a wider map", [](AttestInput& i) { i.workload.uid_map = {{1000, 1000, 1}, {0, 0, 1}}; }},
      {"an empty map", [](AttestInput& i) { i.workload.gid_map.clear(); }},
      {"another user", [](AttestInput& i) { i.workload.uids[1] = 0; }},
      {"users unreadable", [](AttestInput& i) { i.workload.uids.clear(); }},
      {"the host's root", [](AttestInput& i) { i.workload.mounts[0].fstype = "ext4"; }},
      {"a bind writable", [](AttestInput& i) { i.workload.mounts[1].options = {"rw", "nosuid", "nodev"}; }},
      {"a bind with set-user-id", [](AttestInput& i) { i.workload.mounts[3].options = {"rw", "nodev"}; }},
      {"a mask missing", [](AttestInput& i) { i.workload.mounts.pop_back(); }},
      {"a mask writable", [](AttestInput& i) { i.workload.mounts.back().options = {"rw"}; }},
      {"a mount nobody planned", [](AttestInput& i) { i.workload.mounts.push_back({"/home", "ext4", {"rw"}}); }},
      {"something over /usr", [](AttestInput& i) { i.workload.mounts.push_back({"/usr", "ext4", {"rw"}}); }},
      {"mounts unreadable", [](AttestInput& i) { i.workload.mounts.clear(); }},
      {"a limit higher", [](AttestInput& i) { i.workload.limits["Max open files"] = "4096"; }},
      {"a limit absent", [](AttestInput& i) { i.workload.limits["Max open files"] = "unlimited"; }},
      {"limits unreadable", [](AttestInput& i) { i.workload.limits.clear(); }},
      {"a descriptor that the program would get", [](AttestInput& i) { i.workload.kept_descriptors = {7}; }},
      {"descriptors unreadable", [](AttestInput& i) { i.workload.descriptors = -1; }},
      {"our cgroup", [](AttestInput& i) { i.workload.cgroup = i.self.cgroup; }},
      {"a group that may hold more", [](AttestInput& i) { i.workload.cgroup_files["pids.max"] = "21"; }},
      {"a group without a limit", [](AttestInput& i) { i.workload.cgroup_files["memory.max"] = "max"; }},
      {"a group that cannot be read", [](AttestInput& i) { i.workload.cgroup_files.clear(); }},
      {"another init", [](AttestInput& i) { i.init->exe_ino = 3; }},
      {"init of another parent", [](AttestInput& i) { i.init->parent = 1; }},
      {"workload of another parent", [](AttestInput& i) { i.workload.parent = 50; }},
      {"no init", [](AttestInput& i) { i.init.reset(); i.workload.parent = 50; }},
      {"fs claimed without a view", [](AttestInput& i) { i.plan["root"] = nullptr; i.plan["landlock"] = nullptr; }},
      {"net claimed without a namespace", [](AttestInput& i) {
         i.plan["namespaces"] = json::Array{"user", "mnt", "pid", "ipc", "uts", "cgroup"};
         i.workload.namespaces["net"] = i.self.namespaces["net"];
       }},
      {"unix sockets claimed without a filter", [](AttestInput& i) { i.plan["seccomp"] = nullptr; }},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    AttestInput in = honest();
    c.change(in);
    Attestation a = judge(in);
    CHECK(!a.mismatches.empty());
    CHECK(!a.facts["matches_plan"].boolean());
  }
}

TEST_CASE("a claim that the plan gives up in words is no over-claim") {
  AttestInput in = honest();
  in.plan["seccomp"] = nullptr;
  in.workload.seccomp = 0;
  in.plan["not_enforced"] = json::Array{json::Object{{"field", "net.unix"}, {"reason", "x"}, {"detail", ""}}};
  CHECK(judge(in).mismatches.empty());
}

TEST_CASE("mountinfo is read with its escapes, optional fields and cut lines") {
  auto m = parse_mountinfo(
      "36 35 98:0 /mnt1 /mnt/with\\040space rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n"
      "37 35 0:5 / /proc ro,nosuid - proc proc rw\n"
      "garbage\n"
      "38 35 0:6 / /short\n");
  REQUIRE(m.size() == 2);
  CHECK(m[0].target == "/mnt/with space");
  CHECK(m[0].fstype == "ext3");
  CHECK(m[0].options == std::vector<std::string>{"rw", "noatime"});
  CHECK(m[1].fstype == "proc");
}

TEST_CASE("this process as read from /proc has what every process has") {
  auto p = read_process(getpid(), true);
  REQUIRE(p);
  CHECK(p->parent == getppid());
  CHECK(p->capabilities.size() == 5);
  CHECK(p->namespaces.size() >= 6);
  CHECK(p->uids.size() == 4);
  CHECK(p->uids[0] == getuid());
  CHECK(!p->mounts.empty());
  CHECK(p->limits.count("Max open files") == 1);
  CHECK(p->descriptors >= 3);
  auto kept = [&] { return read_process(getpid(), true)->kept_descriptors; };
  auto before = kept();
  int leak = open("/dev/null", O_RDONLY), closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
  auto after = kept();
  before.push_back(leak);
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  CHECK(after == before);
  close(leak);
  close(closed);
  CHECK(!read_process(0x7ffffff0, false));
}
