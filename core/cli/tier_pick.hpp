// The tier of a new box: what is installed and answers on this host, held against the profile.
#pragma once
#include <string>

#include "core/plugin/choose.hpp"
#include "core/policy/resolve.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {

struct PickedTier {
  policy::Resolved policy;  // with the tier pinned and the digest computed
  plugin::TierChoice choice;
};

struct PickRequest {
  std::string flag;         // --isolation
  std::string environment;  // H5I_DEFAULT_ISOLATION
  bool allow_unconfined = false;
  session::UserDirs dirs;
  session::Manifest like;   // as the new box's will be: name, repository, object directories, ids
};

// Each tier that is tried is probed, held against the profile, and proved under it with controls in a folder made for that.
Result<PickedTier> pick_tier(policy::Resolved resolved, const PickRequest& request);

}  // namespace h5i::cli
