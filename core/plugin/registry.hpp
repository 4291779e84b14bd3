// What plugins there are, which of them may be used, and why the others may not. Reads manifests only; the bytes of a
// library are looked at when one is wanted (open_verified) or when a verb asks for all of them (verify_bytes).
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::plugin {

// Why a plugin is believed: it lies in a directory that only root or the invoking user can write (SYSTEM), or its
// digest was pinned by `h5i plugin trust` (PINNED).
enum class Trust { NONE, SYSTEM, PINNED };
std::string_view trust_name(Trust t);  // "none", "system", "pinned"

struct PluginInfo {
  std::string id;    // empty when the manifest could not be read that far
  std::string kind;  // "tier"
  std::string version;
  PluginDigest digest;        // of the library, as the manifest says
  std::string library;        // absolute path
  std::string manifest_path;  // absolute path
  std::string stem;           // file name without ".plugin.yaml": "tier-process"
  Json manifest;              // null when it could not be read
  Trust trust = Trust::NONE;
  std::optional<Error> refused;
  std::string package;

  const std::string& name() const { return id.empty() ? stem : id; }  // for people
};

struct Directory {
  std::string path;  // absolute
  Trust trust;       // SYSTEM: everything in it; PINNED: only what the lock file pins
};

// Where plugins are looked for and as whom. The list is closed: no environment variable adds to it.
struct Settings {
  std::vector<Directory> directories;
  std::string lock_file;        // <state>/plugins.lock.json
  std::string state_directory;  // <state>/plugins, where `plugin install` puts them; empty without a home
  uid_t euid = 0;
  // Why the host's list of directories was not believed, when there is one; its directories are then left out.
  std::optional<Error> host_list_refused;
  // ../lib/h5i/plugins/1 beside the running executable's directory (bin or libexec/h5i), the user's state directory,
  // the directories of /etc/h5i/plugin-directories (one absolute path a line).
  static Result<Settings> of_this_process();
};

// The directories in the text of /etc/h5i/plugin-directories; what is no absolute path is a comment. Pure.
std::vector<std::string> host_directories(std::string_view text);

class Registry {
 public:
  // Never fails because of one plugin: a bad one is listed with `refused`. Sorted by id, then path.
  static Result<Registry> scan(Settings settings);
  const std::vector<PluginInfo>& plugins() const { return plugins_; }
  const Settings& settings() const { return settings_; }
  // A usable tier. TIER_NOT_INSTALLED names the package, TIER_REFUSED the reason, TIER_UNKNOWN what there is.
  Result<PluginInfo> find_tier(std::string_view id) const;
  // Any kind, by id or by stem; also refused ones. NOT_FOUND.
  Result<PluginInfo> find(std::string_view name) const;
  // Hashes and lints every plugin that is not refused yet, so that a list shows what a use would meet.
  void verify_bytes();

 private:
  Settings settings_;
  std::vector<PluginInfo> plugins_;
};

// The package that ships a tier, when one of ours does; empty otherwise. For messages only.
std::string package_of_tier(std::string_view id);
std::vector<std::string> shipped_tiers();

// A library whose bytes were hashed and linted: `fd` is that very file, or a sealed memfd copy when somebody but root
// could rewrite the inode.
struct VerifiedLibrary {
  UniqueFd fd;
  PluginDigest digest;
  bool sealed_copy = false;
};
// Opens the library once (no symbolic link on the way), checks owner and mode, size, digest, lint. PLUGIN_OWNER,
// PLUGIN_DIGEST, PLUGIN_LINT, PLUGIN_EXPORTS, PLUGIN_NEEDS, or what made `info` refused.
Result<VerifiedLibrary> open_verified(const PluginInfo& info, uid_t euid);

}  // namespace h5i::plugin
