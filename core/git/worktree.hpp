// Changing a user's own work tree, branch and index together, so that after any death of ours they are all old or, once the
// next command has looked, all new.
#pragma once
#include <string>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/git/repository.hpp"
#include "core/git/user_index.hpp"

namespace h5i::git {

struct WorkTree {
  std::string git_dir;   // the work tree's own
  std::string work_dir;
};

// Tracked paths that differ between HEAD, index and work tree. Content is compared as bytes unless the index vouches for
// the file, so that a file which git would convert is called clean only when git itself has seen it so.
Result<std::vector<std::string>> dirty_paths(const Repository& repo, const WorkTree& at, const UserIndex& index, const Tree& head);

struct BranchUpdate {
  std::string branch;            // checked out at `at`
  Oid old_commit, new_commit;
  std::vector<Change> changes;   // between their trees
  std::string log;
};
// Refuses before anything changed: GIT_DIRTY (a path changed meanwhile, or something untracked is in the way), BUSY (the
// index is locked), PATH_ESCAPE (a parent is a symbolic link), GIT_REF_CHANGED. Caller holds the repository's apply lock.
Result<void> move_branch(const Repository& repo, const WorkTree& at, const BranchUpdate& update, const Identity& who);

// One h5i at a time changes a repository's branches and work tree: flock on <common>/h5i/apply.lock. BUSY.
class ApplyLock {
 public:
  static Result<ApplyLock> acquire(const std::string& common_dir);

 private:
  UniqueFd fd_;
};

// Completes or undoes what a killed move_branch() left. Does nothing while another process holds the apply lock.
Result<void> finish_interrupted(const Repository& repo);

}  // namespace h5i::git
