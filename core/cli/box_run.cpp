#include "core/cli/open_box.hpp"
#include "core/cli/run_words.hpp"
#include "core/cli/verbs.hpp"

namespace h5i::cli {

int box_run(Context& ctx, const Parsed& words) {
  auto options = run_options(ctx, words);
  if (!options) return refuse_run(ctx, options.error(), -1);
  if (words.rest.empty())
    return refuse_run(ctx, make_error(Errc::BOX_COMMAND, "no command was given", "its words go after --"), options->status_fd);
  auto box = open_box(ctx, words.arguments[0]);
  if (!box) return refuse_run(ctx, box.error(), options->status_fd);
  return run_and_report(ctx, *box, *options);
}

}  // namespace h5i::cli
