// From a plan to a process: what the spawner does once for each request to start something.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/spawn/child.hpp"
#include "core/spawn/running.hpp"

namespace h5i::spawn {

using Runs = std::vector<std::unique_ptr<Running>>;

constexpr int kFirstFd = 10;  // child.hpp: descriptors below are places, not sources

struct Started {
  std::unique_ptr<Running> run;
  std::vector<UniqueFd> for_core;  // of a workload: pidfd, gate, and its init's program where it has one
};

class Starter {
 public:
  struct Programs {
    UniqueFd init, canary, net;  // as installed; one that is not is an error of the first plan that needs it
  };
  Starter(Programs programs, UniqueFd null, UniqueFd self, UniqueFd host_process);

  // What the session's workload is given; without it none starts.
  void give_stdio(std::array<UniqueFd, 3> fds, bool pty);
  // `plan_fd` is a sealed memfd that the host sent. `runs`: what runs by now. Nothing is left of a start that failed.
  Result<Started> start(uint32_t kind, int plan_fd, const Runs& runs);

 private:
  // A program of ours that others execute: a sealed copy, made when it is needed first.
  struct Helper {
    const char* name;
    UniqueFd source, memfd;
    Result<int> copy();
  };
  Result<void> check_against_caller(const Plan& p, uint32_t kind, const Runs& runs) const;
  Result<void> prepare_stdio(Running& run, ChildProgram& program, UniqueFd* write_end);
  Result<void> clone(Running& run, const ChildProgram& program);
  Result<void> map_ids(Running& run);

  Helper init_, canary_, net_;
  UniqueFd null_, self_, host_process_;
  std::array<UniqueFd, 3> stdio_;
  bool pty_ = false, workload_started_ = false;
  uint64_t last_handle_ = 0;
};

}  // namespace h5i::spawn
