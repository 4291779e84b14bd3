// box egress: the egress rules of a box that runs. The change is made by the h5i that runs it, which checks every address again; what
// needs configuration or a resolver is done here, so that nothing holds up the run.
#include <algorithm>

#include "core/cli/caller.hpp"
#include "core/cli/inside_box.hpp"
#include "core/cli/policy_input.hpp"
#include "core/policy/ceiling.hpp"
#include "core/session/control.hpp"
#include "core/session/egress.hpp"
#include "core/session/live.hpp"

namespace h5i::cli {
namespace {

constexpr int64_t kAnswerMs = 20'000;

Error not_running(const session::BoxEntry& box) {
  return make_error(Errc::BOX_NOT_RUNNING, "nothing runs in " + box.name.str(), "rules are changed while a command runs; for the next one edit the profile or h5i box allow");
}

Result<Json> change(const Parsed& words, const std::string& what) {
  Json rules = json::Array{}, addresses = json::Object{};
  std::vector<policy::EgressRule> parsed;
  for (size_t i = 2; i < words.arguments.size(); i++) {
    parsed.push_back(H5I_TRY(policy::parse_egress(words.arguments[i], words.has("--private"))));
    rules.push(parsed.back().to_json());
  }
  if (what == "add") {
    auto surroundings = H5I_TRY(policy_surroundings(words));
    for (const policy::EgressRule& r : parsed) H5I_TRY(policy::check_egress_allowed(surroundings.input.host, r, "box egress add"));
    session::Addresses found = H5I_TRY(session::look_up(session::names_of(parsed)));
    for (const auto& [name, list] : found) {
      Json texts = json::Array{};
      for (const Address& a : list) texts.push(to_text(a));
      addresses[name] = std::move(texts);
    }
  }
  return Json(json::Object{{"schema", "h5i.egress-change/1"}, {"do", what}, {"rules", std::move(rules)}, {"addresses", std::move(addresses)}});
}

Result<Json> ask(const Parsed& words, const std::string& what, std::string* box_name) {
  auto dirs = H5I_TRY(session::UserDirs::from_environment());
  std::string here = H5I_TRY(current_directory());
  session::BoxEntry box = H5I_TRY(session::find_box(words.arguments[1], here, dirs));
  *box_name = box.name.str();
  session::Manifest manifest = H5I_TRY(session::load_manifest(box.paths));  // a folder that is not ours is not spoken to
  Json request = json::Object{{"do", "list"}};
  if (what != "list") request = H5I_TRY(change(words, what));
  auto live = H5I_TRY(session::read_live(box.paths));
  bool runs = live && std::any_of(live->processes.begin(), live->processes.end(), [](const session::LiveProcess& p) { return p.role == "core" && session::is_alive(p); });
  if (!runs) return not_running(box);
  auto said = session::ask_running(box.paths, request, kAnswerMs);
  if (!said && said.error().code == Errc::NOT_FOUND && said.error().evidence == box.paths.control())
    return make_error(Errc::POLICY_EGRESS_TIER, "the rules of " + box.name.str() + " cannot be changed", "tier " + manifest.tier + " holds no packet rules, or its command is only starting");
  return said;
}

}  // namespace

int box_egress(Context& ctx, const Parsed& words) {
  const std::string& what = words.arguments[0];
  if ((what != "list" && what != "add" && what != "remove") || words.arguments.size() < 2 || ((what == "list") != (words.arguments.size() == 2)))
    return ctx.refuse(make_error(Errc::USAGE, "box egress takes list BOX, add BOX RULE... or remove BOX RULE...", "given: " + what, "h5i box egress --help"));
  if (what != "list" && inside_box())
    return ctx.refuse(make_error(Errc::POLICY_INSIDE, "a box's egress rules are not changed from inside a box", "this process descends from a box's first process"));
  std::string box;
  auto said = ask(words, what, &box);
  if (!said) return ctx.refuse(said.error());
  Json out = json::Object{{"schema", "h5i.box-egress/1"}, {"box", box}, {"rules", (*said)["rules"]}, {"effective_digest", (*said)["effective_digest"]}};
  if (what != "list") {
    out["changed"] = (*said)["changed"];
    out["not_pinned"] = (*said)["not_pinned"];
    if ((*said)["effective_digest_before"].is_string()) out["effective_digest_before"] = (*said)["effective_digest_before"];
  }
  ctx.result(out);
  if (ctx.json) return 0;
  for (const Json& r : out["rules"].array()) {
    std::string line = r["rule"].string() + " ";
    for (const Json& a : r["addresses"].array()) line += " " + a.string();
    ctx.line(line);
  }
  for (const Json& r : out["not_pinned"].array()) ctx.note(r["rule"].string() + " points to " + r["address"].string() + " too, where no box may go");
  if (what != "list" && out["changed"].array().empty()) ctx.note("nothing to change");
  else if (what != "list") ctx.note("until this command ends; before " + (*said)["effective_digest_before"].string().substr(0, 12) + ", now " + (*said)["effective_digest"].string().substr(0, 12));
  return 0;
}

}  // namespace h5i::cli
