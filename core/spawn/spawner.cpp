#include "core/spawn/spawner.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/os/cgroup.hpp"
#include "core/os/fs.hpp"
#include "core/os/pidfd.hpp"
#include "core/os/socket.hpp"
#include "core/spawn/channel.hpp"
#include "core/spawn/protocol.hpp"
#include "core/spawn/starter.hpp"
#include "core/spawn/walk.hpp"
#include "h5i/host.h"
#include "h5i/tier.h"

namespace h5i::spawn {
namespace {

constexpr size_t kMaxQueued = 256;             // messages that the other end did not read; then denials are only counted
constexpr int64_t kCoreFirstNs = 200'000'000;  // a core that is not stopped ends the run at its deadline itself, and records it
constexpr int kCountCpuMs = 100;               // how often a box's processor time is compared with its limit

class Spawner {
 public:
  Spawner(const SpawnerFds& fds, UniqueFd signals, Starter starter)
      : host_(fds.host), core_(fds.core), signals_(std::move(signals)), starter_(std::move(starter)) {}

  int serve();

 private:
  // -- requests
  void from_host();
  bool from_core();  // one packet; false when none was waiting
  Result<uint64_t> start(const Message& m, int plan_fd);
  void change_network(std::vector<UniqueFd> fds);
  void kill_everything(uint32_t outcome);

  // -- what happens in boxes
  void on_signal();
  void reaped(pid_t pid, int status, const rusage& usage);
  void on_listener(Running& run);
  void on_network(Running& run);  // h5i-net has answered, or its time is over
  void finish(Running& run);
  int poll_timeout_ms() const;
  void on_time();
  bool end_orderly();

