// Tests that change the process they run in: each body runs in a forked child with a timeout, as the invoking user and,
// when that is root, as an ordinary user too. Descriptors and children are counted before and after.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/slower.hpp"

namespace h5i::test {

constexpr unsigned kUserId = 65533;  // nobody's: not in any range that a host gives out

struct Identity {
  std::string name;
  unsigned uid, gid;
};
inline std::vector<Identity> identities() {
  std::vector<Identity> out;
  if (geteuid() == 0) out.push_back({"root", 0, 0});
  if (geteuid() == 0)
    out.push_back({"user", kUserId, kUserId});
  else
    out.push_back({"user", geteuid(), getegid()});
  return out;
}

// What a body uses instead of CHECK: failures travel back to the parent as text.
class Checks {
 public:
  Checks(int fd, std::string dir, Identity who) : fd_(fd), dir_(std::move(dir)), who_(std::move(who)) {}
  bool check(bool ok, const std::string& what, const char* file, int line) {
    if (!ok) say(std::string(file) + ":" + std::to_string(line) + ": " + what);
    return ok;
  }
  void say(const std::string& text) {
    failed_ = true;
    std::string s = "  " + text + "\n";
    if (write(fd_, s.data(), s.size()) < 0) _exit(3);
  }
  const std::string& dir() const { return dir_; }  // scratch, this identity's own
  const Identity& who() const { return who_; }
  bool root() const { return who_.uid == 0; }
  bool failed() const { return failed_; }

 private:
  int fd_;
  std::string dir_;
  Identity who_;
  bool failed_ = false;
};
#define KCHECK(expr) k.check(static_cast<bool>(expr), #expr, __FILE__, __LINE__)
#define KCHECK_SAYS(expr, text) k.check(static_cast<bool>(expr), std::string(#expr) + ": " + (text), __FILE__, __LINE__)
// Stops the body when it does not hold.
#define KREQUIRE(expr)                                                        \
  do {                                                                        \
    if (!k.check(static_cast<bool>(expr), #expr, __FILE__, __LINE__)) return; \
  } while (0)

inline std::vector<std::string> open_descriptors() {
  std::vector<std::string> out;
  DIR* d = opendir("/proc/self/fd");
  if (!d) return out;
  while (dirent* e = readdir(d)) {
    if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(d)) continue;
    char target[256];
    ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);
    out.push_back(std::string(e->d_name) + " " + (n < 0 ? "" : std::string(target, static_cast<size_t>(n))));
  }
  closedir(d);
  return out;
}

inline void remove_scratch(const std::string& dir) {
  nftw(
      dir.c_str(), [](const char* p, const struct stat*, int, FTW*) { return remove(p); }, 16, FTW_DEPTH | FTW_PHYS);
}

// Ends a body that hangs: six times as late where a sanitizer watches, as the deadlines of whole suites are (cmake/H5iBuild.cmake).
inline constexpr int kBodySeconds = kSlower > 1 ? 6 * 120 : 120;

// Empty: everything held. Otherwise one line a failure, with the identity in front.
inline std::string run_isolated(const Identity& who, const std::function<void(Checks&)>& body, int timeout_s = kBodySeconds) {
  char scratch[] = "/tmp/h5i-test-XXXXXX";
  if (!mkdtemp(scratch)) return "mkdtemp failed";
  if (geteuid() == 0 && chown(scratch, who.uid, who.gid) != 0) return "chown of the scratch directory failed";
  int p[2];
  if (pipe2(p, O_CLOEXEC) != 0) return "pipe failed";
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) return "fork failed";
  if (child == 0) {
    close(p[0]);
    setpgid(0, 0);
    for (int s : {SIGSEGV, SIGABRT, SIGTERM, SIGINT, SIGFPE, SIGILL}) signal(s, SIG_DFL);  // Catch2's would speak here
    if (geteuid() == 0 && who.uid != 0 &&
        (setgroups(0, nullptr) != 0 || setresgid(who.gid, who.gid, who.gid) != 0 ||
         setresuid(who.uid, who.uid, who.uid) != 0))
      _exit(4);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // the change of ids took that away
    setenv("HOME", scratch, 1);
    Checks k(p[1], scratch, who);
    auto before = open_descriptors();
    body(k);
    auto after = open_descriptors();
    if (after.size() > before.size())
      for (size_t i = before.size(); i < after.size(); i++) k.say("descriptor left open: " + after[i]);
    int status;
    pid_t left = waitpid(-1, &status, WNOHANG);
    if (left >= 0) k.say("a child is left: " + std::to_string(left));
    _exit(k.failed() ? 1 : 0);
  }
  setpgid(child, child);
  close(p[1]);
  std::string out;
  char buf[4096];
  bool timed_out = false;
  for (int left = timeout_s * 10; left > 0;) {
    pollfd q{p[0], POLLIN, 0};
    int n = poll(&q, 1, 100);
    if (n == 0) {
      if (--left == 0) timed_out = true;
      continue;
    }
    ssize_t got = read(p[0], buf, sizeof buf);
    if (got <= 0) break;
    out.append(buf, static_cast<size_t>(got));
  }
  close(p[0]);
  if (timed_out) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    out += "  timed out after " + std::to_string(timeout_s) + " s\n";
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && !timed_out) out += "  killed by signal " + std::to_string(WTERMSIG(status)) + "\n";
  if (WIFEXITED(status) && WEXITSTATUS(status) > 1)
    out += "  exit status " + std::to_string(WEXITSTATUS(status)) + "\n";
  remove_scratch(scratch);
  return out.empty() ? out : "as " + who.name + ":\n" + out;
}

// The body as each identity; the failures of all.
inline std::string run_as_each(const std::function<void(Checks&)>& body, int timeout_s = kBodySeconds) {
  std::string out;
  for (const Identity& who : identities()) out += run_isolated(who, body, timeout_s);
  return out;
}

}  // namespace h5i::test

// KERNEL_TEST("a claim", "[tag]") { ... KCHECK(...) ... } with `k` as the checks and k.root() to tell who runs.
#define KERNEL_TEST_NAME2(line) h5i_kernel_body_##line
#define KERNEL_TEST_NAME(line) KERNEL_TEST_NAME2(line)
#define KERNEL_TEST(name, tags)                                                \
  static void KERNEL_TEST_NAME(__LINE__)(h5i::test::Checks & k);               \
  TEST_CASE(name, tags) {                                                      \
    std::string failures = h5i::test::run_as_each(KERNEL_TEST_NAME(__LINE__)); \
    INFO(failures);                                                            \
    CHECK(failures.empty());                                                   \
  }                                                                            \
  static void KERNEL_TEST_NAME(__LINE__)([[maybe_unused]] h5i::test::Checks & k)
