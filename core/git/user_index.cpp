#include "core/git/user_index.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/git/handles.hpp"
#include "core/git/library.hpp"

namespace h5i::git {

bool UserIndex::vouches(const IndexEntry& e, const struct stat& st) const {
  if (e.stage != 0 || e.intent_to_add) return false;
  if (plain_mode(e.mode) != plain_mode(st.st_mode)) return false;
  if (e.mtime_s != st.st_mtim.tv_sec || e.ctime_s != st.st_ctim.tv_sec) return false;
  if (e.mtime_ns != 0 && e.mtime_ns != static_cast<uint32_t>(st.st_mtim.tv_nsec)) return false;
  if (e.inode != 0 && e.inode != static_cast<uint32_t>(st.st_ino)) return false;
  // A file that was written in the same second as the index may have changed after it.
  return e.size == static_cast<uint32_t>(st.st_size) && e.mtime_s < written_s;
}

const IndexEntry* UserIndex::find(std::string_view path) const {
  auto it = std::lower_bound(entries.begin(), entries.end(), path, [](const IndexEntry& e, std::string_view p) { return e.path < p; });
  return it != entries.end() && it->path == path ? &*it : nullptr;
}

Tree UserIndex::tree() const {
  Tree out;
  for (const IndexEntry& e : entries)
    if (e.stage == 0 && !e.intent_to_add) out.push_back({e.path, e.mode, e.oid});
  return out;
}

Result<UserIndex> read_user_index(const std::string& git_dir) {
  H5I_TRY(ready());
  std::string path = git_dir + "/index";
  UserIndex out;
  struct stat st{};
  if (lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return out;
    return sys_error("stat " + printable(path));
  }
  if (!S_ISREG(st.st_mode)) return make_error(Errc::GIT_UNSUPPORTED, "the index is not a regular file", printable(path));
  out.written_s = st.st_mtim.tv_sec;
  git_index* raw = nullptr;
  if (git_index_open(&raw, path.c_str()) < 0) return library_error(Errc::GIT_UNSUPPORTED, "the index cannot be read: " + printable(path));
  IndexHandle index(raw);
  size_t n = git_index_entrycount(index.get());
  out.entries.reserve(n);
  for (size_t i = 0; i < n; i++) {
    const git_index_entry* e = git_index_get_byindex(index.get(), i);
    out.entries.push_back({e->path, e->mode, from_git(e->id), e->mtime.seconds, e->ctime.seconds, e->mtime.nanoseconds, e->ino, e->file_size,
                           git_index_entry_stage(e), (e->flags_extended & GIT_INDEX_ENTRY_INTENT_TO_ADD) != 0,
                           (e->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0});
  }
  std::stable_sort(out.entries.begin(), out.entries.end(), [](const IndexEntry& a, const IndexEntry& b) { return a.path < b.path; });
  return out;
}

}  // namespace h5i::git
