// The conversation over standard input and output, and the processes of its calls.
#pragma once
#include <string>

#include "core/base/result.hpp"

namespace h5i::mcp {

// Until standard input ends; then every call that goes on is ended, and waited for. `h5i`: the executable, by path.
Result<void> serve(const std::string& h5i, const std::string& version);

}  // namespace h5i::mcp
