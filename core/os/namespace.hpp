// Namespaces: names and clone flags, identities for comparing, and user namespaces made only to carry an id map.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::os {

// "user mnt pid net ipc uts cgroup": names as in /proc/PID/ns and their CLONE_NEW* flags.
struct NamespaceKind {
  const char* name;
  uint64_t flag;
};
constexpr NamespaceKind kNamespaces[] = {
    {"user", 0x10000000}, {"mnt", 0x00020000}, {"pid", 0x20000000},    {"net", 0x40000000},
    {"ipc", 0x08000000},  {"uts", 0x04000000}, {"cgroup", 0x02000000},
};
std::optional<uint64_t> namespace_flag(std::string_view name);

// The inode number that identifies the namespace `name` of a process. `pid` 0: of this process.
Result<uint64_t> namespace_id(pid_t pid, std::string_view name);

// How many user namespaces lie between this process's own and the one of `ns` (/proc/PID/ns/user): 0 when they are the
// same, 1 for a child. INVALID when it does not descend from ours.
Result<int> user_namespace_depth(int ns);

// A user namespace whose map says: id 0 on the disk is `uid`/`gid`. Only for MOUNT_ATTR_IDMAP; nothing lives in it.
Result<UniqueFd> idmap_namespace(uid_t uid, gid_t gid);

// From a map as /proc/self/uid_map shows it, the one that keeps every id that exists here ("0 100000 65536" becomes
// "0 0 65536"): in a container not all of them do. Pure.
std::string identity_lines(const std::string& own_map);

// Writes /proc/PID/{setgroups,uid_map,gid_map}. setgroups is denied first unless every id that exists here
// is kept, which only root may ask for (`whole`).
struct IdMap {
  uid_t inside_uid = 0, outside_uid = 0;
  gid_t inside_gid = 0, outside_gid = 0;
  bool whole = false;
};
Result<void> write_id_map(pid_t pid, const IdMap& map);

}  // namespace h5i::os
