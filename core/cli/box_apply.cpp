// box apply: a box's proposal into its parent branch and the user's work tree.
#include <stdio.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/cli/create_source.hpp"
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"
#include "core/git/patch.hpp"
#include "core/git/worktree.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

std::string short_branch(const std::string& ref) { return ref.rfind("refs/heads/", 0) == 0 ? ref.substr(11) : ref; }

// The work tree that the user stands in, when it belongs to the box's repository; else the one of create.
Result<session::RepoLocation> target_of(const IdleBox& box) {
  const session::Manifest& m = box.manifest;
  if (box.detached())
    return make_error(Errc::BOX_DETACHED, "the box " + box.name() + " belongs to no repository here", "it was made from a directory, a URL or --new",
                      "h5i box export " + box.name() + " --output DIR, then git apply --index DIR/patch.diff");
  if (m.parent_branch.empty())
    return make_error(Errc::BOX_DETACHED, "the box " + box.name() + " has no parent branch", m.source["kind"].string() == "pull-request" ? "it was made from a pull request" : "HEAD was detached when it was made",
                      m.source["kind"].string() == "pull-request" ? "git push REMOTE " + short_branch(m.branch) + ":BRANCH brings the proposal to the pull request's branch"
                                                                   : "git merge " + short_branch(m.branch));
  auto here = session::find_repository(directory_or_root());
  if (here && here->common_dir == m.repo_git_dir && !here->work_dir.empty()) return here;
  if (m.repo_work_dir.empty()) return make_error(Errc::GIT_BARE, "the repository has no work tree", printable(m.repo_git_dir));
  session::RepoLocation at = H5I_TRY(session::find_repository(m.repo_work_dir));
  if (at.common_dir != m.repo_git_dir) return make_error(Errc::GIT_REDIRECTED, "the work tree belongs to another repository now", printable(m.repo_work_dir));
  return at;
}

// The user's side: what is checked out where the result goes.
struct Target {
  session::RepoLocation at;
  git::Oid commit;
  git::CommitInfo ours;
  git::Tree tree;
};

struct Plan {
  git::CommitInfo proposal;
  std::string how;           // "fast-forward", "merge", "patch"
  git::Tree result;
  std::vector<git::Change> changes;
};

// What the user's side refuses; looked at before the box is changed in any way.
Result<Target> ready_target(const IdleBox& box) {
  Target t;
  t.at = H5I_TRY(target_of(box));
  const session::Manifest& m = box.manifest;
  git::Head head = H5I_TRY(box.repo.head(t.at.git_dir));
  if (head.branch != m.parent_branch || !head.commit)
    return make_error(Errc::GIT_BRANCH, "the box's parent branch is not checked out", (head.branch.empty() ? "HEAD is detached" : short_branch(head.branch) + " is checked out") + ", the parent is " + short_branch(m.parent_branch),
                      "git checkout " + short_branch(m.parent_branch));
  t.commit = *head.commit;
  t.ours = H5I_TRY(box.repo.commit(*head.commit));
  t.tree = H5I_TRY(box.repo.read_tree(t.ours.tree));
  git::UserIndex index = H5I_TRY(git::read_user_index(t.at.git_dir));
  std::vector<std::string> dirty = H5I_TRY(git::dirty_paths(box.repo, {t.at.git_dir, t.at.work_dir}, index, t.tree));
  if (!dirty.empty()) {
    std::string list;
    for (size_t i = 0; i < dirty.size() && i < 10; i++) list += (i ? ", " : "") + printable(dirty[i], {.limit = 200});
    if (dirty.size() > 10) list += ", and " + std::to_string(dirty.size() - 10) + " more";
    return make_error(Errc::GIT_DIRTY, "the work tree has changes of its own", list);
  }
  return t;
}

