// The core's side of one h5i-host process: starts it by descriptor with a clean environment, gives it the verified
// library, calls its verbs with a timeout each, and turns every way in which it can fail (crash, hang, garbage, early exit)
// into one error with evidence, after which nothing of it is left.
#pragma once
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"
#include "core/plugin/frame.hpp"

namespace h5i::plugin {

// Descriptors that h5i-host finds open at exec; everything else is closed. Core and host share this.
inline constexpr int kHostControlFd = 3;  // frames
inline constexpr int kHostSpawnerFd = 4;  // the core's end of it talks to the spawner; the host closes it after the fork
inline constexpr int kHostCancelFd = 5;   // eventfd: readable once the run is cancelled
inline constexpr int kHostInitFd = 6;     // libexec/h5i/h5i-init, for the spawner
inline constexpr int kHostCanaryFd = 7;   // libexec/h5i/h5i-canary, for the spawner
inline constexpr int kHostNetFd = 8;      // libexec/h5i/h5i-net, for the spawner; /dev/null when it is not installed

// Those of h5i-engine, which has no spawner: control, then this, then cancel at kHostCancelFd.
inline constexpr int kEngineSessionFd = 4;  // the folder of the websec session that is served; /dev/null for none
inline constexpr int kEngineChannelFd = 6;  // to its other half in a box; /dev/null for none
// Of h5i-engine in a box: its only channel is its standard output, and this is its second word.
inline constexpr int kEngineInBoxFd = 1;
inline constexpr const char* kEngineInBox = "in-box";

// Longest answer of each verb, milliseconds. run has none of its own: the session's deadline rules it.
struct HostTimeouts {
  int hello = 5000, probe = 5000, verify = 30000, plan = 2000, cleanup = 10000;
};
inline constexpr int kShutdownTimeoutMs = 1000;
inline constexpr int kSpawnerEndTimeoutMs = 10000;  // it may have thousands of processes to kill

// A plugin that records more than this in one run is broken (PLUGIN_PROTOCOL).
inline constexpr uint64_t kMaxEvidenceRecords = 10000;
inline constexpr uint64_t kMaxEvidenceBytes = 16u << 20;
inline constexpr size_t kMaxEvidenceBody = 64u << 10;

// The executables that a host process needs, opened and checked once.
struct HostHelpers {
  UniqueFd host, init, canary;
  UniqueFd net;  // not there when no tier that is installed needs it
  static Result<HostHelpers> open(const std::string& prefix);
};

// What the trust pipeline hands over. The host hashes the descriptor again before it maps anything.
struct LoadSpec {
  const UniqueFd* library = nullptr;  // borrowed, opened read-only, already verified
  std::string id, version;
  PluginDigest digest;
  std::vector<std::string> services;  // host interfaces of the manifest
  std::string kind = "tier";          // or "websec"
  bool session = false;               // of a websec plugin: a session was given to start_engine()
  bool writes = false;                // and it may add to its log and payloads
  bool network = true;                // and it has sockets; not where its wire is in a box
};
// LOAD's document, and whether the answer to it is that of this plugin.
Json load_document(const LoadSpec& spec);
Result<void> check_hello(const Json& hello, const LoadSpec& spec);

struct Outcome {
  uint32_t status = 0;  // H5I_OUTCOME_*
  int32_t code = 0;
  Errc reason = Errc::OK;
};

// Called while a verb runs. The caller stamps lane and observer: a frame carries neither.
struct HostEvents {
  std::function<void(int level, const std::string& text)> log;
  std::function<void(const std::string& boundary, const std::string& kind, const Json& body)> evidence;
};

class HostProcess {
 public:
  // Makes this process a child subreaper, so that nothing of a dead host can slip away to the machine's init.
  static Result<HostProcess> start(const HostHelpers& helpers, HostEvents events = {});
  // h5i-engine instead, with `session`, the folder of one (borrowed; none: nothing is recorded, for probe alone). `channel`: to its half in a box.
  static Result<HostProcess> start_engine(const UniqueFd& engine, const UniqueFd& session, HostEvents events = {}, const UniqueFd& channel = {});
  HostProcess(HostProcess&&) noexcept;
  HostProcess& operator=(HostProcess&&) noexcept;
  ~HostProcess();  // kill()

