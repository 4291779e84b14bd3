// After everything is gone: how it ended, the receipt, and the box at rest.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

#include "core/evidence/log.hpp"
#include "core/evidence/seal.hpp"
#include "core/os/syscall_name.hpp"
#include "core/session/run_steps.hpp"
#include "core/session/spool.hpp"

namespace h5i::session {
namespace {

// What was asked for: the gate refuses before a destination could be named.
Json sockets_of(const spawn::SpawnResult& r) {
  Json out = json::Array{};
  for (const spawn::SocketDenial& s : r.sockets)
    out.push(json::Object{{"kind", os::socket_name(s.kind.family, s.kind.type, s.kind.protocol)}, {"count", s.count}});
  return out;
}

constexpr int64_t kFlushAfterDeadlineMs = 1000;  // a reader that does not read does not hold up a run that ran out of time

}  // namespace

StreamReceipt OneRun::stream(const OutputStream& s, bool keep, const char* what) {
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

void OneRun::unobserved(const char* what, const Error& e) {
  unobserved_.push(json::Object{{"what", what}, {"reason", printable(e.what + (e.evidence.empty() ? "" : ": " + e.evidence))}});
}

Result<void> OneRun::take_in_spool() {
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

Json OneRun::self_reported() const {
  Json r = json::Object{{"observer", "spawner"}, {"proved_by", proof_digest_}, {"proof", proof_cached_ ? "cached" : "this run"}};
  const Json& landlock = plan_["landlock"];
  r["landlock"] = landlock.is_object() ? Json(json::Object{{"abi", landlock["abi"]}, {"rules", landlock["rules"].array().size()}}) : Json();
  r["seccomp_sha256"] = plan_["seccomp"].is_object() ? plan_["seccomp"]["sha256"] : Json();
  return r;
}

void OneRun::add_unobserved() {
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

// How it ended, in the words of what the policy asked for.
void OneRun::explain(Supervised& s) {
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
}

ReceiptInput OneRun::receipt_of(const Supervised& s) {
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
    for (const spawn::Denial& d : s.spawned->denials) {
      Json row = json::Object{{"syscall", os::syscall_name(d.syscall)}, {"number", d.syscall}, {"count", d.count}, {"errno", os::errno_name(d.err)}};
      if (d.syscall == SYS_socket) row["sockets"] = sockets_of(*s.spawned);
      r.denials.push(std::move(row));
    }
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
  return r;
}

Result<RunReport> OneRun::finish(Supervised& s) {
  explain(s);
  // From here on nothing keeps the receipt from being written: what cannot be had or kept is said in it.
  if (auto taken = take_in_spool(); !taken) unobserved("what the box claims of itself", taken.error());

  RunReport report;
  report.receipt = receipt_json(receipt_of(s));
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
Json OneRun::network_seen(const Supervised& s) {
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
Result<void> OneRun::settle() {
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
void OneRun::flush_output(int64_t until) {
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
void OneRun::seal_head() {
  auto helper = plugin::open_helper(prefix_, "libexec/h5i/h5i-evidence");
  if (helper) (void)evidence::start_sealing("/proc/self/fd/" + std::to_string(helper->get()), box_.paths.log());
}

}  // namespace h5i::session
