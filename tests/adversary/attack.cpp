// h5i-attack: each try is done in a child of its own and answered by one line on standard output:
//
//   TRY ARG...: did            it succeeded
//   TRY ARG...: EPERM          it was refused, with this errno
//   TRY ARG...: killed 31      a signal ended it
//   TRY ARG...: blocked        it did not return in time, and was ended
//
// Usage: h5i-attack TRY [ARG...] [, TRY [ARG...]]...   or: h5i-attack itself TRY [ARG...]   Static, like h5i-canary: it needs nothing of the view it runs in.
// Details for people go to standard error. Nothing here judges: what an answer is worth, the table says.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace {

constexpr int kMaxArgs = 12;
constexpr int kUnknown = 250;  // exit status of a try's child, above every errno

struct Words {
  int count;
  char* at[kMaxArgs];
  const char* operator[](int i) const { return i < count ? at[i] : ""; }
};

long number(const char* s) { return static_cast<long>(strtoull(s, nullptr, 0)); }
long signed_number(const char* s) { return s[0] == '-' ? strtol(s, nullptr, 0) : number(s); }
bool is(const char* a, const char* b) { return strcmp(a, b) == 0; }

// A detail for people. The answer is what the exit status says.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line - 1, format, args);
  va_end(args);
  if (n < 0) return;
  n = n < static_cast<int>(sizeof line) - 2 ? n : static_cast<int>(sizeof line) - 2;
  line[n] = '\n';
  (void)!write(2, line, static_cast<size_t>(n) + 1);
}

// A try: negative with errno set, or something else when it succeeded.
using Act = long (*)(const Words&);

long refused(int err) {
  errno = err;
  return -1;
}

void nap(int ms) {
  timespec t{ms / 1000, (ms % 1000) * 1000000L};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}

// ---- system calls by name --------------------------------------------------------------------------------------------

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

// An argument of a raw call: a number, s:TEXT (its address), b:BYTES (a zeroed buffer), x:HEX (these bytes), q:N... (64-bit
// words), f:PATH (a descriptor for reading), p:PATH (an O_PATH one), w:PATH (one for reading and writing), m:PAGES (memory).
long argument(const char* a) {
  if (a[0] == 0 || a[1] != ':') return signed_number(a);
  const char* rest = a + 2;
  switch (a[0]) {
    case 's': return reinterpret_cast<long>(rest);
    case 'b': return reinterpret_cast<long>(calloc(1, static_cast<size_t>(number(rest))));
    case 'f': return open(rest, O_RDONLY | O_NONBLOCK);
    case 'p': return open(rest, O_PATH);
    case 'w': return open(rest, O_RDWR);
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

// ---- filters and terminals -------------------------------------------------------------------------------------------

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

// ---- sockets ---------------------------------------------------------------------------------------------------------

long do_socket(const Words& w) {
  return socket(static_cast<int>(number(w[0])), static_cast<int>(number(w[1])), static_cast<int>(number(w[2])));
}

// FAMILY, every type: the first that works, else the last error.
long do_any_socket(const Words& w) {
  int family = static_cast<int>(number(w[0]));
  long r = -1;
  int best = 0;
  for (int type : {1, 2, 3, 4, 5, 10}) {
    r = socket(family, type, family == AF_PACKET ? htons(3) : 0);
    if (r >= 0) return r;
    if (best == 0 || best == EPROTONOSUPPORT || best == ESOCKTNOSUPPORT) best = errno;
  }
  return refused(best);
}

struct Listening {
  int fd = -1;
  sockaddr_in at{};
  bool ok() {
    fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof at;
    auto* a = reinterpret_cast<sockaddr*>(&at);
    return fd >= 0 && bind(fd, a, n) == 0 && listen(fd, 4) == 0 && getsockname(fd, a, &n) == 0;
  }
};

constexpr int kFastOpen = 0x20000000;  // MSG_FASTOPEN

// HOW: sendto, sendmsg, sendmmsg, option. To a listener of its own, so that only the way counts.
long do_fast_open(const Words& w) {
  Listening l;
  if (!l.ok()) return -1;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  char byte = 'x';
  iovec v{&byte, 1};
  mmsghdr m{};
  m.msg_hdr.msg_name = &l.at;
  m.msg_hdr.msg_namelen = sizeof l.at;
  m.msg_hdr.msg_iov = &v;
  m.msg_hdr.msg_iovlen = 1;
  if (is(w[0], "sendto")) return sendto(fd, &byte, 1, kFastOpen, reinterpret_cast<sockaddr*>(&l.at), sizeof l.at);
  if (is(w[0], "sendmsg")) return sendmsg(fd, &m.msg_hdr, kFastOpen);
  if (is(w[0], "sendmmsg")) return sendmmsg(fd, &m, 1, kFastOpen);
  int one = 1;
  // The level and option with garbage above their 32 bits, as a filter that compares 64 would not see them.
  long high = is(w[0], "option-high") ? 0x100000000L : 0;
  return syscall(SYS_setsockopt, fd, high | IPPROTO_TCP, high | 30 /* TCP_FASTOPEN_CONNECT */, &one, sizeof one);
}

long do_upper_protocol(const Words&) {
  Listening l;
  if (!l.ok()) return -1;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&l.at), sizeof l.at) != 0) return -1;
  return setsockopt(fd, IPPROTO_TCP, 31 /* TCP_ULP */, "tls", 3);
}

