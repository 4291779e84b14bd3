// The verbs of the evidence log.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> log_table() {
  return {
      {.noun = "log",
       .verb = "verify",
       .usage = "log verify TARGET [options]",
       .summary = "Check the chain and the signed head of a box, a session or a log file.",
       .description =
           "Needs the log and the host's public key, nothing else. Names the first bad record. A log whose end is not proven "
           "by a signature exits 1 unless --allow-unsealed is given.",
       .options = {{"--key", "FILE", "a public key to accept besides those that are trusted", true},
                   {"--allow-unsealed", "", "weaker: an intact chain is enough; a cut tail is not seen"}},
       .min_args = 1,
       .max_args = 1,
       .executable = "h5i-evidence"},
      {.noun = "log",
       .verb = "show",
       .usage = "log show TARGET [options]",
       .summary = "Show the records of a box, a session or a log file in full.",
       .description = "Survives a log that was damaged or made to harm: lines that are no records are shown as such, and the exit "
                      "status is then 1. Ends with the boundary pressure: denials for each boundary and for each observer's lane.",
       .options = {{"--kind", "KIND", "only records of this kind", true},
                   {"--session", "ID", "only records of this run"},
                   {"--last", "N", "only the last N records"},
                   {"--raw", "N", "only line N of the log, from 0, as it stands there"}},
       .min_args = 1,
       .max_args = 1,
       .executable = "h5i"},
      {.noun = "log",
       .verb = "seal",
       .usage = "log seal BOX [options]",
       .summary = "Sign the head of a box's log with the host's key.",
       .min_args = 1,
       .max_args = 1,
       .executable = "h5i-evidence"},
  };
}

}  // namespace h5i::cli
