// Maps one verified library into this process. Only h5i-host does this; the command line never maps a plugin.
#pragma once
#include <string>

#include "core/base/ids.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "h5i/abi.h"
#include "h5i/tier.h"
#include "h5i/websec.h"

namespace h5i::plugin {

// What the library must turn out to be.
struct Expected {
  std::string id, version;
  PluginDigest digest;
};

// Once mapped, the library stays mapped and its descriptor open until the process ends, also when it is then refused: a
// descriptor number that is used again would make dlopen("/proc/self/fd/N") answer with the library that had the
// number.
struct LoadedPlugin {
  int descriptor = -1;  // owned by nobody, on purpose
  const h5i_plugin_entry* entry = nullptr;
  PluginDigest digest;
};

// Hashes the descriptor, reads the bytes' ELF structure again, then dlopen of that descriptor (RTLD_NOW | RTLD_LOCAL)
// after RTLD_NOLOAD said that it is new, then check_entry. No function of the plugin is called, but its constructors
// run here, which is why it happens after the spawner was forked. PLUGIN_DIGEST, PLUGIN_LINT, PLUGIN_EXPORTS,
// PLUGIN_LOAD, and what check_entry says.
Result<LoadedPlugin> load(UniqueFd library, const Expected& expected);

// The entry against what is expected: size, major version, the host that it needs, id, version, no null function.
// `available`: bytes that may be read at `entry`. PLUGIN_ABI_SIZE, PLUGIN_ABI_MAJOR, PLUGIN_ID, PLUGIN_SLOT.
Result<void> check_entry(const h5i_plugin_entry* entry, uint64_t available, const Expected& expected);

// What get_interface("h5i.tier/1") returned, with every slot present: PLUGIN_ABI_SIZE, PLUGIN_SLOT.
Result<const h5i_tier*> check_tier(const void* interface);
// The same of get_interface("h5i.websec/1").
Result<const h5i_websec*> check_websec(const void* interface);

}  // namespace h5i::plugin
