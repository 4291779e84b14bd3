// The steps of "Life of one run", in order; each is one function below.
#include "core/session/run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/evidence/findings.hpp"
#include "core/evidence/seal.hpp"
#include "core/os/beneath.hpp"
#include "core/os/cgroup.hpp"
#include "core/os/fs.hpp"
#include "core/os/pidfd.hpp"
#include "core/os/syscall_name.hpp"
#include "core/session/attest.hpp"
#include "core/session/departures.hpp"
#include "core/session/egress.hpp"
#include "core/session/egress_live.hpp"
#include "core/session/environment.hpp"
#include "core/session/live.hpp"
#include "core/session/output.hpp"
#include "core/session/placeholders.hpp"
#include "core/session/probe.hpp"
#include "core/session/proof_files.hpp"
#include "core/session/receipt.hpp"
#include "core/session/request.hpp"
#include "core/session/spool.hpp"
#include "core/session/supervise.hpp"
#include "core/session/verify_cache.hpp"
#include "core/spawn/plan.hpp"
#include "core/spawn/pty.hpp"

namespace h5i::session {
namespace {

using evidence::Boundary;
using evidence::Observer;
using evidence::Record;

constexpr int64_t kInitExecNs = 1'000'000'000;  // on a loaded machine an exec that began can wait this long for its turn
constexpr uint64_t kReceiptRoom = 256u << 10;    // of the disk, set aside before anything runs
constexpr int kLetGo = 200;                       // milliseconds for the kernel to take down a process that was killed
constexpr int64_t kFlushAfterDeadlineMs = 1000;  // a reader that does not read does not hold up a run that ran out of time

Boundary boundary_from(std::string_view name) {
  for (Boundary b : {Boundary::FS, Boundary::NET, Boundary::PROC, Boundary::RESOURCE, Boundary::PROVENANCE})
    if (evidence::boundary_name(b) == name) return b;
  return Boundary::NONE;
}

void nap() {
  timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
}

std::string verb_of(const RunOptions& o) { return o.shell ? "box shell" : "box run"; }

// One run and everything that its steps share.
class Run {
 public:
  Run(const BoxEntry& box, const RunOptions& options, std::string prefix)
      : box_(box), options_(options), prefix_(std::move(prefix)), started_ns_(realtime_ns()), started_mono_(monotonic_ns()) {}

  Result<RunReport> go() {
    session_ = H5I_TRY(new_session_id());
    log_ = H5I_TRY(open_log());
    auto prepared = prepare();
    if (!prepared) return refuse(with_missing(prepared.error()));
    auto supervised = execute();
    if (!supervised) return refuse(supervised.error());
    return finish(*supervised);
  }

 private:
  // ---- records ----

  Result<std::unique_ptr<evidence::Log>> open_log() {
    auto log = evidence::Log::open(box_.paths.log());
    if (!log && log.error().code == Errc::NOT_FOUND && access(box_.paths.dir.c_str(), F_OK) != 0)
      return make_error(Errc::BOX_NOT_FOUND, "there is no box " + box_.name.str(), box_.paths.dir);
    if (!log) return make_error(Errc::LOG_WRITE, "the box's log cannot be written", log.error().what + ": " + log.error().evidence);
    return std::make_unique<evidence::Log>(std::move(*log));
  }

  // What is recorded on the way leaves room for the receipt: a box that fills the disk cannot keep it from being written.
  Result<evidence::Head> record(std::string kind, Json body, Observer observer = Observer::core(), Boundary boundary = Boundary::NONE) {
    if (kind != "receipt" && kind != "run-refused") H5I_TRY(log_->reserve(receipt_room()));
    Record r;
    r.observer = std::move(observer);
    r.boundary = boundary;
    r.kind = std::move(kind);
    r.session = session_;
    r.body = std::move(body);
    return log_->append(r);
  }

  uint64_t receipt_room() const {
    uint64_t room = kReceiptRoom;
    for (const std::string& a : argv_) room += 2 * a.size();
    return room;
  }

  // Best effort: the error goes to the caller whatever becomes of the record.
  Error refuse(Error e) {
    (void)record("run-refused", json::Object{{"id", e.id()},
                                             {"what", printable(e.what)},
                                             {"evidence", printable(e.evidence)},
                                             {"exit_status", exit_status_of(e)}});
    (void)log_->flush();
    if (!absent_.empty() || !absent_outside_.empty()) {
      host_->shutdown();  // whoever would make them is gone
      remove_litter();
    }
    egress_live_.reset();
    if (!is_alive(spawner_)) clear_groups();
    if (live_written_) (void)clear_live(box_.paths);
    return e;
  }

