// From facts about a host to what a person can do about them. Pure, so that hosts which nobody has at hand can be
// tested.
#pragma once
#include <string>
#include <vector>

#include "core/os/host_facts.hpp"

namespace h5i::cli {

struct Finding {
  std::string id;     // "user-namespace"
  std::string state;  // "ok", "missing" (a confining tier is impossible without it), "limited" (something is not held)
  std::string
      cause;  // "apparmor", "sysctl", "outer-filter", "kernel", "cgroup-v1", "not-delegated", ...; empty when ok
  std::string evidence;
  std::string remedy;  // what to run or ask for; empty when ok
};

std::vector<Finding> diagnose(const os::HostFacts& facts);

// "Linux 6.1.0 x86_64, security modules lockdown capability landlock, Landlock ABI 2, uid 1000".
std::string host_line(const os::HostFacts& facts);

}  // namespace h5i::cli
