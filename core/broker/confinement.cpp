#include "core/broker/confinement.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/os/landlock.hpp"
#include "core/os/seccomp.hpp"

namespace h5i::broker {
namespace {

using namespace os::landlock;

// What name look-up reads, and the libraries that it loads. A link leads to what it names.
constexpr const char* kPublic[] = {"/usr/lib",         "/usr/lib64",    "/lib",          "/lib64",        "/usr/share/zoneinfo", "/etc/hosts",      "/etc/resolv.conf",
                                   "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",      "/etc/ld.so.cache"};

Result<void> confine_files() {
  const int abi_here = abi();
  if (abi_here < 1) return make_error(Errc::TIER_PROBE_MISSING, "the proxy is not confined", "missing: landlock");
  // With no rule for a port, no socket of ours is bound to one where the kernel can hold that.
  RulesetAttr attr{all_fs(abi_here), all_net(abi_here) & kBindTcp, all_scopes(abi_here)};
  UniqueFd rules(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi_here), 0)));
  if (!rules) return sys_error("landlock_create_ruleset");
  for (const char* path : kPublic) {
    UniqueFd fd(open(path, O_PATH | O_CLOEXEC));
    struct stat st {};
    if (!fd || fstat(fd.get(), &st) != 0) continue;
    PathBeneath beneath{S_ISDIR(st.st_mode) ? kReadFile | kReadDir : kReadFile, fd.get()};
    if (syscall(SYS_landlock_add_rule, rules.get(), kRulePathBeneath, &beneath, 0) != 0) return sys_error("landlock_add_rule");
  }
  if (syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) return sys_error("landlock_restrict_self");
  return {};
}

// Everything that serving takes; the C library's threads and look-ups included.
constexpr int kAllowed[] = {
    __NR_read, __NR_write, __NR_readv, __NR_writev, __NR_pread64, __NR_close, __NR_ppoll, __NR_sendto, __NR_recvfrom, __NR_sendmsg, __NR_recvmsg, __NR_sendmmsg, __NR_recvmmsg,
    __NR_connect, __NR_accept4, __NR_getsockopt, __NR_setsockopt, __NR_getsockname, __NR_getpeername, __NR_shutdown, __NR_bind, __NR_ioctl, __NR_fcntl,
    __NR_openat, __NR_fstat, __NR_newfstatat, __NR_statx, __NR_lseek, __NR_faccessat, __NR_getdents64, __NR_readlinkat,
    __NR_mmap, __NR_munmap, __NR_mprotect, __NR_mremap, __NR_madvise, __NR_brk, __NR_futex, __NR_set_robust_list, __NR_rt_sigprocmask, __NR_rt_sigaction, __NR_rt_sigreturn, __NR_sigaltstack,
    __NR_exit, __NR_exit_group, __NR_clock_gettime, __NR_clock_nanosleep, __NR_nanosleep, __NR_gettimeofday, __NR_getrandom, __NR_uname, __NR_getpid, __NR_gettid, __NR_getuid, __NR_geteuid, __NR_getgid,
    __NR_getegid, __NR_sched_yield, __NR_sched_getaffinity, __NR_sysinfo, __NR_restart_syscall, __NR_eventfd2, __NR_tgkill, 334 /* rseq */,
#ifdef __SANITIZE_ADDRESS__
    __NR_pipe2,  // by which that build looks at memory
#endif
#ifdef __NR_poll
    __NR_poll, __NR_open, __NR_stat, __NR_lstat, __NR_access, __NR_readlink, __NR_time, __NR_arch_prctl,
#endif
};

constexpr uint32_t kErrno(int err) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(err); }
constexpr uint32_t argument(int i) { return static_cast<uint32_t>(offsetof(seccomp_data, args) + 8u * static_cast<unsigned>(i)); }  // its low half

Result<void> confine_calls() {
  std::vector<sock_filter> f;
  auto put = [&](sock_filter one) { f.push_back(one); };
  auto load = [&](uint32_t from) { put(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, from)); };
  auto give = [&](uint32_t what) { put(BPF_STMT(BPF_RET | BPF_K, what)); };
  // When the loaded word is `value`, the next instruction; otherwise what follows it.
  auto when = [&](uint32_t value) { put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)); };
  load(offsetof(seccomp_data, arch));
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, os::seccomp::kNativeArch, 1, 0));
  give(SECCOMP_RET_KILL_PROCESS);
  load(offsetof(seccomp_data, nr));
  for (int nr : kAllowed) {
    when(static_cast<uint32_t>(nr));
    give(SECCOMP_RET_ALLOW);
  }
  when(435);  // clone3 has its flags in memory: the C library goes back to clone
  give(kErrno(ENOSYS));
  // Threads, and no process.
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4));
  load(argument(0));
  put(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x00010000u /* CLONE_THREAD */, 0, 1));
  give(SECCOMP_RET_ALLOW);
  give(kErrno(EPERM));
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 1, 0));
  give(kErrno(EPERM));
  // Streams and datagrams of the internet, and the kernel's answer about routes, which name look-up asks for.
  load(argument(0));
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 4));
  load(argument(2));
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 0, 1));
  give(SECCOMP_RET_ALLOW);
  give(kErrno(EAFNOSUPPORT));
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0));
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0));
  give(kErrno(EAFNOSUPPORT));
  load(argument(1));
  put(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf));
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0));
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM, 0, 1));
  give(SECCOMP_RET_ALLOW);
  give(kErrno(EPERM));
  sock_fprog program{static_cast<unsigned short>(f.size()), f.data()};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
    return errno == EINVAL ? make_error(Errc::TIER_PROBE_MISSING, "the proxy is not confined", "missing: seccomp-filter") : sys_error("set the proxy's filter");
  return {};
}

}  // namespace

Result<void> confine_proxy() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("no_new_privs");
  H5I_TRY(confine_files());
  return confine_calls();
}

}  // namespace h5i::broker
