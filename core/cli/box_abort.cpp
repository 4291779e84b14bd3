// box abort: gives a box up. Its work and evidence stay until rm or gc.
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"

namespace h5i::cli {
namespace {

Result<void> abort_box(Context& ctx, const Parsed& p) {
  IdleBox box = H5I_TRY(open_idle_box(p.arguments[0], "box abort"));
  session::Manifest& m = box.manifest;
  if (m.state == session::BoxState::APPLIED) return make_error(Errc::BOX_STATE, "the box " + box.name() + " was applied", "as " + m.applied_commit.substr(0, 12), "git revert takes it back");
  std::string before(session::state_name(m.state));
  if (m.state != session::BoxState::ABORTED) {
    session::Manifest old = m;
    m.state = session::BoxState::ABORTED;
    H5I_TRY(session::save_manifest(box.entry.paths, m));
    auto recorded = record(box, "aborted", json::Object{{"before", before}});
    if (!recorded) {
      // What is not recorded did not happen.
      (void)session::save_manifest(box.entry.paths, old).ok();
      return std::move(recorded).error();
    }
  }
  ctx.result(json::Object{{"schema", "h5i.box-abort/1"}, {"box", box.name()}, {"before", before}, {"state", "aborted"}});
  if (!ctx.json) ctx.line("box " + box.name() + " is given up (was " + before + "); h5i box rm " + box.name() + " --force removes its files");
  return {};
}

}  // namespace

int box_abort(Context& ctx, const Parsed& p) {
  auto done = abort_box(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