  Channel host_, core_;
  UniqueFd signals_;
  Starter starter_;
  bool stopped_ = false;  // the core ended the session: nothing new is started
  bool closing_ = false;
  int64_t deadline_ns_ = INT64_MAX;  // monotonic
  Runs runs_;
};

// ---------------------------------------------------------------------------------------------------------- requests

void Spawner::from_host() {
  auto packet = os::receive_packet(host_.fd(), true);
  if (!packet && packet.error().code == Errc::BUSY) return;
  if (!packet || !*packet) {
    closing_ = true;  // gone, or it sends what no client of ours sends
    return;
  }
  auto m = decode((*packet)->bytes);
  FdCount n = m ? fds_of(m->kind) : FdCount{0, 0};
  if (!m || (*packet)->fds.size() < n.min || (*packet)->fds.size() > n.max) {
    closing_ = true;
    return;
  }
  if (m->kind == Kind::kill) {
    for (auto& run : runs_)
      if (run->handle == m->handle) run->kill(H5I_OUTCOME_CANCELLED);
    return;
  }
  if (m->kind != Kind::start) {
    closing_ = true;
    return;
  }
  auto handle = start(*m, (*packet)->fds[0].get());
  Message answer;
  if (handle) {
    answer.kind = Kind::started;
    answer.handle = *handle;
  } else {
    answer.kind = Kind::refused;
    answer.what = static_cast<uint32_t>(handle.error().code);
    answer.text = handle.error().what;
    if (!handle.error().evidence.empty()) answer.text += ": " + handle.error().evidence;
  }
  host_.send(answer);
}

bool Spawner::from_core() {
  auto packet = os::receive_packet(core_.fd(), true);
  if (!packet && packet.error().code == Errc::BUSY) return false;
  auto m = packet && *packet ? decode((*packet)->bytes) : Result<Message>(make_error(Errc::INVALID, "closed"));
  FdCount n = m ? fds_of(m->kind) : FdCount{0, 0};
  if (!m || (*packet)->fds.size() < n.min || (*packet)->fds.size() > n.max) {
    closing_ = true;
    return false;
  }
  switch (m->kind) {
    case Kind::stdio:
      starter_.give_stdio({std::move((*packet)->fds[0]), std::move((*packet)->fds[1]), std::move((*packet)->fds[2])}, m->what == 1);
      return true;
    case Kind::kill_all:
      stopped_ = true;
      kill_everything(m->what);
      return true;
    case Kind::deadline:
      deadline_ns_ = m->until_ns > INT64_MAX - kCoreFirstNs ? INT64_MAX : m->until_ns + kCoreFirstNs;
      return true;
    case Kind::network:
      change_network(std::move((*packet)->fds));
      return true;
    case Kind::signal:
      for (auto& run : runs_) {
        if (run->kind != H5I_SPAWN_WORKLOAD) continue;
        if (run->control) {
          InitRequest r{InitRequest::kSignal, static_cast<int32_t>(m->what)};
          (void)os::send_packet(run->control.get(), {reinterpret_cast<char*>(&r), sizeof r}, {}, true);
        } else if (m->what > 0 && m->what < 65 && !run->ended) {
          ::kill(-run->pid, static_cast<int>(m->what));
        }
      }
      return true;
    default:
      closing_ = true;
      return false;
  }
}

// The rules of the box that runs. h5i-net has its time; meanwhile everything else goes on.
void Spawner::change_network(std::vector<UniqueFd> fds) {
  auto run = std::find_if(runs_.begin(), runs_.end(), [](const auto& r) { return r->kind == H5I_SPAWN_WORKLOAD && r->network && !r->ended; });
  auto asked = run == runs_.end() ? Result<void>(make_error(Errc::NOT_FOUND, "no box with rules of its own runs")) : (*run)->network->ask_change(std::move(fds));
  if (asked) return;
  Message m;
  m.kind = Kind::network_said;
  const Error& e = asked.error();
  m.text = json::canonical(json::Object{{"error", e.id()}, {"what", e.what}, {"evidence", e.evidence}});
  core_.send(m);
}

// When it is not known which rules hold, none of the box's packets may go anywhere.
void Spawner::on_network(Running& run) {
  BoxNetwork::Changed changed = run.network->changed();
  Message m;
  m.kind = Kind::network_said;
  m.text = std::move(changed.said);
  m.extra = changed.certain ? 0 : 1;
  if (!changed.certain) run.kill(H5I_OUTCOME_VIOLATION);
  core_.send(m);
}

Result<uint64_t> Spawner::start(const Message& m, int plan_fd) {
  if (closing_ || stopped_) return make_error(Errc::CANCELLED, "spawn refused", "the session is ending");
  Started started = H5I_TRY(starter_.start(m.what, plan_fd, runs_));
  const Running& run = *started.run;
  const uint64_t handle = run.handle;
  if (run.kind == H5I_SPAWN_WORKLOAD) {
    Message event;
    event.kind = Kind::workload;
    event.handle = handle;
    event.what = static_cast<uint32_t>(run.pid);
    event.extra = run.plan.init ? 1 : 0;
    event.text = run.plan.digest;
    core_.send(event, std::move(started.for_core));
  }
  runs_.push_back(std::move(started.run));
  return handle;
}

void Spawner::kill_everything(uint32_t outcome) {
  for (auto& run : runs_) run->kill(outcome);
}

// --------------------------------------------------------------------------------------------- what happens in boxes

void Spawner::on_signal() {
  signalfd_siginfo info[16];
  ssize_t n;
  while ((n = read(signals_.get(), info, sizeof info)) > 0)
    for (size_t i = 0; i < static_cast<size_t>(n) / sizeof info[0]; i++)
      if (info[i].ssi_signo != SIGCHLD) closing_ = true;  // SIGTERM: the host process died, or somebody wants us gone
  reap_children([this](pid_t pid, int status, const rusage& usage) { reaped(pid, status, usage); });
}

void Spawner::reaped(pid_t pid, int status, const rusage& usage) {
  for (auto& run : runs_) {
    if (run->pid == pid && !run->ended) {
      run->ended = true;
      run->wait_status = status;
      run->usage = usage;
      return;
    }
  }
  // An orphan that came to us as subreaper: of the one run without a pid namespace.
  for (auto& run : runs_)
    if (run->alone()) run->add_orphan(usage);
}

// A refusal is told at once, the first of each number; a core that does not read hears of it at the end.
void Spawner::on_listener(Running& run) {
  std::optional<Denial> first = run.on_listener();
  if (!first || run.kind != H5I_SPAWN_WORKLOAD || core_.queued() >= kMaxQueued) return;
  Message m;
  m.kind = Kind::denial;
  m.handle = run.handle;
  m.result.denials = {*first};
  core_.send(m);
}

void Spawner::finish(Running& run) {
  if (run.alone()) {
    auto walk = kill_descendants([this](pid_t pid, int st, const rusage& u) { reaped(pid, st, u); });
    run.result.survivors = walk.killed;
    run.result.incomplete = !walk.complete;
    if (!walk.complete) run.result.setup_text = "a process of the run could not be killed";
  }
  run.on_report();
  run.on_control();
  run.on_output();
  run.take_group_usage();
  if (run.network) {
    if (run.network->change_until_ns()) on_network(run);
    if (auto report = run.network->end()) run.result.network = std::move(*report);
    run.network.reset();
    if (run.kind == H5I_SPAWN_CANARY && !run.result.network.empty())
      run.text += "{\"act\":\"network\",\"args\":[],\"ok\":true,\"value\":" + run.result.network + "}\n";
  }
  run.compose();
  Message done;
  done.kind = Kind::done;
  done.handle = run.handle;
  done.result = run.result;
  std::vector<UniqueFd> fds;
  if (run.kind == H5I_SPAWN_CANARY && !run.text.empty())
    if (auto memfd = os::sealed_memfd("h5i-canary-output", run.text)) fds.push_back(std::move(*memfd));
  host_.send(done, std::move(fds));
  if (run.kind == H5I_SPAWN_WORKLOAD) {
    done.kind = Kind::ended;
    core_.send(done);
  }
}

// Everything of ours is killed and waited for; true when nothing is left.
bool Spawner::end_orderly() {
  kill_everything(H5I_OUTCOME_HOST_LOST);
  auto walk = kill_descendants([this](pid_t pid, int st, const rusage& u) { reaped(pid, st, u); });
  for (auto& run : runs_) run->drop_group();
  return walk.complete;
}

int Spawner::poll_timeout_ms() const {
  int64_t until = deadline_ns_;
  bool counting = false;
  for (const auto& run : runs_) {
    counting |= run->cpu_limit().has_value();
    if (run->network && run->network->change_until_ns()) until = std::min(until, run->network->change_until_ns());
  }
  if (until == INT64_MAX) return counting ? kCountCpuMs : -1;
  int64_t left = (until - monotonic_ns()) / 1000000 + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, counting ? kCountCpuMs : 3600000));
}

