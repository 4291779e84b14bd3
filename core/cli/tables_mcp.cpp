// Tools for an agent on the host.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> mcp_table() {
  return {
      {.noun = "mcp",
       .usage = "mcp [options]",
       .summary = "Offer boxes as tools to an agent on this host (Model Context Protocol, on standard input and output).",
       .description = "For the configuration of an agent: the command is h5i, its one argument mcp, started in the repository. Tools: box_create, box_run, box_status, box_diff, "
                      "box_inspect, box_compare, box_propose, box_list; each is the verb of that name with its refusals and its records. What brings a box's work to your side (apply, "
                      "export) is for you and no tool. Ends when its standard input does, with every call that goes on. With --json it serves nobody: the tools are printed, with the schema of what each takes.",
       .executable = "h5i-mcp"},
  };
}

}  // namespace h5i::cli
