#include "core/os/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "core/os/fs.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;

namespace {

constexpr const char* kHybridMounts =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw - cgroup2 cgroup2 rw\n";
constexpr const char* kUnifiedMounts =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

// The groups that exist, so that a probe can be seen to leave none.
size_t count_directories(const std::string& path, int depth = 0) {
  size_t n = 0;
  DIR* d = opendir(path.c_str());
  if (!d) return 0;
  while (dirent* e = readdir(d)) {
    std::string name = e->d_name;
    if (e->d_type != DT_DIR || name == "." || name == "..") continue;
    n += 1 + (depth < 6 ? count_directories(path + "/" + name, depth + 1) : 0);
  }
  closedir(d);
  return n;
}

}  // namespace

TEST_CASE("a hybrid machine's controllers are seen to be held by v1", "[os][cgroup]") {
  auto v = os::parse_cgroup_view(kHybridMounts, "9:name=systemd:/\n4:memory:/x\n0::/user.slice\n");
  CHECK(v.mount == "/sys/fs/cgroup/uni fied");
  CHECK(v.own == "/user.slice");
  CHECK(v.held_by_v1 == std::vector<std::string>{"memory", "pids"});
}

TEST_CASE("a unified machine holds none in v1", "[os][cgroup]") {
  auto v = os::parse_cgroup_view(kUnifiedMounts, "0::/user.slice/user-1000.slice/session.scope\n");
  CHECK(v.mount == "/sys/fs/cgroup");
  CHECK(v.own == "/user.slice/user-1000.slice/session.scope");
  CHECK(v.held_by_v1.empty());
  CHECK(os::parse_cgroup_view("", "").mount.empty());
}

TEST_CASE("the trial answers for this machine with a reason or a base, the same twice, and leaves no group", "[os][cgroup]") {
  // In a process of its own, because a base takes that who asks for it.
  const size_t before = count_directories("/sys/fs/cgroup");
  int answer[2];
  REQUIRE(pipe(answer) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto first = os::find_cgroup_base(), second = os::find_cgroup_base();
    std::string words = (first.available ? "base" : "none") + std::string("\n") + (first.available ? first.base : first.reason) + "\n";
    words += first.available == second.available && first.base == second.base && first.controllers == second.controllers ? "same\n" : "other\n";
    // In the base is the group of those who use it, and no trial's.
    words += std::to_string(first.available ? count_directories(first.base) : 1) + "\n" + first.via + "\n";
    for (const std::string& c : first.controllers) words += c + " ";
    _exit(write(answer[1], words.data(), words.size()) == static_cast<ssize_t>(words.size()) ? 0 : 1);
  }
  close(answer[1]);
  std::string words;
  char bytes[4096];
  for (ssize_t n; (n = read(answer[0], bytes, sizeof bytes)) > 0;) words.append(bytes, static_cast<size_t>(n));
  close(answer[0]);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  std::istringstream lines(words);
  std::string available, base, same, directories, via, controllers;
  for (std::string* s : {&available, &base, &same, &directories, &via, &controllers}) std::getline(lines, *s);
  CAPTURE(words);
  CHECK_FALSE(base.empty());
  CHECK(same == "same");
  CHECK(directories == "1");
  if (available == "none") CHECK(count_directories("/sys/fs/cgroup") == before);
  if (available == "base") CHECK(controllers.find("memory pids ") == 0);
  if (via == "service-manager") {  // it takes its scope away when nobody is left there
    for (int i = 0; i < 500 && access(base.c_str(), F_OK) == 0; i++) usleep(20000);
    CHECK(access(base.c_str(), F_OK) != 0);
  }
  auto mounts = os::read_file("/proc/self/mountinfo", 4 << 20), self = os::read_file("/proc/self/cgroup", 1 << 20);
  REQUIRE((mounts && self));
  auto v = os::parse_cgroup_view(*mounts, *self);
  if (std::find(v.held_by_v1.begin(), v.held_by_v1.end(), "memory") != v.held_by_v1.end()) {
    CHECK(available == "none");
    CHECK(base.find("controllers held by v1") == 0);
  }
}

