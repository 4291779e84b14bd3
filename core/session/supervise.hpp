// From "run" to "everything is gone": one poll loop over the host process, the spawner, the workload's gate, output, input,
// signals and the deadline. The first failure decides the outcome; what the spawner saw decides a natural end, never what
// the plugin says.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "core/plugin/client.hpp"
#include "core/session/output.hpp"
#include "core/session/receipt.hpp"
#include "core/spawn/client.hpp"

namespace h5i::session {

// After a signal was passed on, how long the command has to end by itself.
inline constexpr int64_t kCancelGraceMs = 10000;
// From "run" to a workload that is ready: the slowest set-up that is still a set-up.
inline constexpr int64_t kSetupMs = 30000;
// After a kill: how long until the spawner must have said that all is gone.
inline constexpr int64_t kKillMs = 10000;

// Signals of ours become readable instead of ending us; restored at the end.
class SignalFd {
 public:
  static Result<SignalFd> take();  // INT TERM HUP QUIT WINCH; PIPE is ignored
  SignalFd(SignalFd&&) noexcept;
  ~SignalFd();
  int fd() const { return fd_.get(); }
  int next();  // 0: none pending

 private:
  SignalFd() = default;
  UniqueFd fd_;
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

struct Ready {
  const UniqueFd* init_pidfd;  // of init, or of the workload when there is no init
  pid_t init_pid;              // the same process
  bool has_init;
  const UniqueFd* init_exe;    // what the spawner says it started init from
  pid_t workload;              // by SCM_CREDENTIALS
  std::string plan_digest;     // of the plan that the spawner executes
};

struct SuperviseInput {
  plugin::HostProcess* host = nullptr;
  spawn::SpawnWatch* watch = nullptr;
  OutputStream* out = nullptr;
  OutputStream* err = nullptr;   // absent for a pty
  InputPump* in = nullptr;
  SignalFd* signals = nullptr;
  int64_t deadline_ns = INT64_MAX;  // monotonic
  // Before go. An error kills the box: TIER_ATTEST.
  std::function<Result<void>(const Ready&)> attest;
  std::function<void(const spawn::Denial&)> denial;
  // The core kills the box, or passes a signal on, for this reason; for the record.
  std::function<void(std::string_view reason, int signal)> killed;
  std::function<void()> window_size;  // SIGWINCH
  // Requests of other h5i processes, looked at once the command runs; -1: nobody listens.
  int control = -1;
  std::function<void()> on_control;
  // The spawner's answer about the box's network. An error kills the box.
  std::function<Result<void>(const Json& said, bool certain)> network_said;
};

struct Supervised {
  Outcome outcome;
  bool started = false;                        // the user's program ran
  std::optional<spawn::SpawnResult> spawned;   // absent when the spawner was lost or never cloned
  std::string plugin_disagrees;                // what the plugin said, when it differs from what the spawner saw
};

// `request` is given to the plugin's run. Fails only when this machine fails (poll, memory).
Result<Supervised> supervise(const SuperviseInput& in, const Json& request);

}  // namespace h5i::session