  // Where this run's control groups are made; empty when nowhere.
  std::string groups() const { return plan_["cgroup"]["base"].string(); }

  // A spawner that was killed has left its group, and lets go of it a moment later; one that lives removes it itself.
  void clear_groups() {
    const std::string base = groups();
    if (base.empty()) return;
    for (int i = 0; i < kLetGo && is_alive(spawner_); i++) nap();
    if (!is_alive(spawner_)) (void)os::clear_dead_groups(base);
  }

  // The tier removes its placeholders, unless it was killed, or given up.
  void remove_litter() {
    if (absent_.empty() && absent_outside_.empty()) return;
    if (auto work = os::open_directory(box_.paths.work())) (void)remove_placeholders(*work, absent_);
    (void)remove_placeholders_outside(absent_outside_);
  }

  // ---- before anything runs ----

  Result<void> prepare() {
    lock_.emplace(H5I_TRY(BoxLock::acquire(box_.paths, verb_of(options_))));
    if (auto dir = os::open_directory(box_.paths.dir)) os::remove_dead_files(*dir);
    manifest_ = H5I_TRY(load_manifest(box_.paths));
    policy_ = H5I_TRY(load_policy(box_.paths, manifest_));
    if (manifest_.state == BoxState::ABORTED)
      return make_error(Errc::BOX_STATE, "nothing runs in " + manifest_.name.str(), "the box is aborted");
    dirs_ = H5I_TRY(UserDirs::from_environment());
    (void)make_private_directory(dirs_.state);  // what is there already can be hidden from a box that may only read around it
    hidden_ = H5I_TRY(always_hidden(box_.paths, manifest_, dirs_, policy_));
    H5I_TRY(check_command());
    H5I_TRY(check_objects());
    H5I_TRY(empty_spool(box_.paths.spool()));
    signals_.emplace(H5I_TRY(SignalFd::take()));
    H5I_TRY(start_host_process());  // goes on by itself while the next steps are taken
    int64_t wall = policy_["profile"]["resources"]["wall"].integer(0);
    if (wall > 0 && !options_.shell) deadline_ns_ = started_mono_ + wall * 1000000000;
    H5I_TRY(record("run-requested", json::Object{{"command", json_of(redacted_argv())},
                                                 {"cwd", cwd_},
                                                 {"shell", options_.shell},
                                                 {"tier", manifest_.tier},
                                                 {"policy_digest", manifest_.policy_digest.value}}));
    H5I_TRY(load_plugin());
    H5I_TRY(probe());
    H5I_TRY(make_plan());
    H5I_TRY(record_placeholders());
    return prove();
  }

  Result<void> check_command() {
    const Json& profile = policy_["profile"];
    H5I_TRY(check_broker(profile));
    Variables host = host_variables();
    Environment env = compute_environment(profile, host);
    argv_ = options_.argv;
    if (options_.shell && argv_.empty()) {
      auto shell = host.find("SHELL");
      argv_ = {shell != host.end() && shell->second.starts_with('/') ? shell->second : "/bin/sh", "-i"};
    }
    if (argv_.empty() || argv_[0].empty())
      return make_error(Errc::BOX_COMMAND, "no command for " + box_.name.str(), "there is nothing after --");
    for (const std::string& a : argv_)
      if (!valid_utf8(a)) return make_error(Errc::INVALID, "an argument is not UTF-8", printable(a), "quote or rename it");
    H5I_TRY(check_tool(profile, argv_[0]));
    cwd_ = H5I_TRY(cwd_below(box_.paths.work(), options_.cwd));
    if (exec_candidates(argv_[0], env.values["PATH"], cwd_).empty())
      return make_error(Errc::EXEC_NOT_FOUND, "there is no program " + printable(argv_[0]), "PATH names no folder by an absolute path: " + printable(env.values["PATH"]));
    env.values["H5I_BOX"] = manifest_.name.str();
    env.values["H5I_SESSION"] = session_.value;
    env.values["H5I_SPOOL"] = box_.paths.spool();
    env_ = std::move(env);
    return {};
  }

