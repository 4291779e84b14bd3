// The verbs that read policy files, and those that edit what the host allows.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> policy_table() {
  const std::string policy = "h5i-policy";
  return {
      {.noun = "policy",
       .verb = "show",
       .usage = "policy show [PROFILE] [options]",
       .summary = "Show a resolved profile, or the list of profiles.",
       .min_args = 0,
       .max_args = 1,
       .executable = policy},
      {.noun = "policy",
       .verb = "explain",
       .usage = "policy explain PROFILE [options]",
       .summary = "Show the resolved policy, the spawn plan, and what a tier would not enforce.",
       .options = {{"--tier", "TIER", "explain for this tier"}},
       .min_args = 1,
       .max_args = 1,
       .executable = policy},
      {.noun = "policy",
       .verb = "check",
       .usage = "policy check [FILE] [options]",
       .summary = "Check a policy file; every error with file, line and column.",
       .min_args = 0,
       .max_args = 1,
       .executable = policy},
      {.noun = "policy",
       .verb = "diff",
       .usage = "policy diff A B [options]",
       .summary = "Show what one profile allows more, and what less, than another.",
       .min_args = 2,
       .max_args = 2,
       .executable = policy},
      {.noun = "policy",
       .verb = "init",
       .usage = "policy init [options]",
       .summary = "Write a commented policy file for this repository.",
       .options = {{"--format", "FORMAT", "yaml or toml"}},
       .executable = policy},
      {.noun = "box",
       .verb = "allow",
       .usage = "box allow [RULE...] [options]",
       .summary = "Show or edit the host's egress allow-list.",
       .options = {{"--remove", "", "take the rules away instead of adding them"}},
       .min_args = 0,
       .max_args = -1,
       .executable = policy},
      {.noun = "plugin",
       .verb = "install",
       .usage = "plugin install FILE [options]",
       .summary = "Copy a plugin and its manifest into this user's plugin directory; it is not trusted by that.",
       .min_args = 1,
       .max_args = 1,
       .executable = policy},
  };
}

}  // namespace h5i::cli
