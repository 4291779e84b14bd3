// One run and everything that its steps share: a file for each part of "Life of one run". Only run*.cpp may include this.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/base/unique_fd.hpp"
#include "core/evidence/findings.hpp"
#include "core/evidence/log.hpp"
#include "core/plugin/registry.hpp"
#include "core/session/attest.hpp"
#include "core/session/egress.hpp"
#include "core/session/egress_live.hpp"
#include "core/session/environment.hpp"
#include "core/session/live.hpp"
#include "core/session/output.hpp"
#include "core/session/receipt.hpp"
#include "core/session/run.hpp"
#include "core/session/supervise.hpp"
#include "core/spawn/pty.hpp"

namespace h5i::session {

using evidence::Boundary;
using evidence::Observer;
using evidence::Record;

class OneRun {
 public:
  OneRun(const BoxEntry& box, const RunOptions& options, std::string prefix)
      : box_(box), options_(options), prefix_(std::move(prefix)), started_ns_(realtime_ns()), started_mono_(monotonic_ns()) {}

  Result<RunReport> go();

 private:
  // what every step may need (run.cpp)
  Result<std::unique_ptr<evidence::Log>> open_log();
  Result<evidence::Head> record(std::string kind, Json body, Observer observer = Observer::core(), Boundary boundary = Boundary::NONE);
  uint64_t receipt_room() const;
  Error refuse(Error e);
  // Where this run's control groups are made; empty when nowhere.
  std::string groups() const { return plan_["cgroup"]["base"].string(); }
  Result<void> write_live_record(const Ready* ready = nullptr);
  void clear_groups();
  void remove_litter();

  // before anything runs (run_prepare.cpp)
  Result<void> prepare();
  Result<void> check_command();
  Result<void> check_objects();
  std::vector<std::string> redacted_argv();
  Result<void> start_host_process();
  Result<void> load_plugin();
  Json request(bool with_command);
  std::string effective_form(const Json& plan, const Json& request) const;
  Result<void> make_plan();
  Result<void> record_placeholders();
  std::string proofs() const { return dirs_.cache + "/proved"; }
  Result<void> probe();
  std::string missing_now();
  Error with_missing(Error e);
  Result<void> prove();

  // while it runs (run_execute.cpp)
  bool init_is_ours(const ProcessFacts& init, const UniqueFd& running, AttestInput* in);
  Result<void> attest(const Ready& ready);
  std::string capture_mode() const;
  // Nothing is shown in JSON mode: standard output is the document's.
  ShowTarget target(int fd) const { return ShowTarget(options_.json ? -1 : fd); }
  Result<void> prepare_pipes(spawn::SpawnWatch& watch);
  Result<void> prepare_terminal(spawn::SpawnWatch& watch);
  void leave_terminal();
  Result<void> listen_for_changes(spawn::SpawnWatch& watch, SuperviseInput& in);
  Result<Supervised> execute();

  // after everything is gone (run_finish.cpp)
  StreamReceipt stream(const OutputStream& s, bool keep, const char* what);
  void unobserved(const char* what, const Error& e);
  Result<void> take_in_spool();
  Json self_reported() const;
  void add_unobserved();
  void explain(Supervised& s);
  ReceiptInput receipt_of(const Supervised& s);
  Result<RunReport> finish(Supervised& s);
  Json network_seen(const Supervised& s);
  Result<void> settle();
  void flush_output(int64_t until);
  void seal_head();

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
  std::vector<std::string> argv_, exec_;
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

// Strings of a document, in their order.
Json json_of(const std::vector<std::string>& list);
// A millisecond.
void nap();

}  // namespace h5i::session
