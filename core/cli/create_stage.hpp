// Makes a box beside its place and moves it there in one step, so that a create that fails leaves nothing.
#pragma once
#include <optional>
#include <string>

#include "core/cli/create_source.hpp"
#include "core/gate/scan.hpp"
#include "core/policy/resolve.hpp"

namespace h5i::cli {

enum class History { FULL, SHALLOW, NONE };

struct StageRequest {
  BoxName name;
  SourcePlan source;
  policy::Resolved policy;
  std::string tier_from;
  History history = History::FULL;
  bool with_changes = false;
  std::string boxes_dir;              // <...>/h5i/boxes
  uint32_t host_uid = 0, host_gid = 0;
  git::UserConfig user;
  Step step = [](const std::string&) {};
};

struct StagedBox {
  session::Manifest manifest;
  session::BoxPaths paths;
  std::string summary;          // of the base commit
  uint64_t files = 0;
  uint64_t carried = 0;         // paths of --with-changes
  std::vector<std::string> converted;  // paths whose content git would convert (filter, LFS pointer), some
};

// The user id that a new box's workload has: one of a reserved range as root, `taken` by no other box; else our own.
Result<uint32_t> new_box_id(const std::vector<uint32_t>& taken);

Result<StagedBox> make_box(const StageRequest& request);

// What of the user's work tree a box at HEAD does not get.
struct LeftBehind {
  uint64_t modified = 0, untracked = 0, ignored = 0;
};
Result<LeftBehind> left_behind(const git::Repository& repo, const session::RepoLocation& at, const git::Oid& commit, const git::UserConfig& user);

// The store of a detached box, below its folder.
inline std::string store_of(const session::BoxPaths& paths) { return paths.dir + "/store.git"; }

}  // namespace h5i::cli
