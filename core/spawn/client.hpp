// The two ends that talk to a spawner: the host process (plans, on behalf of its plugin) and the core (stdio, what
// happened). Neither can speak for the other: they hold different channels.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/os/socket.hpp"
#include "core/spawn/protocol.hpp"

namespace h5i::spawn {

// In the host process; backs h5i.host.spawn/1.
class SpawnClient {
 public:
  explicit SpawnClient(UniqueFd channel) : channel_(std::move(channel)) {}
  // `plan` is an h5i.plan/1 document, `kind` H5I_SPAWN_*. Returns when the child was cloned. The spawner's refusal
  // comes back with its error id.
  Result<uint64_t> start(std::string_view plan, uint32_t kind);
  struct Finished {
    SpawnResult result;
    std::string output;  // of a canary
  };
  // Once per handle. TIMEOUT after `timeout_ms` (negative: for ever); the spawn goes on then.
  Result<Finished> wait(uint64_t handle, int64_t timeout_ms);
  Result<void> kill(uint64_t handle);

 private:
  Result<void> receive_one(int64_t timeout_ms);

  UniqueFd channel_;
  std::map<uint64_t, Finished> finished_;
  std::deque<Message> answers_;
};

// The core's hold on a workload that waits before its exec.
class Gate {
 public:
  explicit Gate(UniqueFd socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.get(); }
  // The workload is fully confined and waits. Its pid is the kernel's word, in this process's pid namespace. Nothing:
  // it ended before (set-up failed; the `ended` event says how).
  Result<std::optional<os::PeerIds>> wait_ready(int64_t timeout_ms);
  // Lets it exec. Without it, and when the gate is closed, it exits.
  Result<void> go();
  // After go(): 0 when the program started, else the errno of the failed exec.
  Result<int> exec_errno(int64_t timeout_ms);

 private:
  UniqueFd socket_;
};

// In the core: what the spawner saw.
class SpawnWatch {
 public:
  explicit SpawnWatch(UniqueFd channel) : channel_(std::move(channel)) {}
  int fd() const { return channel_.get(); }

  // The session's stdio, before the workload is started. `pty`: they are the slave of a pty that becomes its
  // controlling terminal. The caller keeps its descriptors.
  Result<void> give_stdio(int in, int out, int err, bool pty);
  // `outcome` (H5I_OUTCOME_TIMEOUT, _CANCELLED, _VIOLATION) is what the ended event will say.
  Result<void> kill_all(uint32_t outcome);
  // Monotonic. The spawner keeps it too, a little later than the core, which may be stopped then: H5I_OUTCOME_TIMEOUT.
  Result<void> set_deadline(int64_t until_ns);
  Result<void> signal(int number);
  // Other rules for the workload's network, see BoxNetwork::replace; a network_said event answers. `user` and `mnt`: of the
  // workload, or both -1.
  Result<void> change_network(const Json& request, int user, int mnt);

  struct Event {
    enum class What { workload, denial, ended, network_said, closed } what = What::closed;
    uint64_t handle = 0;
    UniqueFd pidfd;      // workload: of h5i-init, or of the workload itself when the plan has no init
    pid_t init_pid = 0;  // workload: that process
    bool has_init = false;
    UniqueFd init_exe;  // workload, with init: what the spawner started it from; its contents are not readable in /proc
    UniqueFd gate;      // workload: for Gate
    std::string plan_digest;  // workload: canonical_digest() of the plan that the spawner executes
    Denial denial;
    SpawnResult result;  // ended
    Json said;            // network_said
    bool certain = true;  // network_said: whether it is known which rules hold
  };
  // `closed` when the spawner is gone. TIMEOUT when nothing came.
  Result<Event> next(int64_t timeout_ms);

 private:
  UniqueFd channel_;
};

}  // namespace h5i::spawn
