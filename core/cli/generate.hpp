// The manual pages and shell completions, from the same tables as --help.
#pragma once
#include <string>
#include <vector>

#include "core/cli/command.hpp"

namespace h5i::cli {

// h5i.1 and one page a verb (h5i-box-run.1) in `folder`, which must exist.
int generate_man(Context& ctx, const std::vector<const Command*>& verbs, const std::string& folder);
// For "bash", "zsh" or "fish", on standard output.
int generate_completion(Context& ctx, const std::vector<const Command*>& verbs, const std::string& shell);

}  // namespace h5i::cli
