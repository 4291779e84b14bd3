// The repositories in which this user has made boxes: <state>/repositories.json, for `box gc --all` and the console.
#pragma once
#include <string>
#include <vector>

#include "core/session/box.hpp"

namespace h5i::session {

// Adds a common git directory (absolute). Called by whoever makes a box.
Result<void> remember_repository(const UserDirs& dirs, const std::string& common_dir);
// Those that still exist, sorted. A damaged index is an error, not an empty list.
Result<std::vector<std::string>> known_repositories(const UserDirs& dirs);

}  // namespace h5i::session
