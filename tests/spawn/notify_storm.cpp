// In a box: threads that make refused calls as fast as they can, and children that are killed in the middle of theirs.
// Usage: notify_storm THREADS CALLS CHILDREN. Prints how many calls of the threads were answered EPERM, and how many not.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int threads = atoi(argv[1]), calls = atoi(argv[2]), children = atoi(argv[3]);
  std::atomic<long> refused{0}, other{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; t++)
    all.emplace_back([&] {
      for (int i = 0; i < calls; i++) {
        errno = 0;
        int fd = socket(AF_VSOCK, SOCK_STREAM, 0);
        if (fd < 0 && errno == EPERM) refused++;
        else other++;
        if (fd >= 0) close(fd);
      }
    });
  for (int i = 0; i < children; i++) {
    pid_t pid = fork();
    if (pid == 0)
      for (;;) (void)socket(AF_VSOCK, SOCK_STREAM, 0);
    usleep(static_cast<useconds_t>(rand() % 3000));
    kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (std::thread& t : all) t.join();
  printf("%ld %ld\n", refused.load(), other.load());
  return 0;
}
