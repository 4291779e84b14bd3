#include "core/spawn/spawner.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"
#include "core/os/cgroup.hpp"
#include "core/os/fs.hpp"
#include "core/os/namespace.hpp"
#include "core/os/pidfd.hpp"
#include "core/os/seccomp.hpp"
#include "core/os/socket.hpp"
#include "core/os/syscall_name.hpp"
#include "core/spawn/init_protocol.hpp"
#include "core/spawn/network.hpp"
#include "core/spawn/program.hpp"
#include "core/spawn/protocol.hpp"
#include "core/spawn/walk.hpp"
#include "h5i/host.h"
#include "h5i/tier.h"

namespace h5i::spawn {
namespace {

constexpr size_t kMaxRuns = 32;           // at once, of one host process
constexpr size_t kMaxHelper = 32u << 20;  // bytes of h5i-init or h5i-canary
constexpr size_t kMaxQueued = 256;        // messages that the other end did not read; then denials are only counted
constexpr int64_t kCoreFirstNs = 200'000'000;  // a core that is not stopped ends the run at its deadline itself, and records it
constexpr int kCountCpuMs = 100;          // how often a box's processor time is compared with its limit
constexpr int kFirstFd = 10;              // child.hpp: descriptors below are places, not sources

// One thing that was started: the process that clone3 made (h5i-init, or the workload where the plan has no init).
struct Run {
  uint64_t handle = 0;
  uint32_t kind = 0;
  Plan plan;
  pid_t pid = 0;
  UniqueFd pidfd, report, control, listener, output;
  std::string text;  // of a canary
  std::optional<BoxNetwork> network;
  std::optional<os::Cgroup> cgroup;
  int64_t started_ns = 0, counted_ns = 0;
  uint32_t killed_as = 0;  // H5I_OUTCOME_*, of whoever asked first
  bool ended = false;
  int wait_status = 0;
  std::optional<InitReport> init_report;
  rusage usage{}, orphans{};
  std::map<uint32_t, Denial> denials;
  size_t strange_numbers = 0;  // rows of `denials` at and above kTableNumbers
  SpawnResult result;

  // Seconds of processor time of the whole box, where a group counts it: RLIMIT_CPU holds each process alone.
  std::optional<uint64_t> cpu_limit() const {
    if (cgroup && kind == H5I_SPAWN_WORKLOAD)
      for (const RlimitSpec& r : plan.rlimits)
        if (r.name == "cpu" && r.soft < UINT64_MAX / 1000000) return r.soft;
    return std::nullopt;
  }
  bool alone() const { return !plan.init; }  // nothing but a walk finds its descendants
};

uint64_t micros(const timeval& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1000000 + static_cast<uint64_t>(t.tv_usec);
}

// Packets for one peer. The spawner never blocks on a peer that does not read: it could not kill anything meanwhile.
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  int fd() const { return fd_.get(); }
  bool waiting() const { return !queue_.empty(); }
  size_t queued() const { return queue_.size(); }
  void send(const Message& m, std::vector<UniqueFd> fds = {}) {
    queue_.push_back({encode(m), std::move(fds)});
    flush();
  }
  void flush() {
    while (!queue_.empty()) {
      std::vector<int> raw;
      for (const UniqueFd& f : queue_.front().fds) raw.push_back(f.get());
      auto sent = os::send_packet(fd_.get(), queue_.front().bytes, raw, true);
      if (!sent && sent.error().code == Errc::BUSY) return;
      queue_.pop_front();  // sent, or the peer is gone: then its end shows as closed
    }
  }

 private:
  struct Packet {
    std::string bytes;
    std::vector<UniqueFd> fds;
  };
  UniqueFd fd_;
  std::deque<Packet> queue_;
};

class Spawner {
 public:
  Spawner(const SpawnerFds& fds, UniqueFd null, UniqueFd signals, UniqueFd self, UniqueFd host_process)
      : host_(fds.host),
        core_(fds.core),
        init_source_(fds.init_exe),
        canary_source_(fds.canary_exe),
        net_source_(fds.net_exe),
        null_(std::move(null)),
        signals_(std::move(signals)),
        self_(std::move(self)),
        host_process_(std::move(host_process)) {}

  int serve();

