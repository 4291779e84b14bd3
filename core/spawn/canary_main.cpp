// h5i-canary: does what the words say and prints what came of it, one line of JSON an act; canary.md is its manual.
// Static, and C++ without its library: it must start in boxes whose view holds nothing but itself.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

namespace {

// ---- output: one buffer, written in one go, so that lines of a killed process are whole or absent

char g_line[65536];
size_t g_len = 0;

void put(char c) {
  if (g_len < sizeof g_line) g_line[g_len++] = c;
}
void put_raw(const char* s) {
  while (*s) put(*s++);
}
void put_string(const char* s) {
  static const char kHex[] = "0123456789abcdef";
  put('"');
  for (; *s; s++) {
    auto c = static_cast<unsigned char>(*s);
    if (c == '"' || c == '\\') {
      put('\\');
      put(*s);
    } else if (c < 0x20 || c >= 0x7f) {  // bytes, shown as their Latin-1 characters: the line stays valid JSON
      put_raw("\\u00");
      put(kHex[c >> 4]);
      put(kHex[c & 15]);
    } else {
      put(*s);
    }
  }
  put('"');
}
__attribute__((format(printf, 1, 2))) void put_format(const char* format, ...) {
  char buf[128];
  va_list args;
  va_start(args, format);
  vsnprintf(buf, sizeof buf, format, args);
  va_end(args);
  put_raw(buf);
}
void write_all(const char* p, size_t n) {
  while (n > 0) {
    ssize_t w = write(1, p, n);
    if (w < 0 && errno == EINTR) continue;
    if (w <= 0) _exit(1);
    p += w;
    n -= static_cast<size_t>(w);
  }
}

// ---- what an act came to

struct Result {
  bool ok = false;
  int err = 0;
  int signal = 0;  // of a child that was killed, instead of an errno
  bool has_value = false;
  char value[32768] = {};  // JSON
};

void of(Result& r, long outcome) {
  r.ok = outcome >= 0;
  r.err = r.ok ? 0 : errno;
}
__attribute__((format(printf, 2, 3))) void value(Result& r, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(r.value, sizeof r.value, format, args);
  va_end(args);
  r.has_value = true;
}

long number(const char* s) { return strtol(s, nullptr, 0); }

// A child that goes when we go. A control runs where nothing else would end it: no namespace, and nobody left to walk.
pid_t fork_with_us() {
  pid_t self = getpid(), pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != self) _exit(1);
  }
  return pid;
}

// Runs `act` in a child, for what could take this process down. Its errno comes back as the exit status.
template <class Act>
void in_child(Result& r, Act act) {
  pid_t pid = fork_with_us();
  if (pid < 0) return of(r, -1);
  if (pid == 0) {
    int err = act() >= 0 ? 0 : errno;
    _exit(err < 255 ? err : 255);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    r.signal = WTERMSIG(status);
    return;
  }
  r.err = WEXITSTATUS(status);
  r.ok = r.err == 0;
}

void close_of(Result& r, int fd) {
  of(r, fd);
  if (fd >= 0) close(fd);
}

// ---- acts

using Words = char**;

