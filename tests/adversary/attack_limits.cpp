// Tries of h5i-attack: memory, disk, output.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attack.hpp"

namespace attack {
namespace {

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

// POCKET MIB: anonymous, brk, shared, memfd, memfds (a MiB each), sysv.
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
  if (is(w[0], "memfds")) {
    for (long i = 0; i < number(w[1]); i++)
      if (fill(static_cast<int>(syscall(SYS_memfd_create, "m", 0L)), 1 << 20) < 0) return -1;
    return 0;
  }
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

}  // namespace

std::span<const Try> limit_tries() {
  static constexpr Try kTries[] = {
      {"memory", do_memory},
      {"files", do_files},
      {"output", do_output},
  };
  return kTries;
}

}  // namespace attack
