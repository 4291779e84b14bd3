#include "tests/endurance/victim.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "tests/endurance/census.hpp"

namespace h5i::test {
namespace {

std::string first_word(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  std::string word;
  try {
    std::getline(in, word, '\0');
  } catch (const std::exception&) {
  }
  return word;
}

void nap() {
  timespec pause{0, 100'000};
  nanosleep(&pause, nullptr);
}

// `pid`, or 0 when it has ended: what its parent has not reaped yet is found and takes signals, and no kill meets it.
pid_t living(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  try {
    std::getline(in, stat);
  } catch (const std::exception&) {
  }
  size_t name = stat.rfind(')');
  return name != std::string::npos && name + 2 < stat.size() && stat[name + 2] != 'Z' && stat[name + 2] != 'X' ? pid : 0;
}

bool ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

bool send(pid_t pid, Victim v, pid_t core, int signal) {
  int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return false;
  // Looked for once more: what the descriptor names is still the one that was found.
  bool sent = (v == Victim::all || find_victim(v, core) == pid) && syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0) == 0;
  close(fd);
  return sent;
}

}  // namespace

const char* name_of(Victim v) {
  switch (v) {
    case Victim::core: return "h5i";
    case Victim::host: return "h5i-host";
    case Victim::spawner: return "spawner";
    case Victim::init: return "init";
    default: return "all at once";
  }
}

double seconds_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

pid_t find_victim(Victim v, pid_t core) {
  if (v == Victim::core) return core;
  pid_t host = 0;
  for (pid_t child : children_of(core))
    if (first_word(child) == "h5i-host") host = child;
  if (v == Victim::host || host == 0) return host;
  std::vector<pid_t> of_host = children_of(host);
  pid_t spawner = of_host.empty() ? 0 : of_host.front();
  if (v == Victim::spawner || spawner == 0) return living(spawner);
  std::vector<pid_t> of_spawner = children_of(spawner);
  return of_spawner.empty() ? 0 : living(of_spawner.back());
}

bool kill_at(Victim v, pid_t core, double after) {
  for (double until = seconds_now() + after; seconds_now() < until && !ended(core);) nap();
  if (v == Victim::all) {
    std::vector<pid_t> pids{core};
    for (Victim each : {Victim::host, Victim::spawner})
      if (pid_t pid = find_victim(each, core)) pids.push_back(pid);
    for (pid_t pid : pids) send(pid, v, core, SIGSTOP);  // so that none can act on another's death
    bool met = !ended(core);
    for (pid_t pid : pids) send(pid, v, core, SIGKILL);
    return met;
  }
  while (!ended(core)) {
    pid_t pid = find_victim(v, core);
    if (pid != 0 && send(pid, v, core, SIGKILL)) return true;
    nap();
  }
  return false;
}

}  // namespace h5i::test
