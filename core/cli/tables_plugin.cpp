// The verbs of plugins that map none.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> plugin_table() {
  const std::string here = "h5i";
  return {
      {.noun = "plugin",
       .verb = "list",
       .usage = "plugin list [options]",
       .summary = "List the plugins that were found: trusted, refused with the reason, or not installed.",
       .executable = here},
      {.noun = "plugin",
       .verb = "inspect",
       .usage = "plugin inspect ID [options]",
       .summary = "Show a plugin's manifest, digest, trust and what its file exports.",
       .min_args = 1,
       .max_args = 1,
       .executable = here},
      {.noun = "plugin",
       .verb = "trust",
       .usage = "plugin trust ID [options]",
       .summary = "Pin the digest of an installed plugin; from then on exactly these bytes may be loaded.",
       .min_args = 1,
       .max_args = 1,
       .executable = here},
      {.noun = "plugin",
       .verb = "untrust",
       .usage = "plugin untrust ID [options]",
       .summary = "Take the pinned digest of a plugin away.",
       .min_args = 1,
       .max_args = 1,
       .executable = here},
      {.noun = "plugin",
       .verb = "remove",
       .usage = "plugin remove ID [options]",
       .summary = "Remove a plugin from this user's plugin directory, with its pin.",
       .min_args = 1,
       .max_args = 1,
       .executable = here},
      {.noun = "plugin",
       .verb = "verify",
       .usage = "plugin verify [ID] [options]",
       .summary = "Check plugins against their manifests, pins and the rules for their files.",
       .min_args = 0,
       .max_args = 1,
       .executable = here},
  };
}

}  // namespace h5i::cli
