// h5i.run/1 -> h5i.plan/1 for a command that is not confined.
#pragma once
#include "h5i/plugin.hpp"

namespace h5i::tier_workspace {

struct HostFacts {
  bool namespaces = false;  // user and pid, with the caller's own ids
};

// POLICY_EGRESS_TIER, INVALID.
sdk::Result<json::Value> build_plan(const json::Value& request, const HostFacts& facts);

}  // namespace h5i::tier_workspace
