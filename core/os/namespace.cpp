#include "core/os/namespace.hpp"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <sstream>
#include <string>

#include "core/os/fs.hpp"

namespace h5i::os {
namespace {

Result<void> write_proc(const std::string& path, std::string_view text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return sys_error("open " + path);
  // One write: the kernel takes a map once and whole.
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return sys_error("write " + path);
  return {};
}

}  // namespace

std::string identity_lines(const std::string& own_map) {
  std::istringstream in(own_map);
  std::string out;
  for (uint64_t inside, outside, count; in >> inside >> outside >> count;)
    out += std::to_string(inside) + " " + std::to_string(inside) + " " + std::to_string(count) + "\n";
  return out;
}

std::optional<uint64_t> namespace_flag(std::string_view name) {
  for (const NamespaceKind& k : kNamespaces)
    if (name == k.name) return k.flag;
  return std::nullopt;
}

Result<uint64_t> namespace_id(pid_t pid, std::string_view name) {
  if (!namespace_flag(name)) return make_error(Errc::INVALID, "no such namespace kind", std::string(name));
  std::string path = "/proc/" + (pid ? std::to_string(pid) : std::string("self")) + "/ns/" + std::string(name);
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) return sys_error("stat " + path);
  return static_cast<uint64_t>(st.st_ino);
}

Result<int> user_namespace_depth(int ns) {
  uint64_t ours = H5I_TRY(namespace_id(0, "user"));
  UniqueFd at(fcntl(ns, F_DUPFD_CLOEXEC, 0));
  constexpr int kMostLevels = 33;  // the kernel's own limit on nesting
  for (int depth = 0; at && depth <= kMostLevels; depth++) {
    struct stat st {};
    if (fstat(at.get(), &st) != 0) return sys_error("fstat of a user namespace");
    if (st.st_ino == ours) return depth;
    at = UniqueFd(ioctl(at.get(), NS_GET_PARENT));  // EPERM above ours: it does not descend from it
  }
  return make_error(Errc::INVALID, "a user namespace is not beneath ours", strerror(errno));
}

Result<void> write_id_map(pid_t pid, const IdMap& m) {
  std::string base = "/proc/" + std::to_string(pid) + "/";
  auto line = [](auto inside, auto outside) { return std::to_string(inside) + " " + std::to_string(outside) + " 1"; };
  if (m.whole) {
    const std::string uids = identity_lines(H5I_TRY(read_file("/proc/self/uid_map", 1 << 16)));
    const std::string gids = identity_lines(H5I_TRY(read_file("/proc/self/gid_map", 1 << 16)));
    H5I_TRY(write_proc(base + "uid_map", uids));
    return write_proc(base + "gid_map", gids);
  }
  // Since CVE-2014-8989 an unprivileged gid_map needs setgroups denied. It is denied for root's boxes too: what the
  // spawner itself dropped must not come back.
  H5I_TRY(write_proc(base + "setgroups", "deny"));
  H5I_TRY(write_proc(base + "uid_map", line(m.inside_uid, m.outside_uid)));
  return write_proc(base + "gid_map", line(m.inside_gid, m.outside_gid));
}

Result<UniqueFd> idmap_namespace(uid_t uid, gid_t gid) {
  // The namespace needs a process while the map is written. The child does nothing but wait to be killed; it shares
  // nothing that it could disturb.
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return sys_error("clone3 for an id map");
  if (pid == 0)
    for (;;) syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
  UniqueFd keep(pidfd);
  auto child = static_cast<pid_t>(pid);
  auto done = write_id_map(child, IdMap{0, uid, 0, gid, false});
  UniqueFd ns(open(("/proc/" + std::to_string(child) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  int err = errno;
  syscall(SYS_pidfd_send_signal, keep.get(), SIGKILL, nullptr, 0);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!done) return std::move(done).error();
  if (!ns) return sys_error("open the user namespace", err);
  return ns;
}

}  // namespace h5i::os