// HOW ADDRESS PORT: tcp, udp, mptcp. A datagram counts when the kernel took it.
long do_connect(const Words& w) {
  sockaddr_in a{};
  sockaddr_in6 a6{};
  sockaddr* to = reinterpret_cast<sockaddr*>(&a);
  socklen_t n = sizeof a;
  int family = AF_INET;
  a.sin_family = AF_INET;
  a.sin_port = a6.sin6_port = htons(static_cast<uint16_t>(number(w[2])));
  if (strchr(w[1], ':')) {
    family = AF_INET6;
    a6.sin6_family = AF_INET6;
    inet_pton(AF_INET6, w[1], &a6.sin6_addr);
    to = reinterpret_cast<sockaddr*>(&a6);
    n = sizeof a6;
  } else {
    inet_pton(AF_INET, w[1], &a.sin_addr);
  }
  bool udp = is(w[0], "udp");
  int fd = socket(family, udp ? SOCK_DGRAM : SOCK_STREAM, is(w[0], "mptcp") ? 262 : 0);
  if (fd < 0) return -1;
  if (!udp) return connect(fd, to, n);
  if (sendto(fd, "x", 1, 0, to, n) != 1) return -1;
  // What nobody hears comes back as an error of the connected socket; the listener's side is looked at by the driver.
  return 0;
}

// TYPE NAME; a leading @ is the abstract name space.
long do_unix(const Words& w) {
  bool datagram = is(w[0], "dgram");
  int fd = socket(AF_UNIX, datagram ? SOCK_DGRAM : SOCK_STREAM, 0);
  if (fd < 0) return -1;
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  size_t len = strlen(w[1]);
  if (len >= sizeof a.sun_path) return refused(ENAMETOOLONG);
  memcpy(a.sun_path, w[1], len);
  if (a.sun_path[0] == '@') a.sun_path[0] = 0;
  return connect(fd, reinterpret_cast<sockaddr*>(&a), static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + len));
}

// ---- processes -------------------------------------------------------------------------------------------------------

long do_kill(const Words& w) {
  return kill(static_cast<pid_t>(signed_number(w[0])), static_cast<int>(number(w[1])));
}