TEST_CASE("flat keyed files", "[os][cgroup]") {
  CHECK(os::flat_keyed("usage_usec 30\nuser_usec 12\nsystem_usec 3\n", "user_usec") == 12);
  CHECK(os::flat_keyed("user_usec_more 12\n", "user_usec") == 0);
  CHECK(os::flat_keyed("", "x") == 0);
}

TEST_CASE("a group whose limit cannot be written is taken away again", "[os][cgroup]") {
  // An ordinary directory stands in for a group: it has no control files.
  char base[] = "/tmp/h5i-test-cgroup-XXXXXX";
  REQUIRE(mkdtemp(base));
  CHECK_FALSE(os::make_cgroup(base, {{"pids.max", "64"}}));
  CHECK(count_directories(base) == 0);
  CHECK_FALSE(os::make_cgroup(base, {{"../pids.max", "64"}}));
  CHECK(count_directories(base) == 0);
  CHECK_FALSE(os::make_cgroup("/nonexistent", {}));
  auto made = os::make_cgroup(base, {});
  REQUIRE(made);
  CHECK(os::is_group_name(made->name));
  CHECK(count_directories(base) == 1);
  auto usage = os::cgroup_usage(*made);
  CHECK(usage.user_us == 0);
  CHECK(os::remove_cgroup(*made));
  CHECK(os::remove_cgroup(*made));  // gone already: what was asked for is so
  CHECK(rmdir(base) == 0);
}

TEST_CASE("a name of a group is one kind and sixteen small hexadecimal digits, and nothing else", "[os][cgroup]") {
  for (const char* good : {"h5i-box-0123456789abcdef", "h5i-trial-ffffffffffffffff"}) CHECK(os::is_group_name(good));
  for (std::string bad : {"", "h5i-", "h5i-..", "h5i-box-", "h5i-box-..", "h5i-box-0123456789abcde", "h5i-box-0123456789abcdef0", "h5i-box-0123456789ABCDEF", "h5i-box-0123456789abcde/",
                          "h5i-box-../../../../x/yz", "h5i-box-0123456789abcde\n", " h5i-box-0123456789abcdef", "H5I-box-0123456789abcdef", "h5i-callers", "h5i-0123456789abcdef",
                          "h5i-box-99999999999999999999999999999999", "h5i-box--123456789abcdef", "h5i-box-+123456789abcdef", "h5i-box-0x23456789abcdef", "h5i-trial-0123456789abcdef.scope",
                          "h5i-0123456789abcdef.scope", "h5i-other-0123456789abcdef"})
    CHECK_FALSE(os::is_group_name(bad));
  CHECK_FALSE(os::is_group_name(std::string("h5i-box-0123456789abcde\0", 24)));
}

TEST_CASE("what is called as a group and is none is left alone", "[os][cgroup]") {
  char base[] = "/tmp/h5i-test-cgroup-XXXXXX";
  REQUIRE(mkdtemp(base));
  const std::string at = base;
  REQUIRE(mkdir((at + "/h5i-box-0123456789abcdef").c_str(), 0700) == 0);  // no control group
  REQUIRE(mkdir((at + "/elsewhere").c_str(), 0700) == 0);
  REQUIRE(symlink("elsewhere", (at + "/h5i-box-aaaaaaaaaaaaaaaa").c_str()) == 0);
  REQUIRE(symlink("/sys/fs/cgroup", (at + "/h5i-trial-bbbbbbbbbbbbbbbb").c_str()) == 0);
  REQUIRE(mkfifo((at + "/h5i-box-cccccccccccccccc").c_str(), 0600) == 0);
  CHECK(os::clear_dead_groups(at).empty());
  CHECK(count_directories(at) == 2);
  struct stat st {};
  for (const char* name : {"/h5i-box-aaaaaaaaaaaaaaaa", "/h5i-trial-bbbbbbbbbbbbbbbb", "/h5i-box-cccccccccccccccc"}) CHECK(lstat((at + name).c_str(), &st) == 0);
  REQUIRE(symlink(base, (at + "/link").c_str()) == 0);
  for (const std::string& nowhere : {std::string(), std::string("relative"), at + "/nothing", at + "/link"}) CHECK(os::clear_dead_groups(nowhere).empty());
  for (const char* name : {"/link", "/h5i-box-aaaaaaaaaaaaaaaa", "/h5i-trial-bbbbbbbbbbbbbbbb", "/h5i-box-cccccccccccccccc"}) unlink((at + name).c_str());
  for (const char* name : {"/elsewhere", "/h5i-box-0123456789abcdef", ""}) CHECK(rmdir((at + name).c_str()) == 0);
}

