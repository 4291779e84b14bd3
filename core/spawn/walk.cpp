#include "core/spawn/walk.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "core/base/ids.hpp"
#include "core/os/fs.hpp"
#include "core/os/pidfd.hpp"

namespace h5i::spawn {

std::vector<pid_t> descendants_of(pid_t root, const std::map<pid_t, pid_t>& parents) {
  std::multimap<pid_t, pid_t> children;
  for (auto [pid, parent] : parents)
    if (pid != root) children.emplace(parent, pid);
  std::vector<pid_t> out{root};
  for (size_t i = 0; i < out.size(); i++) {
    auto [from, to] = children.equal_range(out[i]);
    for (auto at = from; at != to; ++at) out.push_back(at->second);
  }
  out.erase(out.begin());
  return out;
}

std::map<pid_t, pid_t> process_parents() {
  std::map<pid_t, pid_t> out;
  DIR* proc = opendir("/proc");
  if (!proc) return out;
  while (dirent* e = readdir(proc)) {
    char* end = nullptr;
    long pid = strtol(e->d_name, &end, 10);
    if (pid <= 0 || *end) continue;
    auto stat = os::read_file("/proc/" + std::string(e->d_name) + "/stat", 4096);
    if (!stat) continue;
    size_t paren = stat->rfind(')');  // the name may hold anything
    if (paren == std::string::npos || stat->size() < paren + 5) continue;
    char state = (*stat)[paren + 2];
    if (state == 'Z' || state == 'X') continue;
    out[static_cast<pid_t>(pid)] = static_cast<pid_t>(strtol(stat->c_str() + paren + 4, nullptr, 10));
  }
  closedir(proc);
  return out;
}

void reap_children(const Reaped& reaped) {
  for (;;) {
    int status = 0;
    rusage usage{};
    pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    reaped(pid, status, usage);
  }
}

WalkResult kill_descendants(const Reaped& reaped) {
  constexpr int64_t kLongest = 5'000'000'000;  // ns; what is still there then does not react to SIGKILL
  const pid_t self = getpid();
  WalkResult out;
  std::map<pid_t, UniqueFd> held;
  const int64_t until = monotonic_ns() + kLongest;
  for (;;) {
    reap_children(reaped);
    // A subreaper without a child has no descendant: most runs end here, without a look at every process of the
    // machine.
    siginfo_t none{};
    if (waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD) {
      out.complete = true;
      break;
    }
    auto parents = process_parents();
    auto found = descendants_of(self, parents);
    if (found.empty()) {
      out.complete = true;
      break;
    }
    // A stopped process cannot fork; walks are repeated until no new one appears, and only then is anything killed. A
    // process that dies while its children are looked for would hand them to us, but that is a walk more, not a loss.
    bool fresh = false;
    for (pid_t pid : found) {
      if (held.count(pid)) continue;
      // The number may have been given to somebody else since the walk: what the descriptor names is asked for its
      // parent once more, and only the descriptor is signalled.
      auto fd = os::pidfd_open(pid);
      if (!fd || os::parent_of(pid) != parents[pid]) continue;
      fresh = true;
      (void)os::pidfd_signal(fd->get(), SIGSTOP);
      held[pid] = std::move(*fd);
    }
    const bool late = monotonic_ns() > until;
    if (!fresh || late)
      for (pid_t pid : found)
        if (auto at = held.find(pid); at != held.end()) (void)os::pidfd_signal(at->second.get(), SIGKILL);
    if (late) break;
    if (!fresh) usleep(500);
  }
  out.killed = held.size();
  reap_children(reaped);
  return out;
}

}  // namespace h5i::spawn
