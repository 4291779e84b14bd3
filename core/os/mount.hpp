// Mounts by descriptor. The child's set-up makes the same calls raw; what is here runs in the spawner, and gives
// constants that older headers lack.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::os {

enum : uint64_t {
  kMountReadOnly = 0x1,
  kMountNoSuid = 0x2,
  kMountNoDev = 0x4,
  kMountNoExec = 0x8,
  kMountIdMap = 0x100000,
};
struct MountAttr {  // struct mount_attr
  uint64_t set = 0, clear = 0, propagation = 0, userns_fd = 0;
};
constexpr unsigned kOpenTreeClone = 1;
constexpr unsigned kMoveMountFromEmptyPath = 4;
constexpr unsigned kAtRecursive = 0x8000;

// A detached copy of the mounts at `path` (no symbolic link on the way), to be attached in a box. Needs CAP_SYS_ADMIN
// over this mount namespace.
Result<UniqueFd> detached_tree(const std::string& path, bool recursive);
// Sets flags on a detached tree, which nothing propagates to or from afterwards. With `idmap` (a user namespace, or -1) the files' owners are shown through its map;
// TIER_IDMAP when the file system cannot.
Result<void> set_tree_flags(int tree, uint64_t flags, bool recursive, int idmap = -1);

}  // namespace h5i::os
