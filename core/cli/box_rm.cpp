// box rm: a box's work tree, private directories, branch and base ref go; its evidence moves aside and stays.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.hpp"
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

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The first free name among SLUG, SLUG.2, SLUG.3, ...: an earlier box of the same name keeps its evidence.
Result<std::string> make_evidence_dir(const UniqueFd& agent, const std::string& slug) {
  for (int i = 1; i < 100000; i++) {
    std::string name = i == 1 ? slug : slug + "." + std::to_string(i);
    if (mkdirat(agent.get(), name.c_str(), 0700) == 0) return name;
    if (errno != EEXIST) return sys_error("make the evidence folder");
  }
  return make_error(Errc::BUSY, "no free name for the evidence", printable(slug));
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

  // <...>/h5i/boxes/<agent>/<slug> -> <...>/h5i/evidence/<agent>/<slug>
  std::string agent_dir = parent_of(box.entry.paths.dir), h5i = parent_of(parent_of(agent_dir));
  H5I_TRY(session::make_private_directory(h5i + "/evidence"));
  UniqueFd evidence = H5I_TRY(session::make_private_directory(h5i + "/evidence/" + m.name.agent));
  std::string kept = H5I_TRY(make_evidence_dir(evidence, m.name.slug));
  UniqueFd to = H5I_TRY(os::open_directory_beneath(evidence, kept));
  std::vector<os::DirectoryEntry> entries = H5I_TRY(os::list_directory(box.dir));
  static const std::string_view kGone[] = {"work", "git", "git.old", "rebase.json", "store.git", "private", "spool", "lock", "live.json", "files.state"};
  for (const os::DirectoryEntry& e : entries) {
    bool goes = false;
    for (std::string_view g : kGone) goes = goes || e.name == g;
    if (!goes && renameat(box.dir.get(), e.name.c_str(), to.get(), e.name.c_str()) != 0) return sys_error("keep " + printable(e.name));
  }
  if (fsync(to.get()) != 0) return sys_error("flush the evidence");
  if (!box.detached()) {
    H5I_TRY(box.repo.remove_ref(m.branch, std::nullopt));
    H5I_TRY(box.repo.remove_ref(m.base_ref, std::nullopt));
  }
  UniqueFd parent = H5I_TRY(os::open_directory(agent_dir));
  H5I_TRY(os::remove_tree(parent, m.name.slug));
  if (UniqueFd boxes(open(parent_of(agent_dir).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); boxes) unlinkat(boxes.get(), m.name.agent.c_str(), AT_REMOVEDIR);
  std::string where = h5i + "/evidence/" + m.name.agent + "/" + kept;
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
