// What box run and box shell share: their options, the status descriptor, the end of a run told to a person or a program.
#pragma once
#include "core/cli/command.hpp"
#include "core/session/run.hpp"

namespace h5i::cli {

// --cwd, --status-fd and the modes. The status descriptor is made close-on-exec, so that no box inherits it.
Result<session::RunOptions> run_options(const Context& ctx, const Parsed& words);
// Runs, reports, and returns the exit status: cli.md, "Exit status of box run and box shell".
int run_and_report(Context& ctx, const session::BoxEntry& box, const session::RunOptions& options);
// A refusal before the run began, told the same three ways: text or JSON, status descriptor, exit status.
int refuse_run(Context& ctx, const Error& e, int status_fd);

}  // namespace h5i::cli
