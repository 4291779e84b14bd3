// Where a spawn plan departs from what was asked for: a grant that is wider, a denied name that is not masked, another
// environment or program. The core's own reading of the request, beside the tier's; a plan is compared, not believed.
//
// Only for a plan that runs the command itself. One that runs something else (a container engine, a machine monitor) says
// nothing about the box's view, and its tier has other proofs.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::session {

// Looks at links on the host, so that a grant and what the tier found behind it can be compared. Each line is one
// departure from a field that `claims` names and the plan does not declare as not enforced.
std::vector<std::string> departures(const Json& plan, const Json& request, const std::vector<std::string>& claims);

}  // namespace h5i::session
