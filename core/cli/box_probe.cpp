// h5i box probe: version, kernel, architecture and security modules first; then each tier with each component, its
// evidence and the reason where it is missing. A tier says what it could enforce; that it did is proved when a box is
// made or run.
#include "core/cli/columns.hpp"
#include "core/cli/diagnosis.hpp"
#include "core/cli/host_verbs.hpp"
#include "core/cli/plugin_verbs.hpp"
#include "core/cli/version.hpp"

namespace h5i::cli {
namespace {

std::string words(const Json& list) {
  std::string out;
  for (const Json& v : list.array()) out += (out.empty() ? "" : " ") + v.string();
  return out;
}

bool among(const Json& list, const std::string& word) {
  for (const Json& v : list.array())
    if (v.string() == word) return true;
  return false;
}

void show(Context& ctx, const TierReport& t) {
  ctx.line("");
  std::string head = t.tier + ": " + t.state;
  if (t.state == "not-installed") head = t.tier + ": not installed (package " + t.package + ")";
  ctx.line(head);
  if (t.reason) {
    ctx.line("  " + reason_line(*t.reason));
    ctx.line("  see: " + t.reason->remedy());
  }
  if (!t.probe.is_object()) return;
  // A component that the tier can do without is limited: what it would hold is in not_enforced of a run.
  std::vector<std::vector<std::string>> rows;
  for (const Json& c : t.probe["components"].array()) {
    const char* state = c["ok"].boolean()                             ? "  ok"
                        : among(t.probe["missing"], c["id"].string()) ? "  missing"
                                                                      : "  limited";
    rows.push_back({state, c["id"].string(),
                    c["evidence"].string() + (c["ok"].boolean() ? "" : " [" + c["reason"].string() + "]")});
  }
  for (const std::string& line : columns(rows)) ctx.line(line);
  if (std::string claims = words(t.probe["claims"]); !claims.empty()) ctx.line("  claims " + claims);
  if (std::string missing = words(t.probe["missing"]); !missing.empty())
    ctx.line("  impossible here: missing " + missing);
}

}  // namespace

int box_probe(Context& ctx, const Parsed& parsed) {
  os::HostFacts facts = os::host_facts();
  auto registry = installed_plugins();
  if (!registry) return ctx.refuse(registry.error());
  std::string only = parsed.get("--tier");
  auto tiers = report_tiers(*registry, only);
  if (!tiers) return ctx.refuse(tiers.error());
  bool available = false;
  Json list = json::Array{};
  for (const TierReport& t : *tiers) {
    list.push(t.to_json());
    available = available || t.state == "available";
  }
  ctx.result(json::Object{
      {"schema", "h5i.box-probe/1"}, {"version", version_text()}, {"host", host_json(facts)}, {"tiers", list}});
  if (!ctx.json) {
    ctx.line("h5i " + version_text() + ", " + host_line(facts));
    if (tiers->empty()) ctx.line("no tier is installed");
    for (const TierReport& t : *tiers) show(ctx, t);
  }
  // A tier that was named and cannot be had is the answer "no".
  return only.empty() || available ? 0 : 1;
}

}  // namespace h5i::cli
