// A profile against the host's ceiling.
#pragma once
#include "core/policy/egress.hpp"
#include "core/policy/host_policy.hpp"
#include "core/policy/model.hpp"

namespace h5i::policy {

// Lowers what only a built-in default asks to the ceiling, and sets a ceiling where the profile has no limit: both are
// narrower than what was asked, and a note says so. What a file asks above the ceiling is POLICY_CEILING, with the line
// of the profile and the line of the host's file.
void apply_ceiling(const Ceiling& ceiling, Settings& settings, std::vector<std::string>& notes, std::vector<Error>& errors);

// Does the host's policy allow this rule? `asked_by`: for the error.
Result<void> check_egress_allowed(const HostPolicy& host, const EgressRule& rule, const std::string& asked_by);

// Does the host's policy allow this tier?
Result<void> check_tier_allowed(const HostPolicy& host, const std::string& tier, const std::string& named_at);

}  // namespace h5i::policy
