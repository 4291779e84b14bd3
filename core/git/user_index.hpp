// The index of a user's own work tree, for what it knows: which file was the same as which object when git last looked.
#pragma once
#include <sys/stat.h>

#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/git/object.hpp"

namespace h5i::git {

struct IndexEntry {
  std::string path;
  uint32_t mode = 0;
  Oid oid;
  int64_t mtime_s = 0, ctime_s = 0;
  uint32_t mtime_ns = 0, inode = 0, size = 0;  // as git stores them: the low 32 bits; 0 where git did not store one
  int stage = 0;          // not 0: an unresolved conflict
  bool intent_to_add = false;
  bool skip_worktree = false;
};

struct UserIndex {
  std::vector<IndexEntry> entries;  // sorted by path
  int64_t written_s = 0;            // when the file was written: entries that are not older are not trusted
  // The entry's object is what the file holds, judged as git does, from the file's stat.
  bool vouches(const IndexEntry& e, const struct stat& st) const;
  const IndexEntry* find(std::string_view path) const;
  Tree tree() const;                // stage 0 only
};

// `git_dir` is the work tree's own. No index is an empty one. GIT_UNSUPPORTED for extensions that libgit2 cannot read.
Result<UserIndex> read_user_index(const std::string& git_dir);

}  // namespace h5i::git