  // The view of a box shows these folders by name. They were no links when the box was made; one that is now would show it the
  // objects of whatever repository it leads to.
  Result<void> check_objects() {
    for (const std::string& objects : manifest_.object_dirs) {
      auto fd = os::open_no_links(objects, O_PATH | O_DIRECTORY);
      if (!fd && fd.error().code == Errc::PATH_ESCAPE)
        return make_error(Errc::GIT_REDIRECTED, "objects that the box was made of lie behind a symbolic link now", printable(objects), "replace the link by what it leads to");
    }
    return {};
  }

  std::vector<std::string> redacted_argv() {
    std::vector<std::string> out;
    for (const std::string& a : argv_) out.push_back(evidence::redact(a, &redactions_));
    return out;
  }

  static Json json_of(const std::vector<std::string>& list) {
    Json out = json::Array{};
    for (const std::string& s : list) out.push(s);
    return out;
  }

  Result<void> start_host_process() {
    plugin::HostEvents events;
    events.evidence = [this](const std::string& boundary, const std::string& kind, const Json& body) {
      if (kind == "unobserved") unobserved_.push(body);
      auto r = record(kind, body, Observer::plugin(plugin_.id, plugin_.digest), boundary_from(boundary));
      if (!r && !record_error_) record_error_ = r.error();
    };
    host_.emplace(H5I_TRY(start_host(std::move(events), prefix_)));
    return {};
  }

  Result<void> load_plugin() {
    plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
    auto registry = H5I_TRY(plugin::Registry::scan(std::move(settings)));
    plugin_ = H5I_TRY(registry.find_tier(manifest_.tier));
    self_ = H5I_TRY(read_process(getpid(), false));
    host_->bound(deadline_ns_, signals_->fd());
    H5I_TRY(load_tier(*host_, plugin_));
    H5I_TRY(record("plugin", json::Object{{"id", plugin_.id},
                                          {"version", plugin_.version},
                                          {"digest", plugin_.digest.value},
                                          {"trust", plugin::trust_name(plugin_.trust)}}));
    spawner_ = {"spawner", host_->spawner_pid(), process_start(host_->spawner_pid())};
    return write_live_record();
  }

  Json request(bool with_command) {
    RequestInput in;
    in.session = session_;
    in.manifest = &manifest_;
    in.paths = &box_.paths;
    in.policy = &policy_;
    in.dirs = &dirs_;
    in.prefix = prefix_;
    in.uid = getuid();
    in.gid = getgid();
    in.env = env_.values;
    in.hidden = hidden_;
    in.network = &egress_.network;
    in.probe = &probe_;
    if (with_command) {
      RequestInput::Command c;
      c.argv = argv_;
      c.exec = exec_candidates(argv_[0], env_.values["PATH"], cwd_);
      c.cwd = cwd_;
      c.tty = options_.shell;
      c.readonly = options_.readonly;
      in.command = std::move(c);
    }
    return run_request(in);
  }

  std::string effective_form(const Json& plan, const Json& request) const {
    spawn::Names names;
    names.values = session_names(request);
    if (getuid() == 0 && manifest_.host_uid != 0) {
      names.box_uid = manifest_.host_uid;
      names.box_gid = manifest_.host_gid;
    }
    return json::canonical(spawn::effective_form_of(plan, names));
  }

  Result<void> make_plan() {
    if (takes_egress(plugin_.manifest["claims"])) egress_ = H5I_TRY(egress_now(policy_["profile"], dirs_));
    request_ = request(true);
    plan_ = H5I_TRY(host_->plan(request_));
    plan_digest_ = H5I_TRY(spawn::decode_parsed_plan(plan_)).digest;
    std::string form = effective_form(plan_, request_);
    effective_ = EffectiveDigest(sha256_hex(form));
    evidence::BlobRef blob = H5I_TRY(evidence::put_blob(box_.paths.blobs(), form));
    for (const std::string& line : unfounded_claims(plan_, strings(plugin_.manifest["claims"]), policy_))
      return make_error(Errc::TIER_OVERCLAIM, "tier " + plugin_.id + " claims what its plan does not hold", line);
    for (const std::string& line : departures(plan_, request_, strings(plugin_.manifest["claims"])))
      return make_error(Errc::TIER_OVERCLAIM, "the plan of tier " + plugin_.id + " is not what was asked for", printable(line));
    H5I_TRY(record("plan", json::Object{{"effective_digest", effective_.value},
                                        {"not_enforced", plan_["not_enforced"]},
                                        {"blob", blob.sha256}}));
    return {};
  }

