// Files that make other tools run code on the side of whoever takes the patch. Judged by name at any depth, and as links of
// the tree show them; nothing is refused here, it is shown.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/gate/handoff_names.hpp"
#include "core/git/object.hpp"

namespace h5i::gate {

// "Will run on your side": for all paths that were added or changed (not those that were only removed), by their own names and
// as they are seen through the links of the tree (path -> target), new and old ones.
std::vector<Handoff> handoffs(const std::vector<git::Change>& changes, const std::map<std::string, std::string>& links);

}  // namespace h5i::gate