// Calls `act` for each process in /proc but this one and those of this program; the first success counts.
template <class F>
long each_process(F act) {
  DIR* d = opendir("/proc");
  if (!d) return -1;
  struct stat self {}, other {};
  stat("/proc/self/exe", &self);
  int last = ENOENT;
  while (dirent* e = readdir(d)) {
    int pid = atoi(e->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    if (stat(path, &other) == 0 && other.st_dev == self.st_dev && other.st_ino == self.st_ino) continue;
    if (act(pid) >= 0) {
      say("process %d", pid);
      closedir(d);
      return 0;
    }
    if (errno != ENOENT) last = errno;
  }
  closedir(d);
  return refused(last);
}

int open_of(int pid, const char* file, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
  return open(path, flags);
}

// PID or all, FILE, r or rw.
long do_proc_file(const Words& w) {
  int flags = (is(w[2], "rw") ? O_RDWR : is(w[2], "w") ? O_WRONLY : O_RDONLY) | O_NONBLOCK;
  auto act = [&](int pid) { return static_cast<long>(open_of(pid, w[1], flags)); };
  return is(w[0], "all") ? each_process(act) : act(atoi(w[0]));
}

long do_ptrace(const Words& w) {
  auto act = [](int pid) { return ptrace(PTRACE_SEIZE, pid, nullptr, nullptr); };
  return is(w[0], "all") ? each_process(act) : act(atoi(w[0]));
}

long do_memory_of(const Words& w) {
  char buffer[8];
  iovec mine{buffer, 8}, theirs{reinterpret_cast<void*>(number(w[2])), 8};
  long nr = is(w[0], "write") ? SYS_process_vm_writev : SYS_process_vm_readv;
  return syscall(nr, number(w[1]), &mine, 1L, &theirs, 1L, 0L);
}

long do_signal_all(const Words& w) {
  int signal = static_cast<int>(number(w[0]));
  return each_process([&](int pid) { return static_cast<long>(kill(pid, signal)); });
}

// Descriptors that nobody of this program opened.
long do_descriptors(const Words&) {
  DIR* d = opendir("/proc/self/fd");
  if (!d) return -1;
  long found = 0;
  while (dirent* e = readdir(d)) {
    int fd = atoi(e->d_name);
    if (e->d_name[0] == '.' || fd <= 2 || fd == dirfd(d)) continue;
    char path[64], to[256] = {};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)!readlink(path, to, sizeof to - 1);
    say("descriptor %d: %s", fd, to);
    found++;
  }
  closedir(d);
  return found > 0 ? 0 : refused(EBADF);
}

long do_clone(const Words& w) {
  long pid = syscall(SYS_clone, number(w[0]) | SIGCHLD, 0L, 0L, 0L, 0L);
  if (pid == 0) _exit(0);
  return pid;
}
long do_clone3(const Words& w) {
  unsigned long arguments[8] = {static_cast<unsigned long>(number(w[0])), 0, 0, 0, SIGCHLD};
  long pid = syscall(SYS_clone3, arguments, sizeof arguments);
  if (pid == 0) _exit(0);
  return pid;
}
long do_setns(const Words& w) {
  int fd = open(w[0], O_RDONLY);
  return fd < 0 ? -1 : setns(fd, 0);
}

// Leaves a process behind that carries MARK in its command line and would live SECONDS. HOW: plain, setsid, double.
long do_leave(const Words& w) {
  char* self = strdup("/proc/self/exe");
  pid_t pid = fork();
  if (pid < 0) return -1;
  if (pid > 0) {
    nap(100);
    return 0;
  }
  if (!is(w[0], "plain")) setsid();
  if (is(w[0], "double")) {
    if (fork() > 0) _exit(0);
    setsid();
    if (fork() > 0) _exit(0);
  }
  int null = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; i++) dup2(null, i);
  for (int s : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1}) signal(s, SIG_IGN);
  execl(self, self, "sleep", w[1], w[2], nullptr);
  _exit(1);
}
long do_sleep(const Words& w) {
  prctl(PR_SET_PTRACER, -1L, 0, 0, 0);  // where Yama would let only parents look
  nap(static_cast<int>(number(w[0])) * 1000);
  return 0;
}

// COUNT orphans that end at once; did when any of them is still there as a zombie a moment later.
long do_orphans(const Words& w) {
  for (long i = 0; i < number(w[0]); i++) {
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
      if (fork() == 0) _exit(0);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  for (int tries = 0; tries < 50; tries++) {
    nap(20);
    int zombies = 0;
    DIR* d = opendir("/proc");
    if (!d) return -1;
    while (dirent* e = readdir(d)) {
      if (atoi(e->d_name) <= 0) continue;
      char text[512] = {};
      int fd = open_of(atoi(e->d_name), "stat", O_RDONLY);
      if (fd < 0) continue;
      if (read(fd, text, sizeof text - 1) > 0) {
        const char* state = strrchr(text, ')');
        if (state && state[2] == 'Z') zombies++;
      }
      close(fd);
    }
    closedir(d);
    if (zombies == 0) return refused(ECHILD);
    if (tries == 49) say("%d zombies", zombies);
  }
  return 0;
}

// COUNT children that live at once.
long do_fork(const Words& w) {
  long n = 0, err = 0;
  pid_t pids[4096];
  for (; n < number(w[0]) && n < 4096; n++) {
    pids[n] = fork();
    if (pids[n] == 0) {
      pause();
      _exit(0);
    }
    if (pids[n] < 0) {
      err = errno;
      break;
    }
  }
  for (long i = 0; i < n; i++) kill(pids[i], SIGKILL);
  for (long i = 0; i < n; i++) waitpid(pids[i], nullptr, 0);
  say("%ld children", n);
  return err ? refused(static_cast<int>(err)) : 0;
}

long do_threads(const Words& w) {
  for (long i = 0; i < number(w[0]); i++) {
    pthread_t t;
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 65536);
    int r = pthread_create(
        &t, &a, [](void*) -> void* { return pause(), nullptr; }, nullptr);
    if (r != 0) {
      say("%ld threads", i);
      return refused(r);
    }
  }
  return 0;
}

