// The lock file: which digest of which plugin the user trusts. Schema h5i.plugin-lock/1, mode 0600, replaced whole.
#pragma once
#include <map>
#include <string>

#include "core/base/ids.hpp"
#include "core/plugin/trusted_path.hpp"

namespace h5i::plugin {

struct Pin {
  PluginDigest digest;
  std::string version;
  std::string trusted;  // RFC 3339
};
using Pins = std::map<std::string, Pin>;  // by plugin id

// Empty when there is no file. PLUGIN_OWNER when somebody else could have written it, PLUGIN_MANIFEST when it is not
// valid.
Result<Pins> load_pins(const std::string& path, Believed believed);
// Atomic: a new file beside it, flushed, renamed over it.
Result<void> save_pins(const std::string& path, const Pins& pins);

// Makes a directory and its missing parents, 0700, and opens it as open_trusted_directory does.
Result<UniqueFd> make_private_directory(const std::string& path, Believed believed);

// Writes a file in `directory` by a temporary name, flushes it and renames it over `name`.
Result<void> replace_file(const UniqueFd& directory, const std::string& name, std::string_view bytes, unsigned mode);
// The same in two steps: everything that can fail for want of space, then the rename. An unplaced file is the caller's to remove.
Result<std::string> stage_file(const UniqueFd& directory, const std::string& name, std::string_view bytes, unsigned mode);
Result<void> place_file(const UniqueFd& directory, const std::string& staged, const std::string& name);

}  // namespace h5i::plugin
