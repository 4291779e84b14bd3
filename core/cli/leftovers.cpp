#include "core/cli/leftovers.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/git/packed_refs.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kIdLength = 26;

// The first free name among SLUG, SLUG~2, SLUG~3, ...: an earlier box of the same name keeps its evidence. No slug holds a ~.
Result<std::string> make_evidence_dir(const UniqueFd& agent, const std::string& slug) {
  for (int i = 1; i < 100000; i++) {
    std::string name = i == 1 ? slug : slug + "~" + std::to_string(i);
    if (mkdirat(agent.get(), name.c_str(), 0700) == 0) return name;
    if (errno != EEXIST) return sys_error("make the evidence folder");
  }
  return make_error(Errc::BUSY, "no free name for the evidence", printable(slug));
}

bool evidence(const std::string& name) {
  static const std::string_view kGone[] = {"work", "git", "git.old", "rebase.json", "store.git", "private", "spool", "lock", "live.json", "files.state"};
  for (std::string_view g : kGone)
    if (name == g) return false;
  return true;
}

// The caller holds the box's lock, and only h5i writes these two refs: a lock file on them is a dead create's or rm's.
Result<void> remove_refs(const git::Repository& repo, const std::string& boxes_dir, const std::string& agent, const std::string& slug) {
  std::string git_dir = boxes_dir.substr(0, boxes_dir.size() - std::string_view("/h5i/boxes").size());
  for (const char* space : {"/refs/heads/h5i/box/", "/refs/h5i/base/"}) unlink((git_dir + space + agent + "/" + slug + ".lock").c_str());
  H5I_TRY(repo.remove_ref("refs/heads/h5i/box/" + agent + "/" + slug, std::nullopt));
  return repo.remove_ref("refs/h5i/base/" + agent + "/" + slug, std::nullopt);
}

std::string slug_of(const std::string& folder, std::string_view kind) {
  if (folder.rfind(kind, 0) != 0 || folder.size() < kind.size() + kIdLength + 2) return "";
  std::string slug = folder.substr(kind.size(), folder.size() - kind.size() - kIdLength - 1);
  return valid_slug(slug, false) ? slug : "";
}

bool there(const UniqueFd& dir, const std::string& name) {
  struct stat st{};
  return fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<void> sweep_folder(const std::string& boxes_dir, const std::string& agent, const UniqueFd& parent, const std::string& folder, const git::Repository* repo) {
  std::string fresh = slug_of(folder, ".new."), gone = slug_of(folder, ".gone.");
  if (fresh.empty() && gone.empty()) return {};
  session::BoxPaths paths{boxes_dir + "/" + agent + "/" + folder};
  auto lock = session::BoxLock::acquire(paths, "sweep");
  if (!lock) return {};  // somebody works on it, or it went meanwhile
  if (!gone.empty()) {
    H5I_TRY(finish_removal(boxes_dir, agent, gone, folder, there(parent, gone) ? nullptr : repo));
    return {};
  }
  // The manifest is written before the refs are made; without it there are none.
  if (repo && there(parent, folder + "/manifest.json") && !there(parent, fresh)) H5I_TRY(remove_refs(*repo, boxes_dir, agent, fresh));
  return os::remove_tree(parent, folder);
}

}  // namespace

std::string folder_name(const char* kind, const std::string& slug, const std::string& id) { return std::string(".") + kind + "." + slug + "." + id; }

Result<std::string> finish_removal(const std::string& boxes_dir, const std::string& agent, const std::string& slug, const std::string& folder, const git::Repository* repo) {
  std::string h5i = boxes_dir.substr(0, boxes_dir.rfind('/')), agent_dir = boxes_dir + "/" + agent;
  UniqueFd parent = H5I_TRY(os::open_directory(agent_dir)), box = H5I_TRY(os::open_directory_beneath(parent, folder));
  std::string kept;
  UniqueFd to;
  for (const os::DirectoryEntry& e : H5I_TRY(os::list_directory(box))) {
    if (!evidence(e.name)) continue;
    if (!to) {
      H5I_TRY(session::make_private_directory(h5i + "/evidence"));
      UniqueFd agents = H5I_TRY(session::make_private_directory(h5i + "/evidence/" + agent));
      kept = H5I_TRY(make_evidence_dir(agents, slug));
      to = H5I_TRY(os::open_directory_beneath(agents, kept));
    }
    if (renameat(box.get(), e.name.c_str(), to.get(), e.name.c_str()) != 0) return sys_error("keep " + printable(e.name));
  }
  if (to && fsync(to.get()) != 0) return sys_error("flush the evidence");
  if (repo) H5I_TRY(remove_refs(*repo, boxes_dir, agent, slug));
  H5I_TRY(os::remove_tree(parent, folder));
  if (UniqueFd boxes(open(boxes_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); boxes) unlinkat(boxes.get(), agent.c_str(), AT_REMOVEDIR);
  return h5i + "/evidence/" + agent + "/" + kept;
}

Result<void> sweep_leftovers(const std::string& boxes_dir, const git::Repository* repo) {
  if (repo) git::clear_dead_packed_lock(repo->directory());
  auto top = os::open_directory(boxes_dir);
  if (!top) return top.error().sys_errno == ENOENT ? Result<void>{} : Result<void>(std::move(top).error());
  std::vector<os::DirectoryEntry> agents = H5I_TRY(os::list_directory(*top));
  for (const os::DirectoryEntry& agent : agents) {
    auto parent = os::open_directory_beneath(*top, agent.name);
    if (!parent) continue;
    std::vector<os::DirectoryEntry> folders = H5I_TRY(os::list_directory(*parent));
    for (const os::DirectoryEntry& f : folders)
      if (f.name[0] == '.') H5I_TRY(sweep_folder(boxes_dir, agent.name, *parent, f.name, repo));
  }
  return {};
}

}  // namespace h5i::cli
