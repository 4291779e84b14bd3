#include "core/session/probe.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/spawn/plan.hpp"

namespace h5i::session {
namespace {

Error bad_document(const char* what, const std::string& why) {
  return make_error(Errc::PLUGIN_PROTOCOL, std::string("the tier's ") + what + " document is not what its schema says", why);
}

}  // namespace

Result<plugin::HostProcess> start_host(plugin::HostEvents events, const std::string& prefix) {
  plugin::HostHelpers helpers = H5I_TRY(plugin::HostHelpers::open(prefix.empty() ? plugin::install_prefix() : prefix));
  return plugin::HostProcess::start(helpers, std::move(events));
}

Result<void> load_tier(plugin::HostProcess& host, const plugin::PluginInfo& info) {
  plugin::VerifiedLibrary library = H5I_TRY(plugin::open_verified(info, geteuid()));
  plugin::LoadSpec spec;
  spec.library = &library.fd;
  spec.id = info.id;
  spec.version = info.version;
  spec.digest = library.digest;
  spec.services = strings(info.manifest["host_services"]);
  return host.load(spec);
}

Result<plugin::HostProcess> start_tier(const plugin::PluginInfo& info, plugin::HostEvents events, const std::string& prefix) {
  plugin::HostProcess host = H5I_TRY(start_host(std::move(events), prefix));
  H5I_TRY(load_tier(host, info));
  return host;
}

Result<void> check_probe(const Json& probe, const plugin::PluginInfo& info) {
  if (probe["schema"].string() != "h5i.probe/1") return bad_document("probe", "schema is not h5i.probe/1");
  if (probe["tier"].string() != info.id) return bad_document("probe", "it speaks for " + printable(probe["tier"].string()));
  if (!probe["available"].is_bool() || !probe["components"].is_array() || !probe["claims"].is_array() || !probe["missing"].is_array())
    return bad_document("probe", "available, components, claims or missing is absent");
  for (const Json& c : probe["components"].array())
    if (!c["id"].is_string() || !c["ok"].is_bool() || !c["evidence"].is_string() || !c["reason"].is_string())
      return bad_document("probe", "a component without id, ok, evidence and reason");
  if (probe["available"].boolean() && !probe["missing"].array().empty())
    return bad_document("probe", "available although components are missing");
  auto allowed = strings(info.manifest["claims"]);
  for (const std::string& claim : strings(probe["claims"]))
    if (std::find(allowed.begin(), allowed.end(), claim) == allowed.end())
      return make_error(Errc::TIER_OVERCLAIM, "tier " + info.id + " claims more than its manifest", printable(claim));
  return {};
}

Result<void> check_verify(const Json& verify, const std::string& tier) {
  if (verify["schema"].string() != "h5i.verify/1" || !verify["ok"].is_bool() || !verify["positive"]["ok"].is_bool() ||
      !verify["dimensions"].is_array())
    return bad_document("verify", "schema, ok, positive or dimensions is absent");
  if (!verify["positive"]["ok"].boolean())
    return make_error(Errc::TIER_VERIFY_FAILED, "tier " + tier + " did not run its own test program",
                      printable(verify["positive"]["detail"].string()));
  for (const Json& d : verify["dimensions"].array()) {
    std::string claim = printable(d["claim"].string());
    std::string detail = printable(d["detail"].string());
    if (d["control"].string() != "ok")
      return make_error(Errc::TIER_NO_CONTROL, "tier " + tier + " cannot prove " + claim + " here",
                        "the same act outside the box: " + printable(d["control"].string()) + (detail.empty() ? "" : "; " + detail));
    auto expected = strings(d["expected"]);
    bool held = std::find(expected.begin(), expected.end(), d["negative"].string()) != expected.end();
    if (!d["ok"].boolean() || !held)
      return make_error(Errc::TIER_VERIFY_FAILED, "tier " + tier + " does not hold " + claim + " here",
                        "the forbidden act gave " + printable(d["negative"].string()) + (detail.empty() ? "" : "; " + detail));
  }
  if (!verify["ok"].boolean()) {
    std::string missing;
    for (const std::string& m : strings(verify["missing"])) missing += (missing.empty() ? "" : ", ") + printable(m);
    return make_error(Errc::TIER_VERIFY_FAILED, "tier " + tier + " did not verify here",
                      missing.empty() ? "it gives no reason" : "missing: " + missing);
  }
  return {};
}

Result<Json> probe_tier(const plugin::PluginInfo& info, const std::string& prefix) {
  auto host = H5I_TRY(start_tier(info, {}, prefix));
  Json probe = H5I_TRY(host.probe());
  H5I_TRY(check_probe(probe, info));
  host.shutdown();
  return probe;
}

Result<Json> verify_tier(const plugin::PluginInfo& info, const Json& request, const std::string& prefix) {
  auto host = H5I_TRY(start_tier(info, {}, prefix));
  Json verify = H5I_TRY(host.verify_exec(request));
  H5I_TRY(check_verify(verify, info.id));
  host.shutdown();
  return verify;
}

Result<Json> plan_tier(const plugin::PluginInfo& info, const Json& request, const std::string& prefix) {
  auto host = H5I_TRY(start_tier(info, {}, prefix));
  Json plan = H5I_TRY(host.plan(request));
  H5I_TRY(spawn::decode_plan(json::canonical(plan)));
  host.shutdown();
  return plan;
}

}  // namespace h5i::session
