// The verbs of the keys that sign and check evidence.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> key_table() {
  const std::string evidence = "h5i-evidence";
  return {
      {.noun = "key",
       .verb = "show",
       .usage = "key show [options]",
       .summary = "Show the host's public key and the keys that are trusted; makes the host's key when there is none.",
       .executable = evidence},
      {.noun = "key",
       .verb = "trust",
       .usage = "key trust FILE [options]",
       .summary = "Accept signatures of this public key.",
       .min_args = 1,
       .max_args = 1,
       .executable = evidence},
      {.noun = "key",
       .verb = "untrust",
       .usage = "key untrust ID [options]",
       .summary = "Accept signatures of this key no longer.",
       .min_args = 1,
       .max_args = 1,
       .executable = evidence},
      {.noun = "key",
       .verb = "rotate",
       .usage = "key rotate [options]",
       .summary = "Make a new host key; the old one's signatures stay checkable.",
       .executable = evidence},
  };
}

}  // namespace h5i::cli