// ---- where a group is delegated to this process: asked for by name, because few machines have that ----

namespace {

// A process in a group that waits to be killed.
pid_t waiting_in(int group) {
  clone_args args{};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<uint64_t>(group);
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) {
    syscall(SYS_close_range, 0u, ~0u, 0);  // as the first process of a box
    for (;;) pause();
  }
  return static_cast<pid_t>(pid);
}

enum class Moment { MADE, POPULATED, ENDING };

// A spawner as far as its group goes: it makes one, says its name and the process in it, and lives until it is killed.
struct Owner {
  pid_t pid = -1;
  std::string name;
  pid_t inside = 0;

  Owner(const std::string& base, Moment moment, int flags = 0) {
    int p[2];
    REQUIRE(pipe2(p, O_CLOEXEC) == 0);
    clone_args args{};
    args.flags = static_cast<uint64_t>(flags);
    args.exit_signal = SIGCHLD;
    pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
    REQUIRE(pid >= 0);
    if (pid == 0) {
      auto made = os::make_cgroup(base, {{"pids.max", "8"}});
      std::string said = made ? made->name : "";
      if (made && moment != Moment::MADE) waiting_in(made->dir.get());
      if (made && moment == Moment::ENDING) (void)os::kill_cgroup(*made);
      (void)!write(p[1], said.data(), said.size());
      close(p[1]);
      for (;;) pause();
    }
    close(p[1]);
    char said[64];
    ssize_t n = read(p[0], said, sizeof said);
    close(p[0]);
    name.assign(said, static_cast<size_t>(std::max<ssize_t>(n, 0)));
    REQUIRE(os::is_group_name(name));
    if (moment == Moment::POPULATED) inside = atoi(os::read_file(base + "/" + name + "/cgroup.procs", 4096)->c_str());
  }
  void end() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

bool there(const std::string& path) { return access(path.c_str(), F_OK) == 0; }
// It was killed, and whoever has it now reaps it.
bool gone(pid_t pid) {
  for (int i = 0; i < 200; i++, usleep(10000)) {
    auto stat = os::read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
    if (!stat || stat->find(") Z ") != std::string::npos) return true;
  }
  return false;
}

const std::string& delegated_base() {
  static const std::string base = [] {
    auto found = os::find_cgroup_base();
    INFO(found.reason);
    REQUIRE(found.available);
    REQUIRE(found.via == "delegated");
    return found.base;
  }();
  REQUIRE(os::own_place() == base);
  return base;
}

}  // namespace

TEST_CASE("a group goes when its owner was killed, at whatever moment, and not before", "[.delegated]") {
  const std::string base = delegated_base();
  for (Moment moment : {Moment::MADE, Moment::POPULATED, Moment::ENDING}) {
    CAPTURE(static_cast<int>(moment));
    Owner owner(base, moment), other(base, Moment::POPULATED);
    CHECK(os::clear_dead_groups(base).empty());
    CHECK(there(base + "/" + owner.name));
    owner.end();
    CHECK(os::clear_dead_groups(base) == std::vector<std::string>{owner.name});
    CHECK_FALSE(there(base + "/" + owner.name));
    if (owner.inside) CHECK(gone(owner.inside));
    CHECK(there(base + "/" + other.name));
    CHECK(kill(other.inside, 0) == 0);
    other.end();
    // Whoever makes the next one clears as well.
    auto next = os::make_cgroup(base, {});
    REQUIRE(next);
    CHECK_FALSE(there(base + "/" + other.name));
    CHECK(os::remove_cgroup(*next));
  }
}

