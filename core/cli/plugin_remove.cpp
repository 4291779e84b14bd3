// h5i plugin remove ID: takes a plugin out of the user's directory, with its pin.
#include <unistd.h>

#include "core/cli/plugin_verbs.hpp"
#include "core/plugin/pins.hpp"

namespace h5i::cli {
namespace {

Result<plugin::PluginInfo> remove_it(const std::string& name) {
  plugin::Registry registry = H5I_TRY(installed_plugins());
  const plugin::Settings& settings = registry.settings();
  StateDirectory dir = H5I_TRY(StateDirectory::open(settings));
  auto found = in_state_directory(registry, name);
  if (!found) {
    auto elsewhere = registry.find(name);
    if (elsewhere)
      return make_error(
          Errc::DENIED, name + " is not this user's to remove", "it is " + elsewhere->manifest_path,
          elsewhere->package.empty() ? "remove it where it was installed" : "remove the package " + elsewhere->package);
    return found.error();
  }
  plugin::PluginInfo p = std::move(*found);
  plugin::Pins pins = H5I_TRY(plugin::load_pins(settings.lock_file, {settings.euid}));
  if (!p.id.empty() && pins.erase(p.id) > 0) H5I_TRY(plugin::save_pins(settings.lock_file, pins));
  // The manifest goes first: a library without one is no plugin.
  std::string prefix = settings.state_directory + "/";
  for (const std::string& path : {p.manifest_path, p.library}) {
    if (path.empty()) continue;
    std::string file = path.substr(prefix.size());
    if (unlinkat(dir.fd().get(), file.c_str(), 0) != 0 && errno != ENOENT) return sys_error("remove " + path);
  }
  return p;
}

}  // namespace

int plugin_remove(Context& ctx, const Parsed& parsed) {
  auto p = remove_it(parsed.arguments[0]);
  if (!p) return ctx.refuse(p.error());
  ctx.result(json::Object{
      {"schema", "h5i.plugin-remove/1"}, {"name", p->name()}, {"manifest", p->manifest_path}, {"library", p->library}});
  if (!ctx.json) ctx.line("removed " + p->name() + " (" + p->manifest_path + ")");
  return 0;
}

}  // namespace h5i::cli
