// box rebase: a box's work onto the present head of its parent branch. Conflicts change nothing.
#include <fcntl.h>

#include "core/base/text.hpp"
#include "core/cli/rebase_work.hpp"
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

Result<git::Oid> onto_of(const IdleBox& box, const Parsed& p) {
  const session::Manifest& m = box.manifest;
  if (p.has("--onto")) {
    std::string git_dir = m.repo_git_dir;
    if (auto here = session::find_repository(directory_or_root()); here && here->common_dir == m.repo_git_dir) git_dir = here->git_dir;
    return box.repo.resolve_commit(p.get("--onto"), git_dir);
  }
  if (m.parent_branch.empty()) return make_error(Errc::BOX_DETACHED, "the box " + box.name() + " has no parent branch", "it was made from a pull request, or while HEAD was detached", "h5i box rebase " + box.name() + " --onto REVISION");
  std::optional<git::Oid> head = H5I_TRY(box.repo.ref(m.parent_branch));
  if (!head) return make_error(Errc::GIT_REVISION, "the parent branch is gone", printable(m.parent_branch), "h5i box rebase " + box.name() + " --onto REVISION");
  return *head;
}

// A file of the box that is in the way of one that the new base brings: an ignored one, which no merge has seen.
Result<void> nothing_in_the_way(const IdleBox& box, const std::vector<git::Change>& changes) {
  std::string list;
  for (const git::Change& c : changes) {
    if (c.old_mode != 0) continue;
    auto fd = os::open_beneath(box.work, c.path, O_PATH);
    bool absent = !fd && (fd.error().sys_errno == ENOENT || fd.error().sys_errno == ENOTDIR);
    if (!absent && list.size() < 3000) list += (list.empty() ? "" : ", ") + printable(c.path, {.limit = 300});
  }
  if (list.empty()) return {};
  return make_error(Errc::GIT_CONFLICT, "untracked files of the box are in the way; nothing was changed", list, "remove or rename them in the box");
}

Result<void> rebase(Context& ctx, const Parsed& p) {
  IdleBox box = H5I_TRY(open_idle_box(p.arguments[0], "box rebase"));
  session::Manifest& m = box.manifest;
  if (box.detached()) return make_error(Errc::BOX_DETACHED, "the box " + box.name() + " belongs to no repository here", "there is nothing to move it onto");
  if (m.state == session::BoxState::PROPOSED || m.state == session::BoxState::APPLIED || m.state == session::BoxState::ABORTED)
    return make_error(Errc::BOX_STATE, "the box " + box.name() + " cannot be rebased any more", "it is " + std::string(session::state_name(m.state)), "h5i box create makes a new one");
  git::Oid onto = H5I_TRY(onto_of(box, p));
  git::CommitInfo target = H5I_TRY(box.repo.commit(onto));
  auto base_tree = git::Oid::from_hex(m.base_tree), base_commit = git::Oid::from_hex(m.base_commit);
  if (!base_tree || !base_commit) return make_error(Errc::BOX_MANIFEST, "the manifest's base is no object id", printable(m.base_tree));
  std::string before = m.base_commit;
  size_t changed = 0;
  if (onto != *base_commit) {
    Review review = H5I_TRY(review_box(box, true));
    H5I_TRY(refuse_violations(box, review));
    std::vector<gate::Violation> base_bad = gate::check_tree(H5I_TRY(box.repo.read_tree(target.tree)));
    if (!base_bad.empty()) return gate_error(base_bad, "the new base holds paths that no box gets");
    H5I_TRY(gate::store(box.work, review.scanned, review.base, box.repo));
    git::Oid work_tree = H5I_TRY(box.repo.write_tree(review.scanned.tree));
    git::Merge merged = H5I_TRY(box.repo.merge(*base_tree, target.tree, work_tree));
    if (!merged.conflicts.empty()) {
      std::string list;
      for (size_t i = 0; i < merged.conflicts.size() && list.size() < 3000; i++) list += (i ? ", " : "") + printable(merged.conflicts[i], {.limit = 300});
      return make_error(Errc::GIT_CONFLICT, std::to_string(merged.conflicts.size()) + " paths changed on both sides; nothing was changed", list, "apply the change by hand: h5i box export " + box.name() + " --output DIR");
    }
    std::vector<gate::Violation> bad = gate::check_tree(merged.tree);
    if (!bad.empty()) return gate_error(bad, "the merged tree holds paths that no box gets");
    H5I_TRY(nothing_in_the_way(box, git::changes_between(review.scanned.tree, merged.tree)));
    git::Oid merged_tree = H5I_TRY(box.repo.write_tree(merged.tree));
    changed = H5I_TRY(carry_out_rebase(box, {work_tree, merged_tree, onto}, std::move(review.scanned.states)));
  }
  ctx.result(json::Object{{"schema", "h5i.box-rebase/1"}, {"box", box.name()}, {"before", before}, {"base_commit", m.base_commit}, {"base_tree", m.base_tree}, {"changed", changed}});
  if (ctx.json) return {};
  if (before == m.base_commit) ctx.line("box " + box.name() + " is at " + before.substr(0, 12) + " already");
  else ctx.line("box " + box.name() + " moved from " + before.substr(0, 12) + " to " + m.base_commit.substr(0, 12) + "; " + std::to_string(changed) + " files of its work tree changed. Commits made inside the box are gone, its files are not");
  return {};
}

}  // namespace

int box_rebase(Context& ctx, const Parsed& p) {
  auto done = rebase(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
