// h5i box doctor: what this host lacks for confining tiers, who takes it away, and what to do about it.
#include "core/cli/diagnosis.hpp"
#include "core/cli/host_verbs.hpp"
#include "core/cli/plugin_verbs.hpp"
#include "core/cli/version.hpp"

namespace h5i::cli {
namespace {

// Whether everything of this installation can be believed, as one more finding.
Finding installation(const plugin::Registry& registry) {
  size_t usable = 0;
  const plugin::PluginInfo* refused = nullptr;
  for (const plugin::PluginInfo& p : registry.plugins()) {
    usable += !p.refused;
    if (p.refused && refused == nullptr) refused = &p;
  }
  if (refused != nullptr)
    return {"plugins", "limited", std::string(refused->refused->id()),
            refused->name() + ": " + reason_line(*refused->refused), refused->refused->remedy()};
  if (usable == 0)
    return {"plugins", "missing", "not-installed", "no tier is installed",
            "install a package h5i-tier-NAME: h5i plugin list"};
  return {"plugins", "ok", "", std::to_string(usable) + " in order", ""};
}

}  // namespace

int box_doctor(Context& ctx, const Parsed&) {
  os::HostFacts facts = os::host_facts();
  std::vector<Finding> findings = diagnose(facts);
  auto registry = installed_plugins();
  if (!registry) return ctx.refuse(registry.error());
  registry->verify_bytes();
  findings.push_back(installation(*registry));
  Json list = json::Array{};
  bool missing = false;
  for (const Finding& f : findings) {
    missing = missing || f.state == "missing";
    list.push(json::Object{
        {"id", f.id}, {"state", f.state}, {"cause", f.cause}, {"evidence", f.evidence}, {"remedy", f.remedy}});
  }
  ctx.result(json::Object{{"schema", "h5i.box-doctor/1"},
                          {"version", version_text()},
                          {"host", host_json(facts)},
                          {"ok", !missing},
                          {"findings", list}});
  if (ctx.json) return 0;
  ctx.line("h5i " + version_text() + ", " + host_line(facts));
  for (const Finding& f : findings) {
    ctx.line((f.state == "ok"        ? "ok       "
              : f.state == "missing" ? "missing  "
                                     : "limited  ") +
             f.id + ": " + f.evidence);
    if (f.state != "ok") ctx.line("         because of: " + f.cause + "; remedy: " + f.remedy);
  }
  ctx.line(missing ? "a confining tier is impossible here until the above is mended"
                   : "nothing is missing for the confining tiers");
  return 0;
}

}  // namespace h5i::cli
