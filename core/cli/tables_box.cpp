// The verbs of a box that the run path itself holds.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> box_table() {
  const std::string here = "h5i";
  return {
      {.noun = "box",
       .verb = "run",
       .usage = "box run BOX [options] -- COMMAND [ARG...]",
       .summary = "Run a command in a box and leave a receipt.",
       .description =
           "The exit status is the command's own; 124 when the deadline passed; 125 when h5i refused or failed, or the box was "
           "killed because its confinement broke; 126 when the command is not executable, 127 when it is not found in the "
           "box; 128+N when signal N killed it; 2 for wrong usage. --status-fd says without doubt whose number it was.\n"
           "With --json the command's output is captured, not passed through: the object holds the receipt, the exit status, "
           "and of each stream its size, the digest of what was kept and a redacted excerpt.",
       .options = {{"--cwd", "DIR", "start in this directory, relative to the box's work tree"},
                   {"--status-fd", "N", "write one JSON object with status and origin to this descriptor at the end"}},
       .min_args = 1,
       .max_args = 1,
       .rest = true,
       .executable = here},
      {.noun = "box",
       .verb = "shell",
       .usage = "box shell BOX [options] [-- COMMAND [ARG...]]",
       .summary = "Open an interactive shell, or a command, on a terminal of the box's own.",
       .description =
           "Starts $SHELL -i when no command is given. There is no deadline; the other limits of the profile hold. Nothing "
           "that is typed or printed is kept unless --record is given; one record with the status stays either way. The exit "
           "status is that of box run.",
       .options = {{"--readonly", "", "the work tree cannot be written"},
                   {"--record", "", "keep what the terminal showed, redacted"},
                   {"--cwd", "DIR", "start in this directory, relative to the box's work tree"},
                   {"--status-fd", "N", "write one JSON object with status and origin to this descriptor at the end"}},
       .min_args = 1,
       .max_args = 1,
       .rest = true,
       .executable = here},
      {.noun = "box",
       .verb = "stop",
       .usage = "box stop BOX [options]",
       .summary = "End what runs in a box: ask, wait, kill.",
       .description =
           "The h5i process that runs the command is asked to cancel; when the grace has passed it and every process of the "
           "box are killed. The processes are those of the box's own record, by process id and start time.",
       .options = {{"--grace", "SECONDS", "how long to wait before killing, 0 to 3600; 10 unless given"}},
       .min_args = 1,
       .max_args = 1,
       .executable = here},
      {.noun = "box",
       .verb = "ls",
       .usage = "box ls [options]",
       .summary = "List the boxes of this repository and those without one.",
       .options = {{"--agent", "NAME", "only boxes of this agent"},
                   {"--state", "STATE", "only boxes that are created, running, idle, proposed, applied or aborted"},
                   {"--names", "", "only the names, one a line"}},
       .executable = here},
      {.noun = "box",
       .verb = "status",
       .usage = "box status BOX [options]",
       .summary = "Show the state of one box: tier, profile, digests, last run, whether its log is sealed.",
       .min_args = 1,
       .max_args = 1,
       .executable = here},
      {.noun = "box",
       .verb = "log",
       .usage = "box log BOX [options]",
       .summary = "Show what happened in a box, one line a record.",
       .options = {{"--kind", "KIND", "only records of this kind", true},
                   {"--session", "ID", "only records of this run"},
                   {"--last", "N", "only the last N records"}},
       .min_args = 1,
       .max_args = 1,
       .executable = here},
      {.noun = "box",
       .verb = "inspect",
       .usage = "box inspect BOX [options]",
       .summary = "Show everything that is recorded of one box: manifest, policy, last receipt.",
       .min_args = 1,
       .max_args = 1,
       .executable = here},
      {.noun = "box",
       .verb = "gc",
       .usage = "box gc [options]",
       .summary = "Remove the work trees of boxes that were applied or aborted, and what dead runs left behind.",
       .description =
           "Evidence (log, receipts, payloads) stays. --evidence removes that too, of boxes that are gone, and only what is "
           "older than --older-than.",
       .options = {{"--dry-run", "", "say what would be removed, remove nothing"},
                   {"--all", "", "in every repository where this user has made boxes, not only this one"},
                   {"--evidence", "", "remove evidence of removed boxes; needs --older-than"},
                   {"--older-than", "DURATION", "30d, 12h, 45m: age of the newest record"}},
       .executable = here},
  };
}

}  // namespace h5i::cli
