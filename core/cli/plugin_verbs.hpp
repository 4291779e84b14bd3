// What the verbs of plugins share: the registry as this process sees it, and how a plugin is shown.
#pragma once
#include "core/cli/command.hpp"
#include "core/plugin/registry.hpp"

namespace h5i::cli {

// The directories of this process and what is in them.
Result<plugin::Registry> installed_plugins();

// "usable", or "refused".
std::string_view plugin_state(const plugin::PluginInfo& p);

// As every verb shows one in JSON: see docs/schema/plugin-list.json#/definitions/plugin.
Json plugin_json(const plugin::PluginInfo& p);

// "plugin.digest: what (evidence)", for a table.
std::string reason_line(const Error& e);

// The user's directory of plugins, locked against another h5i that changes it; made when missing.
class StateDirectory {
 public:
  static Result<StateDirectory> open(const plugin::Settings& settings);
  const UniqueFd& fd() const { return fd_; }

 private:
  UniqueFd fd_;
};

// The plugin of that name in the user's directory, whatever else has the name. NOT_FOUND.
Result<plugin::PluginInfo> in_state_directory(const plugin::Registry& registry, std::string_view name);

int plugin_list(Context& ctx, const Parsed& words);
int plugin_inspect(Context& ctx, const Parsed& words);
int plugin_trust(Context& ctx, const Parsed& words);
int plugin_untrust(Context& ctx, const Parsed& words);
int plugin_remove(Context& ctx, const Parsed& words);
int plugin_verify(Context& ctx, const Parsed& words);
int plugin_install(Context& ctx, const Parsed& words);  // in h5i-policy

// For main of h5i: the six above but install.
void implement_plugin_verbs();

}  // namespace h5i::cli
