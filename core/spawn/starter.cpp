#include "core/spawn/starter.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/os/cgroup.hpp"
#include "core/os/fs.hpp"
#include "core/os/namespace.hpp"
#include "core/os/pidfd.hpp"
#include "core/os/seccomp.hpp"
#include "core/os/socket.hpp"
#include "core/spawn/network.hpp"
#include "core/spawn/program.hpp"
#include "h5i/host.h"

namespace h5i::spawn {
namespace {

constexpr size_t kMaxRuns = 32;           // at once, of one host process
constexpr size_t kMaxHelper = 32u << 20;  // bytes of a program of ours

// Of a start that failed after the clone.
void undo(Running& run) {
  (void)os::pidfd_signal(run.pidfd.get(), SIGKILL);
  while (waitpid(run.pid, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  run.drop_group();
}

}  // namespace

Starter::Starter(Programs programs, UniqueFd null, UniqueFd self, UniqueFd host_process)
    : init_{"h5i-init", std::move(programs.init), {}},
      canary_{"h5i-canary", std::move(programs.canary), {}},
      net_{"h5i-net", std::move(programs.net), {}},
      null_(std::move(null)),
      self_(std::move(self)),
      host_process_(std::move(host_process)) {}

void Starter::give_stdio(std::array<UniqueFd, 3> fds, bool pty) {
  stdio_ = std::move(fds);
  pty_ = pty;
}

// What a plan may ask for depends on who asks. The plan itself was already found to be consistent.
Result<void> Starter::check_against_caller(const Plan& p, uint32_t kind, const Runs& runs) const {
  auto refuse = [](std::string why) { return make_error(Errc::INVALID, "spawn refused", std::move(why)); };
  if (kind != H5I_SPAWN_WORKLOAD && kind != H5I_SPAWN_CANARY) return refuse("unknown kind");
  if ((kind == H5I_SPAWN_CANARY) != p.canary.has_value())
    return refuse("only a canary has acts, and a canary runs nothing else");
  if (kind == H5I_SPAWN_WORKLOAD && workload_started_) return refuse("the workload was started already");
  if (kind == H5I_SPAWN_WORKLOAD && !stdio_[0]) return refuse("the core has not given the session's stdio");
  if (runs.size() >= kMaxRuns) return make_error(Errc::BUSY, "spawn refused", "too many at once");
  // A walk cannot tell whose a reparented process was: without a pid namespace a run has the spawner to itself.
  for (const auto& other : runs)
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

Result<int> Starter::Helper::copy() {
  if (!memfd) {
    struct stat st {};
    if (!source || fstat(source.get(), &st) != 0 || !S_ISREG(st.st_mode)) return make_error(Errc::NOT_FOUND, std::string(name) + " is not installed");
    memfd = H5I_TRY(os::sealed_copy(source.get(), name, kMaxHelper, true));
  }
  return memfd.get();
}

Result<void> Starter::prepare_stdio(Running& run, ChildProgram& program, UniqueFd* write_end) {
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

Result<void> Starter::clone(Running& run, const ChildProgram& program) {
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
Result<void> Starter::map_ids(Running& run) {
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
  if (first) H5I_TRY(run.network->begin(user.get(), net.get(), *plan.network));
  (void)os::send_packet(run.report.get(), "m");
  if (plan.network && !first) H5I_TRY(run.network->begin(user.get(), net.get(), *plan.network));
  return {};
}

Result<Started> Starter::start(uint32_t kind, int plan_fd, const Runs& runs) {
  if (!os::is_sealed(plan_fd)) return make_error(Errc::INVALID, "spawn refused", "the plan is not a sealed memfd");
  if (lseek(plan_fd, 0, SEEK_SET) < 0) return sys_error("rewind the plan");
  auto run = std::make_unique<Running>();
  run->kind = kind;
  const std::string document = H5I_TRY(os::read_fd(plan_fd, kMaxPlan, "spawn plan"));
  run->plan = H5I_TRY(decode_plan(document));
  const Plan& plan = run->plan;
  H5I_TRY(check_against_caller(plan, kind, runs));
  if (plan.network) {
    int program = H5I_TRY(net_.copy());
    run->network.emplace(H5I_TRY(BoxNetwork::start(program)));
  }

  Compiled compiled;
  H5I_TRY(compiled.compile(plan, geteuid() == 0));
  ChildProgram& program = compiled.program;
  auto report = H5I_TRY(os::seqpacket_pair());
  os::SocketPair gate, control;
  if (kind == H5I_SPAWN_WORKLOAD) {
    gate = H5I_TRY(os::seqpacket_pair());
    H5I_TRY(os::pass_credentials(gate.a.get()));
  }
  if (plan.init) {
    control = H5I_TRY(os::seqpacket_pair());
    program.init_exe = H5I_TRY(init_.copy());
  }
  if (plan.canary) program.exec_fd = H5I_TRY(canary_.copy());
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
  Started started;
  if (kind == H5I_SPAWN_WORKLOAD) {
    workload_started_ = true;
    for (UniqueFd& fd : stdio_) fd.reset();  // the box's own copies are the last: their end is the end of output
    started.for_core.emplace_back(fcntl(run->pidfd.get(), F_DUPFD_CLOEXEC, kFirstFd));
    started.for_core.push_back(std::move(gate.a));
    if (plan.init) started.for_core.emplace_back(fcntl(init_.memfd.get(), F_DUPFD_CLOEXEC, kFirstFd));
  }
  started.run = std::move(run);
  return started;
}

}  // namespace h5i::spawn
