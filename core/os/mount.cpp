#include "core/os/mount.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/os/fs.hpp"

namespace h5i::os {

Result<UniqueFd> detached_tree(const std::string& path, bool recursive) {
  auto at = H5I_TRY(open_no_links(path, O_PATH));
  long fd = syscall(SYS_open_tree, at.get(), "",
                    AT_EMPTY_PATH | kOpenTreeClone | O_CLOEXEC | (recursive ? kAtRecursive : 0u));
  if (fd < 0) return sys_error("open_tree of " + printable(path));
  return UniqueFd(static_cast<int>(fd));
}

Result<void> set_tree_flags(int tree, uint64_t flags, bool recursive, int idmap) {
  MountAttr a;
  a.set = flags;
  // A copy is a peer of what it was made of: where the host shares its mounts, as under systemd, what the box mounts on it would be mounted there too.
  a.propagation = MS_PRIVATE;
  if (idmap >= 0) {
    a.set |= kMountIdMap;
    a.userns_fd = static_cast<uint64_t>(idmap);
  }
  unsigned at = AT_EMPTY_PATH | (recursive ? kAtRecursive : 0u);
  if (syscall(SYS_mount_setattr, tree, "", at, &a, sizeof a) == 0) return {};
  if (idmap >= 0 && (errno == EINVAL || errno == EPERM))
    return make_error(Errc::TIER_IDMAP, "this file system cannot be mounted with mapped owners",
                      errno == EINVAL ? "mount_setattr: EINVAL" : "mount_setattr: EPERM");
  return sys_error("mount_setattr");
}

}  // namespace h5i::os