void act_open(Words w, Result& r) {
  const char* m = w[1];
  int flags = !strcmp(m, "w")       ? O_WRONLY
              : !strcmp(m, "rw")    ? O_RDWR
              : !strcmp(m, "creat") ? O_WRONLY | O_CREAT | O_EXCL
              : !strcmp(m, "path")  ? O_PATH
                                    : O_RDONLY;
  close_of(r, open(w[0], flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
}
void act_read(Words w, Result& r) {
  int fd = open(w[0], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return of(r, fd);
  char buf[4096];
  ssize_t n = read(fd, buf, sizeof buf);
  of(r, n);
  if (n >= 0) value(r, "%zd", n);
  close(fd);
}
void act_stat(Words w, Result& r) {
  struct stat st;
  of(r, lstat(w[0], &st));
  if (r.ok) value(r, "%lld", static_cast<long long>(st.st_size));
}
void act_mkdir(Words w, Result& r) { of(r, mkdir(w[0], 0755)); }
void act_rmdir(Words w, Result& r) { of(r, rmdir(w[0])); }
void act_unlink(Words w, Result& r) { of(r, unlink(w[0])); }
void act_readlink(Words w, Result& r) {
  char buf[PATH_MAX];
  of(r, readlink(w[0], buf, sizeof buf));
}
void act_rename(Words w, Result& r) { of(r, rename(w[0], w[1])); }
void act_link(Words w, Result& r) { of(r, link(w[0], w[1])); }
void act_symlink(Words w, Result& r) { of(r, symlink(w[0], w[1])); }
void act_chmod(Words w, Result& r) { of(r, chmod(w[0], static_cast<mode_t>(strtol(w[1], nullptr, 8)))); }
void act_truncate(Words w, Result& r) { of(r, truncate(w[0], number(w[1]))); }
void act_utime(Words w, Result& r) { of(r, utimensat(AT_FDCWD, w[0], nullptr, 0)); }
void act_mknod(Words w, Result& r) {
  mode_t kind = *w[1] == 'b' ? S_IFBLK : *w[1] == 'p' ? S_IFIFO : S_IFCHR;
  of(r, mknod(w[0], kind | 0600, kind == S_IFIFO ? 0 : makedev(1, 3)));
}
void act_list(Words w, Result& r) {
  DIR* d = opendir(w[0]);
  if (!d) return of(r, -1);
  long n = 0;
  errno = 0;
  while (readdir(d)) n++;
  of(r, errno ? -1 : 0);
  if (r.ok) value(r, "%ld", n - 2);
  closedir(d);
}
void act_exec(Words w, Result& r) {
  int p[2];
  if (pipe2(p, O_CLOEXEC) != 0) return of(r, -1);
  pid_t pid = fork_with_us();
  if (pid == 0) {
    int null = open("/dev/null", O_RDWR);
    if (null >= 0)
      dup2(null, 1), dup2(null, 2);
    else
      close(1), close(2);
    char* argv[] = {w[0], nullptr};
    execve(w[0], argv, environ);
    int err = errno;
    if (write(p[1], &err, sizeof err) < 0) _exit(126);
    _exit(126);
  }
  of(r, pid);
  close(p[1]);
  if (pid > 0) {
    int err = 0, status = 0;
    if (read(p[0], &err, sizeof err) == static_cast<ssize_t>(sizeof err)) {
      r.ok = false;
      r.err = err;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (r.ok) value(r, "%d", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  close(p[0]);
}
void act_write(Words w, Result& r) {
  signal(SIGXFSZ, SIG_IGN);
  int fd = open(w[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return of(r, fd);
  static char block[65536];
  long want = number(w[1]), done = 0;
  while (done < want) {
    long n = want - done < static_cast<long>(sizeof block) ? want - done : static_cast<long>(sizeof block);
    ssize_t got = write(fd, block, static_cast<size_t>(n));
    if (got <= 0) break;
    done += got;
  }
  of(r, done >= want ? 0 : -1);
  close(fd);
  unlink(w[0]);
  value(r, "%ld", done);
}
void act_output(Words w, Result& r) {
  static char block[4096];
  memset(block, 'x', sizeof block);
  for (long left = number(w[0]); left > 0;) {
    size_t n = left < static_cast<long>(sizeof block) ? static_cast<size_t>(left) : sizeof block;
    write_all(block, n);
    left -= static_cast<long>(n);
  }
  write_all("\n", 1);
  r.ok = true;
}
void act_socket(Words w, Result& r) {
  close_of(r, socket(static_cast<int>(number(w[0])), static_cast<int>(number(w[1])), static_cast<int>(number(w[2]))));
}
void act_connect(Words w, Result& r) {
  if (!strcmp(w[0], "unix")) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    size_t n = strlen(w[1]);
    if (n >= sizeof a.sun_path) {
      errno = ENAMETOOLONG;
      return of(r, -1);
    }
    memcpy(a.sun_path, w[1], n);
    socklen_t len = sizeof a;
    if (w[1][0] == '@') {
      a.sun_path[0] = 0;
      len = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + n);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return of(r, fd);
    of(r, connect(fd, reinterpret_cast<sockaddr*>(&a), len));
    close(fd);
    return;
  }
  if (!w[2]) {
    errno = EINVAL;
    return of(r, -1);
  }
  bool udp = !strcmp(w[0], "udp");
  sockaddr_storage to{};
  socklen_t len = 0;
  auto port = htons(static_cast<uint16_t>(number(w[2])));
  auto* v4 = reinterpret_cast<sockaddr_in*>(&to);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&to);
  if (inet_pton(AF_INET, w[1], &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    len = sizeof *v4;
  } else if (inet_pton(AF_INET6, w[1], &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    len = sizeof *v6;
  } else {
    errno = EINVAL;
    return of(r, -1);
  }
  int fd = socket(to.ss_family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
  if (fd < 0) return of(r, fd);
  timeval limit{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  auto* address = reinterpret_cast<sockaddr*>(&to);
  of(r, udp ? sendto(fd, "x", 1, MSG_NOSIGNAL, address, len) : connect(fd, address, len));
  close(fd);
}
void act_listen(Words w, Result& r) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<uint16_t>(number(w[0])));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int one = 1;
  if (server >= 0) setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  auto* address = reinterpret_cast<sockaddr*>(&a);
  bool ok = server >= 0 && client >= 0 && bind(server, address, sizeof a) == 0 && listen(server, 1) == 0 &&
            connect(client, address, sizeof a) == 0;
  of(r, ok ? 0 : -1);
  if (server >= 0) close(server);
  if (client >= 0) close(client);
}
void act_interfaces(Words, Result& r) {
  struct if_nameindex* list = if_nameindex();
  if (!list) return of(r, -1);
  char* at = r.value;
  size_t room = sizeof r.value;
  int n = snprintf(at, room, "[");
  for (struct if_nameindex* i = list; i->if_name; i++)
    n += snprintf(at + n, room - static_cast<size_t>(n), "%s\"%s\"", i == list ? "" : ",", i->if_name);
  snprintf(at + n, room - static_cast<size_t>(n), "]");
  r.ok = r.has_value = true;
  if_freenameindex(list);
}
void act_fork(Words w, Result& r) {
  long want = number(w[0]), n = 0;
  if (want < 1 || want > 100000) want = 1;
  auto* pids = static_cast<pid_t*>(malloc(static_cast<size_t>(want) * sizeof(pid_t)));
  if (!pids) return of(r, -1);
  int err = 0;
  for (; n < want; n++) {
    pid_t pid = fork_with_us();
    if (pid == 0)
      for (;;) pause();
    if (pid < 0) {
      err = errno;
      break;
    }
    pids[n] = pid;
  }
  for (long i = 0; i < n; i++) kill(pids[i], SIGKILL);
  for (long i = 0; i < n; i++) waitpid(pids[i], nullptr, 0);
  free(pids);
  r.ok = n == want;
  r.err = err;
  value(r, "%ld", n);
}
void act_memory(Words w, Result& r) {
  long mib = number(w[0]);
  in_child(r, [&]() -> long {
    size_t n = static_cast<size_t>(mib) << 20;
    void* p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return -1;
    auto* bytes = static_cast<volatile char*>(p);
    for (size_t i = 0; i < n; i += 4096) bytes[i] = 1;
    return 0;
  });
  if (r.ok) value(r, "%ld", mib);
}
void act_cpu(Words w, Result& r) {
  in_child(r, [&]() -> long {
    rusage u{};
    do {
      for (int i = 0; i < 1000000; i++) __asm__ volatile("");
      getrusage(RUSAGE_SELF, &u);
    } while (u.ru_utime.tv_sec < number(w[0]));
    return 0;
  });
}
void act_syscall(Words w, Result& r, int n) {
  long a[7] = {};
  for (int i = 0; i < n && i < 7; i++) a[i] = number(w[i]);
  long result = syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
  of(r, result);
  if (r.ok) value(r, "%ld", result);
}
void act_kill(Words w, Result& r) { of(r, kill(static_cast<pid_t>(number(w[0])), static_cast<int>(number(w[1])))); }
void act_ptrace(Words w, Result& r) {
  auto pid = static_cast<pid_t>(number(w[0]));
  of(r, ptrace(PTRACE_SEIZE, pid, nullptr, nullptr));
  if (r.ok) ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
}
void act_mem(Words w, Result& r) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/mem", number(w[0]));
  close_of(r, open(path, O_RDONLY | O_CLOEXEC));
}
void act_unshare(Words w, Result& r) {
  in_child(r, [&]() -> long { return unshare(static_cast<int>(number(w[0]))); });
}
void act_mount(Words w, Result& r) {
  in_child(r, [&]() -> long {
    if (mount("none", w[0], "tmpfs", 0, nullptr) == 0) return 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return -1;
    return mount("none", w[0], "tmpfs", 0, nullptr);
  });
}
void act_umount(Words w, Result& r) { of(r, umount2(w[0], MNT_DETACH)); }
int by_name(const void* a, const void* b) {
  return strcmp(*static_cast<char* const*>(a), *static_cast<char* const*>(b));
}
void act_env(Words, Result& r) {
  size_t count = 0;
  while (environ[count]) count++;
  qsort(environ, count, sizeof *environ, by_name);
  size_t n = static_cast<size_t>(snprintf(r.value, sizeof r.value, "["));
  for (size_t i = 0; i < count; i++) {
    auto len = static_cast<int>(strcspn(environ[i], "="));
    if (n + static_cast<size_t>(len) + 8 > sizeof r.value) break;
    n += static_cast<size_t>(snprintf(r.value + n, sizeof r.value - n, "%s\"%.*s\"", i ? "," : "", len, environ[i]));
  }
  snprintf(r.value + n, sizeof r.value - n, "]");
  r.ok = r.has_value = true;
}
void act_ids(Words, Result& r) {
  r.ok = true;
  value(r, "[%u,%u,%u,%u]", getuid(), getgid(), geteuid(), getegid());
}
void act_pids(Words, Result& r) {
  DIR* d = opendir("/proc");
  if (!d) return of(r, -1);
  long n = 0;
  while (dirent* e = readdir(d))
    if (e->d_name[0] >= '1' && e->d_name[0] <= '9') n++;
  closedir(d);
  r.ok = true;
  value(r, "%ld", n);
}
void act_capabilities(Words, Result& r) {
  struct {
    unsigned version;
    int pid;
  } header{0x20080522, 0};
  struct {
    unsigned effective, permitted, inheritable;
  } data[2] = {};
  long got = syscall(SYS_capget, &header, data);
  of(r, got);
  if (got < 0) return;
  unsigned any = data[0].permitted | data[1].permitted;
  r.ok = any == 0;
  r.err = r.ok ? 0 : EPERM;
  value(r, "\"%08x%08x\"", data[1].permitted, data[0].permitted);
}
void act_tty(Words, Result& r) { close_of(r, open("/dev/tty", O_RDWR | O_CLOEXEC)); }
void act_sleep(Words w, Result& r) {
  long ms = number(w[0]);
  timespec t{ms / 1000, ms % 1000 * 1000000};
  of(r, nanosleep(&t, nullptr));
}

struct Act {
  const char* name;
  int words;  // at least
  void (*run)(Words, Result&);
};
constexpr Act kActs[] = {
    {"open", 2, act_open},
    {"read", 1, act_read},
    {"stat", 1, act_stat},
    {"mkdir", 1, act_mkdir},
    {"rmdir", 1, act_rmdir},
    {"unlink", 1, act_unlink},
    {"readlink", 1, act_readlink},
    {"rename", 2, act_rename},
    {"link", 2, act_link},
    {"symlink", 2, act_symlink},
    {"chmod", 2, act_chmod},
    {"truncate", 2, act_truncate},
    {"utime", 1, act_utime},
    {"mknod", 2, act_mknod},
    {"list", 1, act_list},
    {"exec", 1, act_exec},
    {"write", 2, act_write},
    {"output", 1, act_output},
    {"socket", 3, act_socket},
    {"connect", 2, act_connect},
    {"listen", 1, act_listen},
    {"interfaces", 0, act_interfaces},
    {"fork", 1, act_fork},
    {"memory", 1, act_memory},
    {"cpu", 1, act_cpu},
    {"kill", 2, act_kill},
    {"ptrace", 1, act_ptrace},
    {"mem", 1, act_mem},
    {"unshare", 1, act_unshare},
    {"mount", 1, act_mount},
    {"umount", 1, act_umount},
    {"env", 0, act_env},
    {"ids", 0, act_ids},
    {"pids", 0, act_pids},
    {"capabilities", 0, act_capabilities},
    {"tty", 0, act_tty},
    {"sleep", 1, act_sleep},
};

const char* signal_name(int s) {
  const char* n = sigabbrev_np(s);
  return n ? n : "?";
}

// An act's words are cut out of argv in place: the one after them is set aside, so that a missing word reads as null.
void perform(char** words, int count) {
  static Result r;
  r = Result{};
  errno = 0;
  char* after = words[count];
  words[count] = nullptr;
  if (!strcmp(words[0], "syscall") && count >= 2) {
    act_syscall(words + 1, r, count - 1);
  } else {
    r.err = EINVAL;
    for (const Act& a : kActs)
      if (!strcmp(a.name, words[0]) && count - 1 >= a.words) {
        r.err = 0;
        a.run(words + 1, r);
        break;
      }
  }
  g_len = 0;
  put_raw("{\"act\":");
  put_string(words[0]);
  put_raw(",\"args\":[");
  for (int i = 1; i < count; i++) {
    if (i > 1) put(',');
    put_string(words[i]);
  }
  put_format("],\"ok\":%s", r.ok ? "true" : "false");
  if (!r.ok) {
    const char* name = strerrorname_np(r.err);
    if (r.signal)
      put_format(",\"errno\":\"SIG%s\"", signal_name(r.signal));
    else if (name && r.err)
      put_format(",\"errno\":\"%s\"", name);
    else
      put_format(",\"errno\":\"%d\"", r.err);
  }
  if (r.has_value) {
    put_raw(",\"value\":");
    put_raw(r.value);
  }
  put_raw("}\n");
  write_all(g_line, g_len);
  words[count] = after;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  for (int i = 1; i < argc;) {
    long n = number(argv[i++]);
    if (n < 1 || n > argc - i) return 2;
    perform(argv + i, static_cast<int>(n));
    i += static_cast<int>(n);
  }
  return 0;
}
