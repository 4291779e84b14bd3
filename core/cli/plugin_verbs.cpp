#include "core/cli/plugin_verbs.hpp"

#include <sys/file.h>

#include "core/plugin/pins.hpp"

namespace h5i::cli {

Result<plugin::Registry> installed_plugins() {
  plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
  return plugin::Registry::scan(std::move(settings));
}

std::string_view plugin_state(const plugin::PluginInfo& p) { return p.refused ? "refused" : "usable"; }

std::string reason_line(const Error& e) {
  return std::string(e.id()) + ": " + e.what + (e.evidence.empty() ? "" : " (" + e.evidence + ")");
}

Json plugin_json(const plugin::PluginInfo& p) {
  Json out = json::Object{{"id", p.id},
                          {"name", p.name()},
                          {"kind", p.kind},
                          {"version", p.version},
                          {"state", plugin_state(p)},
                          {"trust", plugin::trust_name(p.trust)},
                          {"digest", p.digest.value},
                          {"manifest", p.manifest_path},
                          {"library", p.library},
                          {"package", p.package},
                          {"posture", p.manifest["posture"].string()},
                          {"claims", p.manifest["claims"].is_array() ? p.manifest["claims"] : Json(json::Array{})}};
  if (p.refused)
    out["reason"] = json::Object{{"id", p.refused->id()},
                                 {"what", p.refused->what},
                                 {"evidence", p.refused->evidence},
                                 {"next", p.refused->remedy()}};
  return out;
}

Result<StateDirectory> StateDirectory::open(const plugin::Settings& settings) {
  if (settings.state_directory.empty())
    return make_error(Errc::NO_HOME, "there is no directory for this user's plugins",
                      "neither XDG_STATE_HOME nor HOME is an absolute path");
  StateDirectory out;
  out.fd_ = H5I_TRY(plugin::make_private_directory(settings.state_directory, {settings.euid}));
  if (flock(out.fd_.get(), LOCK_EX | LOCK_NB) != 0)
    return make_error(Errc::BUSY, settings.state_directory + " is being changed by another h5i",
                      "it holds the lock of that directory");
  return out;
}

Result<plugin::PluginInfo> in_state_directory(const plugin::Registry& registry, std::string_view name) {
  const std::string& dir = registry.settings().state_directory;
  for (const plugin::PluginInfo& p : registry.plugins())
    if ((p.id == name || p.stem == name) && !dir.empty() && p.manifest_path.starts_with(dir + "/")) return p;
  return make_error(Errc::NOT_FOUND, "no plugin " + std::string(name) + " is in this user's directory",
                    dir.empty() ? "there is no such directory" : "looked in " + dir, "h5i plugin list");
}

void implement_plugin_verbs() {
  implement("plugin", "list", plugin_list);
  implement("plugin", "inspect", plugin_inspect);
  implement("plugin", "trust", plugin_trust);
  implement("plugin", "untrust", plugin_untrust);
  implement("plugin", "remove", plugin_remove);
  implement("plugin", "verify", plugin_verify);
}

}  // namespace h5i::cli
