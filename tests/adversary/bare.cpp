#include "tests/adversary/bare.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace h5i::adversary {
namespace {

constexpr int kNone = 124;  // exit status

void require(bool ok, const char* what) {
  if (ok) return;
  (void)!write(2, what, strlen(what));
  _exit(kNone);
}

bool put(const char* path, const std::string& text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

void loopback_up() {
  ifreq r{};
  strcpy(r.ifr_name, "lo");
  r.ifr_flags = IFF_UP;
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  require(ioctl(fd, SIOCSIFFLAGS, &r) == 0, "no loopback\n");
  close(fd);
}

}  // namespace

void enter_bare_namespaces() {
  const std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // whoever changed its user does not own its own /proc
  require(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) == 0, "no namespaces\n");
  require(put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", "0 " + uid + " 1") && put("/proc/self/gid_map", "0 " + gid + " 1"), "no ids\n");
  pid_t first = fork();
  require(first >= 0, "no first process\n");
  if (first > 0) {
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : kNone);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  require(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0, "no /proc\n");
  loopback_up();
  require(put("/proc/sys/net/ipv4/ping_group_range", "0 0"), "no groups for ping\n");  // else a new network has none that may
}

}  // namespace h5i::adversary
