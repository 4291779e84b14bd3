// Tries of h5i-attack: processes, its own and others.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attack.hpp"

namespace attack {
namespace {

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

// What makes a process hard to end; then it waits for SECONDS. MOOD: stopped, deaf, vfork, group, spin.
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

}  // namespace

std::span<const Try> process_tries() {
  static constexpr Try kTries[] = {
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
  };
  return kTries;
}

}  // namespace attack
