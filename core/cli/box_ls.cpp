#include "core/cli/columns.hpp"
#include "core/cli/open_box.hpp"
#include "core/cli/run_summary.hpp"
#include "core/cli/verbs.hpp"

namespace h5i::cli {
namespace {

struct Row {
  session::BoxEntry box;
  Result<session::Manifest> manifest;
  std::optional<session::LastRun> run;
  bool running;

  std::string state() const {
    if (!manifest) return "unreadable";
    return std::string(session::state_name(running ? session::BoxState::RUNNING : manifest->state));
  }
};

Json row_json(const Row& row) {
  Json v = json::Object{{"name", row.box.name.str()}, {"state", row.state()}, {"directory", row.box.paths.dir}};
  if (!row.manifest) {
    v["error"] = json::Object{{"id", row.manifest.error().id()}, {"evidence", row.manifest.error().evidence}};
    return v;
  }
  const session::Manifest& m = *row.manifest;
  v["tier"] = m.tier;
  v["profile"] = m.profile;
  v["created"] = m.created;
  v["repository"] = m.repo_git_dir.empty() ? Json() : Json(m.repo_git_dir);
  v["last_run"] = run_summary(row.run);
  return v;
}

Result<std::vector<Row>> rows(Context& ctx, const Parsed& words) {
  auto dirs = H5I_TRY(session::UserDirs::from_environment());
  std::string cwd = H5I_TRY(current_directory());
  std::vector<Row> out;
  sweep_place();
  for (session::BoxEntry& box : H5I_TRY(session::list_boxes(cwd, dirs))) {
    if (words.has("--agent") && box.name.agent != words.get("--agent")) continue;
    // One box that cannot be swept or read is a row that says so, and hides no other.
    auto swept = sweep(ctx, box);
    if (!swept) ctx.note(box.name.str() + ": " + swept.error().what + ": " + swept.error().evidence);
    auto manifest = session::load_manifest(box.paths);
    auto run = session::last_run(box.paths);
    // What is recorded as running and was not swept just now does run.
    auto live = session::read_live(box.paths);
    Row row{std::move(box), std::move(manifest), run ? *run : std::nullopt, live && *live};
    if (words.has("--state") && row.state() != words.get("--state")) continue;
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

int box_ls(Context& ctx, const Parsed& words) {
  if (words.has("--state") && !session::state_from(words.get("--state")))
    return ctx.refuse(make_error(Errc::USAGE, "there is no state " + words.get("--state"),
                                 "known: created, running, idle, proposed, applied, aborted", "h5i box ls --help"));
  auto found = rows(ctx, words);
  if (!found) return ctx.refuse(found.error());
  if (ctx.json) {
    Json list = json::Array{};
    for (const Row& row : *found) list.push(row_json(row));
    ctx.result(json::Object{{"schema", "h5i.box-ls/1"}, {"boxes", list}});
    return 0;
  }
  if (words.has("--names")) {
    for (const Row& row : *found) ctx.line(row.box.name.str());
    return 0;
  }
  if (found->empty()) {
    ctx.note("no boxes here; h5i box create makes one");
    return 0;
  }
  std::vector<std::vector<std::string>> table{{"NAME", "STATE", "TIER", "PROFILE", "LAST RUN"}};
  for (const Row& row : *found) {
    if (row.manifest)
      table.push_back({row.box.name.str(), row.state(), row.manifest->tier, row.manifest->profile, run_words(row.run)});
    else
      table.push_back({row.box.name.str(), row.state(), "-", "-", row.manifest.error().evidence});
  }
  for (const std::string& line : columns(table)) ctx.line(line);
  return 0;
}

}  // namespace h5i::cli
