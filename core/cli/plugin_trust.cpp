// h5i plugin trust ID: pins the digest of a plugin in the user's directory, after its bytes were hashed and linted.
#include "core/cli/plugin_verbs.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/pins.hpp"

namespace h5i::cli {
namespace {

// Everything but the pin must be in order: a pin is a statement about bytes that were looked at.
Result<plugin::PluginInfo> worth_trusting(const plugin::Registry& registry, std::string_view name) {
  plugin::PluginInfo p = H5I_TRY(in_state_directory(registry, name));
  bool only_the_pin = p.refused && (p.refused->code == Errc::PLUGIN_UNTRUSTED ||
                                    (p.refused->code == Errc::PLUGIN_DIGEST && p.trust == plugin::Trust::NONE));
  if (only_the_pin) p.refused.reset();
  (void)H5I_TRY(plugin::open_verified(p, registry.settings().euid));
  return p;
}

Result<plugin::PluginInfo> pin(std::string_view name) {
  plugin::Registry registry = H5I_TRY(installed_plugins());
  const plugin::Settings& settings = registry.settings();
  StateDirectory lock = H5I_TRY(StateDirectory::open(settings));
  plugin::PluginInfo p = H5I_TRY(worth_trusting(registry, name));
  plugin::Pins pins = H5I_TRY(plugin::load_pins(settings.lock_file, {settings.euid}));
  pins[p.id] = {p.digest, p.version, rfc3339(realtime_ns())};
  H5I_TRY(plugin::save_pins(settings.lock_file, pins));
  return p;
}

std::string words(const Json& list) {
  std::string out;
  for (const Json& v : list.array()) out += (out.empty() ? "" : " ") + v.string();
  return out.empty() ? "nothing" : out;
}

}  // namespace

int plugin_trust(Context& ctx, const Parsed& parsed) {
  auto p = pin(parsed.arguments[0]);
  if (!p) return ctx.refuse(p.error());
  ctx.result(json::Object{{"schema", "h5i.plugin-trust/1"},
                          {"id", p->id},
                          {"version", p->version},
                          {"digest", p->digest.value},
                          {"trust", "pinned"}});
  if (ctx.json) return 0;
  ctx.line("pinned " + p->id + " " + p->version + ", sha256 " + p->digest.value);
  ctx.line("claims " + words(p->manifest["claims"]) + "; asks the host for " + words(p->manifest["host_services"]));
  ctx.line("next: h5i box probe --tier " + p->id);
  return 0;
}

}  // namespace h5i::cli