 private:
  // -- requests
  void from_host();
  bool from_core();  // one packet; false when none was waiting
  Result<uint64_t> start(const Message& m, int plan_fd);
  Result<void> check_against_caller(const Plan& plan, uint32_t kind) const;
  Result<void> prepare_stdio(Run& run, ChildProgram& program, UniqueFd* write_end);
  Result<int> helper(UniqueFd& source, UniqueFd& memfd, const char* name);
  Result<void> clone(Run& run, const ChildProgram& program);
  Result<void> map_ids(Run& run);
  void change_network(std::vector<UniqueFd> fds);
  Result<void> begin_network(Run& run, const UniqueFd& user, const UniqueFd& net);
  void undo(Run& run);
  void kill(Run& run, uint32_t outcome);
  void kill_everything(uint32_t outcome);

  // -- what happens in boxes
  void on_signal();
  void reaped(pid_t pid, int status, const rusage& usage);
  void on_report(Run& run);
  void on_control(Run& run);
  void on_output(Run& run);
  void on_listener(Run& run);
  void on_network(Run& run);  // h5i-net has answered, or its time is over
  void finish(Run& run);
  void compose(Run& run);
  int poll_timeout_ms() const;
  void on_time();
  bool end_orderly();

  Channel host_, core_;
  UniqueFd init_source_, canary_source_, net_source_, init_, canary_, net_;
  UniqueFd null_, signals_, self_, host_process_;
  UniqueFd stdio_[3];
  bool pty_ = false, workload_started_ = false;
  bool stopped_ = false;  // the core ended the session: nothing new is started
  bool closing_ = false;
  int64_t deadline_ns_ = INT64_MAX;  // monotonic
  uint64_t last_handle_ = 0;
  std::vector<std::unique_ptr<Run>> runs_;
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
      if (run->handle == m->handle) kill(*run, H5I_OUTCOME_CANCELLED);
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
      for (int i = 0; i < 3; i++) stdio_[i] = std::move((*packet)->fds[static_cast<size_t>(i)]);
      pty_ = m->what == 1;
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

// What a plan may ask for depends on who asks. The plan itself was already found to be consistent.
Result<void> Spawner::check_against_caller(const Plan& p, uint32_t kind) const {
  auto refuse = [](std::string why) { return make_error(Errc::INVALID, "spawn refused", std::move(why)); };
  if (kind != H5I_SPAWN_WORKLOAD && kind != H5I_SPAWN_CANARY) return refuse("unknown kind");
  if ((kind == H5I_SPAWN_CANARY) != p.canary.has_value())
    return refuse("only a canary has acts, and a canary runs nothing else");
  if (kind == H5I_SPAWN_WORKLOAD && workload_started_) return refuse("the workload was started already");
  if (kind == H5I_SPAWN_WORKLOAD && !stdio_[0]) return refuse("the core has not given the session's stdio");
  if (runs_.size() >= kMaxRuns) return make_error(Errc::BUSY, "spawn refused", "too many at once");
  // A walk cannot tell whose a reparented process was: without a pid namespace a run has the spawner to itself.
  for (const auto& other : runs_)
    if (p.init == false || other->alone())
      return make_error(Errc::BUSY, "spawn refused", "a run without a pid namespace runs alone");
  const uint32_t uid = geteuid(), gid = getegid();
  const bool own = p.outside_uid == uid && p.outside_gid == gid;
  if (!own && (uid != 0 || p.identity_map || !p.has(*os::namespace_flag("user"))))
    return refuse("outside ids are not the caller's: " + std::to_string(p.outside_uid));
  if (uid != 0 && !p.namespaces.empty() && !p.has(*os::namespace_flag("user")))
    return refuse("an ordinary user needs the namespace user for the others");
  if (p.seccomp && p.seccomp->notify && !os::seccomp::notify_sizes())
    return make_error(Errc::TIER_PROBE_MISSING, "spawn refused", "missing: seccomp-user-notification");
  return {};
}

Result<int> Spawner::helper(UniqueFd& source, UniqueFd& memfd, const char* name) {
  if (!memfd) {
    struct stat st {};
    if (!source || fstat(source.get(), &st) != 0 || !S_ISREG(st.st_mode)) return make_error(Errc::NOT_FOUND, std::string(name) + " is not installed");
    memfd = H5I_TRY(os::sealed_copy(source.get(), name, kMaxHelper, true));
  }
  return memfd.get();
}

Result<void> Spawner::prepare_stdio(Run& run, ChildProgram& program, UniqueFd* write_end) {
  if (run.kind == H5I_SPAWN_WORKLOAD) {
    for (int i = 0; i < 3; i++) {
      program.stdio[i] = stdio_[i].get();
      struct stat st {};
      // Pipes and the pty were made for this session by root: the box's id must be able to reopen them (/dev/stdout).
      if (geteuid() == 0 && run.plan.outside_uid != 0 && fstat(stdio_[i].get(), &st) == 0 &&
          (S_ISFIFO(st.st_mode) || (pty_ && S_ISCHR(st.st_mode))) &&
          fchown(stdio_[i].get(), run.plan.outside_uid, run.plan.outside_gid) != 0)
        return sys_error("give the session's stdio to the box's id");
    }
    program.pty = pty_;
    return {};
  }
  int p[2];
  if (pipe2(p, O_CLOEXEC) != 0) return sys_error("pipe");
  run.output.reset(p[0]);
  write_end->reset(p[1]);
  if (fcntl(p[0], F_SETFL, O_NONBLOCK) != 0) return sys_error("fcntl");
  program.stdio[0] = null_.get();
  program.stdio[1] = program.stdio[2] = p[1];
  return {};
}

Result<void> Spawner::clone(Run& run, const ChildProgram& program) {
  int pidfd = -1;
  clone_args args{};
  args.flags = run.plan.clone_flags | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (run.cgroup) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(run.cgroup->dir.get());
  }
  // The spawner is not dumpable, so that no process of the same uid reads it; the child must be while its maps are
  // written, since /proc/PID/uid_map belongs to root otherwise. It inherits the flag of this moment.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  // clone3 without a stack and without CLONE_VM: a fork. The spawner has one thread, so its memory is whole in the
  // child.
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) child_main(&program);
  int err = errno;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (pid < 0) return sys_error("clone3", err);
  run.pid = static_cast<pid_t>(pid);
  run.pidfd.reset(pidfd);
  run.started_ns = monotonic_ns();
  return {};
}

