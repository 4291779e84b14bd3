// While it runs: stdio, the loop, and what the core sees of the box from outside.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/os/fs.hpp"
#include "core/os/pidfd.hpp"
#include "core/os/syscall_name.hpp"
#include "core/session/run_steps.hpp"

namespace h5i::session {
namespace {

constexpr int64_t kInitExecNs = 1'000'000'000;  // on a loaded machine an exec that began can wait this long for its turn

}  // namespace

// The running init is our file, or a sealed copy of its bytes. A copy can only be executed, so that the program is not
// dumpable: the spawner hands over the descriptor, and that it is the one that runs is seen by its device and inode.
bool OneRun::init_is_ours(const ProcessFacts& init, const UniqueFd& running, AttestInput* in) {
  auto ours = plugin::open_helper(prefix_, "libexec/h5i/h5i-init");
  struct stat st {};
  if (!ours || fstat(ours->get(), &st) < 0) return false;
  in->init_dev = st.st_dev;
  in->init_ino = st.st_ino;
  if (init.exe_dev == st.st_dev && init.exe_ino == st.st_ino) return true;
  struct stat copy {};
  if (!running || fstat(running.get(), &copy) < 0 || copy.st_dev != init.exe_dev || copy.st_ino != init.exe_ino) return false;
  if (!os::is_sealed(running.get())) return false;
  auto a = sha256_fd_hex(ours->get()), b = sha256_fd_hex(running.get());
  return a && b && *a == *b;
}

Result<void> OneRun::attest(const Ready& ready) {
  AttestInput in;
  in.plan = plan_;
  in.claims = strings(plugin_.manifest["claims"]);
  in.policy = policy_;
  in.self = self_;
  in.spawner = os::parent_of(ready.init_pid);
  if (ready.has_init) {
    // The workload can be ready a moment before init, which runs beside it, became our file: that exec is waited for.
    for (int64_t until = monotonic_ns() + kInitExecNs;;) {
      in.init = H5I_TRY(read_process(ready.init_pid, false));
      in.init_digest_ok = init_is_ours(*in.init, *ready.init_exe, &in);
      if (in.init_digest_ok || monotonic_ns() > until) break;
      nap();
    }
  }
  in.workload = H5I_TRY(read_process(ready.workload, true));
  read_cgroup_files(plan_["cgroup"]["limits"], &in.workload);
  Attestation a = judge(in);
  if (ready.plan_digest != plan_digest_)
    a.mismatches.push_back("the spawner executes another plan than the tier showed: " + ready.plan_digest);
  if (os::parent_of(in.spawner) != host_->pid()) a.mismatches.push_back("the spawner is no child of this run's host process");
  // What was read was its own all the while: its number could not have gone to another process.
  if (H5I_TRY(os::pidfd_ended(ready.init_pidfd->get(), 0))) a.mismatches.push_back("the box ended while it was looked at");
  a.facts["mismatches"] = json_of(a.mismatches);
  a.facts["matches_plan"] = a.mismatches.empty();
  attested_ = a.facts;
  H5I_TRY(write_live_record(&ready));
  H5I_TRY(record("attested", a.facts));
  if (egress_live_) egress_live_->started(ready.workload);
  if (a.mismatches.empty()) return {};
  return make_error(Errc::TIER_ATTEST, "the box is not what its plan says", a.mismatches.front());
}

std::string OneRun::capture_mode() const {
  const std::string& mode = policy_["audit"]["capture"].string();
  return mode.empty() ? "all" : mode;
}

Result<void> OneRun::prepare_pipes(spawn::SpawnWatch& watch) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) < 0) return sys_error("pipe2");
  UniqueFd out_read(out[0]), out_write(out[1]);
  if (pipe2(err, O_CLOEXEC) < 0) return sys_error("pipe2");
  UniqueFd err_read(err[0]), err_write(err[1]);
  out_.emplace(std::move(out_read), target(STDOUT_FILENO), H5I_TRY(Capture::create(box_.paths.blobs())), &budget_, true);
  err_.emplace(std::move(err_read), target(STDERR_FILENO), H5I_TRY(Capture::create(box_.paths.blobs())), &budget_, true);
  if (options_.own) return watch.give_stdio(options_.own->program, options_.own->channel, err_write.get(), false);
  in_.emplace(H5I_TRY(InputPump::create(STDIN_FILENO)));
  UniqueFd box_in = in_->take_box_end();
  return watch.give_stdio(box_in.get(), out_write.get(), err_write.get(), false);
}

