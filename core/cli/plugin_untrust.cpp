// h5i plugin untrust ID: takes the pin away; the files stay and are refused from then on.
#include "core/cli/plugin_verbs.hpp"
#include "core/plugin/pins.hpp"

namespace h5i::cli {
namespace {

Result<void> unpin(const std::string& id) {
  plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
  StateDirectory lock = H5I_TRY(StateDirectory::open(settings));
  plugin::Pins pins = H5I_TRY(plugin::load_pins(settings.lock_file, {settings.euid}));
  if (pins.erase(id) == 0)
    return make_error(Errc::NOT_FOUND, "no digest of " + id + " is pinned",
                      "looked in " + settings.lock_file + "; a plugin of a system directory is trusted by its place",
                      "h5i plugin list");
  return plugin::save_pins(settings.lock_file, pins);
}

}  // namespace

int plugin_untrust(Context& ctx, const Parsed& parsed) {
  const std::string& id = parsed.arguments[0];
  if (auto r = unpin(id); !r) return ctx.refuse(r.error());
  ctx.result(json::Object{{"schema", "h5i.plugin-untrust/1"}, {"id", id}, {"trust", "none"}});
  if (!ctx.json) ctx.line(id + " is not trusted any more");
  return 0;
}

}  // namespace h5i::cli
