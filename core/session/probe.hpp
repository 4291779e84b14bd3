// One installed tier asked or tried by itself, outside a run: what `box probe`, the choice of a tier and `box create` use.
// Each call starts a host process of its own and leaves nothing.
#pragma once
#include <string>

#include "core/base/json.hpp"
#include "core/plugin/client.hpp"
#include "core/plugin/registry.hpp"

namespace h5i::session {

// A host process without a plugin yet. Starting it takes as long as verifying a library: whoever is in a hurry does the
// one while the other goes on. `prefix`: where libexec/h5i lies; empty: this executable's own.
Result<plugin::HostProcess> start_host(plugin::HostEvents events = {}, const std::string& prefix = {});
// The library verified, handed over, mapped; hello said.
Result<void> load_tier(plugin::HostProcess& host, const plugin::PluginInfo& info);
// Both.
Result<plugin::HostProcess> start_tier(const plugin::PluginInfo& info, plugin::HostEvents events = {},
                                       const std::string& prefix = {});

// h5i.probe/1, checked for its form; TIER_OVERCLAIM when it claims what the manifest does not.
Result<Json> probe_tier(const plugin::PluginInfo& info, const std::string& prefix = {});
// h5i.verify/1 under the policy of `request` (h5i.run/1 without a command). Ok only when every claimed dimension had a
// control and held: TIER_VERIFY_FAILED, TIER_NO_CONTROL name the first that did not.
Result<Json> verify_tier(const plugin::PluginInfo& info, const Json& request, const std::string& prefix = {});
// h5i.plan/1, decoded strictly. Changes nothing.
Result<Json> plan_tier(const plugin::PluginInfo& info, const Json& request, const std::string& prefix = {});

// The checks of the documents by themselves.
Result<void> check_probe(const Json& probe, const plugin::PluginInfo& info);
Result<void> check_verify(const Json& verify, const std::string& tier);

}  // namespace h5i::session
