// Folders that a create makes before the box is there, and that a removal leaves until all of it is gone. Both are locked
// while somebody works on them, so that what a killed h5i left is told apart from what another one does right now.
#pragma once
#include <string>

#include "core/git/repository.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {

// ".new.<slug>.<id>" or ".gone.<slug>.<id>"
std::string folder_name(const char* kind, const std::string& slug, const std::string& id);

// Takes the rest of a box away: its evidence moves to <h5i>/evidence/<agent>/<slug>, refs and files go. `folder` is the
// ".gone" folder beside where the box was; the caller holds its lock. Returns where the evidence is.
Result<std::string> finish_removal(const std::string& boxes_dir, const std::string& agent, const std::string& slug, const std::string& folder,
                                   const git::Repository* repo);

// Removes what killed creates left and completes killed removals below `boxes_dir`. `repo`: whose refs the boxes have; null
// for detached boxes, whose refs lie in their own folders.
Result<void> sweep_leftovers(const std::string& boxes_dir, const git::Repository* repo);

}  // namespace h5i::cli
