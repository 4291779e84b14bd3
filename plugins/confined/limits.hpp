// What the kernel is asked to hold of resources.*, and in words what it does not.
#pragma once
#include <vector>

#include "host_view.hpp"
#include "request.hpp"
#include "view.hpp"

namespace h5i::confined {

struct Limits {
  json::Array rlimits;
  json::Value cgroup;  // null: none here
  std::vector<NotEnforced> not_enforced;
};

// POLICY_LIMIT_TIER when the profile itself names a limit that nothing here holds.
sdk::Result<Limits> build_limits(const Request& request, const HostFacts& facts);

}  // namespace h5i::confined
