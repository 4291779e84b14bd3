#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/slower.hpp"

namespace h5i::test {
namespace {

constexpr int kPatience = kSlower > 1 ? 6 : 1;  // as many times a program may take what was said: as a suite of that build may

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& w : words) out.push_back(w.data());
  out.push_back(nullptr);
  return out;
}

int decoded(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status); }

[[noreturn]] void child(const Program& p, int in, int out, int err) {
  std::vector<std::string> words = p.argv, variables{"PATH=" + p.path};
  for (const auto& [name, value] : p.env) variables.push_back(name + "=" + value);
  if (words[0] == "h5i") words[0] = h5i_path();
  auto argv = pointers(words), env = pointers(variables);
  if (!p.out_to.empty()) out = open(p.out_to.c_str(), O_WRONLY);
  if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(120);
  if (p.uid != 0 && (setgroups(0, nullptr) != 0 || setresgid(p.uid, p.uid, p.uid) != 0 || setresuid(p.uid, p.uid, p.uid) != 0)) _exit(121);
  if (chdir(p.cwd.c_str()) != 0) _exit(122);
  for (int fd : p.closed) close(fd);
  if (p.before_exec) p.before_exec();
  execve(argv[0], argv.data(), env.data());
  _exit(123);
}

}  // namespace

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

std::string h5i_path() {
  const char* build = getenv("H5I_BUILD_DIR");
  return std::string(build ? build : "build/dev") + "/out/bin/h5i";
}

Ended run(const Program& p) {
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) abort();
  pid_t pid = fork();
  if (pid == 0) {
    if (p.input.empty()) in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    child(p, in[0], out[1], err[1]);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  signal(SIGPIPE, SIG_IGN);
  Ended ended;
  size_t written = 0;
  fcntl(in[1], F_SETFL, O_NONBLOCK);
  if (p.input.empty()) {
    close(in[1]);
    in[1] = -1;
  }
  double deadline = now() + p.timeout_s * kPatience;
  pollfd fds[3] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}, {in[1], POLLOUT, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    int left = static_cast<int>((deadline - now()) * 1000);
    if (left <= 0) break;
    if (poll(fds, 3, left) <= 0) continue;
    for (int i = 0; i < 2; i++) {
      if (fds[i].fd < 0 || !fds[i].revents) continue;
      char buffer[65536];
      ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0)
        (i ? ended.err : ended.out).append(buffer, static_cast<size_t>(n));
      else
        fds[i].fd = -1;
    }
    if (fds[2].fd >= 0 && fds[2].revents) {
      ssize_t n = write(fds[2].fd, p.input.data() + written, p.input.size() - written);
      if (n > 0) written += static_cast<size_t>(n);
      if (n < 0 || written == p.input.size()) {
        close(in[1]);
        in[1] = fds[2].fd = -1;
      }
    }
  }
  if (in[1] >= 0) close(in[1]);
  close(out[0]);
  close(err[0]);
  ended.status = wait_for(pid, std::max(1, static_cast<int>(deadline - now())));
  return ended;
}

pid_t start(const Program& p, const std::string& out, const std::string& err) {
  int o = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), e = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (o < 0 || e < 0 || in < 0) abort();
  pid_t pid = fork();
  if (pid == 0) child(p, in, o, e);
  close(o);
  close(e);
  close(in);
  return pid;
}

int wait_for(pid_t pid, int timeout_s) {
  double deadline = now() + timeout_s;
  int status = 0;
  for (;;) {
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) return decoded(status);
    if (got < 0) return -1;
    if (now() > deadline) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return -1;
    }
    usleep(2000);
  }
}

bool is_refusal(const std::string& err, const std::string& id) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < err.size();) {
    size_t end = std::min(err.find('\n', at), err.size());
    lines.push_back(err.substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() < 3) return false;
  // Notes may stand before the refusal; it is what was said last.
  auto n = lines.size();
  const std::string &what = lines[n - 3], &because = lines[n - 2], &see = lines[n - 1];
  bool head = what.starts_with("refused: ") || what.starts_with("failed: ");
  return head && what.ends_with("[" + id + "]") && because.starts_with("  because: ") && because.size() > 11 && see.starts_with("  see: ") &&
         see.size() > 7;
}

}  // namespace h5i::test
