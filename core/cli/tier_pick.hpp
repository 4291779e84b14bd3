// The tier of a new box: what is installed and answers on this host, held against the profile.
#pragma once
#include <string>

#include "core/plugin/choose.hpp"
#include "core/policy/resolve.hpp"

namespace h5i::cli {

struct PickedTier {
  policy::Resolved policy;  // with the tier pinned and the digest computed
  plugin::TierChoice choice;
};

struct PickRequest {
  std::string flag;         // --isolation
  std::string environment;  // H5I_DEFAULT_ISOLATION
  bool allow_unconfined = false;
};

Result<PickedTier> pick_tier(policy::Resolved resolved, const PickRequest& request);

// What a probe document says about a tier, in the form that the policy room judges by.
policy::TierFacts facts_of(const Json& probe);

}  // namespace h5i::cli
