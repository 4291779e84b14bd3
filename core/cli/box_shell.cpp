#include <algorithm>
#include <cstdlib>

#include "core/cli/open_box.hpp"
#include "core/cli/run_words.hpp"
#include "core/cli/verbs.hpp"
#include "core/plugin/registry.hpp"

namespace h5i::cli {
namespace {

// What the box can reach, as this tier holds it: a profile's "deny" is no promise where nothing enforces it.
std::string egress_words(const Json& profile, const plugin::PluginInfo& tier) {
  const Json& net = profile["net"];
  if (net["mode"].string() == "host") return "the host's network";
  auto claims = tier.manifest["claims"].array();
  if (std::find(claims.begin(), claims.end(), Json("net.mode")) == claims.end())
    return "the host's network: this tier enforces none of the profile's network rules";
  if (net["egress"].array().empty()) return "no network";
  return std::to_string(net["egress"].array().size()) + " egress rules";
}

Result<void> say_where(Context& ctx, const session::BoxEntry& box) {
  session::Manifest m = H5I_TRY(session::load_manifest(box.paths));
  Json policy = H5I_TRY(session::load_policy(box.paths, m));
  auto settings = H5I_TRY(plugin::Settings::of_this_process());
  auto registry = H5I_TRY(plugin::Registry::scan(std::move(settings)));
  plugin::PluginInfo tier = H5I_TRY(registry.find_tier(m.tier));
  ctx.note("box " + m.name.str() + ", tier " + m.tier + ", profile " + m.profile + ", " + egress_words(policy["profile"], tier));
  return {};
}

}  // namespace

int box_shell(Context& ctx, const Parsed& words) {
  auto options = run_options(ctx, words);
  if (!options) return refuse_run(ctx, options.error(), -1);
  options->shell = true;
  options->readonly = words.has("--readonly");
  options->record = words.has("--record");
  if (options->argv.empty()) {
    const char* shell = ::getenv("SHELL");
    options->argv = {shell && shell[0] == '/' ? shell : "/bin/sh", "-i"};
  }
  auto box = open_box(ctx, words.arguments[0]);
  if (!box) return refuse_run(ctx, box.error(), options->status_fd);
  auto said = say_where(ctx, *box);
  if (!said) return refuse_run(ctx, said.error(), options->status_fd);
  return run_and_report(ctx, *box, *options);
}

}  // namespace h5i::cli
