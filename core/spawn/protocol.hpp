// Messages of the spawner's channels. One packet is one message: a fixed header, then a body of exactly the length that
// its kind asks for. The decoder refuses everything else, so that neither side trusts the other's sizes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::spawn {

enum class Kind : uint16_t {
  // host process -> spawner
  start = 1,  // fds: plan (sealed memfd); body: StartBody
  kill = 2,   // handle, body: KillBody
  // core -> spawner
  stdio = 10,     // fds: stdin, stdout, stderr; body: StdioBody. Before the workload is started
  kill_all = 11,  // body: KillBody; everything, and nothing new is started
  signal = 12,    // body: SignalBody, to the workload's process group
  deadline = 13,  // body: monotonic nanoseconds; everything is killed then, should the core not have asked before
  network = 14,   // fds: request (sealed memfd, see BoxNetwork::replace), then user and mount namespace or neither
  // spawner -> host process
  started = 20,  // handle
  refused = 21,  // text: what; body: RefusedBody
  done = 22,     // handle, ResultBody, denials; for a canary fds: its output (sealed memfd)
  // spawner -> core
  workload = 30,  // handle, fds: pidfd of init (or of the workload when there is no init), the gate, with init the file
                  // that it runs; body: WorkloadBody
  denial = 31,    // handle, one denial: the first of its system call
  ended = 32,     // handle, as `done`
  network_said = 33,  // text: the answer to `network`; extra: 1 when nobody knows which rules hold, and the box is killed
};

struct Denial {
  uint32_t syscall = 0;
  int32_t err = 0;  // what it was answered with
  uint64_t count = 0;
};

// What socket(2) was asked for, without SOCK_CLOEXEC and SOCK_NONBLOCK. A refused one has no destination: none was named yet.
struct SocketKind {
  uint32_t family = 0, type = 0, protocol = 0;
  auto operator<=>(const SocketKind&) const = default;
};
struct SocketDenial {
  SocketKind kind;
  uint64_t count = 0;
};

// How a spawn ended. The numbers of `status` are H5I_OUTCOME_* of the SDK.
struct SpawnResult {
  uint32_t status = 0;
  int32_t code = 0;         // exit status or signal
  int32_t exec_errno = 0;   // errno of the failed exec, 0 when the program started
  int32_t setup_errno = 0;  // errno of the failed set-up step, 0 when set-up succeeded
  uint32_t setup_step = 0;  // stage << 16 | index within the plan's list
  std::string setup_text;   // the failed step in words, at most 127 bytes
  uint64_t wall_us = 0, user_us = 0, system_us = 0, max_rss_kib = 0;
  uint64_t survivors = 0;     // processes that were still there when the workload had ended, and were killed
  bool usage_cgroup = false;  // the figures are the cgroup's; otherwise wait4's
  bool cpu_spent = false;     // killed, because the box's processes together had used what RLIMIT_CPU gives each of them
  uint64_t oom_kills = 0, tasks_refused = 0;  // limits of the cgroup that were reached
  bool incomplete = false;    // a process could not be killed, or the status was not reported: see setup_text
  std::vector<Denial> denials;
  std::vector<SocketDenial> sockets;  // the denials of socket(2) by what was asked for, the first kMaxSocketKinds kinds
  std::string network;  // h5i.network/1, of a plan with a network; empty when nobody could say
};

struct Message {
  Kind kind = Kind::start;
  uint64_t handle = 0;
  uint32_t what = 0;   // start: H5I_SPAWN_*; kill, kill_all: H5I_OUTCOME_*; signal: number; workload: init's pid;
                       // stdio: 1 when it is the slave of a pty; refused: Errc
  uint32_t extra = 0;  // workload: 1 when the pidfd is of h5i-init; network_said: 1 when uncertain
  int64_t until_ns = 0;  // deadline
  std::string text;  // refused: what; network_said: the answer; workload: canonical_digest() of the plan document that is executed, 64 hex digits
  SpawnResult result;  // done, ended; denial: result.denials[0]
};

constexpr size_t kMaxDenials = 1024;
// Numbers below this are a kernel's own (470 in Linux 6.18) and always have a row. A box can make up any number of others:
// the first have a row each, the rest share one, so that a flood of them hides nothing that comes after it.
constexpr uint32_t kTableNumbers = 768;
constexpr size_t kMaxStrangeNumbers = kMaxDenials - kTableNumbers - 1;
constexpr size_t kMaxSocketKinds = 64;
constexpr size_t kMaxNetwork = 96u << 10;         // bytes of a network's report
constexpr size_t kMaxNetworkRequest = 96u << 10;  // bytes of a change of rules
constexpr size_t kMaxPlan = 4u << 20;            // bytes of a plan document
constexpr size_t kMaxCanaryOutput = 256u << 10;  // what h5i.host.spawn/1 promises

std::string encode(const Message& message);
// INVALID for anything that encode() does not write.
Result<Message> decode(std::string_view packet);
// How many descriptors belong to a message of this kind, at least and at most.
struct FdCount {
  size_t min, max;
};
FdCount fds_of(Kind kind);

}  // namespace h5i::spawn
