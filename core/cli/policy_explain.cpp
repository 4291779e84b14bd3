// policy explain: each field with where it comes from and whether this tier holds it, then the plan that a run would have.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/cli/policy_input.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/registry.hpp"
#include "core/policy/explain.hpp"
#include "core/policy/model.hpp"
#include "core/policy/seatbelt.hpp"
#include "core/session/egress.hpp"
#include "core/session/probe.hpp"

namespace h5i::cli {
namespace {

constexpr const char* kUsualTier = "process";  // what is explained when neither flag nor profile names a tier

// What a tier says about itself: on this host when it could be asked, else by its manifest.
struct Asked {
  plugin::PluginInfo plugin;
  policy::TierFacts facts;
  bool probed = false;
  std::string why_not;  // why there is no plan
};

Result<Asked> ask(const std::string& tier) {
  plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
  plugin::Registry registry = H5I_TRY(plugin::Registry::scan(std::move(settings)));
  Asked a;
  a.plugin = H5I_TRY(registry.find_tier(tier));
  std::set<std::string> claims;
  for (const std::string& c : plugin::manifest_list(a.plugin.manifest, "claims")) claims.insert(c);
  a.facts = policy::facts_of(TierId(tier), claims);
  auto probe = session::probe_tier(a.plugin);
  if (!probe) {
    a.why_not = probe.error().what + ": " + probe.error().evidence;
    return a;
  }
  a.probed = true;
  if ((*probe)["available"].boolean()) a.facts = policy::facts_from_probe(*probe);
  else a.why_not = "this host lacks: " + json::canonical((*probe)["missing"]);
  return a;
}

// As root a box has an unprivileged id of its own; which one makes no difference to what is explained.
constexpr int64_t kSomeBoxId = 0x70000000;

// A run of `true` in the directory that stands for $WORK.
Result<Json> run_request(const PolicySurroundings& s, const policy::Resolved& r) {
  std::string prefix = plugin::install_prefix();
  SessionId session = H5I_TRY(new_session_id());
  auto uid = static_cast<int64_t>(::geteuid()), gid = static_cast<int64_t>(::getegid());
  int64_t box_uid = uid ? uid : kSomeBoxId, box_gid = uid ? gid : kSomeBoxId;
  Json argv = json::Array{"true"}, exec = json::Array{"/bin/true"};
  Json command = json::Object{{"argv", argv}, {"exec", exec}, {"cwd", s.directory}, {"tty", false}, {"readonly", false}};
  Json paths = json::Object{{"work", s.directory}, {"git", ""}, {"objects", json::Array()}, {"spool", s.directory},
                            {"private", s.directory}, {"repo_git", ""}, {"home", s.input.home}, {"libexec", prefix + "/libexec/h5i"}};
  return Json(json::Object{{"schema", "h5i.run/1"}, {"session", session.str()}, {"box", "human/explain"},
                      {"boxid", std::string(16, '0')}, {"policy", r.document}, {"paths", paths}, {"deny_always", json::Array()},
                      {"env", json::Object()}, {"ids", json::Object{{"uid", uid}, {"gid", gid}, {"box_uid", box_uid}, {"box_gid", box_gid}}},
                      {"command", command}});
}

// One shape whatever was not held: the tier's own words from its plan, and ours for claims that are missing.
Json not_enforced(const std::vector<policy::Unheld>& ours, const Json& plan) {
  Json rows = json::Array();
  std::set<std::string> named;
  for (const Json& n : plan["not_enforced"].array()) {
    named.insert(n["field"].string());
    rows.push(json::Object{{"field", n["field"].string()}, {"reason", n["reason"].string()}, {"detail", n["detail"].string()}});
  }
  for (const policy::Unheld& u : ours)
    if (!named.count(u.field)) rows.push(json::Object{{"field", u.field}, {"reason", u.reason}, {"detail", u.detail}});
  return rows;
}

void print_head(Context& ctx, const policy::Resolved& r, const std::string& tier) {
  ctx.line("profile " + r.profile + " (" + r.defined_at + "), tier " + tier);
  ctx.line("policy digest " + r.digest.str());
}

void print_fields(Context& ctx, const std::vector<policy::FieldLine>& fields) {
  size_t width = 0;
  for (const auto& f : fields) width = std::max(width, f.field.size());
  for (const auto& f : fields) {
    ctx.line(f.field + std::string(width + 2 - f.field.size(), ' ') + f.state + "  " + f.value);
    ctx.detail("  from " + f.origin);
  }
}

void print(Context& ctx, const policy::Resolved& r, const std::string& tier, const std::vector<policy::FieldLine>& fields,
           const Json& unheld, const Json& plan, const std::string& no_plan) {
  print_head(ctx, r, tier);
  print_fields(ctx, fields);
  if (!unheld.array().empty()) ctx.line("not enforced at this tier:");
  for (const Json& u : unheld.array()) ctx.line("  " + u["field"].string() + "  [" + u["reason"].string() + "]  " + u["detail"].string());
  if (plan.is_null()) ctx.line("no spawn plan: " + no_plan);
  else ctx.block("spawn plan:\n" + json::pretty(plan));
}

Json answer(const policy::Resolved& r, const std::string& tier, bool probed, const std::vector<policy::FieldLine>& fields, const Json& unheld, const Json& plan,
            const std::string& no_plan) {
  Json rows = json::Array(), notes = json::Array();
  for (const auto& f : fields)
    rows.push(json::Object{{"field", f.field}, {"value", f.value}, {"state", f.state}, {"origin", f.origin}});
  for (const std::string& n : r.notes) notes.push(n);
  Json out = json::Object{{"schema", "h5i.policy-explain/1"}, {"profile", r.profile}, {"defined_at", r.defined_at},
                          {"tier", tier}, {"probed", probed}, {"policy_digest", r.digest.str()}, {"policy", r.document},
                          {"fields", rows}, {"not_enforced", unheld}, {"notes", notes}, {"plan", plan}};
  if (plan.is_null()) out["no_plan"] = no_plan;
  return out;
}

constexpr const char* kSeatbelt = "seatbelt";
constexpr const char* kNothingHeld = "nothing of this is enforced by this build: h5i does not run on macOS";
constexpr uint16_t kSomeProxyPort = 3128;  // of a run it is whichever the proxy got

// The rules that a tier on macOS would be given. There is no such tier, so no field is said to be held.
int explain_seatbelt(Context& ctx, const PolicySurroundings& s, policy::Resolved resolved) {
  // Nothing is run, so nothing is refused for want of a limit; what no tier could be asked for is refused as elsewhere.
  policy::TierFacts asked{TierId(kSeatbelt), {policy::kFields.begin(), policy::kFields.end()}, true, false};
  asked.claims.erase("container.image");
  auto r = policy::with_tier(std::move(resolved), asked);
  if (!r) return ctx.refuse(r.error());
  policy::SeatbeltRun run;
  run.work = s.directory;
  if (!r->document["profile"]["net"]["egress"].array().empty()) {
    run.proxy = kSomeProxyPort;
    r->notes.push_back("port " + std::to_string(kSomeProxyPort) + " stands for the one that the egress proxy of a run would have");
  }
  auto made = policy::seatbelt_profile(r->document, run);
  if (!made) return ctx.refuse(made.error());

  std::vector<policy::FieldLine> fields = policy::explain_fields(*r, {});
  std::vector<policy::Unheld> unheld = made->not_held;
  std::set<std::string> named;
  for (const policy::Unheld& u : unheld) named.insert(u.field);
  for (policy::FieldLine& f : fields) {
    f.state = "not enforced";
    if (!named.count(f.field)) unheld.push_back({f.field, "no-such-tier", "h5i does not run on macOS"});
  }

  for (const std::string& n : r->notes) ctx.note(n);
  if (ctx.json) {
    Json parameters = json::Array();
    for (const auto& p : made->parameters) parameters.push(json::Object{{"name", p.name}, {"value", p.value}});
    Json out = answer(*r, kSeatbelt, false, fields, not_enforced(unheld, Json()), Json(), kNothingHeld);
    out["seatbelt"] = json::Object{{"profile", made->text}, {"parameters", parameters}};
    ctx.result(out);
    return 0;
  }
  print_head(ctx, *r, kSeatbelt);
  ctx.line(kNothingHeld);
  print_fields(ctx, fields);
  if (!made->not_held.empty()) ctx.line("what these rules would not hold on macOS either:");
  for (const policy::Unheld& u : made->not_held) ctx.line("  " + u.field + "  [" + u.reason + "]  " + u.detail);
  ctx.block("sandbox profile:\n" + made->text);
  ctx.line("parameters:");
  for (const auto& p : made->parameters) ctx.line("  " + p.name + "=" + p.value);
  return 0;
}

}  // namespace

int policy_explain(Context& ctx, const Parsed& parsed) {
  auto s = policy_surroundings(parsed);
  if (!s) return ctx.refuse(s.error());
  std::string name = parsed.arguments.empty() ? "default" : parsed.arguments[0];
  auto r = profile_or_file(s->input, name);
  if (!r) return ctx.refuse(r.error());
  std::string tier = parsed.get("--tier", !r->isolation.empty() ? r->isolation : r->document.object().contains("tier") ? r->document["tier"].string() : kUsualTier);
  auto asked = ask(tier);
  if (!asked && asked.error().code == Errc::TIER_NOT_INSTALLED && tier == kSeatbelt) return explain_seatbelt(ctx, *s, std::move(*r));
  if (!asked) return ctx.refuse(asked.error());
  auto pinned = policy::with_tier(*r, asked->facts);
  if (!pinned) return ctx.refuse(pinned.error());

  Json plan;
  std::string no_plan = asked->why_not;
  if (no_plan.empty()) {
    auto request = run_request(*s, *pinned);
    if (!request) return ctx.refuse(request.error());
    if (session::takes_egress(asked->plugin.manifest["claims"])) {
      auto dirs = session::UserDirs::from_environment();
      if (!dirs) return ctx.refuse(dirs.error());
      auto egress = session::egress_now(pinned->document["profile"], *dirs);
      if (!egress) return ctx.refuse(egress.error());
      (*request)["network"] = egress->network;
    }
    auto answer = session::plan_tier(asked->plugin, *request);
    if (answer) plan = std::move(*answer);
    else no_plan = answer.error().what + ": " + answer.error().evidence;
  }
  std::vector<policy::Unheld> ours = policy::unheld_fields(pinned->document, asked->facts);
  Json unheld = not_enforced(ours, plan);
  std::set<std::string> unclaimed, gaps;
  for (const policy::Unheld& u : ours) unclaimed.insert(u.field);
  for (const Json& u : unheld.array()) gaps.insert(u["field"].string());
  std::vector<policy::FieldLine> fields = policy::explain_fields(*pinned, unclaimed, gaps);

  for (const std::string& n : pinned->notes) ctx.note(n);
  if (!ctx.json) {
    print(ctx, *pinned, tier, fields, unheld, plan, no_plan);
    return 0;
  }
  ctx.result(answer(*pinned, tier, asked->probed, fields, unheld, plan, no_plan));
  return 0;
}

}  // namespace h5i::cli
