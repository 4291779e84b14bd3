#include "core/session/supervise.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "core/os/pidfd.hpp"
#include "h5i/tier.h"

namespace h5i::session {

// ---- SignalFd -------------------------------------------------------------------------------------------------------

struct SignalFd::Saved {
  sigset_t mask;
  struct sigaction pipe;
};

Result<SignalFd> SignalFd::take() {
  SignalFd s;
  s.saved_ = std::make_unique<Saved>();
  sigset_t set;
  sigemptyset(&set);
  for (int n : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&set, n);
  if (sigprocmask(SIG_BLOCK, &set, &s.saved_->mask) < 0) return sys_error("sigprocmask");
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &s.saved_->pipe);
  s.fd_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!s.fd_) return sys_error("signalfd");
  return s;
}

SignalFd::SignalFd(SignalFd&&) noexcept = default;

SignalFd::~SignalFd() {
  if (!saved_) return;
  while (next() != 0) {  // the run has answered them
  }
  sigaction(SIGPIPE, &saved_->pipe, nullptr);
  sigprocmask(SIG_SETMASK, &saved_->mask, nullptr);
}

int SignalFd::next() {
  signalfd_siginfo info{};
  return read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

// ---- the loop -------------------------------------------------------------------------------------------------------

namespace {

using Status = Outcome::Status;

// From a failed look at the box to the verdict that it is alive, and so not what its plan says.
constexpr int kDyingMs = 200;

int64_t after(int64_t ms) { return monotonic_ns() + ms * 1000000; }

Outcome natural_end(const spawn::SpawnResult& r) {
  Outcome o;
  o.code = r.code;
  if (r.setup_errno != 0) {
    o.status = Status::SETUP_FAILED;
    o.reason = Errc::TIER_SETUP;
    o.code = 0;
    o.detail = r.setup_text + " (errno " + std::to_string(r.setup_errno) + ")";
    return o;
  }
  if (r.exec_errno != 0) {
    bool missing = r.exec_errno == ENOENT || r.exec_errno == ENOTDIR;
    o.status = Status::SETUP_FAILED;
    o.reason = missing ? Errc::EXEC_NOT_FOUND : Errc::EXEC_NOT_EXECUTABLE;
    o.code = 0;
    o.detail = "exec gave errno " + std::to_string(r.exec_errno);
    return o;
  }
  switch (r.status) {
    case H5I_OUTCOME_EXITED: o.status = Status::EXITED; return o;
    case H5I_OUTCOME_SIGNALED: o.status = Status::SIGNALED; return o;
    case H5I_OUTCOME_TIMEOUT: o.status = Status::TIMEOUT, o.reason = Errc::RUN_DEADLINE; break;
    case H5I_OUTCOME_VIOLATION: o.status = Status::VIOLATION, o.reason = Errc::RUN_VIOLATION; break;
    case H5I_OUTCOME_CANCELLED: o.status = Status::CANCELLED, o.reason = Errc::CANCELLED; break;
    case H5I_OUTCOME_SETUP_FAILED: o.status = Status::SETUP_FAILED, o.reason = Errc::TIER_SETUP; break;
    default: o.status = Status::HOST_LOST, o.reason = Errc::PLUGIN_CRASHED; break;
  }
  o.code = 0;
  o.detail = r.setup_text;
  return o;
}

// Its program was never let go.
Outcome early_end(const spawn::SpawnResult& r) {
  Outcome o = natural_end(r);
  if (o.status == Status::EXITED || o.status == Status::SIGNALED)
    o = {Status::SETUP_FAILED, 0, Errc::TIER_SETUP, "the box ended before its program was started"};
  return o;
}

// Of a program that never started a plugin may say that set-up failed; of everything else it says what the spawner said.
bool same_end(const spawn::SpawnResult& seen, const plugin::Outcome& said) {
  bool never_started = seen.setup_errno != 0 || seen.exec_errno != 0;
  return (never_started && said.status == H5I_OUTCOME_SETUP_FAILED) || (said.status == seen.status && said.code == seen.code);
}

class Supervisor {
 public:
  explicit Supervisor(const SuperviseInput& in) : in_(in) {}

  Result<Supervised> run(const Json& request) {
    auto begun = in_.host->begin_run(request);
    if (!begun) host_failed(begun.error());
    setup_until_ = after(kSetupMs);
    while (!finished()) {
      auto done = step();
      if (done) continue;
      if (!seen_) return std::move(done).error();
      // A box was started: whatever we cannot go on with, it ends, and its receipt says why.
      fail({Status::VIOLATION, 0, done.error().code, done.error().what + (done.error().evidence.empty() ? "" : ": " + done.error().evidence)});
      give_up();
    }
    return result();
  }

 private:
  bool box_gone() const { return ended_ || watch_closed_ || (host_done() && !seen_); }
  bool host_done() const { return host_outcome_ || host_error_; }
  bool finished() const { return host_done() && box_gone(); }

  // The first failure wins, and kills.
  void fail(Outcome o) {
    if (forced_) return;
    forced_ = std::move(o);
    uint32_t why = forced_->status == Status::TIMEOUT     ? H5I_OUTCOME_TIMEOUT
                   : forced_->status == Status::CANCELLED ? H5I_OUTCOME_CANCELLED
                                                          : H5I_OUTCOME_VIOLATION;
    (void)in_.host->cancel();
    if (!watch_closed_) (void)in_.watch->kill_all(why);
    // A spawner that is stopped kills nobody. Its init is everything in its namespace.
    if (ready_.has_init && box_pidfd_) (void)os::pidfd_signal(box_pidfd_.get(), SIGKILL);
    kill_until_ = after(kKillMs);
  }

  void host_failed(const Error& e) {
    host_error_ = e;
    // Its spawner ended with it, so whatever the spawner saw is in the socket. An end that came before is the run's end; an
    // init that went without a word went with its host.
    while (!in_.host->alive() && !watch_closed_ && on_watch()) {
    }
    bool own_end = ended_ && (ended_->status == H5I_OUTCOME_EXITED || ended_->status == H5I_OUTCOME_SIGNALED);
    if (went_ && own_end && !(ready_.has_init && ended_->incomplete)) return;
    if (!forced_) forced_ = Outcome{Status::HOST_LOST, 0, e.code, e.what + (e.evidence.empty() ? "" : ": " + e.evidence)};
    kill_until_ = after(kKillMs);
  }

  int64_t next_deadline() const {
    int64_t t = INT64_MAX;
    if (!forced_ && !ended_) t = std::min(t, in_.deadline_ns);
    if (!seen_ && !forced_ && !host_done()) t = std::min(t, setup_until_);
    if (grace_until_ && !forced_ && !ended_) t = std::min(t, grace_until_);
    if (kill_until_) t = std::min(t, kill_until_);
    return t;
  }

  Result<void> step() {
    enum { kHost, kHostPid, kWatch, kGate, kSignals, kOutIn, kOutOut, kErrIn, kErrOut, kInIn, kInOut, kControl, kCount };
    std::array<pollfd, kCount> p;
    p.fill({-1, 0, 0});
    if (!host_done()) {
      p[kHost] = {in_.host->control().get(), POLLIN, 0};
      p[kHostPid] = {in_.host->pidfd().get(), POLLIN, 0};
    }
    if (!watch_closed_) p[kWatch] = {in_.watch->fd(), POLLIN, 0};
    if (gate_) p[kGate] = {gate_->fd(), POLLIN, 0};
    p[kSignals] = {in_.signals->fd(), POLLIN, 0};
    if (in_.out) in_.out->poll_entries(&p[kOutIn], &p[kOutOut]);
    if (in_.err) in_.err->poll_entries(&p[kErrIn], &p[kErrOut]);
    if (in_.in) in_.in->poll_entries(&p[kInIn], &p[kInOut]);
    if (started_ && !ended_ && !forced_) p[kControl] = {in_.control, POLLIN, 0};

    int64_t until = next_deadline(), left = until == INT64_MAX ? -1 : std::max<int64_t>(0, (until - monotonic_ns()) / 1000000 + 1);
    int n = poll(p.data(), p.size(), static_cast<int>(std::min<int64_t>(left, 3600000)));
    if (n < 0 && errno != EINTR) return sys_error("poll");
    if (n > 0) {
      if (p[kSignals].revents) on_signal();
      // The spawner's word before the host's: an end that both report was seen by the spawner.
      if (p[kWatch].revents) H5I_TRY(on_watch());
      if (gate_ && p[kGate].revents) on_gate();  // unless a signal or the spawner's word was the end of it
      if (p[kHost].revents || p[kHostPid].revents) on_host();
      if (in_.out) H5I_TRY(in_.out->handle(p[kOutIn], p[kOutOut]));
      if (in_.err) H5I_TRY(in_.err->handle(p[kErrIn], p[kErrOut]));
      if (in_.in) in_.in->handle(p[kInIn], p[kInOut]);
      if (p[kControl].revents && !ended_ && !forced_) in_.on_control();
    }
    on_time(monotonic_ns());
    return {};
  }

  void on_time(int64_t now) {
    if (!forced_ && !ended_ && now >= in_.deadline_ns) {
      in_.killed("deadline", 0);
      fail({Status::TIMEOUT, 0, Errc::RUN_DEADLINE, "resources.wall"});
    }
    if (!seen_ && !forced_ && !host_done() && now >= setup_until_)
      fail({Status::HOST_LOST, 0, Errc::PLUGIN_HUNG, "nothing was started within " + std::to_string(kSetupMs) + " ms"});
    if (grace_until_ && !forced_ && !ended_ && now >= grace_until_) {
      in_.killed("signal", asked_);
      fail({Status::CANCELLED, asked_, Errc::CANCELLED, "the command did not end after the signal"});
    }
    if (kill_until_ && now >= kill_until_ && !finished()) give_up();
  }

  // Asked to kill, and nothing came of it: the host goes, its spawner with it, and every pid namespace with that.
  void give_up() {
    in_.host->kill();
    if (!host_done())
      host_error_ = make_error(Errc::PLUGIN_HUNG, "the plugin did not end its run",
                               "no answer within " + std::to_string(kKillMs) + " ms; its process was killed");
    // What the spawner still had to say is in the socket; then its end.
    while (!watch_closed_ && on_watch()) {
    }
    watch_closed_ = true;
    kill_until_ = 0;
  }

  static Result<void> unasked() { return make_error(Errc::PLUGIN_PROTOCOL, "the spawner's channel", "it answers what nobody asked"); }

  Result<void> on_watch() {
    auto e = in_.watch->next(0);
    if (!e && e.error().code == Errc::TIMEOUT) {
      if (in_.host->alive()) return {};
      watch_closed_ = true;
      return {};
    }
    if (!e) {  // garbage on the channel: nothing it says can be believed
      watch_closed_ = true;
      fail({Status::VIOLATION, 0, Errc::PLUGIN_PROTOCOL, "the spawner's channel: " + e.error().evidence});
      return {};
    }
    using What = spawn::SpawnWatch::Event::What;
    switch (e->what) {
      case What::workload:
        if (seen_) {
          fail({Status::VIOLATION, 0, Errc::PLUGIN_PROTOCOL, "a second workload in one run"});
          break;
        }
        seen_ = true;
        handle_ = e->handle;
        ready_.init_pid = e->init_pid;
        ready_.has_init = e->has_init;
        ready_.plan_digest = e->plan_digest;
        box_pidfd_ = std::move(e->pidfd);
        ready_.init_pidfd = &box_pidfd_;
        init_exe_ = std::move(e->init_exe);
        ready_.init_exe = &init_exe_;
        gate_.emplace(std::move(e->gate));
        break;
      case What::denial:
        in_.denial(e->denial);
        break;
      case What::network_said:
        if (auto kept = in_.network_said ? in_.network_said(e->said, e->certain) : unasked(); !kept) {
          in_.killed("network", 0);
          fail({Status::VIOLATION, 0, kept.error().code, kept.error().what + (kept.error().evidence.empty() ? "" : ": " + kept.error().evidence)});
        }
        break;
      case What::ended:
        if (!seen_ || e->handle != handle_) break;  // a canary's
        ended_ = std::move(e->result);
        gate_.reset();
        if (!forced_ && ended_->status == H5I_OUTCOME_TIMEOUT) in_.killed("deadline", 0);  // the spawner's clock; ours stood still
        if (!host_done() && !kill_until_) kill_until_ = after(in_.host->timeouts().cleanup);
        break;
      case What::closed:
        watch_closed_ = true;
        gate_.reset();
        if (!host_done() && !kill_until_) kill_until_ = after(kKillMs);
        break;
    }
    return {};
  }

  void on_gate() {
    if (!went_) {
      auto peer = gate_->wait_ready(0);
      if (peer && !*peer) return void(gate_.reset());  // it ended before; the ended event says how
      Result<void> ok = peer ? Result<void>() : Result<void>(peer.error());
      if (peer && !forced_) {
        ready_.workload = (*peer)->pid;
        ok = in_.attest(ready_);
      }
      if (forced_) return void(gate_.reset());
      if (ok) ok = gate_->go();
      if (!ok && dying()) return void(gate_.reset());  // what was looked at is gone; its spawner, or its absence, says how
      if (!ok) {
        gate_.reset();  // it exits, and never runs the user's program
        in_.killed("attestation", 0);
        Errc reason = ok.error().code == Errc::LOG_WRITE ? Errc::LOG_WRITE : Errc::TIER_ATTEST;
        fail({Status::VIOLATION, 0, reason, ok.error().what + (ok.error().evidence.empty() ? "" : ": " + ok.error().evidence)});
        return;
      }
      went_ = true;
      return;
    }
    auto exec = gate_->exec_errno(0);
    if (exec && *exec == 0) started_ = true;
    gate_.reset();
    if (started_ && asked_ && !forced_) (void)in_.watch->signal(asked_);
  }

  // A box that ends while the core looks at it is not what the plan says, but that is no fault of the plan. The workload is
  // taken down before its init is seen to end, and by its host's end before that is seen, hence the moment of patience.
  bool dying() const {
    pollfd p[] = {{box_pidfd_.get(), POLLIN, 0}, {in_.host->pidfd().get(), POLLIN, 0}};
    return poll(p, 2, kDyingMs) > 0;
  }

  void on_host() {
    auto outcome = in_.host->on_ready();
    if (!outcome) return host_failed(outcome.error());
    if (!*outcome) return;
    host_outcome_ = **outcome;
    // A workload that the plugin did not wait for is not left alone with nobody to answer for it.
    if (seen_ && !ended_ && !kill_until_) kill_until_ = after(kKillMs);
    if (!seen_ && !watch_closed_)  // its first word may still be on the way
      for (int i = 0; i < 2 && !seen_ && in_.watch->fd() >= 0; i++) {
        pollfd p{in_.watch->fd(), POLLIN, 0};
        if (host_outcome_->status != H5I_OUTCOME_SETUP_FAILED && poll(&p, 1, 100) > 0) (void)on_watch();
      }
  }

  void on_signal() {
    // Whoever sends a signal may have seen the command at work, and poll looks at its descriptors one after the other: a
    // gate that was looked at before the exec is looked at again, or the signal would be taken for one that came first.
    pollfd gate{went_ && gate_ ? gate_->fd() : -1, POLLIN, 0};
    if (poll(&gate, 1, 0) > 0) on_gate();
    int n;
    while ((n = in_.signals->next()) != 0) {
      if (n == SIGWINCH) {
        if (in_.window_size) in_.window_size();
        continue;
      }
      if (ended_ || forced_) continue;
      if (n == SIGQUIT && started_) {
        (void)in_.watch->signal(n);
        continue;
      }
      bool second = asked_ != 0;
      asked_ = n;
      if (started_ && !second) {
        in_.killed("forwarded", n);
        (void)in_.watch->signal(n);
        grace_until_ = after(kCancelGraceMs);
      } else {
        in_.killed("signal", n);
        fail({Status::CANCELLED, started_ ? n : 0, Errc::CANCELLED, "signal " + std::to_string(n) + " to h5i"});
      }
    }
  }

  Supervised result() {
    Supervised s;
    s.spawned = std::move(ended_);
    s.started = started_ || (went_ && s.spawned && s.spawned->setup_errno == 0 && s.spawned->exec_errno == 0);
    if (forced_) {
      s.outcome = *forced_;
    } else if (s.spawned) {
      s.outcome = went_ ? natural_end(*s.spawned) : early_end(*s.spawned);
      // With an init its namespace is empty once it is gone, however it went (the kernel's out-of-memory killer, say).
      if (s.spawned->incomplete && ready_.has_init)
        s.outcome.detail = s.spawned->setup_text;
      else if (s.spawned->incomplete)
        s.outcome = {Status::VIOLATION, 0, Errc::RUN_VIOLATION, "a process of the box could not be killed: " + s.spawned->setup_text};
    } else if (watch_closed_ && seen_) {
      s.outcome = {Status::HOST_LOST, 0, Errc::PLUGIN_CRASHED, "the spawner was lost"};
    } else if (host_outcome_) {  // nothing was ever cloned
      Errc reason = host_outcome_->reason == Errc::OK ? Errc::TIER_SETUP : host_outcome_->reason;
      const auto& e = in_.host->run_error();
      s.outcome = {Status::SETUP_FAILED, 0, reason, e ? e->evidence : "the tier started nothing"};
    } else {
      s.outcome = {Status::HOST_LOST, 0, Errc::PLUGIN_CRASHED, ""};
    }
    if (host_error_ && !forced_)
      s.plugin_disagrees = std::string(host_error_->id()) + ": " + host_error_->what;
    else if (s.spawned && host_outcome_ && !forced_ && !same_end(*s.spawned, *host_outcome_))
      s.plugin_disagrees = "the plugin says outcome " + std::to_string(host_outcome_->status) + " code " +
                           std::to_string(host_outcome_->code) + ", the spawner saw " + std::to_string(s.spawned->status) +
                           " code " + std::to_string(s.spawned->code);
    return s;
  }

  const SuperviseInput& in_;
  bool seen_ = false, went_ = false, started_ = false, watch_closed_ = false;
  uint64_t handle_ = 0;
  Ready ready_{};
  UniqueFd box_pidfd_;
  UniqueFd init_exe_;
  std::optional<spawn::Gate> gate_;
  std::optional<spawn::SpawnResult> ended_;
  std::optional<plugin::Outcome> host_outcome_;
  std::optional<Error> host_error_;
  std::optional<Outcome> forced_;
  int asked_ = 0;  // the first signal that asked for the end
  int64_t setup_until_ = 0, grace_until_ = 0, kill_until_ = 0;
};

}  // namespace

Result<Supervised> supervise(const SuperviseInput& in, const Json& request) { return Supervisor(in).run(request); }

}  // namespace h5i::session
