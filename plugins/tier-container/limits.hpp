// What of resources.* the engine's control group holds, and what is said or refused where there is none: podman takes a limit that it cannot
// hold, says nothing, and exits with 0.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::container {

struct Resources {
  uint64_t mem = 4ull << 30, procs = 256;
  std::optional<double> cpus;
  std::set<std::string> named;  // "resources.mem": the profile itself says it
};
struct Unheld {
  std::string field, reason, detail;
};
struct Limits {
  std::vector<std::string> words;  // podman's
  std::vector<Unheld> not_enforced;
};

// `group`: the engine was seen to hold a limit here. POLICY_LIMIT_TIER names the first limit of the profile's own that nothing holds.
sdk::Result<Limits> build_limits(const Resources& resources, bool group);

}  // namespace h5i::container
