// box propose: through the gate into a commit on the box's branch.
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"

namespace h5i::cli {
namespace {

Result<void> propose(Context& ctx, const Parsed& p) {
  IdleBox box = H5I_TRY(open_idle_box(p.arguments[0], "box propose"));
  Review review = H5I_TRY(review_box(box, p.has("--keep-links")));
  Proposed made = H5I_TRY(propose_box(box, review, p.get("--message")));
  std::string unsealed;
  if (!H5I_TRY(seal_and_publish(box, &unsealed))) ctx.note("the log's head is not signed yet: " + unsealed);
  json::Array handoffs;
  for (const gate::Handoff& h : review.handoffs) handoffs.push_back(to_json(h));
  ctx.result(json::Object{{"schema", "h5i.box-propose/1"}, {"box", box.name()},
                          {"branch", box.manifest.branch},
                          {"commit", made.changes ? Json(made.commit.hex()) : Json()},
                          {"tree", made.changes ? Json(made.tree.hex()) : Json()},
                          {"changes", made.changes},
                          {"again", made.again},
                          {"ignored", review.scanned.ignored_count},
                          {"runs_on_your_side", std::move(handoffs)}});
  if (ctx.json) return {};
  if (made.changes == 0) {
    ctx.line("box " + box.name() + " changed nothing; there is nothing to propose");
    return {};
  }
  ctx.line("box " + box.name() + ": " + std::to_string(made.changes) + " paths " + (made.again ? "were proposed already" : "proposed") + " as " + made.commit.hex().substr(0, 12) +
           " on " + box.manifest.branch);
  if (review.scanned.ignored_count) ctx.line("  " + std::to_string(review.scanned.ignored_count) + " ignored paths stay in the box");
  print_handoffs(ctx, review.handoffs);
  return {};
}

}  // namespace

int box_propose(Context& ctx, const Parsed& p) {
  auto done = propose(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
