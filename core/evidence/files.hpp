// Small files that are written whole or not at all.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::evidence {

Result<void> write_all(int fd, std::string_view bytes);

// A regular file of at most `limit` bytes, not through a link in the last component. `mode` and `owner` when asked.
struct FileFacts {
  mode_t mode = 0;
  uid_t owner = 0;
};
Result<std::string> read_small_file(const std::string& path, size_t limit, FileFacts* facts = nullptr);

// os::replace_file() by path.
Result<void> replace_file(const std::string& path, std::string_view bytes, mode_t mode);
// An existing `path` is left alone and EXISTS returned: of several that create at once, one wins.
Result<void> create_file(const std::string& path, std::string_view bytes, mode_t mode);

// Each missing component 0700.
Result<void> make_directories(const std::string& path);
std::string parent_directory(const std::string& path);

}  // namespace h5i::evidence
