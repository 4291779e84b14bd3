// A tree into a directory, byte by byte: no smudge, no end-of-line, encoding or LFS conversion, no attribute is read.
#pragma once
#include "core/git/file_state.hpp"
#include "core/git/repository.hpp"

namespace h5i::git {

// Empty, ".", "..", with a slash inside, or `.git` in any case: what no component of a path may be here. The gate knows
// many more disguises; this is what keeps writing within the directory.
bool plain_component(std::string_view part);

// Writes every entry of `tree` beneath `work`, which is private to the caller; nothing of it may exist. All files get the
// same modification time, `mtime_ns`: older than any index that is written afterwards, so that no entry of it is racy.
// Gitlinks become empty directories. Every path is opened beneath `work` without following links.
Result<States> checkout(const Repository& repo, const Tree& tree, const UniqueFd& work, int64_t mtime_ns);

// Brings `work` from `before` to `after`, touching only the paths that differ, and the states along with it.
// May be repeated after a death: what is in the place of a new file is replaced, so the caller looks before the first time.
Result<void> update_checkout(const Repository& repo, const std::vector<Change>& changes, const UniqueFd& work, int64_t mtime_ns, States& states);

}  // namespace h5i::git
