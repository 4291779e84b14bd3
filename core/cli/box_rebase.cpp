// box rebase: a box's work onto the present head of its parent branch. Conflicts change nothing.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"
#include "core/git/alternates.hpp"
#include "core/git/checkout.hpp"
#include "core/git/private_git.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

Result<git::Oid> onto_of(const IdleBox& box, const Parsed& p) {
  const session::Manifest& m = box.manifest;
  if (p.has("--onto")) {
    std::string git_dir = m.repo_git_dir;
    if (auto here = session::find_repository(current_directory()); here && here->common_dir == m.repo_git_dir) git_dir = here->git_dir;
    return box.repo.resolve_commit(p.get("--onto"), git_dir);
  }
  if (m.parent_branch.empty()) return make_error(Errc::BOX_DETACHED, "the box " + box.name() + " has no parent branch", "", "h5i box rebase " + box.name() + " --onto REVISION");
  std::optional<git::Oid> head = H5I_TRY(box.repo.ref(m.parent_branch));
  if (!head) return make_error(Errc::GIT_REVISION, "the parent branch is gone", printable(m.parent_branch), "h5i box rebase " + box.name() + " --onto REVISION");
  return *head;
}

// The box's own repository is made anew: what a box wrote into the old one is never read.
Result<void> new_private_git(IdleBox& box, const git::Tree& base, const git::Oid& onto, const git::States& states, const git::Tree& work) {
  const session::Manifest& m = box.manifest;
  (void)work;
  H5I_TRY(os::remove_tree(box.dir, "git.old"));
  if (renameat(box.dir.get(), "git", box.dir.get(), "git.old") != 0 && errno != ENOENT) return sys_error("move the old private repository aside");
  git::PrivateGit g;
  g.branch = m.branch;
  g.head = onto;
  g.object_dirs = m.object_dirs;
  g.foreign_owner = geteuid() == 0;
  g.user_name = m.name.agent;
  g.user_email = m.name.agent + "@box.invalid";
  if (m.object_dirs.empty()) {
    g.copy_from = &box.repo;
    g.shallow = !H5I_TRY(box.repo.commit(onto)).parents.empty();
  } else {
    for (const char* prefix : {"refs/heads/", "refs/tags/", "refs/remotes/"})
      for (git::RefValue& r : H5I_TRY(box.repo.refs(prefix)))
        if (r.name.rfind("refs/heads/h5i/", 0) != 0) g.refs.push_back(std::move(r));
  }
  // The index of the new base: only files that hold what it says are vouched for.
  git::States clean;
  for (const git::FileState& s : states)
    if (const git::Entry* e = git::find_entry(base, s.path); e && e->oid == s.oid) clean.push_back(s);
  return git::write_private_git(box.dir, box.entry.paths.dir, g, base, clean);
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
    H5I_TRY(gate::store(box.work, review.scanned, review.base, box.repo));
    git::Oid work_tree = H5I_TRY(box.repo.write_tree(review.scanned.tree));
    git::Merge merged = H5I_TRY(box.repo.merge(*base_tree, target.tree, work_tree));
    if (!merged.conflicts.empty()) {
      std::string list;
      for (size_t i = 0; i < merged.conflicts.size() && list.size() < 3000; i++) list += (i ? ", " : "") + printable(merged.conflicts[i], {.limit = 300});
      return make_error(Errc::GIT_CONFLICT, std::to_string(merged.conflicts.size()) + " paths changed on both sides; nothing was changed", list, "apply the change by hand: h5i box export " + box.name() + " --output DIR");
    }
    std::vector<gate::Violation> bad = gate::check_tree(merged.tree);
    if (!bad.empty()) return gate_error(bad, "the new base holds paths that no box gets");
    git::Tree new_base = H5I_TRY(box.repo.read_tree(target.tree));
    std::vector<git::Change> changes = git::changes_between(review.scanned.tree, merged.tree);
    changed = changes.size();
    int64_t when = (realtime_ns() / 1000000000 - 2) * 1000000000;
    git::States states = std::move(review.scanned.states);
    H5I_TRY(box.repo.flush_objects());
    H5I_TRY(git::update_checkout(box.repo, changes, box.work, when, states));
    H5I_TRY(new_private_git(box, new_base, onto, states, merged.tree));
    H5I_TRY(git::save_states(box.dir, states, realtime_ns()));
    H5I_TRY(box.repo.set_ref(m.base_ref, onto, base_commit, box.who, "h5i box rebase"));
    H5I_TRY(box.repo.set_ref(m.branch, onto, base_commit, box.who, "h5i box rebase"));
    m.base_commit = onto.hex();
    m.base_tree = target.tree.hex();
    H5I_TRY(session::save_manifest(box.entry.paths, m));
    H5I_TRY(record(box, "rebased", json::Object{{"before", before}, {"base_commit", m.base_commit}, {"base_tree", m.base_tree}, {"changed", changed}}));
    H5I_TRY(os::remove_tree(box.dir, "git.old"));
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
