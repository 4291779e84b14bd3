#include "tests/bench/measure.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

extern char** environ;

namespace h5i::bench {
namespace {

pid_t start(const Command& c, int out) {
  std::vector<char*> argv;
  for (const std::string& a : c.argv) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (out >= 0)
    posix_spawn_file_actions_adddup2(&actions, out, 1);
  else
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (!c.cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions, c.cwd.c_str());
  pid_t pid = 0;
  int err = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (err != 0) give_up("cannot start " + c.argv[0]);
  return pid;
}

void must_end_well(const Command& c, pid_t pid, long* peak_kib = nullptr) {
  int status = 0;
  rusage used{};
  while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
  if (peak_kib) *peak_kib = used.ru_maxrss;
  if (WIFEXITED(status) && WEXITSTATUS(status) == c.status) return;
  std::string words;
  for (const std::string& a : c.argv) words += " " + a;
  give_up("status " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)) + " of" + words);
}

// As a subreaper this process inherits whatever the command did not wait for.
void wait_for_the_rest() {
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
}

}  // namespace

double Series::at(double part) const {
  if (us.empty()) return 0;
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(part * static_cast<double>(sorted.size())))];
}

double now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

double run_timed(const Command& c, double* rest_us, long* peak_kib) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  double begin = now_us();
  pid_t pid = start(c, -1);
  must_end_well(c, pid, peak_kib);
  double end = now_us();
  wait_for_the_rest();
  if (rest_us) *rest_us = now_us() - end;
  return end - begin;
}

void run_once(const Command& c) { (void)run_timed(c); }

std::string output_of(const Command& c) {
  int p[2];
  if (pipe2(p, O_CLOEXEC) != 0) give_up("pipe");
  pid_t pid = start(c, p[1]);
  close(p[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = read(p[0], buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
  close(p[0]);
  waitpid(pid, nullptr, 0);
  return out;
}

std::map<std::string, Series> interleaved(const std::vector<std::pair<std::string, Command>>& commands, int rounds) {
  std::map<std::string, Series> out;
  for (int round = 0; round <= rounds; round++)
    for (size_t i = 0; i < commands.size(); i++) {
      const auto& [name, command] = commands[(i + static_cast<size_t>(round)) % commands.size()];
      double rest = 0, us = run_timed(command, &rest);
      if (round == 0) continue;
      out[name].us.push_back(us);
      out[name + ", then"].us.push_back(rest);
    }
  return out;
}

double ratio(const Series& a, const Series& b) {
  Series r;
  for (size_t i = 0; i < std::min(a.us.size(), b.us.size()); i++) r.us.push_back(a.us[i] / b.us[i]);
  return r.at(0.5);
}

void give_up(const std::string& why) {
  fprintf(stderr, "h5i-bench: %s\n", why.c_str());
  exit(1);
}

std::string find_program(const std::string& name) {
  const char* path = getenv("PATH");
  std::stringstream list(path ? path : "/usr/bin:/bin");
  for (std::string dir; std::getline(list, dir, ':');)
    if (access((dir + "/" + name).c_str(), X_OK) == 0) return dir + "/" + name;
  return "";
}

std::string file_system_of(const std::string& path) {
  struct statfs s {};
  if (statfs(path.c_str(), &s) != 0) return "unknown";
  switch (static_cast<unsigned>(s.f_type)) {
    case 0xEF53: return "ext4";
    case 0x01021994: return "tmpfs";
    case 0x58465342: return "xfs";
    case 0x9123683E: return "btrfs";
    case 0x794c7630: return "overlay";
    default: break;
  }
  char buffer[32];
  snprintf(buffer, sizeof buffer, "0x%x", static_cast<unsigned>(s.f_type));
  return buffer;
}

}  // namespace h5i::bench
