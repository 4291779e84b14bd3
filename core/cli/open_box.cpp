#include "core/cli/open_box.hpp"

#include "core/os/cgroup.hpp"
#include "core/session/cleanup.hpp"

namespace h5i::cli {

void sweep_place() { (void)os::clear_dead_groups(os::own_place()); }

Result<void> sweep(Context& ctx, const session::BoxEntry& box) {
  auto swept = H5I_TRY(session::sweep_box(box, session::cleanup_tier));
  if (!swept) return {};
  std::string text = "swept what a dead run left in " + box.name.str() + ": " + std::to_string(swept->killed.size()) + " processes killed";
  if (!swept->cleanup.empty()) text += "; the tier's cleanup: " + swept->cleanup;
  ctx.note(text);
  return {};
}

Result<session::BoxEntry> open_box(Context& ctx, const std::string& name) {
  auto dirs = H5I_TRY(session::UserDirs::from_environment());
  std::string cwd = H5I_TRY(current_directory());
  sweep_place();
  session::BoxEntry box = H5I_TRY(session::find_box(name, cwd, dirs));
  H5I_TRY(sweep(ctx, box));
  return box;
}

}  // namespace h5i::cli
