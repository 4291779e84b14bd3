// Files beneath a directory descriptor: no path is resolved through a symbolic link or out of its directory
// (openat2, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS), so a box cannot redirect what the host does.
#pragma once
#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::os {

// A directory by absolute path, for the roots that come from configuration: links on the way are followed, except that
// `no_links` refuses every one of them (PATH_ESCAPE).
Result<UniqueFd> open_dir(const std::string& path, bool no_links = false);
// Any file by absolute path without following a single symbolic link.
Result<UniqueFd> open_no_links(const std::string& path, int flags, mode_t mode = 0);
// `rel` beneath `dir`. PATH_ESCAPE when it leaves the directory or crosses a symbolic link. O_CLOEXEC is added.
Result<UniqueFd> open_beneath(int dir, const std::string& rel, int flags, mode_t mode = 0);
// Directories of `rel` that are missing are made with `mode`; the last one is returned.
Result<UniqueFd> make_dirs_beneath(int dir, const std::string& rel, mode_t mode);

Result<struct stat> stat_fd(int fd);
// Of the name itself, not of what a link points to.
Result<struct stat> stat_beneath(int dir, const std::string& rel);

// Everything from the current offset; TOO_LARGE beyond `limit` bytes. `what` names the file in the error.
Result<std::string> read_fd(int fd, size_t limit, std::string_view what);
Result<std::string> read_file(const std::string& path, size_t limit);
Result<std::string> read_beneath(int dir, const std::string& rel, size_t limit);
Result<void> write_all(int fd, std::string_view bytes);

enum class Durable { no, yes };  // yes: the data and then the directory are flushed to the disk
// A complete new file takes the place of `name` in `dir` (one component), or nothing changes.
Result<void> write_atomic(int dir, const std::string& name, std::string_view bytes, mode_t mode, Durable durable);

// Names in a directory without "." and "..", sorted; TOO_LARGE beyond `limit` names.
Result<std::vector<std::string>> list_dir(int dir, size_t limit = 1u << 20);
// Removes `name` (one component of `dir`) and everything beneath it, by descriptor; what is already gone is no error.
Result<void> remove_tree(int dir, const std::string& name);

// A memfd with these bytes, sealed against every change. `executable`: for running it by descriptor, mode 0111 (so that
// the program that it becomes is not dumpable); UNSUPPORTED where vm.memfd_noexec refuses that.
Result<UniqueFd> sealed_memfd(const char* name, std::string_view bytes, bool executable = false);
// The whole file behind `fd` (at most `limit` bytes) as such a memfd.
Result<UniqueFd> sealed_copy(int fd, const char* name, size_t limit, bool executable);
// True when every seal that sealed_memfd sets is there.
bool is_sealed(int fd);

}  // namespace h5i::os
