// The verbs that h5i itself holds; main.cpp ties each to its row of the tables.
#pragma once
#include "core/cli/command.hpp"

namespace h5i::cli {

int box_run(Context& ctx, const Parsed& words);
int box_shell(Context& ctx, const Parsed& words);
int box_stop(Context& ctx, const Parsed& words);
int box_ls(Context& ctx, const Parsed& words);
int box_status(Context& ctx, const Parsed& words);
int box_log(Context& ctx, const Parsed& words);
int box_inspect(Context& ctx, const Parsed& words);
int box_gc(Context& ctx, const Parsed& words);
int log_show(Context& ctx, const Parsed& words);

}  // namespace h5i::cli
