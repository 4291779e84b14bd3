// In the place of a program that carries packets: says what was put behind its own end, after the last "SAYS:"; started for what it
// is there for, it is ready at once and confines nothing; where that has "tries NAME PID", it tries what no way out needs, and says how it went.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

namespace {

const char* result(bool good) { return good ? "done" : strerrorname_np(errno); }

int tries(const std::string& name, int pid) {
  int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  sockaddr_un there{};
  there.sun_family = AF_UNIX;
  name.copy(there.sun_path + 1, sizeof there.sun_path - 2);
  printf("bind %s", result(bind(tcp, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0));
  printf(" abstract %s", result(connect(local, reinterpret_cast<sockaddr*>(&there), static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) == 0));
  printf(" signal %s\n", result(kill(pid, 0) == 0));
  fflush(stdout);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string all{std::istreambuf_iterator<char>(self), {}}, says = all.substr(all.rfind("SAYS:") + 5), name;
  if (argc == 2 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "--help"))) {
    std::cout << says << std::endl;
    return 0;
  }
  if (size_t at = says.find("tries "); at != std::string::npos) {
    int pid = 0;
    std::istringstream(says.substr(at + 6)) >> name >> pid;
    return tries(name, pid);
  }
  if (write(3, "1", 1) != 1) return 1;
  sleep(60);
}
