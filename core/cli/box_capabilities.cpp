// h5i box capabilities: for each policy field and each installed tier, whether it is enforced on this host; and what
// this build has. For programs first.
#include "core/cli/columns.hpp"
#include "core/cli/executables.hpp"
#include "core/cli/host_verbs.hpp"
#include "core/cli/plugin_verbs.hpp"
#include "core/cli/version.hpp"
#include "core/plugin/choose.hpp"
#include "h5i/abi.h"

namespace h5i::cli {
namespace {

// The fields of a profile that a tier can enforce; names as in `claims` and `not_enforced`.
constexpr std::string_view kFields[] = {"fs.read",          "fs.write",        "fs.deny",        "fs.private",
                                        "net.mode",         "net.egress",      "net.unix",       "net.loopback",
                                        "resources.mem",    "resources.procs", "resources.cpus", "resources.cpu",
                                        "resources.wall",   "resources.fsize", "resources.disk", "resources.inodes",
                                        "resources.output", "env.pass",        "env.set",        "tools"};

bool claims(const Json& probe, std::string_view field) {
  for (const Json& c : probe["claims"].array())
    if (c.string() == field) return true;
  return false;
}

Json fields_of(const TierReport& t) {
  Json out = json::Object{};
  for (std::string_view f : kFields) out[f] = t.state == "available" && claims(t.probe, f);
  return out;
}

}  // namespace

int box_capabilities(Context& ctx, const Parsed& parsed) {
  auto registry = installed_plugins();
  if (!registry) return ctx.refuse(registry.error());
  auto tiers = report_tiers(*registry, parsed.get("--tier"));
  if (!tiers) return ctx.refuse(tiers.error());
  Json list = json::Array{}, parts = json::Array{}, order = json::Array{};
  for (const TierReport& t : *tiers)
    list.push(json::Object{{"tier", t.tier}, {"state", t.state}, {"package", t.package}, {"enforces", fields_of(t)}});
  for (const char* part : {"host", "repo", "policy", "evidence"})
    if (executable_present(std::string("h5i-") + part)) parts.push(part);
  for (const std::string& t : plugin::built_in_order()) order.push(t);
  ctx.result(json::Object{{"schema", "h5i.box-capabilities/1"},
                          {"version", version_text()},
                          {"abi", json::Object{{"major", H5I_ABI_MAJOR}, {"minor", H5I_ABI_MINOR}}},
                          {"parts", parts},
                          {"auto_order", order},
                          {"tiers", list}});
  if (ctx.json) return 0;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head = {"field"};
  std::vector<const TierReport*> shown;
  for (const TierReport& t : *tiers) {
    if (t.state == "not-installed") continue;
    head.push_back(t.tier + (t.state == "available" ? "" : " (" + t.state + ")"));
    shown.push_back(&t);
  }
  rows.push_back(head);
  for (std::string_view f : kFields) {
    std::vector<std::string> row = {std::string(f)};
    for (const TierReport* t : shown) row.push_back(t->state == "available" && claims(t->probe, f) ? "enforced" : "-");
    rows.push_back(row);
  }
  for (const std::string& line : columns(rows)) ctx.line(line);
  for (const TierReport& t : *tiers)
    if (t.state == "not-installed") ctx.line(t.tier + " is not installed (package " + t.package + ")");
  return 0;
}

}  // namespace h5i::cli