// Every child forks again, until nothing more can be made; then all wait. Lives for SECONDS, or until it is killed.
long do_bomb(const Words& w) {
  long until = time(nullptr) + number(w[0]);
  for (;;) {
    pid_t p = fork();
    if (p < 0 && errno == EAGAIN) nap(20);
    if (time(nullptr) >= until) _exit(0);
  }
}

// What makes a process hard to end; then it waits for SECONDS. MOOD: stopped, deaf, vfork, traced, spin.
long do_mood(const Words& w) {
  if (is(w[0], "stopped")) {
    raise(SIGSTOP);
  } else if (is(w[0], "deaf")) {
    for (int s = 1; s < 65; s++) signal(s, SIG_IGN);
  } else if (is(w[0], "vfork")) {
    if (vfork() == 0) {
      for (;;) pause();
    }
  } else if (is(w[0], "group")) {
    setsid();
    if (fork() == 0) {
      signal(SIGTERM, SIG_IGN);
      setpgid(0, 0);
      raise(SIGSTOP);
    }
  } else if (is(w[0], "spin")) {
    for (long until = time(nullptr) + number(w[1]); time(nullptr) < until;) {
    }
  }
  nap(static_cast<int>(number(w[1])) * 1000);
  return 0;
}

// ---- memory and disk -------------------------------------------------------------------------------------------------

long touch(void* at, size_t bytes) {
  if (at == MAP_FAILED) return -1;
  for (size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(at)[i] = 1;
  return 0;
}

long fill(int fd, size_t bytes) {
  static char block[65536];
  if (fd < 0) return -1;
  for (size_t done = 0; done < bytes;) {
    ssize_t n = write(fd, block, sizeof block < bytes - done ? sizeof block : bytes - done);
    if (n <= 0) return -1;
    done += static_cast<size_t>(n);
  }
  return 0;
}

// POCKET MIB: anonymous, shared, memfd, sysv, stack, threads.
long do_memory(const Words& w) {
  size_t bytes = static_cast<size_t>(number(w[1])) << 20;
  if (is(w[0], "anonymous"))
    return touch(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes);
  if (is(w[0], "brk")) {
    void* at = sbrk(static_cast<intptr_t>(bytes));
    return at == reinterpret_cast<void*>(-1) ? -1 : touch(at, bytes);
  }
  if (is(w[0], "shared"))
    return touch(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), bytes);
  if (is(w[0], "memfd")) return fill(static_cast<int>(syscall(SYS_memfd_create, "m", 0L)), bytes);
  if (is(w[0], "sysv")) {
    int id = shmget(IPC_PRIVATE, bytes, 0600);
    if (id < 0) return -1;
    void* at = shmat(id, nullptr, 0);
    shmctl(id, IPC_RMID, nullptr);
    return touch(at, bytes);
  }
  _exit(kUnknown);
}

// DIRECTORY COUNT BYTES: that many files of that size; removed afterwards.
long do_files(const Words& w) {
  long made = 0, err = 0;
  char path[4200];
  for (; made < number(w[1]); made++) {
    snprintf(path, sizeof path, "%s/f%ld", w[0], made);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fill(fd, static_cast<size_t>(number(w[2]))) < 0) {
      err = errno;
      if (fd >= 0) unlink(path);
      break;
    }
    close(fd);
  }
  for (long i = 0; i < made; i++) {
    snprintf(path, sizeof path, "%s/f%ld", w[0], i);
    unlink(path);
  }
  say("%ld files", made);
  return err ? refused(static_cast<int>(err)) : 0;
}

