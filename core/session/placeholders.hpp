// Names in a box's work tree that stand there only for the time of a run: a denied name that is absent needs a node
// that a mask can be mounted on. The tier makes and removes them; what a killed run leaves is recorded before and swept
// after.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::session {

// Relative to `work`, parents first: names that the plan masks there and that do not exist now, and their missing
// parents.
std::vector<std::string> names_to_be_made(const Json& plan, const std::string& work);

// Removes those of `names` that are empty files or empty directories beneath `work`; gives back which.
std::vector<std::string> remove_placeholders(const UniqueFd& work, const std::vector<std::string>& names);

}  // namespace h5i::session
