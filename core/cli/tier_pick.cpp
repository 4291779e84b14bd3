#include "core/cli/tier_pick.hpp"

#include <map>

#include "core/plugin/client.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/registry.hpp"

namespace h5i::cli {
namespace {

Result<Json> probe(const plugin::PluginInfo& info, uid_t euid) {
  plugin::VerifiedLibrary library = H5I_TRY(plugin::open_verified(info, euid));
  UniqueFd executable = H5I_TRY(plugin::open_helper(plugin::install_prefix(), "libexec/h5i/h5i-host"));
  plugin::HostProcess host = H5I_TRY(plugin::HostProcess::start(executable));
  plugin::LoadSpec spec;
  spec.library = &library.fd;
  spec.id = info.id;
  spec.version = info.version;
  spec.digest = library.digest;
  spec.services = plugin::manifest_list(info.manifest, "host_services");
  H5I_TRY(host.load(spec));
  Json document = H5I_TRY(host.probe());
  H5I_TRY(host.shutdown());
  return document;
}

}  // namespace

policy::TierFacts facts_of(const Json& document) {
  policy::TierFacts facts;
  facts.tier = TierId(document["tier"].string());
  for (const Json& c : document["claims"].array()) facts.claims.insert(c.string());
  // A tier that shows the whole file system to the box confines nothing, whatever limits it holds besides.
  facts.confines = facts.claims.count("fs.read") > 0;
  facts.host_network = !facts.confines || facts.tier.value == "process";
  return facts;
}

Result<PickedTier> pick_tier(policy::Resolved resolved, const PickRequest& request) {
  plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
  plugin::Registry registry = H5I_TRY(plugin::Registry::scan(std::move(settings)));
  plugin::ChooseInput input;
  input.flag = request.flag;
  input.profile = resolved.isolation;
  input.environment = request.environment;
  input.order = resolved.host.tiers_order;
  input.image = !resolved.image.empty();
  input.allow_unconfined = request.allow_unconfined || resolved.host.allow_unconfined;
  std::map<std::string, policy::Resolved> pinned;
  plugin::ChooseCalls calls;
  calls.find = [&](std::string_view id) { return registry.find_tier(id); };
  calls.probe = [&](const plugin::PluginInfo& info) { return probe(info, registry.settings().euid); };
  calls.suits = [&](const plugin::PluginInfo& info, const Json& document) -> Result<void> {
    pinned.emplace(info.id, H5I_TRY(policy::with_tier(resolved, facts_of(document))));
    return {};
  };
  // The proof belongs to a run: it is made under the very view of the box that the run uses, before anything of it runs.
  calls.verify = [](const plugin::PluginInfo&) -> Result<void> { return {}; };
  plugin::TierChoice choice = H5I_TRY(plugin::choose_tier(input, calls));
  auto it = pinned.find(choice.plugin.id);
  if (it == pinned.end()) return make_error(Errc::INTERNAL, "the chosen tier was never held against the profile", choice.plugin.id);
  return PickedTier{std::move(it->second), std::move(choice)};
}

}  // namespace h5i::cli
