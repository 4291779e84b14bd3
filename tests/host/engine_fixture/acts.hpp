// Tries of what a process may do, each answered with "done" or the name of the error. One file for the engine and for the control.
#pragma once
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace h5i::fixture {

inline std::string answer(long result) { return result >= 0 ? "done" : strerrorname_np(errno); }

inline std::string opened(int fd) {
  std::string said = answer(fd);
  if (fd >= 0) close(fd);
  return said;
}

// `ours`: a folder that the control may fill; the engine's is its session's. `theirs`: a file and a folder of the same user elsewhere.
inline std::map<std::string, std::function<std::string()>> acts(const std::string& ours, const std::string& theirs) {
  auto in_child = [](const std::function<int()>& f) -> std::string {
    pid_t pid = fork();
    if (pid < 0) return strerrorname_np(errno);
    if (pid == 0) _exit(f());
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "done" : "failed";
  };
  auto make_socket = [](int family, int type, int protocol) { return [=] { return opened(socket(family, type, protocol)); }; };
  return {
      {"fork", [=] { return in_child([] { return 0; }); }},
      // In the place of the caller where it works, which the control's child is for.
      {"exec", [=]() -> std::string {
         auto run = [] {
           char name[] = "true";
           char* argv[] = {name, nullptr};
           execv("/bin/true", argv);
           return errno;
         };
         pid_t pid = fork();
         if (pid == 0) _exit(run());
         if (pid < 0) return strerrorname_np(run());
         int status = 0;
         waitpid(pid, &status, 0);
         return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "done" : "failed";
       }},
      {"thread", []() -> std::string {
         std::thread([] {}).join();
         return "done";
       }},
      {"read-theirs", [=] { return opened(open((theirs + "/file").c_str(), O_RDONLY)); }},
      {"list-theirs", [=] { return opened(open(theirs.c_str(), O_RDONLY | O_DIRECTORY)); }},
      {"write-theirs", [=] { return opened(open((theirs + "/new").c_str(), O_WRONLY | O_CREAT, 0600)); }},
      {"remove-theirs", [=] { return answer(unlink((theirs + "/gone").c_str())); }},
      {"read-passwd", [] { return opened(open("/etc/passwd", O_RDONLY)); }},
      {"read-proc", [] { return opened(open("/proc/self/environ", O_RDONLY)); }},
      {"write-ours", [=] { return opened(open((ours + "/new").c_str(), O_WRONLY | O_CREAT, 0600)); }},
      {"read-certificates", [] { return opened(open("/usr", O_RDONLY | O_DIRECTORY)); }},
      {"inet-stream", make_socket(AF_INET, SOCK_STREAM, 0)},
      {"inet6-datagram", make_socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)},
      {"netlink-route", make_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)},
      {"unix-stream", make_socket(AF_UNIX, SOCK_STREAM, 0)},
      {"unix-pair", []() -> std::string {
         int pair[2];
         if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return strerrorname_np(errno);
         close(pair[0]);
         close(pair[1]);
         return "done";
       }},
      {"netlink-netfilter", make_socket(AF_NETLINK, SOCK_RAW, 12)},
      {"vsock", make_socket(40, SOCK_STREAM, 0)},
      {"user-namespace", [=] { return in_child([] { return unshare(CLONE_NEWUSER) == 0 ? 0 : 1; }); }},
      {"traced", [=] { return in_child([] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1; }); }},
      {"trace", [] { return answer(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }},
      {"unshare", [] { return answer(unshare(CLONE_NEWUSER)); }},
      {"signal-parent", [] { return answer(kill(getppid(), 0)); }},
  };
}

}  // namespace h5i::fixture
