#include "core/cli/host_verbs.hpp"

#include "core/session/probe.hpp"

namespace h5i::cli {
namespace {

TierReport asked(const plugin::PluginInfo& p) {
  TierReport r{p.name(), "", p.package, nullptr, {}};
  if (p.refused) {
    r.state = "refused";
    r.reason = p.refused;
    return r;
  }
  auto probe = session::probe_tier(p);
  if (!probe) {
    bool bytes = probe.error().code >= Errc::PLUGIN_MANIFEST && probe.error().code <= Errc::PLUGIN_UNTRUSTED;
    r.state = bytes || probe.error().code == Errc::PLUGIN_LINT || probe.error().code == Errc::PLUGIN_EXPORTS ||
                      probe.error().code == Errc::PLUGIN_NEEDS
                  ? "refused"
                  : "failed";
    r.reason = probe.error();
    return r;
  }
  r.probe = std::move(*probe);
  r.state = r.probe["available"].boolean() ? "available" : "impossible";
  return r;
}

}  // namespace

Json TierReport::to_json() const {
  Json out = json::Object{{"tier", tier}, {"state", state}, {"package", package}, {"probe", probe}};
  if (reason)
    out["reason"] = json::Object{
        {"id", reason->id()}, {"what", reason->what}, {"evidence", reason->evidence}, {"next", reason->remedy()}};
  return out;
}

Result<std::vector<TierReport>> report_tiers(const plugin::Registry& registry, const std::string& only) {
  std::vector<TierReport> out;
  if (!only.empty()) {
    plugin::PluginInfo one = H5I_TRY(registry.find_tier(only));
    out.push_back(asked(one));
    return out;
  }
  for (const plugin::PluginInfo& p : registry.plugins())
    if (p.kind == "tier" || p.kind.empty()) out.push_back(asked(p));
  for (const std::string& tier : plugin::shipped_tiers()) {
    auto found = registry.find_tier(tier);
    if (!found && found.error().code == Errc::TIER_NOT_INSTALLED)
      out.push_back({tier, "not-installed", plugin::package_of_tier(tier), nullptr, {}});
  }
  return out;
}

Json host_json(const os::HostFacts& f) {
  Json modules = json::Array{};
  for (const std::string& m : f.security_modules) modules.push(m);
  return json::Object{{"kernel", f.kernel},
                      {"arch", f.machine},
                      {"security_modules", f.security_modules_known ? modules : Json(nullptr)},
                      {"landlock_abi", f.landlock_abi},
                      {"uid", f.uid}};
}

void implement_host_verbs() {
  implement("box", "probe", box_probe);
  implement("box", "doctor", box_doctor);
  implement("box", "capabilities", box_capabilities);
}

}  // namespace h5i::cli
