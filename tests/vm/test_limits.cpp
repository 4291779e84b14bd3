// Runs in the guest, as its user: what a delegated cgroup holds of a box, and what the receipt says of it.
#include <signal.h>

#include <filesystem>

#include "tests/cli/project.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// More than `small` may have; as much as `wide` may.
constexpr const char* kAllocate = "head -c 90000000 /dev/zero | tail -c 90000000 >/dev/null";
constexpr const char* kFork =
    "import os, time, errno\n"
    "n = 0\n"
    "while n < 30:\n"
    "  try:\n"
    "    pid = os.fork()\n"
    "  except OSError as e:\n"
    "    print(n, errno.errorcode[e.errno])\n"
    "    break\n"
    "  if pid == 0:\n"
    "    time.sleep(60)\n"
    "    os._exit(0)\n"
    "  n += 1\n"
    "else:\n"
    "  print(n, 'all')\n";
// Two that are never out of work, for three seconds.
constexpr const char* kTwoBusy = "for i in 1 2; do timeout 3 sh -c 'while :; do :; done' & done; wait; true";

struct Boxes : Project {
  Boxes() : Project(0) {
    std::filesystem::create_directories(*this / "r/.h5i");
    write_file(*this / "r/.h5i/env.yaml",
               "profiles:\n"
               "  small: { extends: default, resources: { mem: 64M, procs: 20 } }\n"
               "  wide: { extends: default, resources: { mem: 300M, procs: 60 } }\n"
               "  share: { extends: default, resources: { cpus: 0.25 } }\n"
               "  spent: { extends: default, resources: { cpu: 2s } }\n"
               "  brief: { extends: default, resources: { wall: 20s } }\n");
    git("add -A && git commit -qm limits");
  }
  void make(const std::string& name) const { ok({"box", "create", "--name", name, "--isolation", "process", "--profile", name}); }
  // The object of `box run --json`.
  Json object(const std::string& name, std::vector<std::string> command) const {
    std::vector<std::string> words{"box", "run", name, "--json", "--"};
    words.insert(words.end(), command.begin(), command.end());
    Ended e = run(h5i(words));
    CAPTURE(e.err, e.out);
    REQUIRE(!e.out.empty());
    return one_json(e.out);
  }
};

const Boxes& boxes() {
  static const Boxes b;
  static const bool made = [] {
    for (const char* name : {"small", "wide", "share", "spent", "brief"}) b.make(name);
    return true;
  }();
  (void)made;
  return b;
}

int64_t reached(const Json& run, std::string_view field) {
  for (const Json& l : run["receipt"]["limits_reached"].array())
    if (l["field"].string() == field) return l["count"].integer();
  return 0;
}
bool declared(const Json& run, std::string_view field) {
  for (const Json& l : run["receipt"]["not_enforced"].array())
    if (l["field"].string() == field) return true;
  return false;
}
double used(const Json& run) {
  const Json& u = run["receipt"]["usage"];
  return static_cast<double>(u["user_us"].integer() + u["system_us"].integer()) / 1e6;
}
double took(const Json& run) { return static_cast<double>(run["receipt"]["usage"]["wall_us"].integer()) / 1e6; }

// Scopes of h5i, and the groups in them.
std::vector<std::string> groups() {
  std::vector<std::string> out;
  std::error_code none;
  for (auto it = std::filesystem::recursive_directory_iterator("/sys/fs/cgroup/user.slice", none); it != std::filesystem::end(it); it.increment(none))
    if (it->is_directory(none) && it->path().filename().string().starts_with("h5i-")) out.push_back(it->path());
  return out;
}

}  // namespace

TEST_CASE("a box that needs more memory than it may have is killed as a whole, and the receipt says why") {
  Json killed = boxes().object("small", {"sh", "-c", kAllocate});
  CHECK(killed["exit_status"].integer() == 137);
  CHECK(killed["receipt"]["outcome"]["status"].string() == "signaled");
  CHECK(killed["receipt"]["outcome"]["detail"].string().find("resources.mem") == 0);
  CHECK(reached(killed, "resources.mem") > 0);
  CHECK_FALSE(declared(killed, "resources.mem"));
  Json control = boxes().object("wide", {"sh", "-c", kAllocate});
  CHECK(control["exit_status"].integer() == 0);
  CHECK(control["receipt"]["limits_reached"].array().empty());
}

