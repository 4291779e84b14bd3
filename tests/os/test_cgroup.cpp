#include "core/os/cgroup.hpp"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

TEST_CASE("flat keyed files and names of groups", "[os][cgroup]") {
  CHECK(os::flat_keyed("usage_usec 30\nuser_usec 12\nsystem_usec 3\n", "user_usec") == 12);
  CHECK(os::flat_keyed("user_usec_more 12\n", "user_usec") == 0);
  CHECK(os::flat_keyed("", "x") == 0);
  for (const char* bad : {"", ".", "..", "a/b", ".hidden"}) CHECK_FALSE(os::make_cgroup("/nonexistent", bad, {}));
}

TEST_CASE("a group whose limit cannot be written is taken away again", "[os][cgroup]") {
  // An ordinary directory stands in for a group: it has no control files.
  char base[] = "/tmp/h5i-test-cgroup-XXXXXX";
  REQUIRE(mkdtemp(base));
  CHECK_FALSE(os::make_cgroup(base, "h5i-a", {{"pids.max", "64"}}));
  CHECK(count_directories(base) == 0);
  CHECK_FALSE(os::make_cgroup(base, "h5i-a", {{"../pids.max", "64"}}));
  CHECK(count_directories(base) == 0);
  auto made = os::make_cgroup(base, "h5i-a", {});
  REQUIRE(made);
  CHECK(count_directories(base) == 1);
  CHECK_FALSE(os::make_cgroup(base, "h5i-a", {}));
  auto usage = os::cgroup_usage(*made);
  CHECK(usage.user_us == 0);
  CHECK(os::remove_cgroup(*made));
  CHECK(os::remove_cgroup(*made));  // gone already: what was asked for is so
  CHECK(rmdir(base) == 0);
}