long do_cpu(const Words& w) {
  rusage u{};
  do getrusage(RUSAGE_SELF, &u);
  while (u.ru_utime.tv_sec + u.ru_stime.tv_sec < number(w[0]));
  return 0;
}

// FD BYTES, as one line when told so. Goes past the answers, to the same stream.
long do_output(const Words& w) {
  static char block[65536];
  memset(block, 'o', sizeof block);
  size_t left = static_cast<size_t>(number(w[1]));
  while (left > 0) {
    ssize_t n = write(static_cast<int>(number(w[0])), block, left < sizeof block ? left : sizeof block);
    if (n < 0) return -1;
    left -= static_cast<size_t>(n);
  }
  (void)!write(static_cast<int>(number(w[0])), "\n", 1);
  return 0;
}

// ---- files -----------------------------------------------------------------------------------------------------------

long do_read(const Words& w) {
  char byte;
  int fd = open(w[0], O_RDONLY | O_NONBLOCK);
  return fd < 0 ? -1 : read(fd, &byte, 1) == 1 ? 0 : errno ? -1 : refused(ENODATA);
}
long do_write(const Words& w) {
  int fd = open(w[0], O_WRONLY | O_NONBLOCK);
  return fd < 0 ? -1 : pwrite(fd, "x", 1, 0);
}
long do_make(const Words& w) { return open(w[0], O_CREAT | O_EXCL | O_WRONLY, static_cast<mode_t>(is(w[1], "") ? 0644 : number(w[1]))); }
long do_list(const Words& w) {
  DIR* d = opendir(w[0]);
  if (!d) return -1;
  while (dirent* e = readdir(d))
    if (e->d_name[0] != '.') return 0;
  return refused(ENOENT);
}
// A copy of this program, as FILE: then it is executed there. With ld, FILE has no right to be executed.
bool copy_to(const char* from, int out) {
  int in = open(from, O_RDONLY);
  char block[65536];
  ssize_t n;
  while (in >= 0 && (n = read(in, block, sizeof block)) > 0)
    if (write(out, block, static_cast<size_t>(n)) != n) return false;
  close(in);
  return in >= 0;
}
long ended_well(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  // 127 is what ld.so says when it may not map the file.
  return refused(WIFEXITED(status) && WEXITSTATUS(status) < 126 ? WEXITSTATUS(status) : EACCES);
}
long run_program(const char* path, char* const* argv, int fd) {
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(null, i);
    if (fd >= 0)
      syscall(SYS_execveat, fd, "", argv, environ, 0x1000L /* AT_EMPTY_PATH */);
    else
      execv(path, argv);
    _exit(errno);
  }
  return ended_well(child);
}
long do_run_copy(const Words& w) {
  char* argv[] = {const_cast<char*>("copy"), const_cast<char*>("sleep"), const_cast<char*>("0"), nullptr};
  if (is(w[0], "memfd")) {
    int fd = static_cast<int>(syscall(SYS_memfd_create, "copy", 0L));
    return fd < 0 || !copy_to("/proc/self/exe", fd) ? -1 : run_program("", argv, fd);
  }
  char path[4200];
  snprintf(path, sizeof path, "%s/copy", w[0]);
  bool by_loader = is(w[1], "ld");
  int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, by_loader ? 0644 : 0755);
  if (out < 0 || !copy_to(by_loader ? "/bin/true" : "/proc/self/exe", out)) return -1;
  close(out);
  long r;
  if (by_loader) {
    const char* loader = access("/lib64/ld-linux-x86-64.so.2", F_OK) == 0 ? "/lib64/ld-linux-x86-64.so.2" : "/lib/ld-linux-aarch64.so.1";
    char* words[] = {const_cast<char*>(loader), path, nullptr};
    r = run_program(loader, words, -1);
  } else {
    r = run_program(path, argv, -1);
  }
  int err = errno;
  unlink(path);
  errno = err;
  return r;
}