TEST_CASE("a fork bomb ends with EAGAIN at the limit, and the receipt counts what was refused") {
  Json bomb = boxes().object("small", {"python3", "-c", kFork});
  CHECK(bomb["stdout"]["excerpt"].string() == "18 EAGAIN\n");  // h5i-init and the program itself are two
  CHECK(reached(bomb, "resources.procs") > 0);
  CHECK_FALSE(declared(bomb, "resources.procs"));
  Json control = boxes().object("wide", {"python3", "-c", kFork});
  CHECK(control["stdout"]["excerpt"].string() == "30 all\n");
  CHECK(control["receipt"]["limits_reached"].array().empty());
}

TEST_CASE("a share of a processor is all that the box gets, and the figures are those of its group") {
  Json held = boxes().object("share", {"sh", "-c", kTwoBusy});
  CHECK(held["receipt"]["usage"]["source"].string() == "cgroup");
  CHECK(used(held) / took(held) < 0.35);
  CHECK_FALSE(declared(held, "resources.cpus"));
  Json control = boxes().object("wide", {"sh", "-c", kTwoBusy});
  CHECK(used(control) / took(control) > 0.5);
  CHECK(declared(control, "resources.cpus"));
}

TEST_CASE("processor time is the whole box's, not each process's") {
  Json spent = boxes().object("spent", {"sh", "-c", kTwoBusy});  // each of them uses less than the limit
  CHECK(spent["exit_status"].integer() == 124);
  CHECK(spent["receipt"]["outcome"]["detail"].string() == "resources.cpu");
  CHECK(reached(spent, "resources.cpu") == 1);
  CHECK(used(spent) < 2.9);
  CHECK_FALSE(declared(spent, "resources.cpu"));
  CHECK(boxes().object("spent", {"sh", "-c", "timeout 1 sh -c 'while :; do :; done'; true"})["exit_status"].integer() == 0);
}

TEST_CASE("usage counts what nobody in the box waited for, and the most memory of all of it together") {
  // The parent ignores SIGCHLD, so nobody is told what its child used.
  Json seen = boxes().object("wide", {"sh", "-c", std::string("trap '' CHLD; (timeout 1 sh -c 'while :; do :; done'; ") + kAllocate + ") & wait"});
  CHECK(seen["receipt"]["usage"]["source"].string() == "cgroup");
  CHECK(used(seen) > 0.8);
  CHECK(seen["receipt"]["usage"]["max_rss_kib"].integer() > 80000);
  Json control = boxes().object("wide", {"true"});
  CHECK(used(control) < 0.8);
  CHECK(control["receipt"]["usage"]["max_rss_kib"].integer() < 40000);
}

TEST_CASE("a deadline ends every process of the group, and nothing is left of it") {
  const Boxes& b = boxes();
  CHECK(soon([&] { return groups().empty(); }));
  // Proved before, so that the deadline is the workload's.
  REQUIRE(b.object("brief", {"true"})["exit_status"].integer() == 0);
  pid_t pid = start(b.h5i({"box", "run", "brief", "--", "sh", "-c", "for i in 1 2 3; do setsid sleep 98765 & done; echo up; wait"}), b / "out", b / "err");
  REQUIRE(soon([&] { return read_file(b / "out") == "up\n"; }, 30));
  CHECK(processes_with("98765").size() >= 3);  // control
  CHECK(groups().size() >= 3);                 // the scope, its callers and the box
  CHECK(wait_for(pid, 40) == 124);
  CHECK(soon([&] { return processes_with("98765").empty(); }));
  CHECK(soon([&] { return groups().empty(); }));
}

TEST_CASE("when everything of h5i is killed its scope goes with the box") {
  const Boxes& b = boxes();
  pid_t pid = start(b.h5i({"box", "run", "wide", "--", "sh", "-c", "setsid sleep 87654 & echo up; wait"}), b / "out", b / "err");
  REQUIRE(soon([&] { return read_file(b / "out") == "up\n"; }, 30));
  REQUIRE(!groups().empty());
  kill(pid, SIGKILL);
  wait_for(pid, 10);
  CHECK(soon([&] { return processes_with("87654").empty(); }));
  CHECK(soon([&] { return groups().empty(); }));
}
