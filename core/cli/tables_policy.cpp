// The verbs that read policy files, and those that edit what the host allows.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> policy_table() {
  const Option kAgent{"--agent", "NAME", "which agent the profile `agent` means; else $H5I_AGENT"};
  const Option kImage{"--image", "IMAGE", "instead of the profile's image"};
  const std::string policy = "h5i-policy";
  return {
      {.noun = "policy",
       .verb = "show",
       .usage = "policy show [PROFILE] [options]",
       .summary = "Show a resolved profile, or the list of profiles.",
       .options = {kAgent, kImage},
       .min_args = 0,
       .max_args = 1,
       .executable = policy},
      {.noun = "policy",
       .verb = "explain",
       .usage = "policy explain [PROFILE] [options]",
       .summary = "Show the resolved policy, the spawn plan, and what a tier would not enforce.",
       .options = {{"--tier", "TIER", "explain for this tier; else the profile's, else process"}, kAgent, kImage},
       .min_args = 0,
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
       .description = "A and B are profiles, or files that hold a resolved policy (a name with a slash, or ending in .json).",
       .options = {kAgent},
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
       .usage = "box allow [list | add RULE... | remove RULE...] [options]",
       .summary = "Show or edit the host's egress allow-list.",
       .description = "Rules are HOST, HOST:PORT, *.SUFFIX, an address or a network. They are merged at run time into profiles that "
                      "have egress rules of their own, never into one that denies all. A box cannot edit the list.",
       .options = {{"--private", "", "weaker: the names added may resolve into private ranges"}},
       .min_args = 0,
       .max_args = -1,
       .executable = policy},
      {.noun = "box",
       .verb = "egress",
       .usage = "box egress {list BOX | add BOX RULE... | remove BOX RULE...} [options]",
       .summary = "Show or change what a running box may reach.",
       .description = "For a box that runs at a tier with packet rules, until its command ends. Names are looked up here, once. What is removed "
                      "is cut, connections that are open included. Both effective digests, before and after, are in the box's log and receipt. "
                      "Nothing above the host's ceiling is added, and nothing to a box whose policy denies all. A box cannot change its rules.",
       .options = {{"--private", "", "weaker: the names added may resolve into private ranges"}},
       .min_args = 1,
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