  // Before anything makes them: a run that is killed must leave nothing in the work tree that nobody knows of.
  Result<void> record_placeholders() {
    bool more = false;
    absent_ = names_to_be_made(plan_, box_.paths.work());
    absent_outside_ = names_to_be_made_outside(plan_, box_.paths.work());
    if (!absent_outside_.empty() || !groups().empty()) H5I_TRY(write_live_record());
    for (const std::string& name : absent_) {
      auto& known = manifest_.placeholders;
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      known.push_back(name);
      more = true;
    }
    return more ? save_manifest(box_.paths, manifest_) : Result<void>();
  }

  std::string proofs() const { return dirs_.cache + "/proved"; }

  // What this host could enforce, or the answer from this boot.
  Result<void> probe() {
    ResultCache cache(proofs());
    Json key = ProbeKey{plugin_.digest.value, boot_id(), getuid()}.to_json();
    if (auto known = cache.get("probe", key); known && check_probe(*known, plugin_) && (*known)["available"].boolean()) {
      probe_ = std::move(*known);
      probe_cached_ = true;
      return {};
    }
    probe_ = H5I_TRY(host_->probe());
    H5I_TRY(check_probe(probe_, plugin_));
    if (!probe_["available"].boolean()) return make_error(Errc::TIER_PROBE_MISSING, "tier " + plugin_.id + " is impossible here", "missing " + missing_of(probe_));
    cache.put("probe", key, probe_);
    return {};
  }

  static std::string missing_of(const Json& probe) {
    std::string out;
    for (const std::string& m : strings(probe["missing"])) out += (out.empty() ? "" : ", ") + printable(m);
    return out;
  }

  // Where the tier could not set up a box although it could when this boot's answer was kept: what is missing now. Empty: nothing, or nobody says.
  std::string missing_now() {
    if (!probe_cached_) return "";
    auto now = probe_tier(plugin_, prefix_);
    if (!now || (*now)["available"].boolean()) return "";
    ResultCache(proofs()).put("probe", ProbeKey{plugin_.digest.value, boot_id(), getuid()}.to_json(), *now);
    return missing_of(*now);
  }

  Error with_missing(Error e) {
    const Errc of_setup[] = {Errc::TIER_SETUP, Errc::TIER_PROBE_MISSING, Errc::TIER_VERIFY_FAILED, Errc::TIER_NO_CONTROL, Errc::UNSUPPORTED};
    if (std::find(std::begin(of_setup), std::end(of_setup), e.code) == std::end(of_setup)) return e;
    std::string missing = missing_now();
    if (missing.empty()) return e;
    return make_error(Errc::TIER_PROBE_MISSING, "tier " + plugin_.id + " is impossible here", "missing " + missing + " (" + e.what + ": " + e.evidence + ")");
  }

  // verify_exec under this policy, or its result from this boot.
  Result<void> prove() {
    ResultCache cache(proofs());
    Json key = VerifyKey{effective_.value, plugin_.digest.value, boot_id(), canonical_digest(probe_), getuid()}.to_json();
    auto verify = cache.get("verify", key);
    if (verify && !check_verify(*verify, plugin_.id)) verify.reset();
    proof_cached_ = verify.has_value();
    if (!verify) {
      auto proved = host_->verify_exec(request(false));
      if (!proved) {
        remove_proof_files(box_.paths);  // the tier does, unless it was killed over it
        return std::move(proved).error();
      }
      verify = std::move(*proved);
      H5I_TRY(check_verify(*verify, plugin_.id));
      cache.put("verify", key, *verify);
    }
    proof_digest_ = canonical_digest(*verify);
    return {};
  }

  // ---- while it runs ----

  Result<void> write_live_record(const Ready* ready = nullptr) {
    Live live;
    live.session = session_;
    live.verb = verb_of(options_);
    live.started = rfc3339(started_ns_);
    live.boot = boot_id();
    live.tier = manifest_.tier;
    auto add = [&](const char* role, pid_t pid) {
      if (pid > 0) live.processes.push_back({role, pid, process_start(pid)});
    };
    add("core", getpid());
    add("host", host_->pid());
    add("spawner", ready ? os::parent_of(ready->init_pid) : host_->spawner_pid());
    if (ready && ready->has_init) add("init", ready->init_pid);
    if (ready) add("workload", ready->workload);
    live.groups = groups();
    live.placeholders = absent_outside_;
    live_written_ = true;
    return write_live(box_.paths, live);
  }

