// What this host can do for a box.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> box_host_table() {
  const std::string here = "h5i";
  return {
      {.noun = "box",
       .verb = "probe",
       .usage = "box probe [options]",
       .summary = "Say which tiers this host can enforce, with the evidence for each component.",
       .options = {{"--tier", "TIER", "only this tier"}},
       .executable = here},
      {.noun = "box",
       .verb = "doctor",
       .usage = "box doctor [options]",
       .summary = "Say what is missing on this host, and the remedy for each.",
       .executable = here},
      {.noun = "box",
       .verb = "capabilities",
       .usage = "box capabilities [options]",
       .summary = "List, for each policy field and tier, whether it is enforced here.",
       .options = {{"--tier", "TIER", "only this tier"}},
       .executable = here},
  };
}

}  // namespace h5i::cli
