// Asking a tier to remove what a killed run of it left outside the box's folder, such as a cgroup.
#pragma once
#include <string>

#include "core/session/sweep.hpp"

namespace h5i::session {

// Starts a host process for the tier and calls its cleanup. TIER_NOT_INSTALLED and the like when the tier is gone.
Result<void> cleanup_tier(const std::string& tier, const SessionId& session);

}  // namespace h5i::session
