// Files beneath a directory descriptor (invariant I4): openat2(2) with RESOLVE_BENEATH, no symbolic link in any component,
// no magic link. A path here is relative; PATH_ESCAPE when it leaves the directory or meets a link.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::os {

// An absolute path that the host itself chose; symbolic links above it are the host's own. The last component is no link.
Result<UniqueFd> open_directory(const std::string& path);
// `flags` of open(2); O_CLOEXEC, O_NOFOLLOW and O_NOCTTY are added. `one_mount`: crossing a mount point is EXDEV.
Result<UniqueFd> open_beneath(const UniqueFd& dir, const std::string& path, int flags, unsigned mode = 0, bool one_mount = false);
Result<UniqueFd> open_directory_beneath(const UniqueFd& dir, const std::string& path, bool one_mount = false);
// Makes the missing directories of `path` with `mode`, one by one, and opens the last. Empty path: `dir` itself again.
Result<UniqueFd> make_directories_beneath(const UniqueFd& dir, const std::string& path, unsigned mode);
Result<std::string> read_link_beneath(const UniqueFd& dir, const std::string& path);

// All of a descriptor from its present offset; TOO_LARGE beyond `limit` bytes.
Result<std::string> read_all(const UniqueFd& fd, uint64_t limit);
Result<void> write_all(const UniqueFd& fd, std::string_view bytes);
// Reads a regular file beneath `dir`. A fifo or device in its place is refused without waiting for it.
Result<std::string> read_file_beneath(const UniqueFd& dir, const std::string& path, uint64_t limit);
// A regular file that has no name yet, so that a death before give_name() leaves nothing. Not every file system has them.
Result<UniqueFd> open_nameless(const UniqueFd& dir, unsigned mode);
// One component; an existing `name` is left alone: sys_errno EEXIST.
Result<void> give_name(const UniqueFd& file, const UniqueFd& dir, const std::string& name);
// A file of `bytes` beside `name`, flushed, renamed over it (one component); then the directory is flushed.
Result<void> replace_file(const UniqueFd& dir, const std::string& name, std::string_view bytes, unsigned mode);

// Files that a replace_file() which died left in `dir`, a directory that only h5i writes; gives back which went.
std::vector<std::string> remove_dead_files(const UniqueFd& dir);

struct DirectoryEntry {
  std::string name;
  unsigned char type;  // DT_*, DT_UNKNOWN where the file system does not say
};
// Without "." and "..", in the file system's order.
Result<std::vector<DirectoryEntry>> list_directory(const UniqueFd& dir);

// Removes `name` of `dir` and all beneath it, however deep and whatever its modes, following nothing and staying on one
// file system. What is not there is not an error.
Result<void> remove_tree(const UniqueFd& dir, const std::string& name);

}  // namespace h5i::os
