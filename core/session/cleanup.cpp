#include "core/session/cleanup.hpp"

#include "core/plugin/registry.hpp"
#include "core/session/probe.hpp"

namespace h5i::session {

Result<void> cleanup_tier(const std::string& tier, const SessionId& session) {
  auto settings = H5I_TRY(plugin::Settings::of_this_process());
  auto registry = H5I_TRY(plugin::Registry::scan(std::move(settings)));
  plugin::PluginInfo info = H5I_TRY(registry.find_tier(tier));
  plugin::HostProcess host = H5I_TRY(start_tier(info));
  H5I_TRY(host.cleanup(session));
  host.shutdown();
  return {};
}

}  // namespace h5i::session