void Spawner::on_time() {
  for (auto& run : runs_) {
    if (run->network && run->network->change_until_ns() && monotonic_ns() >= run->network->change_until_ns()) on_network(*run);
    std::optional<uint64_t> limit = run->ended ? std::nullopt : run->cpu_limit();
    if (!limit || monotonic_ns() - run->counted_ns < int64_t{kCountCpuMs} * 500000) continue;
    run->counted_ns = monotonic_ns();
    os::CgroupUsage u = os::cgroup_usage(*run->cgroup);
    if (run->killed_as || u.user_us + u.system_us < *limit * 1000000) continue;
    run->result.cpu_spent = true;
    run->kill(H5I_OUTCOME_TIMEOUT);
  }
  if (deadline_ns_ == INT64_MAX || monotonic_ns() < deadline_ns_) return;
  deadline_ns_ = INT64_MAX;
  stopped_ = true;
  kill_everything(H5I_OUTCOME_TIMEOUT);
}

int Spawner::serve() {
  while (!closing_) {
    std::vector<pollfd> q;
    auto add = [&](int fd, short events = POLLIN) { q.push_back({fd, events, 0}); };
    add(signals_.get());
    add(host_.fd(), static_cast<short>(POLLIN | (host_.waiting() ? POLLOUT : 0)));
    add(core_.fd(), static_cast<short>(POLLIN | (core_.waiting() ? POLLOUT : 0)));
    for (const auto& run : runs_)
      for (int fd : {run->report.get(), run->control.get(), run->output.get(), run->listener.get(), run->network ? run->network->answer_fd() : -1})
        add(fd);  // -1: skipped
    if (poll(q.data(), q.size(), poll_timeout_ms()) < 0 && errno != EINTR) break;
    constexpr short kIn = POLLIN | POLLHUP | POLLERR;
    if (q[1].revents & POLLOUT) host_.flush();
    if (q[2].revents & POLLOUT) core_.flush();
    for (size_t i = 0; i < runs_.size(); i++) {
      Running& run = *runs_[i];
      const pollfd* f = &q[3 + 5 * i];
      if (f[0].revents & kIn) run.on_report();
      if (f[1].revents & kIn) run.on_control();
      if (f[2].revents & kIn) run.on_output();
      if (f[3].revents & POLLIN)
        on_listener(run);
      else if (f[3].revents)
        run.listener.reset();  // no process has the filter any more
      if (f[4].revents) on_network(run);
    }
    if (q[0].revents) on_signal();
    on_time();
    for (auto& run : runs_)
      if (run->ended) finish(*run);
    runs_.erase(std::remove_if(runs_.begin(), runs_.end(), [](auto& r) { return r->ended; }), runs_.end());
    // Requests last: what they add to runs_ has no place in this round's poll list. The core's before the host's, all
    // of them: poll looks at the host's channel first, so stdio that was given before a plan was sent is there by now.
    if (q[1].revents & kIn || q[2].revents & kIn)
      while (!closing_ && from_core()) {
      }
    if (!closing_ && (q[1].revents & kIn)) from_host();
  }
  return end_orderly() ? 0 : 1;
}

