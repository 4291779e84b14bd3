// Which tier a box gets. Pure: what is installed, what it answers and what the profile allows come in as functions.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/registry.hpp"

namespace h5i::plugin {

struct ChooseInput {
  std::string flag;                // --isolation; empty: not given; "auto": choose, and ignore the environment
  std::string profile;             // the profile's isolation; empty: it names none
  std::string environment;         // H5I_DEFAULT_ISOLATION; empty: unset
  std::vector<std::string> order;  // host policy tiers.order; empty: the built-in order
  bool image = false;              // an image or a root directory is set
  bool allow_unconfined = false;   // --allow-unconfined, or the same of host policy
};

struct ChooseCalls {
  // The installed plugin: TIER_NOT_INSTALLED, TIER_REFUSED, TIER_UNKNOWN.
  std::function<Result<PluginInfo>(std::string_view id)> find;
  // An h5i.probe/1 document.
  std::function<Result<Json>(const PluginInfo&)> probe;
  // Whether the profile can be held by what the tier claims here; the error is the reason that is printed.
  std::function<Result<void>(const PluginInfo&, const Json& probe)> suits;
  // Whether it was proved under this policy on this host.
  std::function<Result<void>(const PluginInfo&)> verify;
};

struct Skipped {
  std::string tier;
  Error why;
};

struct TierChoice {
  PluginInfo plugin;
  Json probe;
  std::string from;              // "flag", "profile", "environment", "auto"
  std::vector<Skipped> skipped;  // in the order tried; only auto skips
  std::string tip;               // one line, or empty
  // "process (auto; skipped supervised: not installed)": for people, one line each.
  std::vector<std::string> lines() const;
};

// A tier that was named is met or refused with its own reason. Otherwise the first of the order that is installed,
// could, suits the profile and was proved; TIER_NONE with every reason when there is none. `workspace` is in the order
// only with allow_unconfined or when host policy wrote it there.
Result<TierChoice> choose_tier(const ChooseInput& input, const ChooseCalls& calls);

// One line for why a tier lost.
std::string skip_line(const Skipped& s);

// The built-in order of auto, strongest first; image tiers are tried only with an image.
const std::vector<std::string>& built_in_order();

}  // namespace h5i::plugin
