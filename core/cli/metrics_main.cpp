// h5i-metrics: figures for monitoring, from the logs of this user's boxes.
#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "core/base/text.hpp"
#include "core/cli/caller.hpp"
#include "core/cli/command.hpp"
#include "core/cli/progress.hpp"
#include "core/cli/version.hpp"
#include "core/evidence/figures.hpp"
#include "core/evidence/files.hpp"
#include "core/evidence/log.hpp"
#include "core/os/beneath.hpp"
#include "core/os/fs.hpp"
#include "core/session/index.hpp"
#include "core/session/live.hpp"

namespace h5i::cli {
namespace {

// Two levels of folders, agent and slug; what is none is left out.
std::vector<std::pair<std::string, std::string>> below(const std::string& root) {
  std::vector<std::pair<std::string, std::string>> out;
  auto folders = [](const std::string& path) {
    std::vector<std::string> names;
    auto dir = os::open_directory(path);
    auto entries = dir ? os::list_directory(*dir) : Result<std::vector<os::DirectoryEntry>>(dir.error());
    if (entries)
      for (const auto& e : *entries)
        if (e.type == DT_DIR || e.type == DT_UNKNOWN) names.push_back(e.name);
    std::sort(names.begin(), names.end());
    return names;
  };
  for (const std::string& agent : folders(root))
    for (const std::string& slug : folders(root + "/" + agent))
      if (!slug.starts_with(".")) out.emplace_back(agent, slug);
  return out;
}

void read_log_into(const std::string& path, evidence::Figures& figures) {
  auto read = evidence::read_log(path, [&](uint64_t, const Json& r) {
    figures.record(r);
    return true;
  });
  if (!read && read.error().sys_errno != ENOENT) figures.unreadable_log();
}

Result<evidence::Figures> collect(Context& ctx) {
  auto dirs = H5I_TRY(session::UserDirs::from_environment());
  std::set<std::string> roots{dirs.state};
  if (auto here = session::find_repository(H5I_TRY(current_directory()))) roots.insert(here->common_dir + "/h5i");
  for (const std::string& repository : H5I_TRY(session::known_repositories(dirs))) roots.insert(repository + "/h5i");
  evidence::Figures figures;
  Progress progress(ctx);
  for (const std::string& root : roots) {
    for (const auto& [agent, slug] : below(root + "/boxes")) {
      if (!valid_slug(agent, true) || !valid_slug(slug, false)) continue;
      progress.say("reading " + agent + "/" + slug);
      const session::BoxPaths paths{root + "/boxes/" + agent + "/" + slug};
      auto manifest = session::load_manifest(paths);
      auto live = session::read_live(paths);
      figures.box(!manifest ? "unreadable" : live && *live ? "running" : std::string(session::state_name(manifest->state)));
      read_log_into(paths.log(), figures);
    }
    // What removed boxes left counts on, as a counter has to.
    for (const auto& [agent, slug] : below(root + "/evidence")) read_log_into(root + "/evidence/" + agent + "/" + slug + "/log.jsonl", figures);
  }
  return figures;
}

int metrics(Context& ctx, const Parsed& words) {
  auto figures = collect(ctx);
  if (!figures) return ctx.refuse(figures.error());
  const std::string text = figures->text(version_text());
  if (words.has("--textfile")) {
    const std::string path = words.get("--textfile");
    if (path.empty() || path.back() == '/') return ctx.refuse(make_error(Errc::USAGE, "not a file: " + printable(path), "--textfile takes a path that ends in .prom", "h5i metrics --help"));
    if (auto written = evidence::replace_file(path, text, 0644); !written) return ctx.refuse(written.error());
  }
  Json document = figures->value();
  document["schema"] = "h5i.metrics/1";
  document["textfile"] = words.has("--textfile") ? Json(words.get("--textfile")) : Json();
  ctx.result(document);
  if (!ctx.json && !words.has("--textfile")) ctx.block(text);
  return 0;
}

}  // namespace
}  // namespace h5i::cli

int main(int argc, char** argv) {
  h5i::cli::implement("metrics", "", h5i::cli::metrics);
  return h5i::cli::main_with("h5i-metrics", argc, argv);
}