  // The running init is our file, or a sealed copy of its bytes. A copy can only be executed, so that the program is not
  // dumpable: the spawner hands over the descriptor, and that it is the one that runs is seen by its device and inode.
  bool init_is_ours(const ProcessFacts& init, const UniqueFd& running, AttestInput* in) {
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

  Result<void> attest(const Ready& ready) {
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

  std::string capture_mode() const {
    const std::string& mode = policy_["audit"]["capture"].string();
    return mode.empty() ? "all" : mode;
  }

  // Nothing is shown in JSON mode: standard output is the document's.
  ShowTarget target(int fd) const { return ShowTarget(options_.json ? -1 : fd); }

  Result<void> prepare_pipes(spawn::SpawnWatch& watch) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) < 0) return sys_error("pipe2");
    UniqueFd out_read(out[0]), out_write(out[1]);
    if (pipe2(err, O_CLOEXEC) < 0) return sys_error("pipe2");
    UniqueFd err_read(err[0]), err_write(err[1]);
    out_.emplace(std::move(out_read), target(STDOUT_FILENO), H5I_TRY(Capture::create(box_.paths.blobs())), &budget_, true);
    err_.emplace(std::move(err_read), target(STDERR_FILENO), H5I_TRY(Capture::create(box_.paths.blobs())), &budget_, true);
    in_.emplace(H5I_TRY(InputPump::create(STDIN_FILENO)));
    UniqueFd box_in = in_->take_box_end();
    return watch.give_stdio(box_in.get(), out_write.get(), err_write.get(), false);
  }

  // The box's own pty; the person's terminal is raw meanwhile, so that ^C is a byte for the shell and no signal for us.
  Result<void> prepare_terminal(spawn::SpawnWatch& watch) {
    spawn::Pty pty = H5I_TRY(spawn::open_pty(STDIN_FILENO));
    master_ = UniqueFd(fcntl(pty.master.get(), F_DUPFD_CLOEXEC, 3));
    if (!master_) return sys_error("dup of a pty");
    out_.emplace(std::move(pty.master), target(STDOUT_FILENO), H5I_TRY(Capture::create(box_.paths.blobs())), &budget_, options_.record, true);
    err_.emplace(UniqueFd(), ShowTarget(-1), H5I_TRY(Capture::create(box_.paths.blobs())), &budget_, false);
    in_.emplace(H5I_TRY(InputPump::to_pty(STDIN_FILENO, master_)));
    if (isatty(STDIN_FILENO)) raw_terminal_.emplace(H5I_TRY(spawn::RawTerminal::enter(STDIN_FILENO)));
    return watch.give_stdio(pty.slave.get(), pty.slave.get(), pty.slave.get(), true);
  }

  void leave_terminal() {
    if (!raw_terminal_) return;
    while (out_->pending()) {  // what the shell said last comes before the clean-up
      pollfd p[2];
      out_->poll_entries(&p[0], &p[1]);
      if (poll(p, 2, 1000) <= 0 || !out_->handle(p[0], p[1])) break;
    }
    raw_terminal_.reset();
  }