// The child waits for its ids until this has ended: it is in the outer user namespace then, which owns its network.
Result<void> Spawner::map_ids(Run& run) {
  const Plan& plan = run.plan;
  if (!plan.has(*os::namespace_flag("user"))) return {};
  os::IdMap map{plan.inside_uid, plan.outside_uid, plan.inside_gid, plan.outside_gid, plan.identity_map && geteuid() == 0};
  if (auto mapped = os::write_id_map(run.pid, map); !mapped) {
    auto ended = os::pidfd_ended(run.pidfd.get(), 0);  // before us: what is said of its files is no word on ids then
    if (ended && *ended) return make_error(Errc::TIER_SETUP, "the box's first process ended before its ids were mapped", "somebody killed it");
    return make_error(Errc::TIER_SETUP, "id map refused by the kernel", mapped.error().what + ": " + mapped.error().evidence);
  }
  UniqueFd user, net;
  if (plan.network) {
    std::string ns = "/proc/" + std::to_string(run.pid) + "/ns/";
    user.reset(open((ns + "user").c_str(), O_RDONLY | O_CLOEXEC));
    net.reset(open((ns + "net").c_str(), O_RDONLY | O_CLOEXEC));
    if (!user || !net) return sys_error("open the namespaces of the box");
  }
  // A workload waits for the core's word, and the core hears of it only after this: meanwhile it sets itself up. A canary
  // waits for nobody.
  const bool first = plan.network && plan.canary;
  if (first) H5I_TRY(begin_network(run, user, net));
  (void)os::send_packet(run.report.get(), "m");
  if (plan.network && !first) H5I_TRY(begin_network(run, user, net));
  return {};
}