// Everything else that can refuse, before anybody is asked.
Result<Plan> plan_apply(const IdleBox& box, const Target& target, const git::Oid& proposed, bool patch) {
  Plan plan;
  const session::Manifest& m = box.manifest;
  plan.proposal = H5I_TRY(box.repo.commit(proposed));
  std::string base = m.base_commit, base_tree = m.base_tree;
  if (target.ours.id.hex() == base && !patch) {
    plan.how = "fast-forward";
    plan.result = H5I_TRY(box.repo.read_tree(plan.proposal.tree));
  } else {
    plan.how = patch ? "patch" : "merge";
    auto base_id = git::Oid::from_hex(base), base_tree_id = git::Oid::from_hex(base_tree);
    if (!base_id || !base_tree_id) return make_error(Errc::BOX_MANIFEST, "the manifest's base is no object id", printable(base));
    // What the user's uncommitted changes were when the box was made is a commit of its own below the proposal.
    if (!patch && !box.repo.descends(target.ours.id, *base_id) && m.source["carried"].is_null()) {
      git::CommitInfo b = H5I_TRY(box.repo.commit(*base_id));
      bool carried = b.parents.size() == 1 && box.repo.descends(target.ours.id, b.parents[0]);
      if (!carried)
        return make_error(Errc::GIT_CONFLICT, "the box's base is not in the history of " + short_branch(m.parent_branch), base, "h5i box rebase " + box.name() + ", or h5i box apply --patch");
    }
    git::Merge merged = H5I_TRY(box.repo.merge(*base_tree_id, target.ours.tree, plan.proposal.tree));
    if (!merged.conflicts.empty()) {
      std::string list;
      for (size_t i = 0; i < merged.conflicts.size() && list.size() < 3000; i++) list += (i ? ", " : "") + printable(merged.conflicts[i], {.limit = 300});
      return make_error(Errc::GIT_CONFLICT, std::to_string(merged.conflicts.size()) + " paths changed on both sides; nothing was changed", list);
    }
    plan.result = std::move(merged.tree);
    std::vector<gate::Violation> bad = gate::nested_repositories(box.repo, plan.result, target.tree);
    if (!bad.empty()) return gate_error(bad, "the box's work and yours make a repository together; nothing was changed");
  }
  plan.changes = git::changes_between(target.tree, plan.result);
  return plan;
}

Result<void> confirm(Context& ctx, const IdleBox& box, const Review& review, const Plan& plan) {
  uint64_t added = 0, removed = 0;
  for (const git::Change& c : review.changes) {
    std::string before = H5I_TRY(content_before(box.repo, c)), after = H5I_TRY(content_after(box.work, c));
    git::FilePatch patch = H5I_TRY(git::patch_of(c, before, after, false));
    added += patch.added;
    removed += patch.removed;
    if (review.changes.size() <= 50) ctx.line("  " + std::string(git::change_name(c.kind)) + "  " + (patch.binary ? "binary" : "+" + std::to_string(patch.added) + " -" + std::to_string(patch.removed)) + "  " + c.path);
  }
  ctx.line(std::to_string(review.changes.size()) + " files, +" + std::to_string(added) + " -" + std::to_string(removed) + ", by " + plan.how + " into " + short_branch(box.manifest.parent_branch));
  print_handoffs(ctx, review.handoffs);
  if (!isatty(STDIN_FILENO))
    return make_error(Errc::CANCELLED, "nobody is there to confirm", "standard input is no terminal and --yes was not given", "h5i box apply " + box.name() + " --yes");
  ctx.note("apply? [y/N]");
  char answer[16] = {};
  if (!fgets(answer, sizeof answer, stdin) || (answer[0] != 'y' && answer[0] != 'Y')) return make_error(Errc::CANCELLED, "not applied", "the answer was not y");
  return {};
}

