// h5i-init: pid 1 of a box. Started by descriptor with an empty environment, from a file without read permission, so it
// is not dumpable from its first instruction (the workload, which may have the same uid, cannot read or trace it).
// It reaps, passes signals on, dies with the host, reports the workload's end, and exits: which kills whatever is left.
// Linked without any library: it is mapped into every box, and what is not there cannot be attacked or slow a start.
#include <fcntl.h>
#include <linux/prctl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>

#include "core/os/landlock.hpp"
#include "core/os/raw_syscall.hpp"
#include "core/spawn/init_protocol.hpp"

namespace {

using h5i::os::raw_arg;

template <class... Args>
long sys(long nr, Args... args) {
  return h5i::os::raw_syscall(nr, static_cast<long>(args)...);
}

[[noreturn]] void leave(int status) {
  for (;;) sys(__NR_exit_group, status);
}

// A number that child.cpp wrote; anything else ends the box.
long number(const char* s) {
  if (!s || !*s) leave(125);
  long n = 0;
  for (; *s; s++) {
    if (*s < '0' || *s > '9' || n > 0x7fffffff) leave(125);
    n = n * 10 + (*s - '0');
  }
  return n;
}

// A domain that grants nothing: should a bug make init do the workload's bidding, it opens no file and no connection.
// Signals stay outside of its scope, since sending them is its work. Best effort by design: without Landlock the
// plan's own confinement says so elsewhere.
void deny_all() {
  namespace ll = h5i::os::landlock;
  long abi = sys(__NR_landlock_create_ruleset, 0, 0, 1);
  if (abi < 1) return;
  int level = static_cast<int>(abi);
  ll::RulesetAttr attr;
  attr.handled_fs = ll::all_fs(level);
  attr.handled_net = ll::all_net(level);
  attr.scoped = level >= 6 ? static_cast<uint64_t>(ll::kScopeAbstractSocket) : 0;
  long fd = sys(__NR_landlock_create_ruleset, raw_arg(&attr), ll::attr_size(level), 0);
  if (fd < 0) return;
  sys(__NR_landlock_restrict_self, fd, 0);
  sys(__NR_close, fd);
}

// The procfs of this namespace, for counting; the host's (where the box has its view) would count the host's processes.
int own_proc() {
  long fd = sys(__NR_openat, AT_FDCWD, raw_arg("/proc"), O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return -1;
  char self[8] = {};
  long n = sys(__NR_readlinkat, fd, raw_arg("self"), raw_arg(self), sizeof self);
  if (n == 1 && self[0] == '1') return static_cast<int>(fd);
  sys(__NR_close, fd);
  return -1;
}

struct Box {
  long workload;
  int control, host;
  int proc = -1;
  int status = 0;
  bool ended = false;

  // Every child that is dead already; the workload's status is kept.
  void reap() {
    for (;;) {
      int st = 0;
      long pid = sys(__NR_wait4, -1, raw_arg(&st), WNOHANG | __WALL, 0);
      if (pid <= 0) return;
      if (pid == workload) {
        status = st;
        ended = true;
      }
    }
  }

  // The signal reaches everything in the namespace at once, and a fork that is under way sees it too, so one call
  // leaves nothing. Reaping alone would count too few: a parent that waits may still reap its child while it dies
  // itself.
  uint64_t kill_survivors() {
    uint64_t n = 0, seen = count_processes();
    sys(__NR_kill, -1, SIGKILL);
    for (;;) {
      long pid = sys(__NR_wait4, -1, 0, __WALL, 0);
      if (pid > 0)
        n++;
      else if (pid != -EINTR)
        return n > seen ? n : seen;
    }
  }

  // Entries of the namespace's own procfs, without init's; 0 where there is none.
  uint64_t count_processes() {
    if (proc < 0) return 0;
    uint64_t n = 0;
    alignas(8) static char buf[8192];
    for (;;) {
      long got = sys(__NR_getdents64, proc, raw_arg(buf), sizeof buf);
      if (got <= 0) return n ? n - 1 : 0;
      constexpr long kReclen = 16, kName = 19;  // struct linux_dirent64: d_ino, d_off, d_reclen, d_type, d_name
      for (long at = 0; at < got;) {
        if (buf[at + kName] >= '1' && buf[at + kName] <= '9') n++;
        uint16_t reclen;
        __builtin_memcpy(&reclen, buf + at + kReclen, sizeof reclen);
        at += reclen;
      }
    }
  }

  void pass_on() {
    h5i::spawn::InitRequest r{};
    long n = sys(__NR_read, control, raw_arg(&r), sizeof r);
    if (n == -EINTR) return;
    if (n != sizeof r) leave(125);  // the spawner is gone, or what speaks there is not the spawner
    if (r.what == h5i::spawn::InitRequest::kSignal && r.number > 0 && r.number < 65 && !ended)
      if (sys(__NR_kill, -workload, r.number) == -ESRCH) sys(__NR_kill, workload, r.number);
  }
};

}  // namespace

extern "C" [[noreturn]] __attribute__((used)) void h5i_init_start(long* stack) {
  long argc = stack[0];
  char** argv = reinterpret_cast<char**>(stack + 1);
  if (argc != 4) leave(125);
  Box box{number(argv[1]), static_cast<int>(number(argv[2])), static_cast<int>(number(argv[3]))};

  sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  sys(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  int low = box.control < box.host ? box.control : box.host;
  int high = box.control < box.host ? box.host : box.control;
  if (low > 3) sys(__NR_close_range, 3, low - 1, 0);
  if (high > low + 1) sys(__NR_close_range, low + 1, high - 1, 0);
  sys(__NR_close_range, high + 1, ~0u, 0);

  uint64_t all = ~0ull;
  sys(__NR_rt_sigprocmask, SIG_BLOCK, raw_arg(&all), 0, sizeof all);
  uint64_t child_ended = 1ull << (SIGCHLD - 1);
  long signals = sys(__NR_signalfd4, -1, raw_arg(&child_ended), sizeof child_ended, O_NONBLOCK | O_CLOEXEC);
  if (signals < 0) leave(125);
  sys(__NR_prctl, PR_SET_NAME, raw_arg("h5i-init"), 0, 0, 0);
  box.proc = own_proc();
  deny_all();

  for (;;) {
    box.reap();
    if (box.ended) break;
    pollfd q[3] = {{static_cast<int>(signals), POLLIN, 0}, {box.control, POLLIN, 0}, {box.host, POLLIN, 0}};
    long n = sys(__NR_ppoll, raw_arg(q), 3, 0, 0, 0);
    if (n < 0 && n != -EINTR) leave(125);
    if (q[2].revents) leave(125);  // the host process has ended
    if (q[1].revents) box.pass_on();
    if (q[0].revents) {
      char drop[1024];
      while (sys(__NR_read, signals, raw_arg(drop), sizeof drop) > 0) {
      }
    }
  }
  h5i::spawn::InitReport report{h5i::spawn::InitReport::kMagic, box.status, box.kill_survivors()};
  sys(__NR_write, box.control, raw_arg(&report), sizeof report);
  leave(0);
}

// The kernel enters with the argument block at the stack pointer; nothing was called, so nothing is aligned for a call.
#if defined(__x86_64__)
__asm__(
    ".globl _start\n.type _start,@function\n_start:\n"
    "  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call h5i_init_start\n  hlt\n");
#else
__asm__(
    ".globl _start\n.type _start,%function\n_start:\n"
    "  mov x29, #0\n  mov x30, #0\n  mov x0, sp\n  bl h5i_init_start\n  brk #1\n");
#endif

// The compiler may ask for these whatever is written above.
extern "C" void* memset(void* to, int byte, size_t n) {
  auto* p = static_cast<volatile unsigned char*>(to);
  for (size_t i = 0; i < n; i++) p[i] = static_cast<unsigned char>(byte);
  return to;
}
extern "C" void* memcpy(void* to, const void* from, size_t n) {
  auto* p = static_cast<volatile unsigned char*>(to);
  auto* q = static_cast<const unsigned char*>(from);
  for (size_t i = 0; i < n; i++) p[i] = q[i];
  return to;
}