TEST_CASE("an owner in another pid namespace lives, and one that is stopped does", "[.delegated]") {
  const std::string base = delegated_base();
  Owner apart(base, Moment::POPULATED, CLONE_NEWUSER | CLONE_NEWPID), stopped(base, Moment::MADE);
  REQUIRE(kill(stopped.pid, SIGSTOP) == 0);
  CHECK(os::clear_dead_groups(base).empty());
  CHECK(there(base + "/" + apart.name));
  apart.end();
  stopped.end();
  CHECK(os::clear_dead_groups(base).size() == 2);
}

TEST_CASE("a group that is not ours is left alone, whoever is in it", "[.delegated]") {
  const std::string base = delegated_base();
  for (const char* name : {"h5i-other-0123456789abcdef", "h5i-box-0123456789ABCDEF", "other"}) {
    CAPTURE(name);
    REQUIRE(mkdir((base + "/" + name).c_str(), 0755) == 0);
    UniqueFd dir(open((base + "/" + name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    pid_t inside = waiting_in(dir.get());
    dir.reset();
    CHECK(os::clear_dead_groups(base).empty());
    CHECK(waitpid(inside, nullptr, WNOHANG) == 0);
    kill(inside, SIGKILL);
    waitpid(inside, nullptr, 0);
    for (int i = 0; i < 100 && rmdir((base + "/" + name).c_str()) != 0; i++) usleep(10000);
  }
  // Of a name that could be ours, made and not owned yet, or left so by a kill; of another user it stays.
  const std::string ours = base + "/h5i-box-0123456789abcdef";
  REQUIRE(mkdir(ours.c_str(), 0700) == 0);
  if (geteuid() == 0) {
    REQUIRE(chown(ours.c_str(), 1000, 1000) == 0);
    CHECK(os::clear_dead_groups(base).empty());
    REQUIRE(chown(ours.c_str(), 0, 0) == 0);
  }
  CHECK(os::clear_dead_groups(base).size() == 1);
  CHECK_FALSE(there(ours));
}

TEST_CASE("many that make, clear and are killed at once take nothing from each other", "[.delegated]") {
  const std::string base = delegated_base();
  constexpr int kAtOnce = 4, kTimes = 15;
  std::vector<pid_t> makers;
  for (int i = 0; i < kAtOnce; i++) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      for (int t = 0; t < kTimes; t++) {
        auto mine = os::make_cgroup(base, {{"pids.max", "8"}});
        if (!mine) _exit(10);
        pid_t inside = waiting_in(mine->dir.get());
        if (inside <= 0) _exit(11);
        pid_t victim = fork();  // leaves one for the others
        if (victim == 0) {
          auto left = os::make_cgroup(base, {});
          if (left) waiting_in(left->dir.get());
          kill(getpid(), SIGKILL);
        }
        if (victim <= 0 || waitpid(victim, nullptr, 0) != victim) _exit(12);
        (void)os::clear_dead_groups(base);
        if (waitpid(inside, nullptr, WNOHANG) != 0) _exit(13);  // somebody took it for dead
        if (!os::kill_cgroup(*mine)) _exit(14);
        if (waitpid(inside, nullptr, 0) != inside) _exit(15);
        if (!os::remove_cgroup(*mine)) _exit(16);
      }
      _exit(0);
    }
    makers.push_back(pid);
  }
  for (pid_t pid : makers) {
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  (void)os::clear_dead_groups(base);
  CHECK(count_directories(base) == 1);  // of those who call
}
