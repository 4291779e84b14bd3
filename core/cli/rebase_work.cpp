#include "core/cli/rebase_work.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/git/checkout.hpp"
#include "core/git/private_git.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

constexpr const char* kPlanFile = "rebase.json";

// The box's own repository is made anew: what a box wrote into the old one is never read.
Result<void> new_private_git(IdleBox& box, const git::Tree& base, const git::Oid& onto, const git::States& states) {
  const session::Manifest& m = box.manifest;
  H5I_TRY(os::remove_tree(box.dir, "git.old"));
  if (renameat(box.dir.get(), "git", box.dir.get(), "git.old") != 0 && errno != ENOENT) return sys_error("move the old private repository aside");
  git::PrivateGit g;
  g.branch = m.branch;
  g.head = onto;
  g.object_dirs = m.object_dirs;
  g.foreign_owner = geteuid() == 0;
  g.excluded = names_apart(box.policy);
  g.user_name = m.name.agent;
  g.user_email = m.name.agent + "@box.invalid";
  if (m.object_dirs.empty()) {
    g.copy_from = &box.repo;
    g.shallow = !H5I_TRY(box.repo.commit(onto)).parents.empty();
  } else {
    g.refs = H5I_TRY(readable_refs(box.repo));
  }
  // The index of the new base: only files that hold what it says are vouched for.
  git::States clean;
  for (const git::FileState& s : states)
    if (const git::Entry* e = git::find_entry(base, s.path); e && e->oid == s.oid) clean.push_back(s);
  return git::write_private_git(box.dir, box.entry.paths.dir, g, base, clean);
}

Result<void> move_ref(const IdleBox& box, const std::string& ref, const git::Oid& to) {
  std::optional<git::Oid> now = H5I_TRY(box.repo.ref(ref));
  if (now && *now == to) return {};
  return box.repo.set_ref(ref, to, now, box.who, "h5i box rebase");
}

Result<size_t> carry_out(IdleBox& box, const RebasePlan& plan, git::States states) {
  session::Manifest& m = box.manifest;
  git::CommitInfo target = H5I_TRY(box.repo.commit(plan.onto));
  git::Tree from = H5I_TRY(box.repo.read_tree(plan.work_tree)), to = H5I_TRY(box.repo.read_tree(plan.merged_tree)), base = H5I_TRY(box.repo.read_tree(target.tree));
  std::vector<git::Change> changes = git::changes_between(from, to);
  int64_t when = (realtime_ns() / 1000000000 - 2) * 1000000000;
  H5I_TRY(git::update_checkout(box.repo, changes, box.work, when, states));
  H5I_TRY(new_private_git(box, base, plan.onto, states));
  H5I_TRY(git::save_states(box.dir, states, realtime_ns()));
  H5I_TRY(move_ref(box, m.base_ref, plan.onto));
  H5I_TRY(move_ref(box, m.branch, plan.onto));
  std::string before = m.base_commit;
  m.base_commit = plan.onto.hex();
  m.base_tree = target.tree.hex();
  H5I_TRY(session::save_manifest(box.entry.paths, m));
  if (before != m.base_commit)
    H5I_TRY(record(box, "rebased", json::Object{{"before", before}, {"base_commit", m.base_commit}, {"base_tree", m.base_tree}, {"changed", changes.size()}}));
  if (unlinkat(box.dir.get(), kPlanFile, 0) != 0 && errno != ENOENT) return sys_error("remove the plan of the rebase");
  H5I_TRY(os::remove_tree(box.dir, "git.old"));
  return changes.size();
}

}  // namespace

Result<size_t> carry_out_rebase(IdleBox& box, const RebasePlan& plan, git::States states) {
  Json text = json::Object{{"schema", "h5i.rebase/1"}, {"work_tree", plan.work_tree.hex()}, {"merged_tree", plan.merged_tree.hex()}, {"onto", plan.onto.hex()}};
  H5I_TRY(box.repo.flush_objects());
  H5I_TRY(os::replace_file(box.dir, kPlanFile, json::canonical(text), 0600));
  return carry_out(box, plan, std::move(states));
}

Result<void> finish_rebase(IdleBox& box) {
  auto text = os::read_file_beneath(box.dir, kPlanFile, 4096);
  if (!text) return text.error().sys_errno == ENOENT ? Result<void>{} : Result<void>(std::move(text).error());
  Json v = H5I_TRY(parse_json(*text, kPlanFile));
  auto work = git::Oid::from_hex(v["work_tree"].string()), merged = git::Oid::from_hex(v["merged_tree"].string()), onto = git::Oid::from_hex(v["onto"].string());
  if (!work || !merged || !onto) return make_error(Errc::CORRUPT, "the plan of an interrupted rebase is damaged", kPlanFile);
  // Without states every file is read again at the next look.
  H5I_TRY(carry_out(box, {*work, *merged, *onto}, {}));
  return {};
}

}  // namespace h5i::cli
