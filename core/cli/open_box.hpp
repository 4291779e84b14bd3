// What every verb on a box begins with: the box that was named, swept of what a dead run left.
#pragma once
#include <string>

#include "core/cli/caller.hpp"
#include "core/cli/command.hpp"
#include "core/session/box.hpp"
#include "core/session/sweep.hpp"

namespace h5i::cli {

Result<session::BoxEntry> open_box(Context& ctx, const std::string& name);
// Control groups that dead runs left where this process could make its own.
void sweep_place();
// Sweeps and tells a person what was found.
Result<void> sweep(Context& ctx, const session::BoxEntry& box);

}  // namespace h5i::cli
