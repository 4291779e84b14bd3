// Opening and reading with a limit by raw descriptor, for the rooms that juggle descriptors (spawn), and sealed memfds.
// Trees beneath a directory, and writing there, are in beneath.hpp.
#pragma once
#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <string_view>

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

Result<struct stat> stat_fd(int fd);

// Everything from the current offset; TOO_LARGE beyond `limit` bytes. `what` names the file in the error.
Result<std::string> read_fd(int fd, size_t limit, std::string_view what);
Result<std::string> read_file(const std::string& path, size_t limit);
Result<std::string> read_beneath(int dir, const std::string& rel, size_t limit);
Result<void> write_all(int fd, std::string_view bytes);

// A memfd with these bytes, sealed against every change. `executable`: for running it by descriptor, mode 0111 (so that
// the program that it becomes is not dumpable); UNSUPPORTED where vm.memfd_noexec refuses that.
Result<UniqueFd> sealed_memfd(const char* name, std::string_view bytes, bool executable = false);
// The whole file behind `fd` (at most `limit` bytes) as such a memfd.
Result<UniqueFd> sealed_copy(int fd, const char* name, size_t limit, bool executable);
// True when every seal that sealed_memfd sets is there.
bool is_sealed(int fd);

}  // namespace h5i::os
