// A box's own git directory: an ordinary repository at the base commit, bound over an empty $WORK/.git inside the box.
// The host writes it once and never reads it again: what is in it is the box's.
#pragma once
#include "core/git/file_state.hpp"
#include "core/git/repository.hpp"

namespace h5i::git {

struct PrivateGit {
  std::string branch;                     // refs/heads/...
  Oid head;
  std::vector<std::string> object_dirs;   // absolute, read-only in the box; empty: objects are copied from `copy_from`
  const Repository* copy_from = nullptr;  // set with `object_dirs` empty: `head` without its parents
  bool shallow = false;                   // `head` has parents that are not there
  std::vector<RefValue> refs;             // further refs, for reading history
  bool foreign_owner = false;             // files have another owner inside the box than outside
  // Paths of the work tree that the box's git does not look at: denied names, which it could not read, and private ones.
  std::vector<std::string> excluded;
  std::string user_name, user_email;      // what commits made in the box say
};

// Makes the directory `git` of the box's folder. `tree` and `states` are what lies in $WORK, for an index that says clean.
Result<void> write_private_git(const UniqueFd& box_dir, const std::string& box_path, const PrivateGit& what, const Tree& tree, const States& states);

}  // namespace h5i::git