// Whether what is at PATH is the kernel's own file: read, and not covered by a mount of somebody else's.
long do_kernel_file(const Words& w) {
  struct statfs f {};
  if (statfs(w[0], &f) != 0) return -1;
  constexpr long kProc = 0x9fa0;
  return static_cast<long>(f.f_type) == kProc ? 0 : refused(EACCES);
}
// Whether the mount at PATH may be written to, whatever the permissions of the file say.
long do_writable_mount(const Words& w) {
  struct statvfs f {};
  if (statvfs(w[0], &f) != 0) return -1;
  return f.f_flag & ST_RDONLY ? refused(EROFS) : 0;
}
// A mount that honours set-user-id bits, or device nodes elsewhere than on a single node.
long do_loose_mount(const Words&) {
  FILE* f = fopen("/proc/self/mountinfo", "re");
  if (!f) return -1;
  char line[8192];
  long found = 0;
  while (fgets(line, sizeof line, f)) {
    char target[4096], options[1024];
    if (sscanf(line, "%*s %*s %*s %*s %4095s %1023s", target, options) != 2) continue;
    bool device = strncmp(target, "/dev/", 5) == 0;
    if (!strstr(options, "nosuid") || (!device && !strstr(options, "nodev"))) {
      say("%s %s", target, options);
      found++;
    }
  }
  fclose(f);
  return found ? 0 : refused(EROFS);
}
// Variables besides those named.
long do_environment(const Words& w) {
  long found = 0;
  for (char** e = environ; *e; e++) {
    bool known = false;
    for (int i = 0; i < w.count; i++) {
      size_t n = strlen(w[i]);
      known |= strncmp(*e, w[i], n) == 0 && (*e)[n] == '=';
    }
    if (known) continue;
    say("%s", *e);
    found++;
  }
  return found ? 0 : refused(ENOENT);
}
// Whether this machine is called NAME.
long do_hostname(const Words& w) {
  utsname u{};
  if (uname(&u) != 0) return -1;
  return is(u.nodename, w[0]) ? 0 : refused(ENOENT);
}
// Whether the control group shows a place in the host's tree.
long do_cgroup_path(const Words&) {
  char text[4096] = {};
  int fd = open("/proc/self/cgroup", O_RDONLY);
  if (fd < 0) return -1;
  (void)!read(fd, text, sizeof text - 1);
  for (char* line = text; line && *line;) {
    char* end = strchr(line, '\n');
    if (end) *end = 0;
    const char* path = strrchr(line, ':');
    if (path && !is(path, ":/")) {
      say("%s", line);
      return 0;
    }
    line = end ? end + 1 : nullptr;
  }
  return refused(ENOENT);
}
// The ids a program here has: did when it is the machine's root, or can become another.
long do_become(const Words& w) {
  auto id = static_cast<uid_t>(number(w[0]));
  if (geteuid() == id) return 0;
  return setresuid(id, id, id);
}
long do_chdir_up(const Words&) {
  int fd = open("/", O_RDONLY | O_DIRECTORY);
  if (fd < 0 || chroot("/tmp") != 0) return -1;
  return fchdir(fd);
}
// PARENT: moved aside, made again, and a file put where the old one had something to protect.
long do_replace_parent(const Words& w) {
  char aside[4200], planted[4200];
  snprintf(aside, sizeof aside, "%s-aside", w[0]);
  snprintf(planted, sizeof planted, "%s/%s", w[0], w[1]);
  if (rename(w[0], aside) != 0 || mkdir(w[0], 0755) != 0) return -1;
  return open(planted, O_CREAT | O_WRONLY, 0644);
}
long do_session(const Words&) {
  int fd = open("/dev/tty", O_RDWR);
  return fd;
}

