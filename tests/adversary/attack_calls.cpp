// Tries of h5i-attack: system calls by name and number, filters, terminals.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attack.hpp"

namespace attack {
namespace {

struct Named {
  long number;
  const char* name;
};
constexpr Named kCalls[] = {
#include "syscall_names.inc"  // written by CMake from <sys/syscall.h>
    // Above these headers' own, alike on every architecture.
    {452, "fchmodat2"},         {453, "map_shadow_stack"},  {454, "futex_wake"},       {455, "futex_wait"},
    {456, "futex_requeue"},     {457, "statmount"},         {458, "listmount"},        {459, "lsm_get_self_attr"},
    {460, "lsm_set_self_attr"}, {461, "lsm_list_modules"},  {462, "mseal"},            {463, "setxattrat"},
    {464, "getxattrat"},        {465, "listxattrat"},       {466, "removexattrat"},    {467, "open_tree_attr"},
    {468, "file_getattr"},      {469, "file_setattr"},
};

long call_number(const char* name) {
  if (name[0] >= '0' && name[0] <= '9') return number(name);
  for (const Named& n : kCalls)
    if (is(n.name, name)) return n.number;
  return -1;
}

// An argument of a raw call: a number, s:TEXT (its address), b:BYTES (a zeroed buffer), q:N+N... (64-bit words), f:PATH (a
// descriptor for reading).
long argument(const char* a) {
  if (a[0] == 0 || a[1] != ':') return signed_number(a);
  const char* rest = a + 2;
  switch (a[0]) {
    case 's': return reinterpret_cast<long>(rest);
    case 'b': return reinterpret_cast<long>(calloc(1, static_cast<size_t>(number(rest))));
    case 'f': return open(rest, O_RDONLY | O_NONBLOCK);
    case 'q': {
      auto* words = static_cast<unsigned long*>(calloc(32, 8));
      for (int i = 0; i < 32 && *rest; i++) {
        words[i] = strtoul(rest, const_cast<char**>(&rest), 0);
        if (*rest == '+') rest++;
      }
      return reinterpret_cast<long>(words);
    }
    default: return signed_number(a);
  }
}

long do_sys(const Words& w) {
  long nr = call_number(w[0]);
  if (nr < 0) _exit(kUnknown);
  long a[6] = {};
  for (int i = 0; i < 6 && i + 1 < w.count; i++) a[i] = argument(w[i + 1]);
  return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// The same by a process that nobody may look into.
long do_unseen(const Words& w) {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) _exit(kUnknown);
  return do_sys(w);
}

// Its own code, written over through /proc/self/mem: did when the new code runs.
__attribute__((noinline)) int patched() {
  __asm__ volatile("");
  return 1;
}
long do_own_code(const Words&) {
#if defined(__x86_64__)
  const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};  // mov $7,%eax; ret
#else
  const unsigned char code[] = {0xe0, 0, 0x80, 0x52, 0xc0, 3, 0x5f, 0xd6};  // mov w0,#7; ret
#endif
  int (*volatile call)() = patched;
  int fd = open("/proc/self/mem", O_RDWR);
  if (fd < 0 || pwrite(fd, code, sizeof code, reinterpret_cast<off_t>(call)) != static_cast<ssize_t>(sizeof code)) return -1;
  return call() == 7 ? 0 : refused(EPROTO);
}

// Every argument is -1: no pointer is good, no descriptor is open, so a call that gets through says so and does nothing.
long do_number(const Words& w) { return syscall(number(w[0]), -1L, -1L, -1L, -1L, -1L, -1L); }

// FIRST COUNT: that many numbers from there on, none of which anybody has.
long do_numbers(const Words& w) {
  for (long n = 0; n < number(w[1]); n++) syscall(number(w[0]) + 600 + n, -1L, -1L, -1L, -1L, -1L, -1L);
  return 0;
}
// COUNT NAME: the call, that many times.
long do_repeat(const Words& w) {
  for (long n = 0; n < number(w[0]); n++) syscall(call_number(w[1]), -1L, -1L, -1L, -1L, -1L, -1L);
  return 0;
}

long do_int80(const Words& w) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number(w[0])), "b"(signed_number(w[1])), "c"(signed_number(w[2])), "d"(signed_number(w[3]))
                   : "memory", "r8", "r9", "r10", "r11");
  return result < 0 && result > -4096 ? refused(static_cast<int>(-result)) : result;
#else
  (void)w;
  return refused(ENOSYS);
#endif
}

long install(sock_filter* program, unsigned short length, unsigned flags) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  sock_fprog p{length, program};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p);
}

long do_listener(const Words&) {
  sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return install(allow, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

// A filter of the program's own that turns a call into a silent success: NUMBER answers 0 afterwards.
long do_own_filter(const Words& w) {
  sock_filter lie[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call_number(w[0])), 0, 1),
                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  if (install(lie, 4, 0) < 0) return -1;
  return syscall(call_number(w[0]), -1L, -1L, -1L, -1L, -1L, -1L) == 0 ? 0 : refused(EPROTO);
}

// ioctl COMMAND on the controlling terminal, which is a pty of this process's own making.
long do_terminal(const Words& w) {
  int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
  if (master < 0) return -1;
  int zero = 0, n = 0;
  if (ioctl(master, TIOCSPTLCK, &zero) != 0 || ioctl(master, TIOCGPTN, &n) != 0) return -1;
  char name[32];
  snprintf(name, sizeof name, "/dev/pts/%d", n);
  setsid();
  int slave = open(name, O_RDWR);
  if (slave < 0) return -1;
  ioctl(slave, TIOCSCTTY, 0);
  char typed[] = "#";  // TIOCSTI types the first byte, TIOCLINUX takes it for a sub-command, TIOCSETD for a discipline
  return syscall(SYS_ioctl, slave, number(w[0]), is(w[1], "") ? reinterpret_cast<long>(typed) : signed_number(w[1]));
}

}  // namespace

std::span<const Try> call_tries() {
  static constexpr Try kTries[] = {
      {"sys", do_sys},
      {"unseen", do_unseen},
      {"own-code", do_own_code},
      {"number", do_number},
      {"numbers", do_numbers},
      {"repeat", do_repeat},
      {"int80", do_int80},
      {"listener", do_listener},
      {"own-filter", do_own_filter},
      {"terminal", do_terminal},
  };
  return kTries;
}

}  // namespace attack
