// One record of a log on one line, for people. The lane is always said: what a box claims of itself is not what was seen.
#pragma once
#include <string>

#include "core/base/json.hpp"

namespace h5i::cli {

std::string record_line(const Json& record);

}  // namespace h5i::cli
