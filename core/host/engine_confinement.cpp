#include "core/host/engine_confinement.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "core/host/session_store.hpp"
#include "core/os/landlock.hpp"
#include "core/os/seccomp.hpp"

namespace h5i::host {
namespace {

using namespace os::landlock;

constexpr uint64_t kLook = kReadFile | kReadDir;
constexpr uint64_t kKeep = kLook | kWriteFile | kTruncate | kMakeReg | kMakeDir | kRemoveFile | kRemoveDir | kRefer;

// What name look-up, certificates, locales and tables of characters are read from. A link leads to what it names.
constexpr const char* kPublic[] = {"/usr",          "/lib",          "/lib64",        "/etc/ssl",        "/etc/ca-certificates", "/etc/hosts",        "/etc/resolv.conf", "/etc/nsswitch.conf",
                                   "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/ld.so.cache",     "/etc/localtime",    "/dev/urandom",     "/etc/pki"};

Result<void> grant(int rules, int fd, uint64_t access, int abi_here) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return sys_error("fstat");
  if (!S_ISDIR(st.st_mode)) access &= kFileRights;
  PathBeneath beneath{access & all_fs(abi_here), fd};
  if (syscall(SYS_landlock_add_rule, rules, kRulePathBeneath, &beneath, 0) != 0) return sys_error("landlock_add_rule");
  return {};
}

// A folder for what the log can give again. Where it cannot be made the engine does without.
Result<void> grant_cache(int rules, int session, int abi_here) {
  UniqueFd state(openat(session, kStateName, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!state) return {};
  (void)mkdirat(state.get(), kCacheName, 0700);
  UniqueFd cache(openat(state.get(), kCacheName, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return cache ? grant(rules, cache.get(), kLook | kWriteFile | kTruncate | kMakeReg | kRemoveFile, abi_here) : Result<void>();
}

Result<void> confine_files(const UniqueFd& library, int session, bool writes) {
  const int abi_here = abi();
  if (abi_here < 1) return make_error(Errc::TIER_PROBE_MISSING, "the engine is not confined", "missing: landlock");
  RulesetAttr attr{all_fs(abi_here), 0, all_scopes(abi_here)};
  UniqueFd rules(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi_here), 0)));
  if (!rules) return sys_error("landlock_create_ruleset");
  for (const char* path : kPublic) {
    UniqueFd fd(open(path, O_PATH | O_CLOEXEC));
    if (fd) H5I_TRY(grant(rules.get(), fd.get(), kLook, abi_here));
  }
  // A copy in memory lies below no path, and is out of Landlock's reach: the kernel says EBADFD.
  if (auto r = grant(rules.get(), library.get(), kReadFile, abi_here); !r && r.error().sys_errno != EBADFD) return r;
  if (session >= 0) H5I_TRY(grant(rules.get(), session, kLook, abi_here));
  if (session >= 0) H5I_TRY(grant_cache(rules.get(), session, abi_here));
  for (const char* part : {kLogName, kPayloadsName, kStateName}) {
    UniqueFd fd(session >= 0 && writes ? openat(session, part, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1);
    if (fd) H5I_TRY(grant(rules.get(), fd.get(), kKeep, abi_here));
  }
  if (syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) return sys_error("landlock_restrict_self");
  return {};
}

// Refused whatever they are asked for.
constexpr int kRefused[] = {
    __NR_execve, __NR_execveat, __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_unshare, __NR_setns,
    __NR_bpf, __NR_perf_event_open, __NR_userfaultfd, __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register, __NR_keyctl, __NR_add_key, __NR_request_key,
    __NR_init_module, __NR_finit_module, __NR_delete_module, __NR_kexec_load, __NR_reboot, __NR_swapon, __NR_acct, __NR_quotactl, __NR_open_by_handle_at, __NR_socketpair,
    438 /* pidfd_getfd */, 428 /* open_tree */, 429 /* move_mount */, 430 /* fsopen */, 442 /* mount_setattr */,
#ifdef __NR_fork
    __NR_fork, __NR_vfork,
#endif
};

constexpr uint32_t kErrno(int err) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(err); }
constexpr uint32_t kNumber = offsetof(seccomp_data, nr), kArch = offsetof(seccomp_data, arch);
constexpr uint32_t argument(int i) { return static_cast<uint32_t>(offsetof(seccomp_data, args) + 8u * static_cast<unsigned>(i)); }  // its low half

Result<void> confine_calls(bool network) {
  std::vector<sock_filter> f;
  auto put = [&](sock_filter one) { f.push_back(one); };
  auto load = [&](uint32_t at) { put(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)); };
  auto give = [&](uint32_t what) { put(BPF_STMT(BPF_RET | BPF_K, what)); };
  // When the loaded word is `value`, the next instruction; otherwise what follows it.
  auto when = [&](uint32_t value) { put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)); };
  load(kArch);
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, os::seccomp::kNativeArch, 1, 0));
  give(SECCOMP_RET_KILL_PROCESS);
  load(kNumber);
  put(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1));  // x32's numbers
  give(SECCOMP_RET_KILL_PROCESS);
  for (int nr : kRefused) {
    when(static_cast<uint32_t>(nr));
    give(kErrno(EPERM));
  }
  when(435);  // clone3 has its flags in memory: the C library goes back to clone
  give(kErrno(ENOSYS));
  // Threads, and no process.
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4));
  load(argument(0));
  put(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x00010000u /* CLONE_THREAD */, 0, 1));
  give(SECCOMP_RET_ALLOW);
  give(kErrno(EPERM));
  if (!network) {
    when(__NR_socket);
    give(kErrno(EPERM));
  }
  // Streams and datagrams of the internet, and the kernel's answer about routes, which name look-up asks for.
  put(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 1, 0));
  give(SECCOMP_RET_ALLOW);
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
    return errno == EINVAL ? make_error(Errc::TIER_PROBE_MISSING, "the engine is not confined", "missing: seccomp-filter") : sys_error("set the engine's filter");
  return {};
}

}  // namespace

Result<void> confine_engine(const UniqueFd& library, int session, bool writes, bool network) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("no_new_privs");
  H5I_TRY(confine_files(library, session, writes));
  return confine_calls(network);
}

Result<void> confine_engine_in_box() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("no_new_privs");
  return confine_calls(true);
}

}  // namespace h5i::host
