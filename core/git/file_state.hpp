// What each file of a box's work tree looked like when h5i last knew its content, so that an unchanged file keeps its
// object without being read. Lies in the box's folder, where the box cannot write.
#pragma once
#include <sys/stat.h>

#include <string>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/git/object.hpp"
#include "core/base/result.hpp"

namespace h5i::git {

struct FileState {
  std::string path;
  Oid oid;
  uint32_t mode = 0;        // plain mode
  uint64_t size = 0, inode = 0, device = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;     // 0: never trusted, the file is read again
};
using States = std::vector<FileState>;  // sorted by path

int64_t mtime_ns(const struct stat& st);
int64_t ctime_ns(const struct stat& st);
FileState state_of(std::string path, const Oid& oid, uint32_t mode, const struct stat& st);
// The change time is compared too: unlike the modification time, no program in a box can set it back.
bool unchanged(const FileState& known, const struct stat& now);
const FileState* find_state(const States& states, std::string_view path);

constexpr const char* kStateFile = "files.state";
// Entries that changed less than a clock tick before `now_ns` are written as untrusted.
Result<void> save_states(const UniqueFd& box_dir, const States& states, int64_t now_ns);
// CORRUPT when its digest does not match. A box without the file yields an empty list: everything is read.
Result<States> load_states(const UniqueFd& box_dir);

}  // namespace h5i::git