Result<void> apply(Context& ctx, const Parsed& p) {
  IdleBox box = H5I_TRY(open_idle_box(p.arguments[0], "box apply"));
  session::Manifest& m = box.manifest;
  bool patch = p.has("--patch");
  if (ctx.json && !p.has("--yes")) return make_error(Errc::CANCELLED, "nobody is asked with --json", "--yes was not given", "h5i box apply " + box.name() + " --yes --json");
  // Taken before the branch is read: of two that apply at once, the second sees what the first made.
  git::ApplyLock apply_lock = H5I_TRY(git::ApplyLock::acquire(box.repo.directory()));
  Target target = H5I_TRY(ready_target(box));
  Review review = H5I_TRY(review_box(box, p.has("--keep-links")));
  bool was_applied = m.state == session::BoxState::APPLIED;
  Proposed made = H5I_TRY(propose_box(box, review, p.get("--message")));
  if (made.changes == 0) return make_error(Errc::GIT_NO_CHANGES, "the box " + box.name() + " changed nothing", "its tree is the base's");
  if (was_applied && made.again) return make_error(Errc::BOX_STATE, "the box " + box.name() + " was applied already", "as " + m.applied_commit.substr(0, 12));
  Plan plan = H5I_TRY(plan_apply(box, target, made.commit, patch));
  // The branch moved and the box did not hear of it: we were killed in between, or somebody merged the box's branch.
  if (box.repo.descends(target.ours.id, made.commit)) {
    m.applied_commit = target.ours.id.hex();
    m.state = session::BoxState::APPLIED;
    H5I_TRY(session::save_manifest(box.entry.paths, m));
    return make_error(Errc::BOX_STATE, "the proposal of box " + box.name() + " is in " + short_branch(m.parent_branch) + " already", "the branch holds " + made.commit.hex().substr(0, 12), "h5i box status " + box.name());
  }
  if (!p.has("--yes")) H5I_TRY(confirm(ctx, box, review, plan));

  git::BranchUpdate update;
  update.branch = m.parent_branch;
  update.old_commit = target.commit;
  update.changes = plan.changes;
  update.log = "h5i box apply " + box.name() + ": " + plan.how;
  if (plan.how == "fast-forward") {
    update.new_commit = made.commit;
  } else {
    git::Oid tree = H5I_TRY(box.repo.write_tree(plan.result));
    std::vector<git::Oid> parents = {target.commit};
    if (!patch) parents.push_back(made.commit);
    std::string text = p.get("--message");
    if (text.empty()) text = patch ? "Changes of box " + box.name() : "Merge box " + box.name();
    update.new_commit = H5I_TRY(box.repo.write_commit(tree, parents, box.who, text + "\n\nH5i-Box: " + box.name() + "\nH5i-Proposal: " + made.commit.hex() + "\n", realtime_ns() / 1000000000));
    H5I_TRY(box.repo.flush_objects());
  }
  H5I_TRY(git::move_branch(box.repo, {target.at.git_dir, target.at.work_dir}, update, box.who));
  m.applied_commit = update.new_commit.hex();
  m.state = session::BoxState::APPLIED;
  H5I_TRY(session::save_manifest(box.entry.paths, m));
  H5I_TRY(record(box, "applied", json::Object{{"commit", m.applied_commit}, {"proposal", made.commit.hex()}, {"how", plan.how}, {"branch", m.parent_branch}, {"before", target.commit.hex()},
                                              {"changes", plan.changes.size()}}));
  std::string unsealed;
  if (!H5I_TRY(seal_and_publish(box, &unsealed))) ctx.note("the log's head is not signed yet: " + unsealed);
  json::Array handoffs;
  for (const gate::Handoff& h : review.handoffs) handoffs.push_back(to_json(h));
  ctx.result(json::Object{{"schema", "h5i.box-apply/1"}, {"box", box.name()}, {"branch", m.parent_branch}, {"before", target.commit.hex()}, {"commit", m.applied_commit}, {"proposal", made.commit.hex()}, {"how", plan.how},
                          {"changes", plan.changes.size()}, {"runs_on_your_side", std::move(handoffs)}});
  if (ctx.json) return {};
  ctx.line("applied " + box.name() + " to " + short_branch(m.parent_branch) + " as " + m.applied_commit.substr(0, 12) + " (" + plan.how + ", " + std::to_string(plan.changes.size()) + " paths)");
  if (p.has("--yes")) print_handoffs(ctx, review.handoffs);
  return {};
}

}  // namespace

int box_apply(Context& ctx, const Parsed& p) {
  auto done = apply(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
