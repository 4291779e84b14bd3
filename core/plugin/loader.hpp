// Maps one verified library into this process. Only h5i-host does this; the command line never maps a plugin.
#pragma once
#include "core/plugin/registry.hpp"
#include "h5i/abi.h"
#include "h5i/tier.h"

namespace h5i::plugin {

// The library stays mapped and its descriptor open until the process ends: a descriptor number that is used again could
// otherwise make dlopen("/proc/self/fd/N") answer with the library that had the number before.
struct LoadedPlugin {
  UniqueFd fd;
  const h5i_plugin_entry* entry = nullptr;
  PluginDigest digest;
};

// dlopen of the descriptor (RTLD_NOW | RTLD_LOCAL) after RTLD_NOLOAD said that it is new, then every check that needs no
// function of the plugin: size, major and minor version, id and version against the manifest, no null function.
// Constructors of the library run here, which is why it happens after the spawner was forked.
Result<LoadedPlugin> load(VerifiedLibrary library, const PluginInfo& info);

// The checks of an entry by itself, for tests. `size_available`: bytes that may be read at `entry`.
Result<void> check_entry(const h5i_plugin_entry* entry, uint64_t size_available, const PluginInfo& info);

// h5i.tier/1 of an opened instance with every slot present: PLUGIN_ABI_SIZE, PLUGIN_SLOT.
Result<const h5i_tier*> tier_interface(const LoadedPlugin& plugin, void* instance);

// Whether the manifest asked for a host service ("h5i.host.spawn/1").
bool asks_for(const PluginInfo& info, std::string_view service);

}  // namespace h5i::plugin
