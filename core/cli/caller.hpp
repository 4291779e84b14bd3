// What whoever called this program left around it.
#pragma once
#include <string>

#include "core/base/result.hpp"

namespace h5i::cli {

std::string environment(const char* name);  // "" when unset
// The error says what to do when it was removed.
Result<std::string> current_directory();

}  // namespace h5i::cli
