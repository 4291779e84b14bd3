// What the benches measure from within: bench_inside sockets allowed|refused BATCHES, or download|upload ADDRESS PORT BYTES.
// Prints one number: microseconds, 0 for a transfer that stalled.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kBatch = 200;

double now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

// The median over batches of one call's mean; what closes them is not in it.
int sockets(int family, int batches) {
  std::vector<double> means;
  for (int b = 0; b < batches; b++) {
    int fds[kBatch];
    double begin = now_us();
    for (int& fd : fds) fd = socket(family, SOCK_STREAM, 0);
    means.push_back((now_us() - begin) / kBatch);
    for (int fd : fds) {
      if ((fd < 0) != (family == AF_VSOCK)) return 3;
      if (fd >= 0) close(fd);
    }
  }
  std::sort(means.begin(), means.end());
  printf("%.3f\n", means[means.size() / 2]);
  return 0;
}

int transfer(bool up, const char* address, const char* port, long bytes) {
  static char buffer[256 << 10];
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<uint16_t>(atoi(port)));
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  timeval patience{5, 0};  // of one read or write
  for (int which : {SO_RCVTIMEO, SO_SNDTIMEO})
    if (setsockopt(fd, SOL_SOCKET, which, &patience, sizeof patience) != 0) return 3;
  if (inet_pton(AF_INET, address, &a.sin_addr) != 1 || connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) return 4;
  char wanted[32];
  int length = snprintf(wanted, sizeof wanted, "%c %ld\n", up ? 'u' : 'd', bytes);
  double begin = now_us();
  if (write(fd, wanted, static_cast<size_t>(length)) != length) return 5;
  long moved = 0;
  while (moved < bytes) {
    size_t part = static_cast<size_t>(std::min<long>(bytes - moved, sizeof buffer));
    ssize_t n = up ? write(fd, buffer, part) : read(fd, buffer, part);
    if (n <= 0) return puts("0"), 0;  // it stalled: no time, and no failure of who measures
    moved += n;
  }
  if (up && read(fd, buffer, 1) != 1) return puts("0"), 0;  // it has not all arrived
  printf("%.0f\n", now_us() - begin);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && !strcmp(argv[1], "sockets")) return sockets(!strcmp(argv[2], "allowed") ? AF_INET : AF_VSOCK, atoi(argv[3]));
  if (argc == 5 && (!strcmp(argv[1], "download") || !strcmp(argv[1], "upload"))) return transfer(argv[1][0] == 'u', argv[2], argv[3], atol(argv[4]));
  return 2;
}
