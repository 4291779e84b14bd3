// Directories of a tree that git would take for a repository without a `.git` in them: a bare repository, or a work tree's
// own git directory, whose objects and configuration lie elsewhere. Whoever runs git below one runs what its configuration
// names. Judged by names, as any file system may compare them, because the bytes of HEAD can be changed one proposal later.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/gate/rules.hpp"

namespace h5i::gate {

struct TreeView {
  const git::Tree& tree;
  TargetOf link;                                                         // of the tree's symbolic links
  std::function<std::optional<std::string>(const git::Entry&)> text;     // the bytes of a small file
};

// Refused is each directory of `now` that holds a file or link HEAD beside commondir, objects, refs, config or gitdir, unless
// all of these, and what a repository there would run, were the same in `before`.
std::vector<Violation> nested_repositories(const TreeView& now, const TreeView& before);

}  // namespace h5i::gate