Result<void> Spawner::begin_network(Run& run, const UniqueFd& user, const UniqueFd& net) {
  return run.network->begin(user.get(), net.get(), *run.plan.network);
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
void Spawner::on_network(Run& run) {
  BoxNetwork::Changed changed = run.network->changed();
  Message m;
  m.kind = Kind::network_said;
  m.text = std::move(changed.said);
  m.extra = changed.certain ? 0 : 1;
  if (!changed.certain) kill(run, H5I_OUTCOME_VIOLATION);
  core_.send(m);
}

// Of a start that failed after the clone.
void Spawner::undo(Run& run) {
  (void)os::pidfd_signal(run.pidfd.get(), SIGKILL);
  while (waitpid(run.pid, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  if (run.cgroup) {
    (void)os::kill_cgroup(*run.cgroup);
    (void)os::remove_cgroup(*run.cgroup);
  }
}

Result<uint64_t> Spawner::start(const Message& m, int plan_fd) {
  if (closing_ || stopped_) return make_error(Errc::CANCELLED, "spawn refused", "the session is ending");
  if (!os::is_sealed(plan_fd)) return make_error(Errc::INVALID, "spawn refused", "the plan is not a sealed memfd");
  if (lseek(plan_fd, 0, SEEK_SET) < 0) return sys_error("rewind the plan");
  auto run = std::make_unique<Run>();
  run->kind = m.what;
  const std::string document = H5I_TRY(os::read_fd(plan_fd, kMaxPlan, "spawn plan"));
  run->plan = H5I_TRY(decode_plan(document));
  const Plan& plan = run->plan;
  H5I_TRY(check_against_caller(plan, m.what));
  if (plan.network) {
    int program = H5I_TRY(helper(net_source_, net_, "h5i-net"));
    run->network.emplace(H5I_TRY(BoxNetwork::start(program)));
  }

  Compiled compiled;
  H5I_TRY(compiled.compile(plan, geteuid() == 0));
  ChildProgram& program = compiled.program;
  auto report = H5I_TRY(os::seqpacket_pair());
  os::SocketPair gate, control;
  if (m.what == H5I_SPAWN_WORKLOAD) {
    gate = H5I_TRY(os::seqpacket_pair());
    H5I_TRY(os::pass_credentials(gate.a.get()));
  }
  if (plan.init) {
    control = H5I_TRY(os::seqpacket_pair());
    program.init_exe = H5I_TRY(helper(init_source_, init_, "h5i-init"));
  }
  if (plan.canary) program.exec_fd = H5I_TRY(helper(canary_source_, canary_, "h5i-canary"));
  UniqueFd output;
  H5I_TRY(prepare_stdio(*run, program, &output));
  program.report = report.b.get();
  program.gate = gate.b.get();
  program.control = control.b.get();
  program.host_pidfd = host_process_.get();
  program.spawner_pidfd = self_.get();
  if (!plan.cgroup_base.empty()) run->cgroup = H5I_TRY(os::make_cgroup(plan.cgroup_base, plan.cgroup_limits));
  auto cloned = clone(*run, program);
  if (!cloned) {
    if (run->cgroup) (void)os::remove_cgroup(*run->cgroup);
    return std::move(cloned).error();
  }
  run->report = std::move(report.a);
  run->control = std::move(control.a);
  run->handle = ++last_handle_;
  if (auto mapped = map_ids(*run); !mapped) {
    undo(*run);
    return mapped.error();
  }
  uint64_t handle = run->handle;
  if (m.what == H5I_SPAWN_WORKLOAD) {
    workload_started_ = true;
    for (UniqueFd& fd : stdio_) fd.reset();  // the box's own copies are the last: their end is the end of output
    Message event;
    event.kind = Kind::workload;
    event.handle = handle;
    event.what = static_cast<uint32_t>(run->pid);
    event.extra = plan.init ? 1 : 0;
    event.text = plan.digest;
    std::vector<UniqueFd> fds;
    fds.emplace_back(fcntl(run->pidfd.get(), F_DUPFD_CLOEXEC, kFirstFd));
    fds.push_back(std::move(gate.a));
    if (plan.init) fds.emplace_back(fcntl(init_.get(), F_DUPFD_CLOEXEC, kFirstFd));
    core_.send(event, std::move(fds));
  }
  runs_.push_back(std::move(run));
  return handle;
}

void Spawner::kill(Run& run, uint32_t outcome) {
  if (run.ended) return;
  if (!run.killed_as) run.killed_as = outcome ? outcome : static_cast<uint32_t>(H5I_OUTCOME_CANCELLED);
  // pid 1's end is the end of everything in its namespace; the cgroup's kill reaches what was moved elsewhere.
  (void)os::pidfd_signal(run.pidfd.get(), SIGKILL);
  if (run.cgroup) (void)os::kill_cgroup(*run.cgroup);
}

void Spawner::kill_everything(uint32_t outcome) {
  for (auto& run : runs_) kill(*run, outcome);
}

// ------------------------------------------------------------------------------------------------ what happens in
// boxes

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
  for (auto& run : runs_) {
    if (!run->alone()) continue;
    run->orphans.ru_utime.tv_sec += usage.ru_utime.tv_sec;
    run->orphans.ru_utime.tv_usec += usage.ru_utime.tv_usec;
    run->orphans.ru_stime.tv_sec += usage.ru_stime.tv_sec;
    run->orphans.ru_stime.tv_usec += usage.ru_stime.tv_usec;
    run->orphans.ru_maxrss = std::max(run->orphans.ru_maxrss, usage.ru_maxrss);
  }
}

void Spawner::on_report(Run& run) {
  while (run.report) {
    auto packet = os::receive_packet(run.report.get(), true);
    if (!packet && packet.error().code == Errc::BUSY) return;
    if (!packet || !*packet) {
      run.report.reset();  // closed by the exec, or by the end
      return;
    }
    ChildReport r{};
    if ((*packet)->bytes.size() != sizeof r) continue;
    memcpy(&r, (*packet)->bytes.data(), sizeof r);
    if (r.what == ChildReport::kListener && (*packet)->fds.size() == 1 && !run.listener) {
      run.listener = std::move((*packet)->fds[0]);
      fcntl(run.listener.get(), F_SETFL, O_NONBLOCK);
    } else if (r.what == ChildReport::kSetupFailed && run.result.setup_errno == 0) {
      run.result.setup_errno = r.err ? r.err : EINVAL;
      run.result.setup_step = static_cast<uint32_t>(r.stage) << 16 | r.index;
      run.result.setup_text = step_text(run.plan, r.stage, r.index, r.err);
    } else if (r.what == ChildReport::kExecFailed && run.result.exec_errno == 0) {
      run.result.exec_errno = r.err;
    }
  }
}

void Spawner::on_control(Run& run) {
  while (run.control) {
    auto packet = os::receive_packet(run.control.get(), true);
    if (!packet && packet.error().code == Errc::BUSY) return;
    if (!packet || !*packet) {
      run.control.reset();
      return;
    }
    InitReport r{};
    if ((*packet)->bytes.size() != sizeof r) continue;
    memcpy(&r, (*packet)->bytes.data(), sizeof r);
    if (r.magic == InitReport::kMagic && !run.init_report) run.init_report = r;
  }
}

void Spawner::on_output(Run& run) {
  char buf[16384];
  while (run.output) {
    ssize_t n = read(run.output.get(), buf, sizeof buf);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      run.output.reset();
      return;
    }
    size_t room = kMaxCanaryOutput - run.text.size();
    run.text.append(buf, std::min(room, static_cast<size_t>(n)));  // what is beyond is read and dropped
  }
}

// A call that the filter notified is refused, always: it is never continued, so nothing that the box could change in
// its memory meanwhile matters. What is allowed was decided in the filter.
void Spawner::on_listener(Run& run) {
  auto n = os::seccomp::receive(run.listener.get());
  if (!n) {
    run.listener.reset();
    return;
  }
  if (!*n) return;
  auto nr = static_cast<uint32_t>((*n)->data.nr);
  auto at = run.plan.seccomp->answers.find(nr);
  int err = at == run.plan.seccomp->answers.end() ? run.plan.seccomp->default_answer : at->second;
  (void)os::seccomp::answer_errno(run.listener.get(), (*n)->id, err);
  // Counted also when it vanished before the answer: it was tried.
  if (nr >= kTableNumbers && run.denials.count(nr) == 0) {
    if (run.strange_numbers < kMaxStrangeNumbers)
      run.strange_numbers++;
    else
      nr = os::kOtherNumbers;
  }
  bool first = run.denials.count(nr) == 0;
  Denial& d = run.denials[nr];
  d.syscall = nr;
  d.err = err;
  d.count++;
  if (first && run.kind == H5I_SPAWN_WORKLOAD && core_.queued() < kMaxQueued) {
    Message m;
    m.kind = Kind::denial;
    m.handle = run.handle;
    m.result.denials = {d};
    core_.send(m);
  }
}

void Spawner::finish(Run& run) {
  if (run.alone()) {
    auto walk = kill_descendants([this](pid_t pid, int st, const rusage& u) { reaped(pid, st, u); });
    run.result.survivors = walk.killed;
    run.result.incomplete = !walk.complete;
    if (!walk.complete) run.result.setup_text = "a process of the run could not be killed";
  }
  on_report(run);
  on_control(run);
  on_output(run);
  if (run.cgroup) {
    (void)os::kill_cgroup(*run.cgroup);
    os::CgroupUsage u = os::cgroup_usage(*run.cgroup);
    run.result.oom_kills = u.oom_kills;
    run.result.tasks_refused = u.tasks_refused;
    if (u.user_us || u.system_us) {
      run.result.usage_cgroup = true;
      run.result.user_us = u.user_us;
      run.result.system_us = u.system_us;
      run.result.max_rss_kib = u.memory_peak / 1024;
    }
    (void)os::remove_cgroup(*run.cgroup);
  }
  if (run.network) {
    if (run.network->change_until_ns()) on_network(run);
    if (auto report = run.network->end()) run.result.network = std::move(*report);
    run.network.reset();
    if (run.kind == H5I_SPAWN_CANARY && !run.result.network.empty())
      run.text += "{\"act\":\"network\",\"args\":[],\"ok\":true,\"value\":" + run.result.network + "}\n";
  }
  compose(run);
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

void Spawner::compose(Run& run) {
  SpawnResult& r = run.result;
  r.wall_us = static_cast<uint64_t>((monotonic_ns() - run.started_ns) / 1000);
  if (!r.usage_cgroup) {
    r.user_us = micros(run.usage.ru_utime) + micros(run.orphans.ru_utime);
    r.system_us = micros(run.usage.ru_stime) + micros(run.orphans.ru_stime);
    r.max_rss_kib = static_cast<uint64_t>(std::max(run.usage.ru_maxrss, run.orphans.ru_maxrss));
  }
  if (run.init_report) r.survivors = run.init_report->survivors;
  for (const auto& [nr, d] : run.denials) r.denials.push_back(d);
  // The first failure wins: set-up, then a kill that came before the workload's own end, then that end.
  if (r.setup_errno) {
    r.status = H5I_OUTCOME_SETUP_FAILED;
    r.code = kExitSetupFailed;
    return;
  }
  const bool own_end = run.plan.init ? run.init_report.has_value()
                                     : !(WIFSIGNALED(run.wait_status) && WTERMSIG(run.wait_status) == SIGKILL);
  const int status = run.init_report ? run.init_report->wait_status : run.wait_status;
  if (!own_end && run.killed_as) {
    r.status = run.killed_as;
    r.code = SIGKILL;
  } else if (run.plan.init && !run.init_report) {
    // init died unasked: the kernel's out-of-memory killer, or somebody outside. One that left by itself saw the host end.
    r.status = WIFSIGNALED(run.wait_status) ? H5I_OUTCOME_SIGNALED : H5I_OUTCOME_HOST_LOST;
    r.code = WIFSIGNALED(run.wait_status) ? WTERMSIG(run.wait_status) : SIGKILL;
    r.incomplete = true;
    r.setup_text = "h5i-init ended without a report";
  } else if (WIFSIGNALED(status)) {
    r.status = H5I_OUTCOME_SIGNALED;
    r.code = WTERMSIG(status);
  } else {
    r.status = H5I_OUTCOME_EXITED;
    r.code = WEXITSTATUS(status);
  }
}

// Everything of ours is killed and waited for; true when nothing is left.
bool Spawner::end_orderly() {
  kill_everything(H5I_OUTCOME_HOST_LOST);
  auto walk = kill_descendants([this](pid_t pid, int st, const rusage& u) { reaped(pid, st, u); });
  for (auto& run : runs_)
    if (run->cgroup) {
      (void)os::kill_cgroup(*run->cgroup);
      (void)os::remove_cgroup(*run->cgroup);
    }
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
    kill(*run, H5I_OUTCOME_TIMEOUT);
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
      Run& run = *runs_[i];
      const pollfd* f = &q[3 + 5 * i];
      if (f[0].revents & kIn) on_report(run);
      if (f[1].revents & kIn) on_control(run);
      if (f[2].revents & kIn) on_output(run);
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
  int status = Spawner(fds, std::move(null), std::move(signals), std::move(*self), std::move(*host_process)).serve();
  _exit(status);
}

Result<pid_t> fork_spawner(const SpawnerFds& fds) {
  pid_t pid = fork();
  if (pid < 0) return sys_error("fork of the spawner");
  if (pid == 0) spawner_main(fds);
  return pid;
}

}  // namespace h5i::spawn