// The box's own pty; the person's terminal is raw meanwhile, so that ^C is a byte for the shell and no signal for us.
Result<void> OneRun::prepare_terminal(spawn::SpawnWatch& watch) {
  spawn::Pty pty = H5I_TRY(spawn::open_pty(STDIN_FILENO));
  master_ = UniqueFd(fcntl(pty.master.get(), F_DUPFD_CLOEXEC, 3));
  if (!master_) return sys_error("dup of a pty");
  out_.emplace(std::move(pty.master), target(STDOUT_FILENO), H5I_TRY(Capture::create(box_.paths.blobs())), &budget_, options_.record, true);
  err_.emplace(UniqueFd(), ShowTarget(-1), H5I_TRY(Capture::create(box_.paths.blobs())), &budget_, false);
  in_.emplace(H5I_TRY(InputPump::to_pty(STDIN_FILENO, master_)));
  if (isatty(STDIN_FILENO)) raw_terminal_.emplace(H5I_TRY(spawn::RawTerminal::enter(STDIN_FILENO)));
  return watch.give_stdio(pty.slave.get(), pty.slave.get(), pty.slave.get(), true);
}

void OneRun::leave_terminal() {
  if (!raw_terminal_) return;
  while (out_->pending()) {  // what the shell said last comes before the clean-up
    pollfd p[2];
    out_->poll_entries(&p[0], &p[1]);
    if (poll(p, 2, 1000) <= 0 || !out_->handle(p[0], p[1])) break;
  }
  raw_terminal_.reset();
}

// Only a box with packet rules of its own has rules that could be changed.
Result<void> OneRun::listen_for_changes(spawn::SpawnWatch& watch, SuperviseInput& in) {
  if (!plan_["network"].is_object()) return {};
  EgressLive::Owner owner;
  owner.policy_digest = manifest_.policy_digest.value;
  owner.record = [this](std::string kind, Json body) -> Result<void> {
    H5I_TRY(record(std::move(kind), std::move(body), Observer::core(), Boundary::NET));
    return {};
  };
  owner.effective_digest = [this](const EgressHeld& held) {
    Json request = request_;
    request["network"]["hosts"] = held.hosts;
    return sha256_hex(effective_form(held.plan, request));
  };
  egress_live_.emplace(H5I_TRY(EgressLive::open(box_.paths, {plan_, egress_.network["hosts"].string()}, &watch, std::move(owner))));
  in.control = egress_live_->fd();
  in.on_control = [this] { egress_live_->on_request(); };
  in.network_said = [this](const Json& said, bool certain) { return egress_live_->on_said(said, certain); };
  return {};
}

Result<Supervised> OneRun::execute() {
  budget_.left = static_cast<uint64_t>(std::max<int64_t>(0, policy_["profile"]["resources"]["output"].integer(64 << 20)));
  spawn::SpawnWatch watch(host_->take_spawner());
  // Also there, because this process can be stopped (^Z), and time goes on.
  if (deadline_ns_ != INT64_MAX) H5I_TRY(watch.set_deadline(deadline_ns_));
  if (options_.shell) H5I_TRY(prepare_terminal(watch));
  else H5I_TRY(prepare_pipes(watch));

  host_->bound(INT64_MAX, -1);  // from here on the loop below sees both
  SuperviseInput in;
  in.host = &*host_;
  in.watch = &watch;
  in.out = &*out_;
  in.err = &*err_;
  if (options_.shell) in.window_size = [this] { (void)spawn::copy_window_size(STDIN_FILENO, master_.get()); };
  in.in = in_ ? &*in_ : nullptr;
  in.signals = &*signals_;
  in.deadline_ns = deadline_ns_;
  in.attest = [this](const Ready& r) { return attest(r); };
  in.denial = [this](const spawn::Denial& d) {
    std::string name = os::syscall_name(d.syscall);
    (void)record("denial", json::Object{{"syscall", name}, {"number", d.syscall}, {"errno", os::errno_name(d.err)}}, Observer::spawner(),
                 evidence::boundary_of_syscall(name));
  };
  in.killed = [this](std::string_view reason, int signal) {
    (void)record("killed", json::Object{{"reason", reason}, {"signal", signal}});
  };
  H5I_TRY(listen_for_changes(watch, in));
  Supervised s = H5I_TRY(supervise(in, request_));
  host_->begin_shutdown();
  if (in_) in_->close();
  H5I_TRY(out_->drain());
  H5I_TRY(err_->drain());
  leave_terminal();
  return s;
}

}  // namespace h5i::session