  void set_timeouts(const HostTimeouts& t) { timeouts_ = t; }
  const HostTimeouts& timeouts() const { return timeouts_; }
  // From now on no call waits longer than until this monotonic time: RUN_DEADLINE. And each wait ends when this descriptor
  // (borrowed, -1: none) becomes readable: CANCELLED. The host was killed in both cases.
  void bound(int64_t limit_ns, int interrupt_fd) {
    limit_ns_ = limit_ns;
    interrupt_fd_ = interrupt_fd;
  }

  // LOAD, HELLO. The host must say the id, version and digest of `spec`.
  Result<void> load(const LoadSpec& spec);

  // Verbs that answer one document. On PLUGIN_CRASHED, PLUGIN_HUNG and PLUGIN_PROTOCOL the host was killed already; any
  // other error is the plugin's own refusal and the host lives on.
  Result<Json> probe();
  Result<Json> verify_exec(const Json& request);
  Result<Json> plan(const Json& request);
  Result<void> cleanup(const SessionId& session);

  // run of a websec plugin: its answer, and how it went.
  struct Answer {
    Json document;  // null when the outcome's reason is not 0: then run_error() has the plugin's words
    Outcome outcome;
  };
  Result<Answer> act(const Json& request, int64_t timeout_ms);

  // run, for a caller with a poll loop of its own: begin_run, then on_ready whenever control() is readable or pidfd() is,
  // until it gives the outcome.
  Result<void> begin_run(const Json& request);
  Result<std::optional<Outcome>> on_ready();
  // The plugin's own words when the outcome's reason is not 0.
  const std::optional<Error>& run_error() const { return run_error_; }

  Result<void> cancel();  // raises the cancel eventfd; idempotent
  void begin_shutdown();    // asks it to end and does not wait
  void shutdown();          // asks it to end, waits kShutdownTimeoutMs, then kill()
  void kill();              // SIGKILL to it and its process group, reaped; waits until the spawner ended too; idempotent

  const UniqueFd& control() const { return control_; }
  const UniqueFd& pidfd() const { return pidfd_; }
  // The core's end of the spawner's connection (core/spawn/client.hpp speaks on it). Once.
  UniqueFd take_spawner() { return std::move(spawner_); }
  pid_t pid() const { return pid_; }
  pid_t spawner_pid() const { return spawner_pid_; }  // as hello says: for records and for reaping, not for judging
  bool alive() const { return pid_ > 0; }

 private:
  HostProcess() = default;
  using Places = std::vector<std::pair<const UniqueFd*, int>>;  // descriptors that the process finds, and where
  static Result<HostProcess> fresh(HostEvents events);
  Result<void> exec(const UniqueFd& executable, const char* called, Places places);
  Result<Json> call(FrameType verb, std::string_view request, int timeout_ms);
  // Next frame of the outstanding call, LOG and EVIDENCE handled inside; nullopt at the deadline (monotonic ns).
  Result<std::optional<Frame>> next(int64_t deadline_ns);
  Result<std::optional<Frame>> take(Frame frame);
  void end_orphans();
  Error out_of_time(int timeout_ms);
  Error lost(std::string why);
  Error protocol(std::string why);
  std::string verb_text() const;
  std::string last_words() const;  // the end of what it wrote to its standard error

  UniqueFd control_, pidfd_, spawner_, cancel_, stderr_;
  pid_t pid_ = -1, spawner_pid_ = -1;
  std::vector<pid_t> earlier_children_;  // of this process, before the host was started
  bool asked_to_end_ = false, interrupted_ = false;
  HostTimeouts timeouts_;
  int64_t limit_ns_ = INT64_MAX;
  int interrupt_fd_ = -1;
  uint32_t request_ = 0;
  FrameType verb_ = FrameType::LOAD;
  uint64_t evidence_records_ = 0, evidence_bytes_ = 0;
  std::optional<Error> run_error_;
  HostEvents events_;
};

// The prefix that this executable runs from, by /proc/self/exe: the parent of bin, or of libexec/h5i. "" when neither.
std::string install_prefix();
// Opens an executable of ours below the prefix: a regular file without links on the last component, that belongs to root
// or to the caller and that nobody else may write. DENIED, NOT_FOUND.
Result<UniqueFd> open_helper(const std::string& prefix, std::string_view relative);

}  // namespace h5i::plugin
