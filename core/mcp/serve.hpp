// The conversation over standard input and output, and the processes of its calls.
#pragma once
#include <functional>
#include <string>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::mcp {

// Until standard input ends; then every call that goes on is ended, and waited for. `h5i`: opens the executable, checked, anew for each call.
using Executable = std::function<Result<UniqueFd>()>;
Result<void> serve(const Executable& h5i, const std::string& version);

}  // namespace h5i::mcp
