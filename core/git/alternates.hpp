// Where a repository's objects lie: its own directory and the chain of alternates.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::git {

// Absolute real paths of `objects_dir` and of every directory that info/alternates names, chained ones too, each once,
// the first first. A directory that is missing or a chain longer than git follows is a refusal: a box that sees only a
// part of the store fails in ways nobody understands.
Result<std::vector<std::string>> object_directories(const std::string& objects_dir);

}  // namespace h5i::git
