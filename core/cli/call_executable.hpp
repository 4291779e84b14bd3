// Asks another executable of this installation to do one verb, and reads its JSON answer.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::cli {

// `words`: noun, verb, arguments; --json is added. Runs in `cwd`, without standard input, with this process's environment
// and standard error. The answer's "error" becomes the Error.
Result<Json> call_executable(const std::string& name, std::vector<std::string> words, const std::string& cwd);

}  // namespace h5i::cli
