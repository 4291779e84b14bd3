// One thing that the spawner started, from the clone to the result.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/unique_fd.hpp"
#include "core/os/cgroup.hpp"
#include "core/spawn/init_protocol.hpp"
#include "core/spawn/network.hpp"
#include "core/spawn/plan.hpp"
#include "core/spawn/protocol.hpp"

namespace h5i::spawn {

// One thing that was started: the process that clone3 made (h5i-init, or the workload where the plan has no init).
struct Running {
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
  std::map<SocketKind, uint64_t> sockets;
  size_t strange_numbers = 0;  // rows of `denials` at and above kTableNumbers
  SpawnResult result;

  bool alone() const { return !plan.init; }  // nothing but a walk finds its descendants
  // Seconds of processor time of the whole box, where a group counts it: RLIMIT_CPU holds each process alone.
  std::optional<uint64_t> cpu_limit() const;

  // What its channels say; each reads until nothing is there.
  void on_report();
  void on_control();
  void on_output();
  // Answers one notified call. Returns the refusal where it is the first of its number.
  std::optional<Denial> on_listener();

  void count_socket(const unsigned long long* args);  // those of a refused socket(2)

  void kill(uint32_t outcome);
  void add_orphan(const rusage& u);  // a process of a run that is alone()
  void drop_group();                 // kills what is left in the group, and removes it
  void take_group_usage();           // the same, and what the group counted goes into the result
  void compose();                    // the result, from all that is known; once, at the end
};

}  // namespace h5i::spawn
