// policy diff: what the second policy allows more than the first, and what less.
#include "core/cli/policy_input.hpp"
#include "core/policy/compare.hpp"

namespace h5i::cli {

int policy_diff(Context& ctx, const Parsed& parsed) {
  auto s = policy_surroundings(parsed);
  if (!s) return ctx.refuse(s.error());
  auto a = profile_or_file(s->input, parsed.arguments[0]);
  if (!a) return ctx.refuse(a.error());
  auto b = profile_or_file(s->input, parsed.arguments[1]);
  if (!b) return ctx.refuse(b.error());
  // A tier is a choice at create, not part of a profile: compared only when both documents have one.
  if (!a->document.object().contains("tier")) b->document.make_object().erase("tier");
  if (!b->document.object().contains("tier")) a->document.make_object().erase("tier");
  std::vector<policy::Change> changes = policy::compare(a->document, b->document);
  if (ctx.json) {
    Json rows = json::Array();
    for (const policy::Change& c : changes)
      rows.push(json::Object{{"field", c.field}, {"change", policy::direction_name(c.direction)}, {"detail", c.detail}});
    ctx.result(json::Object{{"schema", "h5i.policy-diff/1"}, {"from", parsed.arguments[0]}, {"to", parsed.arguments[1]}, {"changes", rows}});
    return 0;
  }
  for (policy::Direction d : {policy::Direction::WIDENED, policy::Direction::NARROWED, policy::Direction::CHANGED})
    for (const policy::Change& c : changes)
      if (c.direction == d) ctx.line(std::string(policy::direction_name(d)) + "  " + c.field + "  " + c.detail);
  if (changes.empty()) ctx.line("no difference in what is allowed");
  return 0;
}

}  // namespace h5i::cli