  // Only a box with packet rules of its own has rules that could be changed.
  Result<void> listen_for_changes(spawn::SpawnWatch& watch, SuperviseInput& in) {
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

  Result<Supervised> execute() {
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
    in.in = &*in_;
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
    in_->close();
    H5I_TRY(out_->drain());
    H5I_TRY(err_->drain());
    leave_terminal();
    return s;
  }

  // ---- after everything is gone ----

  StreamReceipt stream(const OutputStream& s, bool keep, const char* what) {
    StreamReceipt r;
    r.bytes = s.bytes();
    r.captured = s.capture().size();
    r.truncated = s.truncated();
    if (s.lost()) unobserved(what, *s.lost());
    if (keep) {
      auto blob = s.capture().store(box_.paths.blobs());
      if (blob) r.sha256 = blob->sha256, r.blob = true;
      else unobserved(what, blob.error());
    }
    if (!r.blob) {
      auto digest = s.capture().digest();
      if (digest) r.sha256 = *digest;
      else unobserved(what, digest.error());
    }
    for (const auto& [rule, n] : s.redactions()) redactions_[rule] += n;
    return r;
  }

  void unobserved(const char* what, const Error& e) {
    unobserved_.push(json::Object{{"what", what}, {"reason", printable(e.what + (e.evidence.empty() ? "" : ": " + e.evidence))}});
  }

  Result<void> take_in_spool() {
    SpoolTaken staged = H5I_TRY(take_spool(box_.paths.spool()));
    SpoolTaken* taken = &staged;
    for (const SpoolEntry& e : taken->entries) {
      std::string clean = evidence::redact(json::canonical(e.body), &redactions_);
      auto body = json::parse(clean);
      H5I_TRY(record("box-claimed", json::Object{{"name", printable(e.name)}, {"body", body ? std::move(*body) : Json(clean)}}, Observer::box()));
    }
    for (const SpoolRefusal& e : taken->refused)
      H5I_TRY(record("spool-refused", json::Object{{"name", printable(e.name)}, {"reason", e.reason}, {"id", errc_id(Errc::SPOOL_INVALID)}}));
    if (taken->ignored > 0)
      H5I_TRY(record("spool-refused", json::Object{{"name", ""}, {"reason", std::to_string(taken->ignored) + " more entries than are taken"},
                                                   {"id", errc_id(Errc::SPOOL_INVALID)}}));
    return {};
  }

  Json self_reported() const {
    Json r = json::Object{{"observer", "spawner"}, {"proved_by", proof_digest_}, {"proof", proof_cached_ ? "cached" : "this run"}};
    const Json& landlock = plan_["landlock"];
    r["landlock"] = landlock.is_object() ? Json(json::Object{{"abi", landlock["abi"]}, {"rules", landlock["rules"].array().size()}}) : Json();
    r["seccomp_sha256"] = plan_["seccomp"].is_object() ? plan_["seccomp"]["sha256"] : Json();
    return r;
  }

  void add_unobserved() {
    if (plan_["landlock"].is_object() || !plan_["root"].is_null())
      unobserved_.push(json::Object{{"what", "refused file accesses"}, {"reason", "mounts and Landlock refuse without telling us"}});
    else
      unobserved_.push(json::Object{{"what", "file and network accesses"}, {"reason", "nothing of this tier confines or watches them"}});
    if (!plan_["seccomp"].is_object())
      unobserved_.push(json::Object{{"what", "refused system calls"}, {"reason", "this tier filters none"}});
    // A program only learns EAGAIN or ENOMEM; these are the fields to look at. A group counts what it refused.
    const Json& resources = policy_["profile"]["resources"];
    const Json& counted = plan_["cgroup"]["limits"];
    std::string silent;
    if (counted["pids.max"].is_null()) silent = "a task beyond resources.procs (" + std::to_string(resources["procs"].integer()) + ")";
    if (counted["memory.max"].is_null())
      silent += (silent.empty() ? "memory" : " or memory") + (" beyond resources.mem (" + std::to_string(resources["mem"].integer() >> 20)) + " MiB)";
    if (!plan_["rlimits"].array().empty() && !silent.empty())
      unobserved_.push(json::Object{{"what", "limits that were reached"}, {"reason", silent + " is refused without telling us"}});
  }

  Result<RunReport> finish(Supervised& s) {
    if (s.outcome.status == Outcome::Status::SETUP_FAILED)
      if (std::string missing = missing_now(); !missing.empty()) s.outcome.reason = Errc::TIER_PROBE_MISSING, s.outcome.detail = "missing " + missing + " (" + s.outcome.detail + ")";
    if (record_error_) s.outcome = {Outcome::Status::VIOLATION, 0, Errc::LOG_WRITE, record_error_->what + ": " + record_error_->evidence};
    // A cpu limit ends a process by SIGXCPU; for the caller that is a deadline like any other. Anybody can send that signal,
    // so the time that the box used decides: half of the limit, because the kernel counts a limit in whole ticks and usage exactly.
    const Json& cpu = policy_["profile"]["resources"]["cpu"];
    if (s.outcome.status == Outcome::Status::SIGNALED && s.outcome.code == SIGXCPU && cpu.is_int() && s.spawned &&
        static_cast<int64_t>(s.spawned->user_us + s.spawned->system_us) >= cpu.integer() * 500'000)
      s.outcome = {Outcome::Status::TIMEOUT, 0, Errc::RUN_DEADLINE, "resources.cpu"};
    if (s.outcome.status == Outcome::Status::TIMEOUT && s.spawned && s.spawned->cpu_spent) s.outcome.detail = "resources.cpu";
    // The kernel kills a whole box that needs more memory than it may have, init included.
    if (s.outcome.status == Outcome::Status::SIGNALED && s.outcome.code == SIGKILL && s.spawned && s.spawned->oom_kills > 0)
      s.outcome.detail = "resources.mem: the box needed more than " + std::to_string(policy_["profile"]["resources"]["mem"].integer() >> 20) + " MiB";
    // The filter's kill comes from the kernel and no notification goes with it, so this is all that is known of it.
    if (s.outcome.status == Outcome::Status::SIGNALED && s.outcome.code == SIGSYS && plan_["seccomp"].is_object())
      s.outcome.detail = "by the system call filter (a call by another architecture's entry) or by a signal that a process of the box sent";
    // From here on nothing keeps the receipt from being written: what cannot be had or kept is said in it.
    if (auto taken = take_in_spool(); !taken) unobserved("what the box claims of itself", taken.error());

    ReceiptInput r;
    r.session = session_;
    r.box = manifest_.name.str();
    r.tier = manifest_.tier;
    for (const std::string& a : argv_) r.command.push_back(evidence::redact(a));
    r.cwd = cwd_;
    r.shell = options_.shell;
    r.policy_digest = manifest_.policy_digest;
    r.effective_digest = effective_;
    r.not_enforced = plan_["not_enforced"];
    r.plugin_id = plugin_.id;
    r.plugin_version = plugin_.version;
    r.plugin_digest = plugin_.digest;
    r.attested = attested_;
    r.network = network_seen(s);
    r.self_reported = self_reported();
    r.outcome = s.outcome;
    if (s.spawned) {
      r.usage = {s.spawned->wall_us, s.spawned->user_us, s.spawned->system_us, s.spawned->max_rss_kib,
                 s.spawned->usage_cgroup ? "cgroup" : "wait4"};
      auto reached = [&](const char* field, uint64_t count) {
        if (count > 0) r.limits_reached.push(json::Object{{"field", field}, {"count", count}});
      };
      reached("resources.mem", s.spawned->oom_kills);
      reached("resources.procs", s.spawned->tasks_refused);
      reached("resources.cpu", s.spawned->cpu_spent ? 1 : 0);
      for (const spawn::Denial& d : s.spawned->denials)
        r.denials.push(json::Object{{"syscall", os::syscall_name(d.syscall)}, {"number", d.syscall}, {"count", d.count}, {"errno", os::errno_name(d.err)}});
      if (!s.spawned->usage_cgroup)
        unobserved_.push(json::Object{{"what", "usage of processes that nobody in the box waited for"}, {"reason", "the box has no cgroup that counts them"}});
      if (s.spawned->survivors > 0)
        r.survivors.push(json::Object{{"count", s.spawned->survivors}, {"fate", "killed"}});
    } else {
      unobserved_.push(json::Object{{"what", "usage, denials and survivors"}, {"reason", "the spawner was lost, or started nothing"}});
    }
    add_unobserved();
    if (!s.plugin_disagrees.empty()) {
      (void)record("plugin-disagrees", json::Object{{"detail", s.plugin_disagrees}});
      unobserved_.push(json::Object{{"what", "the plugin's own account"}, {"reason", printable(s.plugin_disagrees)}});
    }
    std::string mode = capture_mode();
    bool failed = exit_status_of(s.outcome) != 0 || (s.spawned && !s.spawned->denials.empty());
    bool keep = (!options_.shell || options_.record) && (mode == "all" || (mode == "signal" && failed));
    r.out = stream(*out_, keep, "standard output");
    r.err = stream(*err_, keep, "standard error");
    r.unobserved = unobserved_;
    r.redactions = redactions_;
    r.env_not_passed = env_.unrepresentable;
    r.started_ns = started_ns_;
    r.ended_ns = realtime_ns();

    RunReport report;
    report.receipt = receipt_json(r);
    evidence::Head head = H5I_TRY(record("receipt", report.receipt));
    H5I_TRY(log_->flush());
    report.receipt_record = head.digest;
    report.exit_status = exit_status_of(s.outcome);
    if (!s.spawned) clear_groups();
    H5I_TRY(settle());
    flush_output(s.outcome.status == Outcome::Status::TIMEOUT ? monotonic_ns() + kFlushAfterDeadlineMs * 1000000 : INT64_MAX);
    host_->shutdown();
    seal_head();
    return report;
  }

  // What went where, by who held the rules; null where no tier of this kind ran.
  Json network_seen(const Supervised& s) {
    if (!plan_["network"].is_object()) return Json();
    Json out;
    if (s.spawned && !s.spawned->network.empty())
      if (auto report = parse_json(s.spawned->network, "report of the box's network")) out = std::move(*report);
    if (!out.is_object()) {
      unobserved_.push(json::Object{{"what", "where the box's packets went"}, {"reason", "h5i-net was lost; the rules stayed as they were"}});
      out = json::Object{{"schema", "h5i.network/1"}};
    }
    out["added"] = egress_.added;
    out["not_pinned"] = egress_.refused;
    if (egress_live_ && !egress_live_->changes().array().empty()) out["changes"] = egress_live_->changes();
    return out;
  }

  // What the box is after a run; written only when it changed, because the write is flushed to disk.
  Result<void> settle() {
    remove_litter();
    egress_live_.reset();  // its socket goes while there is a record by which the next command would find it
    H5I_TRY(clear_live(box_.paths));
    live_written_ = false;
    if (manifest_.state == BoxState::IDLE) return {};
    manifest_.state = BoxState::IDLE;
    manifest_.last_session = session_.value;
    return save_manifest(box_.paths, manifest_);
  }

  // As with any program, the end waits for a reader that still reads; a signal or (after a deadline) a second ends that.
  void flush_output(int64_t until) {
    while (out_->pending() || err_->pending()) {
      pollfd p[5];
      out_->poll_entries(&p[0], &p[1]);
      err_->poll_entries(&p[2], &p[3]);
      p[4] = {signals_->fd(), POLLIN, 0};
      int64_t left = until == INT64_MAX ? -1 : (until - monotonic_ns()) / 1000000;
      if (until != INT64_MAX && left <= 0) return;
      if (poll(p, 5, static_cast<int>(left)) < 0 && errno != EINTR) return;
      if (p[4].revents) return;
      if (!out_->handle(p[0], p[1]) || !err_->handle(p[2], p[3])) return;
    }
  }

  // Signing needs libcrypto and a flush of its own: a program of its own does it, and nobody waits for it. Where it is not
  // installed or does not start, the log stays unsealed, and status says so.
  void seal_head() {
    auto helper = plugin::open_helper(prefix_, "libexec/h5i/h5i-evidence");
    if (helper) (void)evidence::start_sealing("/proc/self/fd/" + std::to_string(helper->get()), box_.paths.log());
  }

  const BoxEntry& box_;
  const RunOptions& options_;
  std::string prefix_;
  int64_t started_ns_, started_mono_, deadline_ns_ = INT64_MAX;
  SessionId session_;
  std::unique_ptr<evidence::Log> log_;
  std::optional<BoxLock> lock_;
  Manifest manifest_;
  LiveProcess spawner_;
  Json policy_, request_, probe_, plan_;
  std::vector<std::string> absent_, absent_outside_;  // names that stand there for the time of the run
  std::optional<EgressLive> egress_live_;
  EgressNow egress_{Json(), Json(json::Array{}), Json(json::Array{})};
  ProcessFacts self_;
  UserDirs dirs_;
  std::vector<std::string> argv_;
  std::string cwd_;
  Environment env_;
  std::vector<std::string> hidden_;
  plugin::PluginInfo plugin_;
  std::optional<SignalFd> signals_;
  std::optional<plugin::HostProcess> host_;
  EffectiveDigest effective_;
  std::string plan_digest_, proof_digest_;
  bool proof_cached_ = false, probe_cached_ = false, live_written_ = false;
  Json attested_ = json::Object{}, unobserved_ = json::Array{};
  std::optional<Error> record_error_;
  CaptureBudget budget_;
  std::optional<OutputStream> out_, err_;
  std::optional<InputPump> in_;
  UniqueFd master_;
  std::optional<spawn::RawTerminal> raw_terminal_;
  std::map<std::string, uint64_t> redactions_;
};

}  // namespace

Result<RunReport> run_in_box(const BoxEntry& box, const RunOptions& options) {
  return Run(box, options, plugin::install_prefix()).go();
}

}  // namespace h5i::session
