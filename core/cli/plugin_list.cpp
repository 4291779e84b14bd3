// h5i plugin list: everything that was found, usable or refused, with the reason; then the tiers of ours that are not
// here.
#include "core/cli/plugin_verbs.hpp"

namespace h5i::cli {
namespace {

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

bool present(const plugin::Registry& registry, const std::string& tier) {
  for (const plugin::PluginInfo& p : registry.plugins())
    if (p.id == tier || p.stem == "tier-" + tier) return true;
  return false;
}

}  // namespace

int plugin_list(Context& ctx, const Parsed&) {
  auto registry = installed_plugins();
  if (!registry) return ctx.refuse(registry.error());
  registry->verify_bytes();
  Json plugins = json::Array{}, directories = json::Array{}, absent = json::Array{};
  for (const plugin::PluginInfo& p : registry->plugins()) plugins.push(plugin_json(p));
  for (const plugin::Directory& d : registry->settings().directories)
    directories.push(json::Object{{"path", d.path}, {"trust", plugin::trust_name(d.trust)}});
  for (const std::string& tier : plugin::shipped_tiers())
    if (!present(*registry, tier))
      absent.push(json::Object{{"tier", tier}, {"package", plugin::package_of_tier(tier)}});
  ctx.result(json::Object{
      {"schema", "h5i.plugin-list/1"}, {"plugins", plugins}, {"directories", directories}, {"not_installed", absent}});
  if (ctx.json) return 0;

  if (const auto& why = registry->settings().host_list_refused)
    ctx.note("note: the host's list of plugin directories is left out: " + reason_line(*why));
  if (registry->plugins().empty()) ctx.line("no plugin is installed");
  for (const plugin::PluginInfo& p : registry->plugins()) {
    if (p.refused) {
      ctx.line(padded(p.name(), 16) + " refused  " + reason_line(*p.refused));
      ctx.line(padded("", 16) + "          " + p.manifest_path);
      ctx.line(padded("", 16) + "          see: " + p.refused->remedy());
    } else {
      ctx.line(padded(p.name(), 16) + " usable   " + p.kind + " " + p.version + ", " +
               std::string(plugin::trust_name(p.trust)) + ", sha256 " + p.digest.value.substr(0, 16));
      if (const std::string& posture = p.manifest["posture"].string(); !posture.empty())
        ctx.line(padded("", 16) + "          " + posture);
    }
  }
  for (const Json& a : absent.array())
    ctx.line(padded(a["tier"].string(), 16) + " not installed (package " + a["package"].string() + ")");
  for (const plugin::Directory& d : registry->settings().directories)
    ctx.detail("looked in " + d.path + " (" + std::string(plugin::trust_name(d.trust)) + ")");
  return 0;
}

}  // namespace h5i::cli
