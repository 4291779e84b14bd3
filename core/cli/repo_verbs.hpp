// The verbs of libexec/h5i/h5i-repo, one file each.
#pragma once
#include "core/cli/command.hpp"

namespace h5i::cli {

int box_create(Context& ctx, const Parsed& p);
int box_diff(Context& ctx, const Parsed& p);
int box_compare(Context& ctx, const Parsed& p);
int box_propose(Context& ctx, const Parsed& p);
int box_apply(Context& ctx, const Parsed& p);
int box_export(Context& ctx, const Parsed& p);
int box_rebase(Context& ctx, const Parsed& p);
int box_abort(Context& ctx, const Parsed& p);
int box_rm(Context& ctx, const Parsed& p);

}  // namespace h5i::cli
