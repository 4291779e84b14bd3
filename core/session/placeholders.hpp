// Names that stand in a box's work tree, or in a folder that it may write, only for the time of a run: a denied name that
// is absent needs a node that a mask can be mounted on. The tier makes and removes them; what it could not remove, because
// it was killed, is recorded before and removed after.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::session {

// Relative to `work`, parents first: names that the plan masks there and that do not exist now, and their missing
// parents.
std::vector<std::string> names_to_be_made(const Json& plan, const std::string& work);

// The same, by absolute names, in folders that are granted for writing elsewhere.
std::vector<std::string> names_to_be_made_outside(const Json& plan, const std::string& work);

// Removes those of `names` that are empty files or empty directories beneath `work`; gives back which.
std::vector<std::string> remove_placeholders(const UniqueFd& work, const std::vector<std::string>& names);
std::vector<std::string> remove_placeholders_outside(const std::vector<std::string>& names);

}  // namespace h5i::session
