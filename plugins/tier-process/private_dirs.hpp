// The directories behind fs.private, and the placeholders of denied names: the few things of a run that this tier makes
// on the host itself, and removes.
#pragma once
#include "request.hpp"

namespace h5i::tier_process {

// Makes what is missing (mode 0700) and empties every scratch directory.
sdk::Status prepare_private_dirs(const Request& request);

// Of `candidates` (host paths, a directory ends with "/"): those that are not there now.
std::vector<std::string> absent_now(const std::vector<std::string>& candidates);
// Removes what the run left of them, if nothing was put there: empty files, empty directories. Deepest first.
void remove_placeholders(const std::vector<std::string>& made);

}  // namespace h5i::tier_process
