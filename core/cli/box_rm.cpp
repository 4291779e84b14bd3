// box rm: a box's work tree, private directories, branch and base ref go; its evidence moves aside and stays.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/cli/leftovers.hpp"
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

// Changes that exist nowhere but in the box: the work tree is neither the base nor what was applied.
Result<uint64_t> unapplied(const IdleBox& box) {
  Review review = H5I_TRY(review_box(box, true));
  // What the gate would refuse is a change too.
  if (!review.scanned.violations.empty()) return static_cast<uint64_t>(review.changes.size() + review.scanned.violations.size());
  if (review.changes.empty()) return uint64_t{0};
  auto applied = box.manifest.applied_commit.empty() ? std::nullopt : git::Oid::from_hex(box.manifest.proposed_commit);
  if (applied && box.repo.has(*applied)) {
    git::CommitInfo info = H5I_TRY(box.repo.commit(*applied));
    git::Tree tree = H5I_TRY(box.repo.read_tree(info.tree));
    return static_cast<uint64_t>(git::changes_between(tree, review.scanned.tree).size());
  }
  return static_cast<uint64_t>(review.changes.size());
}

Result<void> remove_box(Context& ctx, const Parsed& p) {
  IdleBox box = H5I_TRY(open_idle_box(p.arguments[0], "box rm"));
  const session::Manifest& m = box.manifest;
  bool force = p.has("--force");
  if (!force) {
    uint64_t n = H5I_TRY(unapplied(box));
    if (n > 0) return make_error(Errc::BOX_UNAPPLIED, "the box " + box.name() + " holds changes that were not applied", std::to_string(n) + " paths; h5i box diff " + box.name() + " shows them");
  }
  H5I_TRY(record(box, "removed", json::Object{{"state", session::state_name(m.state)}, {"forced", force}}));
  std::string unsealed;
  if (!H5I_TRY(seal_and_publish(box, &unsealed))) ctx.note("the log's head is not signed: " + unsealed);

  // The box is gone in one step; what is left of it is cleared now, or by the next verb if we are killed.
  std::string agent_dir = box.entry.paths.dir.substr(0, box.entry.paths.dir.rfind('/')), boxes_dir = agent_dir.substr(0, agent_dir.rfind('/'));
  UniqueFd parent = H5I_TRY(os::open_directory(agent_dir));
  std::string folder = folder_name("gone", m.name.slug, H5I_TRY(new_session_id()).value);
  if (renameat(parent.get(), m.name.slug.c_str(), parent.get(), folder.c_str()) != 0) return sys_error("take the box away");
  std::string where = H5I_TRY(finish_removal(boxes_dir, m.name.agent, m.name.slug, folder, box.detached() ? nullptr : &box.repo));
  ctx.result(json::Object{{"schema", "h5i.box-rm/1"}, {"box", box.name()}, {"forced", force}, {"evidence", where}});
  if (!ctx.json) ctx.line("box " + box.name() + " removed; its evidence is in " + where);
  return {};
}

}  // namespace

int box_rm(Context& ctx, const Parsed& p) {
  auto done = remove_box(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
