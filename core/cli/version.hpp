// What this build is: version, commit, the parts that are installed beside it, plugin ABI.
#pragma once
#include "core/cli/command.hpp"

namespace h5i::cli {

int print_version(Context& ctx);
std::string version_text();  // "0.1.0"

}  // namespace h5i::cli
