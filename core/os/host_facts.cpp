#include "core/os/host_facts.hpp"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/unique_fd.hpp"
#include "core/os/cgroup.hpp"
#include "core/os/fs.hpp"
#include "core/os/landlock.hpp"
#include "core/os/seccomp.hpp"

namespace h5i::os {
namespace {

constexpr size_t kSmallFile = 64u << 10;
constexpr long kCgroup2Magic = 0x63677270;
constexpr unsigned kTrialSeconds = 2;

std::string text_of(const std::string& path) {
  auto r = read_file(path, kSmallFile);
  if (!r) return {};
  std::string s = std::move(*r);
  while (!s.empty() && (s.back() == '\n' || s.back() == '\0')) s.pop_back();
  return s;
}

long number_of(const std::string& path) {
  std::string s = text_of(path);
  return s.empty() ? -1 : strtol(s.c_str(), nullptr, 10);
}

std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> out;
  size_t i = 0;
  while (i <= s.size()) {
    size_t end = std::min(s.find(at, i), s.size());
    if (end > i) out.push_back(s.substr(i, end - i));
    i = end + 1;
  }
  return out;
}

std::string field_of_status(const std::string& status, const std::string& name) {
  for (const std::string& line : split(status, '\n'))
    if (line.starts_with(name + ":")) {
      size_t at = line.find_first_not_of(" \t", name.size() + 1);
      return at == std::string::npos ? "" : line.substr(at);
    }
  return {};
}

bool write_whole(const char* path, const std::string& text) {
  UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  return fd.valid() && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The failed step of the trial in a child that may ruin itself, or null.
const char* try_namespaces(uid_t uid, gid_t gid) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) != 0) return "unshare";
  write_whole("/proc/self/setgroups", "deny");
  if (!write_whole("/proc/self/uid_map", std::to_string(uid) + " " + std::to_string(uid) + " 1") ||
      !write_whole("/proc/self/gid_map", std::to_string(gid) + " " + std::to_string(gid) + " 1"))
    return "id map";
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "private mounts";
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") != 0) return "tmpfs";
  // proc belongs to the new pid namespace, whose first process is the next child.
  pid_t child = fork();
  if (child < 0) return "fork";
  if (child == 0) _exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 ? 0 : errno);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
  return errno == 0 ? nullptr : "proc";
}

NamespaceTrial namespace_trial() {
  struct Answer {
    int error = 0;
    char step[32] = "";
  } answer;
  NamespaceTrial out{false, "fork", EIO};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return out;
  UniqueFd from(ends[0]), to(ends[1]);
  uid_t uid = geteuid();
  gid_t gid = getegid();
  pid_t child = fork();
  if (child < 0) return out;
  if (child == 0) {
    alarm(kTrialSeconds);
    if (const char* step = try_namespaces(uid, gid)) {
      answer.error = errno;
      strncpy(answer.step, step, sizeof answer.step - 1);
    }
    (void)!write(to.get(), &answer, sizeof answer);
    _exit(0);
  }
  to.reset();
  ssize_t n = read(from.get(), &answer, sizeof answer);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  if (n != static_cast<ssize_t>(sizeof answer)) return {false, "the trial did not end", EIO};
  return {answer.step[0] == '\0', answer.step, answer.error};
}

void read_cgroup(HostFacts& f) {
  struct statfs st {};
  if (statfs("/sys/fs/cgroup", &st) != 0) {
    f.cgroup = "none";
  } else if (st.f_type == kCgroup2Magic) {
    f.cgroup = "v2";
  } else {
    bool unified = statfs("/sys/fs/cgroup/unified", &st) == 0 && st.f_type == kCgroup2Magic;
    f.cgroup = unified ? "hybrid"
               : parse_cgroup_view(text_of("/proc/self/mountinfo"), text_of("/proc/self/cgroup")).mount.empty()
                   ? "v1"
                   : "hybrid";
  }
  CgroupBase base = find_cgroup_base();
  f.cgroup_delegated = base.available;
  f.cgroup_base = base.base;
  f.cgroup_reason = base.reason;
}

void read_container(HostFacts& f) {
  for (const char* path : {"/run/.containerenv", "/.dockerenv", "/run/systemd/container"})
    if (access(path, F_OK) == 0) {
      f.in_container = true;
      f.container_hint = path;
      return;
    }
  if (const char* c = getenv("container"); c != nullptr && c[0] != '\0') {
    f.in_container = true;
    f.container_hint = std::string("container=") + c;
  }
}

bool absolute(const char* name) {
  const char* v = getenv(name);
  return v != nullptr && v[0] == '/';
}

}  // namespace

bool has_subordinate_range(const std::string& text, const std::string& user, uint32_t uid) {
  for (const std::string& line : split(text, '\n')) {
    std::vector<std::string> parts = split(line, ':');
    if (parts.size() != 3 || (parts[0] != user && parts[0] != std::to_string(uid))) continue;
    if (strtoul(parts[2].c_str(), nullptr, 10) > 0) return true;
  }
  return false;
}

HostFacts host_facts() {
  HostFacts f;
  utsname u{};
  uname(&u);
  f.kernel = u.release;
  f.machine = u.machine;
  f.uid = geteuid();
  std::string lsm = text_of("/sys/kernel/security/lsm");
  f.security_modules_known = !lsm.empty();
  f.security_modules = split(lsm, ',');
  f.landlock_abi = landlock::abi();
  if (f.landlock_abi == 0) {
    syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);  // 1: the version is asked
    f.landlock_error = errno;
  }
  std::string status = text_of("/proc/self/status");
  f.seccomp_mode = atoi(field_of_status(status, "Seccomp").c_str());
  f.no_new_privs = field_of_status(status, "NoNewPrivs") == "1";
  uint32_t action = SECCOMP_RET_USER_NOTIF;
  f.seccomp_filter = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 || errno != ENOSYS;
  f.seccomp_notify = seccomp::notify_sizes().has_value();
  f.user_namespace = namespace_trial();
  f.unprivileged_userns_clone = number_of("/proc/sys/kernel/unprivileged_userns_clone");
  f.max_user_namespaces = number_of("/proc/sys/user/max_user_namespaces");
  f.apparmor_restrict_userns = number_of("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
  f.memfd_noexec = number_of("/proc/sys/vm/memfd_noexec");
  if (access("/sys/kernel/security/apparmor", F_OK) == 0 || access("/proc/self/attr/apparmor", F_OK) == 0)
    f.apparmor_profile = text_of("/proc/self/attr/apparmor/current");
  read_cgroup(f);
  read_container(f);
  std::string user;
  if (const passwd* p = getpwuid(f.uid)) user = p->pw_name;
  f.subuid = has_subordinate_range(text_of("/etc/subuid"), user, f.uid);
  f.subgid = has_subordinate_range(text_of("/etc/subgid"), user, f.uid);
  f.state_home = absolute("XDG_STATE_HOME") || absolute("HOME");
  f.runtime_dir = absolute("XDG_RUNTIME_DIR");
  return f;
}

}  // namespace h5i::os
