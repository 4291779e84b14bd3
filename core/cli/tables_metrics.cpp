// Figures for monitoring.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> metrics_table() {
  return {
      {.noun = "metrics",
       .usage = "metrics [options]",
       .summary = "Print figures of this user's boxes for monitoring, in Prometheus' text format.",
       .description = "Runs by tier and outcome, how long they took, what was refused, denied calls, refused packets, boxes by state: counted from the logs of all boxes that this user has "
                      "made, those of removed boxes included. Only what the host observed counts.",
       .options = {{"--textfile", "FILE", "write it there instead, whole or not at all, for a collector that reads files"}},
       .executable = "h5i-metrics"},
  };
}

}  // namespace h5i::cli
