#include "core/mcp/serve.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "core/base/unique_fd.hpp"
#include "core/mcp/session.hpp"

namespace h5i::mcp {
namespace {

constexpr int kGraceMs = 10'000;  // between the word to end and the end

struct Running {
  Call call;
  pid_t pid = -1;
  UniqueFd out, err;
  Ended ended;
  std::optional<Ended> document;  // while the form for people is read
  bool wanted = true;  // the client waits for the answer
};

Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return sys_error("pipe");
  return std::make_pair(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

// In the child, with what it inherits and nothing more. Async-signal-safe.
[[noreturn]] void become(int program, char* const* argv, int out, int err, pid_t parent) {
  // A server that is killed leaves no call that goes on unseen.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int in = ::open("/dev/null", O_RDONLY);
  if (in < 0 || ::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(127);
  ::execveat(program, "", argv, environ, AT_EMPTY_PATH);
  ::_exit(127);
}

class Server {
 public:
  Server(Executable h5i, std::string version) : h5i_(std::move(h5i)), session_(std::move(version)) {}

  Result<void> run() {
    ::signal(SIGPIPE, SIG_IGN);
    while (open_) H5I_TRY(turn());
    end_all();
    return {};
  }

 private:
  Result<void> turn() {
    std::vector<pollfd> fds = {{0, POLLIN, 0}};
    for (const auto& r : running_) {
      fds.push_back({r->out ? r->out.get() : -1, POLLIN, 0});
      fds.push_back({r->err ? r->err.get() : -1, POLLIN, 0});
    }
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) return {};
      return sys_error("poll");
    }
    for (size_t i = 0; i < running_.size(); i++) {
      Running& r = *running_[i];
      if (fds[1 + 2 * i].revents) take_output(r.out, r.ended.out, &r.ended.cut);
      if (fds[2 + 2 * i].revents) take_output(r.err, r.ended.err, nullptr);
    }
    for (size_t i = 0; i < running_.size();) {
      if (running_[i]->out || running_[i]->err) {
        i++;
        continue;
      }
      if (!finished(*running_[i])) {
        i++;
        continue;
      }
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (fds[0].revents) return hear();
    return {};
  }

  // Beyond what is kept it is read and thrown away: a verb that is not listened to would not end.
  static void take_output(UniqueFd& fd, std::string& to, bool* cut) {
    char piece[65536];
    const ssize_t n = ::read(fd.get(), piece, sizeof piece);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
      fd.reset();
      return;
    }
    const size_t kept = std::min(static_cast<size_t>(n), kMostOutput - to.size());
    to.append(piece, kept);
    if (cut && kept < static_cast<size_t>(n)) *cut = true;
  }

  // False: its second process was begun.
  bool finished(Running& r) {
    int status = 0;
    while (::waitpid(r.pid, &status, 0) < 0 && errno == EINTR) {
    }
    r.ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (r.document) {
      r.document->shown = r.ended.status == 0 ? std::move(r.ended.out) : "";
      if (r.ended.cut) r.document->shown += "\n(the rest is too much for one answer: ask for paths, or stat)";
      r.ended = *std::exchange(r.document, std::nullopt);
    } else if (r.wanted && r.ended.status == 0 && !r.ended.cut && !r.call.reading.empty()) {
      r.document = std::exchange(r.ended, Ended{});
      if (start(r, r.call.reading)) return false;
      r.ended = *std::exchange(r.document, std::nullopt);
    }
    if (r.wanted) say(session_.answer(r.call, r.ended));
    return true;
  }

  Result<void> hear() {
    char piece[65536];
    const ssize_t n = ::read(0, piece, sizeof piece);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    if (n <= 0) {
      open_ = false;
      return {};
    }
    in_.append(piece, static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end; open_ && (end = in_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (skipping_) skipping_ = false;
      else if (end - begin > kLongestLine) say(session_.too_long());
      else one(std::string_view(in_).substr(begin, end - begin));
    }
    in_.erase(0, begin);
    if (skipping_) in_.clear();
    else if (in_.size() > kLongestLine) {
      say(session_.too_long());
      in_.clear();
      skipping_ = true;
    }
    return {};
  }

  void one(std::string_view line) {
    std::vector<Json> ids;
    for (const auto& r : running_) ids.push_back(r->call.id);
    Session::Step step = session_.take(line, ids);
    if (!step.say.empty()) say(step.say);
    if (step.cancel)
      for (const auto& r : running_)
        if (r->call.id == *step.cancel) {
          r->wanted = false;
          ::kill(r->pid, SIGTERM);
        }
    if (step.begin) begin(std::move(*step.begin));
  }

  void begin(Call call) {
    auto r = std::make_unique<Running>();
    r->call = std::move(call);
    auto started = start(*r, r->call.words);
    if (started) {
      running_.push_back(std::move(r));
      return;
    }
    r->ended.not_begun = started.error().what + ": " + started.error().evidence;
    say(session_.answer(r->call, r->ended));
  }

  Result<void> start(Running& r, const std::vector<std::string>& behind) {
    UniqueFd program = H5I_TRY(h5i_());
    auto out = H5I_TRY(make_pipe());
    auto err = H5I_TRY(make_pipe());
    std::vector<std::string> words = {"h5i"};
    words.insert(words.end(), behind.begin(), behind.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const pid_t self = ::getpid();
    r.pid = ::fork();
    if (r.pid < 0) return sys_error("fork");
    if (r.pid == 0) become(program.get(), argv.data(), out.second.get(), err.second.get(), self);
    r.out = std::move(out.first);
    r.err = std::move(err.first);
    return {};
  }

  void say(const std::string& line) {
    for (size_t done = 0; done < line.size();) {
      const ssize_t n = ::write(1, line.data() + done, line.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        open_ = false;  // nobody listens any more
        return;
      }
      done += static_cast<size_t>(n);
    }
  }

  void end_all() {
    for (const auto& r : running_) ::kill(r->pid, SIGTERM);
    for (const auto& r : running_) {
      int status = 0;
      for (int waited = 0; ::waitpid(r->pid, &status, waited < kGraceMs ? WNOHANG : 0) == 0; waited += 10) {
        if (waited + 10 >= kGraceMs) ::kill(r->pid, SIGKILL);
        ::poll(nullptr, 0, 10);
      }
    }
  }

  const Executable h5i_;
  Session session_;
  std::vector<std::unique_ptr<Running>> running_;
  std::string in_;
  bool open_ = true, skipping_ = false;
};

}  // namespace

Result<void> serve(const Executable& h5i, const std::string& version) { return Server(h5i, version).run(); }

}  // namespace h5i::mcp
