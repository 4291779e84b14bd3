// Tries of h5i-attack: files, and programs in them.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.hpp"

namespace attack {
namespace {

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

// PARENT: moved aside, made again, and a file put where the old one had something to protect.
long do_replace_parent(const Words& w) {
  char aside[4200], planted[4200];
  snprintf(aside, sizeof aside, "%s-aside", w[0]);
  snprintf(planted, sizeof planted, "%s/%s", w[0], w[1]);
  if (rename(w[0], aside) != 0 || mkdir(w[0], 0755) != 0) return -1;
  return open(planted, O_CREAT | O_WRONLY, 0644);
}

}  // namespace

std::span<const Try> file_tries() {
  static constexpr Try kTries[] = {
      {"read", do_read},
      {"write", do_write},
      {"make", do_make},
      {"list", do_list},
      {"run-copy", do_run_copy},
      {"replace-parent", do_replace_parent},
  };
  return kTries;
}

}  // namespace attack
