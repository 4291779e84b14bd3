// The tables of verbs, one function a file core/cli/tables_*.cpp. Order here is the order of `h5i --help`.
#pragma once
#include <vector>

#include "core/cli/command.hpp"

namespace h5i::cli {

std::vector<Command> box_table();         // run, shell, stop, ls, status, log, inspect, gc
std::vector<Command> box_repo_table();    // the verbs that need the git library
std::vector<Command> box_host_table();    // probe, doctor, capabilities
std::vector<Command> policy_table();      // policy *, box allow
std::vector<Command> log_table();
std::vector<Command> plugin_table();
std::vector<Command> key_table();
std::vector<Command> websec_table();
std::vector<Command> mcp_table();
std::vector<Command> metrics_table();

}  // namespace h5i::cli