constexpr struct {
  const char* name;
  Act act;
} kTries[] = {
    {"sys", do_sys},
    {"number", do_number},
    {"numbers", do_numbers},
    {"repeat", do_repeat},
    {"int80", do_int80},
    {"listener", do_listener},
    {"own-filter", do_own_filter},
    {"terminal", do_terminal},
    {"session-terminal", do_session},
    {"socket", do_socket},
    {"any-socket", do_any_socket},
    {"fast-open", do_fast_open},
    {"upper-protocol", do_upper_protocol},
    {"connect", do_connect},
    {"unix", do_unix},
    {"kill", do_kill},
    {"signal-all", do_signal_all},
    {"proc-file", do_proc_file},
    {"ptrace", do_ptrace},
    {"memory-of", do_memory_of},
    {"descriptors", do_descriptors},
    {"clone", do_clone},
    {"clone3", do_clone3},
    {"setns", do_setns},
    {"leave", do_leave},
    {"sleep", do_sleep},
    {"orphans", do_orphans},
    {"fork", do_fork},
    {"threads", do_threads},
    {"bomb", do_bomb},
    {"mood", do_mood},
    {"memory", do_memory},
    {"files", do_files},
    {"cpu", do_cpu},
    {"output", do_output},
    {"read", do_read},
    {"write", do_write},
    {"make", do_make},
    {"list", do_list},
    {"run-copy", do_run_copy},
    {"kernel-file", do_kernel_file},
    {"writable-mount", do_writable_mount},
    {"loose-mount", do_loose_mount},
    {"environment", do_environment},
    {"hostname", do_hostname},
    {"cgroup-path", do_cgroup_path},
    {"become", do_become},
    {"chroot", do_chdir_up},
    {"replace-parent", do_replace_parent},
};

Act act_of(const char* name) {
  for (const auto& t : kTries)
    if (is(t.name, name)) return t.act;
  return nullptr;
}

// Tries that wait on purpose are given as long as they ask for; the others must come back.
bool waits(const char* name) {
  for (const char* w : {"sleep", "bomb", "mood", "cpu", "output", "memory", "files", "orphans", "fork"})
    if (is(w, name)) return true;
  return false;
}
constexpr int kReturnsMs = 20000, kNumberMs = 3000;

void answer(const char* name, const Words& w, int status, bool blocked) {
  char line[1024];
  int n = snprintf(line, sizeof line, "%s", name);
  for (int i = 0; i < w.count && n < 900; i++) n += snprintf(line + n, sizeof line - static_cast<size_t>(n), " %.200s", w.at[i]);
  n = n < 950 ? n : 950;
  char* to = line + n;
  size_t room = sizeof line - static_cast<size_t>(n);
  if (blocked)
    n += snprintf(to, room, ": blocked\n");
  else if (WIFSIGNALED(status))
    n += snprintf(to, room, ": killed %d\n", WTERMSIG(status));
  else if (WEXITSTATUS(status) == 0)
    n += snprintf(to, room, ": did\n");
  else if (WEXITSTATUS(status) >= kUnknown)
    n += snprintf(to, room, ": unknown\n");
  else if (const char* err = strerrorname_np(WEXITSTATUS(status)))
    n += snprintf(to, room, ": %s\n", err);
  else
    n += snprintf(to, room, ": error %d\n", WEXITSTATUS(status));
  for (const char* p = line; n > 0;) {
    ssize_t written = write(1, p, static_cast<size_t>(n));
    if (written <= 0) _exit(1);
    p += written;
    n -= static_cast<int>(written);
  }
}

void attempt(const char* name, const Words& w) {
  Act act = act_of(name);
  pid_t child = fork();
  if (child < 0) return answer(name, w, errno << 8, false);
  if (child == 0) {
    errno = 0;
    _exit(!act ? kUnknown : act(w) >= 0 ? 0 : errno < kUnknown ? errno : 1);
  }
  int status = 0, limit = is(name, "number") ? kNumberMs : kReturnsMs;
  bool blocked = false;
  int pidfd = waits(name) ? -1 : static_cast<int>(syscall(SYS_pidfd_open, child, 0L));
  if (pidfd >= 0) {
    pollfd p{pidfd, POLLIN, 0};
    blocked = poll(&p, 1, limit) == 0;
    if (blocked) kill(child, SIGKILL);
    close(pidfd);
  }
  while (waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
  if (WIFSTOPPED(status))
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  answer(name, w, status, blocked);
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc > 2 && is(argv[1], "itself")) {  // no child in between: what ends the try ends this program
    Words w{};
    for (int i = 3; i < argc && w.count < kMaxArgs; i++) w.at[w.count++] = argv[i];
    Act act = act_of(argv[2]);
    return act && act(w) >= 0 ? 0 : 1;
  }
  for (int i = 1; i < argc; i++) {
    const char* name = argv[i];
    Words w{};
    for (i++; i < argc && !is(argv[i], ","); i++)
      if (w.count < kMaxArgs) w.at[w.count++] = argv[i];
    attempt(name, w);
  }
  return 0;
}
