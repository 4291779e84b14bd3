#include "core/session/proof_files.hpp"

#include "core/os/beneath.hpp"

namespace h5i::session {
namespace {

constexpr std::string_view kPrefix = ".h5i-verify";

void remove_marked(const UniqueFd& dir, const std::string& below, std::vector<std::string>& removed) {
  auto entries = os::list_directory(dir);
  if (!entries) return;
  for (const os::DirectoryEntry& e : *entries)
    if (e.name.starts_with(kPrefix) && os::remove_tree(dir, e.name)) removed.push_back(below + e.name);
}

}  // namespace

std::vector<std::string> remove_proof_files(const BoxPaths& paths) {
  std::vector<std::string> removed;
  auto top = os::open_directory(paths.priv());
  if (!top) return removed;
  remove_marked(*top, "private/", removed);
  for (std::string kind : {"cache", "scratch"}) {
    auto dir = os::open_directory_beneath(*top, kind);
    auto entries = dir ? os::list_directory(*dir) : Result<std::vector<os::DirectoryEntry>>(std::vector<os::DirectoryEntry>{});
    if (!entries) continue;
    for (const os::DirectoryEntry& e : *entries)
      if (auto own = os::open_directory_beneath(*dir, e.name)) remove_marked(*own, "private/" + kind + "/" + e.name + "/", removed);
  }
  return removed;
}

}  // namespace h5i::session