// ------------------------------------------------------------------------------------------------------------ set-up

// Moves a descriptor to a number of at least kFirstFd, close-on-exec.
int lift(int fd) { return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, kFirstFd); }

void close_all_but(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned from = 0;
  for (int fd : keep) {
    if (fd < 0) continue;
    auto at = static_cast<unsigned>(fd);
    if (at > from) syscall(SYS_close_range, from, at - 1, 0);
    from = at + 1;
  }
  syscall(SYS_close_range, from, ~0u, 0);
}

}  // namespace

[[noreturn]] void spawner_main(SpawnerFds fds) {
  for (int* fd : {&fds.host, &fds.core, &fds.init_exe, &fds.canary_exe, &fds.net_exe}) *fd = lift(*fd);
  if (fds.host < 0 || fds.core < 0) _exit(1);
  close_all_but({fds.host, fds.core, fds.init_exe, fds.canary_exe, fds.net_exe});
  // 0..9 are held by the null device: 0..2 so that nothing speaks on the person's terminal, 3..9 so that every later
  // descriptor is above what the child uses as places.
  if (open("/dev/null", O_RDWR) != 0) _exit(1);
  for (int i = 1; i < kFirstFd; i++)
    if (fcntl(0, i < 3 ? F_DUPFD : F_DUPFD_CLOEXEC, i) != i) _exit(1);
  UniqueFd null(fcntl(0, F_DUPFD_CLOEXEC, kFirstFd));

  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);  // a workload must not inherit that somebody ignored SIGHUP
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&set, s);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  UniqueFd signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));

  setsid();  // keys on the person's terminal are the core's business
  prctl(PR_SET_NAME, "h5i-spawner", 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // As root the supplementary groups go now: the child's namespace denies setgroups, they would stay for ever.
  if (geteuid() == 0 && setgroups(0, nullptr) != 0) _exit(1);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0) _exit(1);
  auto host_process = os::pidfd_open(fds.host_pid);
  auto self = os::pidfd_open(getpid());
  if (!host_process || !self || !signals || !null || getppid() != fds.host_pid) _exit(1);
  Starter starter({UniqueFd(fds.init_exe), UniqueFd(fds.canary_exe), UniqueFd(fds.net_exe)}, std::move(null), std::move(*self), std::move(*host_process));
  int status = Spawner(fds, std::move(signals), std::move(starter)).serve();
  _exit(status);
}

Result<pid_t> fork_spawner(const SpawnerFds& fds) {
  pid_t pid = fork();
  if (pid < 0) return sys_error("fork of the spawner");
  if (pid == 0) spawner_main(fds);
  return pid;
}

}  // namespace h5i::spawn
