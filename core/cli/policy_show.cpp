// policy show: one resolved profile, or the list of what there is.
#include "core/cli/policy_input.hpp"

namespace h5i::cli {
namespace {

int list(Context& ctx, const policy::ResolveInput& input) {
  auto names = policy::list_profiles(input);
  if (!names) return ctx.refuse(names.error());
  if (ctx.json) {
    Json rows = json::Array();
    for (const auto& n : *names) rows.push(json::Object{{"name", n.name}, {"defined_at", n.defined_at}, {"summary", n.summary}});
    ctx.result(json::Object{{"schema", "h5i.policy-list/1"}, {"profiles", rows}});
    return 0;
  }
  size_t width = 0;
  for (const auto& n : *names) width = std::max(width, n.name.size());
  for (const auto& n : *names)
    ctx.line(n.name + std::string(width + 2 - n.name.size(), ' ') + n.summary + "  [" + n.defined_at + "]");
  return 0;
}

}  // namespace

int policy_show(Context& ctx, const Parsed& parsed) {
  auto s = policy_surroundings(parsed);
  if (!s) return ctx.refuse(s.error());
  if (parsed.arguments.empty()) return list(ctx, s->input);
  auto r = profile_or_file(s->input, parsed.arguments[0]);
  if (!r) return ctx.refuse(r.error());
  Json notes = json::Array();
  for (const std::string& n : r->notes) {
    notes.push(n);
    ctx.note(n);
  }
  if (ctx.json)
    ctx.result(json::Object{{"schema", "h5i.policy-show/1"}, {"profile", r->profile}, {"defined_at", r->defined_at}, {"policy", r->document}, {"notes", notes}});
  else
    ctx.block(json::pretty(r->document));
  return 0;
}

}  // namespace h5i::cli
