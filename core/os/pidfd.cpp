#include "core/os/pidfd.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "core/os/fs.hpp"
#include "core/os/socket.hpp"

namespace h5i::os {

Result<UniqueFd> pidfd_open(pid_t pid) {
  long fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return sys_error("pidfd_open of " + std::to_string(pid));
  return UniqueFd(static_cast<int>(fd));
}

Result<void> pidfd_signal(int pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0 || errno == ESRCH) return {};
  return sys_error("pidfd_send_signal");
}

Result<bool> pidfd_ended(int pidfd, int64_t timeout_ms) { return wait_readable(pidfd, timeout_ms); }

pid_t parent_of(pid_t pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!text) return 0;
  size_t paren = text->rfind(')');  // the name may hold anything, also parentheses
  if (paren == std::string::npos || text->size() < paren + 4) return 0;
  return static_cast<pid_t>(strtol(text->c_str() + paren + 4, nullptr, 10));
}

}  // namespace h5i::os
