// What the git library opens by name is what it seems to be: it would wait for ever on a fifo, and follow a link anywhere.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::git {

// The files and folders of a git directory below refs, beside HEAD, and the object directories: GIT_REDIRECTED names the
// first that is a symbolic link where git writes none, GIT_UNSUPPORTED one that is neither file nor directory.
Result<void> check_shape(const std::string& common_dir, const std::vector<std::string>& object_dirs);

// Of the object directories of a repository, those that are not its own: borrowed by info/alternates or by a link.
std::vector<std::string> borrowed(const std::string& common_dir, const std::vector<std::string>& object_dirs);

}  // namespace h5i::git
