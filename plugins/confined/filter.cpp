#include "filter.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>

namespace h5i::confined {
namespace {

// ---- what is allowed -----------------------------------------------------------------------------------------------
// Whatever an ordinary tool chain calls. A call that is not here is refused; docs/limits.md names what that costs.

constexpr std::string_view kAllowed[] = {
    // files
    "access",
    "chdir",
    "chown",
    "close",
    "close_range",
    "copy_file_range",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fremovexattr",
    "fsetxattr",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futimesat",
    "getcwd",
    "getdents",
    "getdents64",
    "getxattr",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lseek",
    "lsetxattr",
    "lstat",
    "newfstatat",
    "pipe",
    "pipe2",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "setxattr",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "tee",
    "truncate",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "vmsplice",
    "write",
    "writev",
    // memory
    "brk",
    "get_mempolicy",
    "madvise",
    "mbind",
    "membarrier",
    "memfd_create",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mprotect",
    "mremap",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "set_mempolicy",
    // processes, threads, signals
    "arch_prctl",
    "capget",
    "capset",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "futex",
    "futex_waitv",
    "get_robust_list",
    "getcpu",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "getuid",
    "ioprio_get",
    "ioprio_set",
    "kill",
    "pause",
    "pidfd_open",
    "pidfd_send_signal",
    "prlimit64",
    "restart_syscall",
    "rseq",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    "setfsgid",
    "setfsuid",
    "setgid",
    "setgroups",
    "setpgid",
    "setpriority",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setsid",
    "setuid",
    "sigaltstack",
    "tgkill",
    "tkill",
    "vfork",
    "wait4",
    "waitid",
    // time
    "alarm",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "getitimer",
    "gettimeofday",
    "nanosleep",
    "setitimer",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    "times",
    // waiting for events
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "signalfd",
    "signalfd4",
    // asynchronous file access of the old kind (databases in test suites)
    "io_cancel",
    "io_destroy",
    "io_getevents",
    "io_pgetevents",
    "io_setup",
    "io_submit",
    // sockets that exist already
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "shutdown",
    // System V and POSIX objects of the box's own ipc namespace
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedsend",
    "mq_unlink",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
    // facts, and a program's own confinement
    "getrandom",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "sysinfo",
    "uname",
};

// Allowed behind the head's tests.
constexpr std::string_view kTestedInHead[] = {"ioctl", "setsockopt"};

// Allowed when a condition on scalar arguments holds. Conditions of one row must all hold; rows of one name are
// alternatives. A comparison is (argument & mask) == value: masks keep to the bits that the kernel looks at, so that
// garbage above 32 bits neither hides a value nor refuses an innocent call.
struct Condition {
  unsigned argument;
  uint64_t mask, value;
};
struct Row {
  std::string_view name;
  std::array<Condition, 3> conditions;
  unsigned count;
  bool needs_unix;
};

constexpr uint64_t kInt = 0xffffffffu;
constexpr uint64_t kSetId = 06000;               // S_ISUID | S_ISGID
constexpr uint64_t kFormat = 0170000;            // S_IFMT
constexpr uint64_t kCreates = 0100 | 020000000;  // O_CREAT, __O_TMPFILE: without them the mode is not looked at
// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. NEWTIME shares a bit with the exit signal of clone.
constexpr uint64_t kNewNamespaces = 0x7E020000;
constexpr uint64_t kNewTime = 0x80;
constexpr uint64_t kFastOpen = 0x20000000;  // MSG_FASTOPEN connects without connect(2)
constexpr uint64_t kTypeMask = 0xf;         // SOCK_TYPE_MASK: what is above are SOCK_CLOEXEC and SOCK_NONBLOCK

constexpr Row one(std::string_view n, Condition a) { return {n, {a, {}, {}}, 1, false}; }
constexpr Row two(std::string_view n, Condition a, Condition b) { return {n, {a, b, {}}, 2, false}; }
constexpr Row socket_row(unsigned family, unsigned type, unsigned protocol, bool needs_unix = false) {
  // The type's upper bits are flags; an unknown one makes socket(2) answer EINVAL by itself.
  return {"socket", {Condition{0, kInt, family}, {1, kTypeMask, type}, {2, kInt, protocol}}, 3, needs_unix};
}
constexpr unsigned kUnix = 1, kInet = 2, kInet6 = 10, kNetlink = 16;
constexpr unsigned kStream = 1, kDatagram = 2, kRaw = 3, kSeqpacket = 5;

constexpr Row kByArgument[] = {
    // A box must not leave a set-user-id or set-group-id file of its owner behind.
    one("chmod", {1, kSetId, 0}),
    one("fchmod", {1, kSetId, 0}),
    one("fchmodat", {2, kSetId, 0}),
    one("mkdir", {1, kSetId, 0}),
    one("mkdirat", {2, kSetId, 0}),
    one("creat", {1, kSetId, 0}),
    one("open", {2, kSetId, 0}),
    one("open", {1, kCreates, 0}),
    one("openat", {3, kSetId, 0}),
    one("openat", {2, kCreates, 0}),
    // Device nodes never, even where a capability would allow them: regular files, fifos, sockets.
    one("mknod", {1, kFormat | kSetId, 0}),
    one("mknod", {1, kFormat | kSetId, 0100000}),
    one("mknod", {1, kFormat | kSetId, 0010000}),
    one("mknod", {1, kFormat | kSetId, 0140000}),
    one("mknodat", {2, kFormat | kSetId, 0}),
    one("mknodat", {2, kFormat | kSetId, 0100000}),
    one("mknodat", {2, kFormat | kSetId, 0010000}),
    one("mknodat", {2, kFormat | kSetId, 0140000}),
    // No namespaces of its own: each opens kernel surface that only a capability opens outside.
    one("clone", {0, kNewNamespaces, 0}),
    one("unshare", {0, kNewNamespaces | kNewTime, 0}),
    // Query, and the plain personality. ADDR_NO_RANDOMIZE and READ_IMPLIES_EXEC weaken the program itself.
    one("personality", {0, kInt, 0}),
    one("personality", {0, kInt, 0xffffffffu}),
    // A further filter of its own may only narrow; a listener would answer calls in the host's place.
    one("seccomp", {0, kInt, 0}),
    two("seccomp", {0, kInt, 1}, {1, 0x8, 0}),
    one("seccomp", {0, kInt, 2}),
    one("seccomp", {0, kInt, 3}),
    one("sendto", {3, kFastOpen, 0}),
    one("sendmsg", {2, kFastOpen, 0}),
    one("sendmmsg", {3, kFastOpen, 0}),
    // Sockets by family, type and default protocol: no raw, packet, vsock, alg, no MPTCP (262), no ping (ICMP).
    socket_row(kInet, kStream, 0),
    socket_row(kInet, kStream, 6),
    socket_row(kInet, kDatagram, 0),
    socket_row(kInet, kDatagram, 17),
    socket_row(kInet6, kStream, 0),
    socket_row(kInet6, kStream, 6),
    socket_row(kInet6, kDatagram, 0),
    socket_row(kInet6, kDatagram, 17),
    // NETLINK_ROUTE: getifaddrs. Nothing can be changed through it without CAP_NET_ADMIN over the namespace.
    socket_row(kNetlink, kRaw, 0),
    socket_row(kNetlink, kDatagram, 0),
    socket_row(kUnix, kStream, 0, true),
    socket_row(kUnix, kDatagram, 0, true),
    socket_row(kUnix, kSeqpacket, 0, true),
    one("socketpair", {0, kInt, kUnix}),
};

// prctl: what a program says about itself. Left out: PR_SET_MM, PR_MCE_KILL, PR_SET_IO_FLUSHER, PR_SCHED_CORE.
constexpr uint32_t kPrctl[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,         12,        13, 15, 16,
                               19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,         30,        34, 36, 37,
                               38, 39, 40, 41, 42, 45, 46, 47, 50, 51, 52,         53,        54, 55, 56,
                               58, 59, 60, 61, 63, 64, 65, 66, 67, 68, 0x53564d41, 0x59616d61};

// Old numbers that programs probe for and do without when they are not there; the rest of the old ones answer EPERM.
constexpr std::string_view kProbedFor[] = {
    "_sysctl",         "afs_syscall", "create_module", "epoll_ctl_old", "epoll_wait_old", "get_kernel_syms",
    "getpmsg",         "nfsservctl",  "putpmsg",       "query_module",  "security",       "set_thread_area",
    "get_thread_area", "tuxcall",     "uselib",        "vserver",       "ustat",          "sysfs"};
// From here on numbers are the same on every architecture and belong to interfaces that a program must be able to miss.
constexpr uint32_t kFirstNew = 424;
constexpr uint32_t kPidfdGetfd = 438;  // takes a descriptor out of another process: a refusal, not an absence

// ---- compiling -----------------------------------------------------------------------------------------------------

constexpr uint32_t kNotify = SECCOMP_RET_USER_NOTIF;
constexpr uint32_t kX32Bit = 0x40000000;

uint32_t scmp_arch(Arch a) { return a == Arch::X86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64; }
uint32_t audit_arch(Arch a) { return a == Arch::X86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64; }

sock_filter stmt(uint16_t code, uint32_t k) { return {code, 0, 0, k}; }
sock_filter jump(uint16_t code, uint32_t k, size_t yes, size_t no) {
  return {static_cast<__u16>(BPF_JMP | code | BPF_K), static_cast<__u8>(yes), static_cast<__u8>(no), k};
}
sock_filter load(size_t offset) { return stmt(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
// Both architectures are little-endian: the low word of an argument comes first. The kernel reads an ioctl command, a
// level and an option as 32 bits, so a comparison of 64 would let 0x1_00005412 through.
sock_filter load_low(unsigned argument) { return load(offsetof(seccomp_data, args) + 8 * argument); }

// Terminal commands that type for somebody else (TIOCSTI, TIOCLINUX), take the console (TIOCCONS) or load a line
// discipline (TIOCSETD); TCP options that connect without connect(2) (TCP_FASTOPEN_CONNECT) or load a protocol
// (TCP_ULP).
constexpr uint32_t kIoctls[] = {0x5412, 0x541C, 0x541D, 0x5423};
constexpr uint32_t kLevelTcp = 6;
constexpr uint32_t kTcpOptions[] = {30, 31};

std::vector<sock_filter> head(Arch arch, uint32_t nr_ioctl, uint32_t nr_setsockopt) {
  constexpr size_t kI = std::size(kIoctls), kT = std::size(kTcpOptions);
  // [ioctl] load, kI tests, ret ; [setsockopt] load, test, load, kT tests, ret ; [refuse]
  std::vector<sock_filter> p;
  p.push_back(load(offsetof(seccomp_data, arch)));
  p.push_back(jump(BPF_JEQ, audit_arch(arch), 1, 0));
  p.push_back(stmt(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  p.push_back(load(offsetof(seccomp_data, nr)));
  if (arch == Arch::X86_64) {  // the x32 table has the same architecture value
    p.push_back(jump(BPF_JSET, kX32Bit, 0, 1));
    p.push_back(stmt(BPF_RET | BPF_K, kNotify));
  }
  constexpr size_t kIoctlBlock = 1 + kI + 1;
  constexpr size_t kSockBlock = 3 + kT + 1;
  p.push_back(jump(BPF_JEQ, nr_ioctl, 1, 0));
  p.push_back(jump(BPF_JEQ, nr_setsockopt, kIoctlBlock, kIoctlBlock + kSockBlock + 1));
  p.push_back(load_low(1));
  for (size_t i = 0; i < kI; i++) p.push_back(jump(BPF_JEQ, kIoctls[i], kI - i + kSockBlock, 0));
  p.push_back(stmt(BPF_JMP | BPF_JA, kSockBlock + 1));
  p.push_back(load_low(1));
  p.push_back(jump(BPF_JEQ, kLevelTcp, 0, kT + 3));
  p.push_back(load_low(2));
  for (size_t i = 0; i < kT; i++) p.push_back(jump(BPF_JEQ, kTcpOptions[i], kT - i, 0));
  p.push_back(stmt(BPF_JMP | BPF_JA, 1));
  p.push_back(stmt(BPF_RET | BPF_K, kNotify));
  return p;
}

struct ContextDeleter {
  void operator()(void* c) const { seccomp_release(c); }
};
using Context = std::unique_ptr<void, ContextDeleter>;

sdk::Failure libseccomp(std::string_view what, int negative_errno) {
  return sdk::failure(H5I_E_INTERNAL, "libseccomp: " + std::string(what), -negative_errno);
}

sdk::Status allow(void* context, std::string_view name, const std::vector<scmp_arg_cmp>& conditions) {
  int nr = seccomp_syscall_resolve_name(std::string(name).c_str());
  if (nr == __NR_SCMP_ERROR) return sdk::failure(H5I_E_INTERNAL, "unknown system call " + std::string(name));
  int r = seccomp_rule_add_array(context, SCMP_ACT_ALLOW, nr, static_cast<unsigned>(conditions.size()),
                                 conditions.empty() ? nullptr : conditions.data());
  if (r != 0) return libseccomp(std::string("rule for ") + std::string(name), r);
  return {};
}

sdk::Result<std::vector<sock_filter>> exported(void* context) {
  int fd = memfd_create("filter", MFD_CLOEXEC);
  if (fd < 0) return sdk::system_failure("memfd_create");
  int r = seccomp_export_bpf(context, fd);
  off_t size = lseek(fd, 0, SEEK_END);
  std::vector<sock_filter> out(size > 0 ? static_cast<size_t>(size) / sizeof(sock_filter) : 0);
  ssize_t n = pread(fd, out.data(), out.size() * sizeof(sock_filter), 0);
  close(fd);
  if (r != 0) return libseccomp("export", r);
  if (out.empty() || n != static_cast<ssize_t>(out.size() * sizeof(sock_filter)))
    return sdk::failure(H5I_E_INTERNAL, "libseccomp exported a short program");
  return out;
}

bool contains(auto& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

uint32_t number(Arch arch, const char* name) {
  return static_cast<uint32_t>(seccomp_syscall_resolve_name_arch(scmp_arch(arch), name));
}

}  // namespace

Treatment treatment_of(std::string_view name) {
  if (contains(kAllowed, name)) return Treatment::ALLOWED;
  if (contains(kTestedInHead, name) || name == "prctl") return Treatment::BY_ARGUMENT;
  for (const Row& row : kByArgument)
    if (row.name == name) return Treatment::BY_ARGUMENT;
  return Treatment::REFUSED;
}

std::vector<std::string_view> listed_names() {
  std::vector<std::string_view> out(std::begin(kAllowed), std::end(kAllowed));
  out.insert(out.end(), std::begin(kTestedInHead), std::end(kTestedInHead));
  for (const Row& row : kByArgument) out.push_back(row.name);
  out.push_back("prctl");
  return out;
}

std::string Filter::bytes() const {
  return std::string(reinterpret_cast<const char*>(program.data()), program.size() * sizeof(sock_filter));
}

sdk::Result<Filter> build_filter(const FilterOptions& options) {
  Context context(seccomp_init(SCMP_ACT_NOTIFY));
  if (!context) return sdk::failure(H5I_E_INTERNAL, "libseccomp: init");
  void* c = context.get();
  if (options.arch != native_arch()) {
    if (int r = seccomp_arch_add(c, scmp_arch(options.arch)); r != 0) return libseccomp("arch add", r);
    if (int r = seccomp_arch_remove(c, scmp_arch(native_arch())); r != 0) return libseccomp("arch remove", r);
  }
  if (int r = seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS); r != 0)
    return libseccomp("bad arch", r);
  if (int r = seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2); r != 0) return libseccomp("optimize", r);

  for (std::string_view name : kAllowed) H5I_SDK_TRY(allow(c, name, {}));
  for (std::string_view name : kTestedInHead) H5I_SDK_TRY(allow(c, name, {}));
  for (const Row& row : kByArgument) {
    if (row.needs_unix && !options.unix_sockets) continue;
    std::vector<scmp_arg_cmp> conditions;
    for (unsigned i = 0; i < row.count; i++)
      conditions.push_back(
          {row.conditions[i].argument, SCMP_CMP_MASKED_EQ, row.conditions[i].mask, row.conditions[i].value});
    H5I_SDK_TRY(allow(c, row.name, conditions));
  }
  for (uint32_t option : kPrctl) H5I_SDK_TRY(allow(c, "prctl", {{0, SCMP_CMP_MASKED_EQ, kInt, option}}));

  Filter out;
  out.program = head(options.arch, number(options.arch, "ioctl"), number(options.arch, "setsockopt"));
  std::vector<sock_filter> list = H5I_SDK_TRY(exported(c));
  out.program.insert(out.program.end(), list.begin(), list.end());
  if (out.program.size() > BPF_MAXINSNS)
    return sdk::failure(H5I_E_INTERNAL, "the filter is longer than the kernel takes");

  for (uint32_t nr = 0; nr < kFirstNew; nr++) {
    char* name = seccomp_syscall_resolve_num_arch(scmp_arch(options.arch), static_cast<int>(nr));
    if (name == nullptr) continue;
    std::string_view view(name);
    if (treatment_of(view) != Treatment::ALLOWED && !contains(kProbedFor, view)) out.errnos[nr] = EPERM;
    free(name);
  }
  out.errnos[kPidfdGetfd] = EPERM;
  return out;
}

}  // namespace h5i::confined
