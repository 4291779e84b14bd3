// What a tier makes below paths.private while it proves itself has a name that begins with ".h5i-verify" (plugin-abi.md),
// there or in one of the directories of fs.private. The tier removes it; after a death the core does.
#pragma once
#include <string>
#include <vector>

#include "core/session/box.hpp"

namespace h5i::session {

// Nothing of the box runs: the caller holds its lock. Gives back what was removed, relative to the box's folder.
std::vector<std::string> remove_proof_files(const BoxPaths& paths);

}  // namespace h5i::session
