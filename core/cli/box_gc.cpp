#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/cli/call_executable.hpp"
#include "core/cli/open_box.hpp"
#include "core/cli/progress.hpp"
#include "core/cli/verbs.hpp"
#include "core/os/beneath.hpp"
#include "core/session/cleanup.hpp"
#include "core/session/index.hpp"

namespace h5i::cli {
namespace {

constexpr int64_t kHalfMadeAge = 3600;  // seconds: no create takes that long, so what is older was killed

struct Options {
  bool dry_run = false, all = false, evidence = false;
  int64_t older_than = 0;  // seconds
};

struct Collected {
  Json removed = json::Array{}, swept = json::Array{}, failed = json::Array{};

  void remove(const std::string& box, const char* what, const std::string& directory) {
    removed.push(json::Object{{"box", box}, {"what", what}, {"directory", directory}});
  }
  void fail(const std::string& box, const Error& e) {
    failed.push(json::Object{{"box", box}, {"id", e.id()}, {"evidence", e.what + ": " + e.evidence}});
  }
};

Result<int64_t> duration_seconds(const std::string& text) {
  int64_t n = 0;
  auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  std::string_view unit(r.ptr, static_cast<size_t>(text.data() + text.size() - r.ptr));
  int64_t scale = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
  if (r.ec != std::errc() || n < 0 || scale == 0 || n > INT32_MAX)
    return make_error(Errc::USAGE, "not a duration: " + text, "a number and one of s, m, h, d", "h5i box gc --help");
  return n * scale;
}

Result<Options> options_of(const Parsed& words) {
  Options o;
  o.dry_run = words.has("--dry-run");
  o.all = words.has("--all");
  o.evidence = words.has("--evidence");
  if (o.evidence != words.has("--older-than"))
    return make_error(Errc::USAGE, o.evidence ? "--evidence needs --older-than" : "--older-than needs --evidence",
                      "evidence goes only when its age was named", "h5i box gc --evidence --older-than 90d");
  if (o.evidence) o.older_than = H5I_TRY(duration_seconds(words.get("--older-than")));
  return o;
}

// The folders .../h5i that are looked at: this repository's, this user's own, with --all every remembered repository's.
Result<std::vector<std::string>> roots(const Options& o, const session::UserDirs& dirs) {
  std::set<std::string> out{dirs.state};
  std::string cwd = H5I_TRY(current_directory());
  auto here = session::find_repository(cwd);
  if (here) out.insert(here->common_dir + "/h5i");
  if (o.all) {
    auto known = H5I_TRY(session::known_repositories(dirs));
    for (const std::string& repository : known) out.insert(repository + "/h5i");
  }
  return std::vector<std::string>(out.begin(), out.end());
}

int64_t age_of(const UniqueFd& dir, const std::string& name) {
  struct stat st{};
  if (::fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return realtime_ns() / 1000000000 - st.st_mtim.tv_sec;
}

std::vector<std::string> folders(const UniqueFd& dir) {
  std::vector<std::string> out;
  auto entries = os::list_directory(dir);
  if (!entries) return out;
  for (const auto& e : *entries)
    if (e.type == DT_DIR || e.type == DT_UNKNOWN) out.push_back(e.name);
  std::sort(out.begin(), out.end());
  return out;
}

// A create that was killed leaves a folder that no box has: `.new.<slug>.<id>`.
void collect_half_made(const Options& o, const UniqueFd& agent, const std::string& name, const std::string& path, Collected& out) {
  if (age_of(agent, name) < kHalfMadeAge) return;
  if (!o.dry_run) {
    auto removed = os::remove_tree(agent, name);
    if (!removed) return out.fail(name, removed.error());
  }
  out.remove(name, "half-made", path);
}

void collect_box(Context& ctx, const Options& o, const session::BoxEntry& box, Collected& out) {
  auto swept = session::sweep_box(box, session::cleanup_tier);
  if (!swept) return out.fail(box.name.str(), swept.error());
  if (*swept)
    out.swept.push(json::Object{{"box", box.name.str()}, {"session", (*swept)->session.value}, {"killed", (*swept)->killed.size()}});
  auto manifest = session::load_manifest(box.paths);
  if (!manifest) return out.fail(box.name.str(), manifest.error());
  if (manifest->state != session::BoxState::APPLIED && manifest->state != session::BoxState::ABORTED) return;
  if (!o.dry_run) {
    // Aborted means given up: what was never applied goes too, as the person said when it was aborted.
    std::vector<std::string> words{"box", "rm", box.name.str()};
    if (manifest->state == session::BoxState::ABORTED) words.push_back("--force");
    auto answer = call_executable("h5i-repo", words, manifest->repo_git_dir.empty() ? "/" : manifest->repo_git_dir);
    if (!answer) return out.fail(box.name.str(), answer.error());
  }
  ctx.detail("removed " + box.name.str());
  out.remove(box.name.str(), "box", box.paths.dir);
}

void collect_boxes(Context& ctx, const Options& o, const std::string& root, Progress& progress, Collected& out) {
  auto boxes = os::open_directory(root + "/boxes");
  if (!boxes) return;
  for (const std::string& agent : folders(*boxes)) {
    auto dir = os::open_directory_beneath(*boxes, agent);
    if (!dir || !valid_slug(agent, true)) continue;
    for (const std::string& slug : folders(*dir)) {
      std::string path = root + "/boxes/" + agent + "/" + slug;
      progress.say("looking at " + agent + "/" + slug);
      if (slug.starts_with(".new."))
        collect_half_made(o, *dir, slug, path, out);
      else if (valid_slug(slug, false))
        collect_box(ctx, o, {{agent, slug}, {path}}, out);
    }
  }
}

void collect_evidence(const Options& o, const std::string& root, Progress& progress, Collected& out) {
  auto evidence = os::open_directory(root + "/evidence");
  if (!evidence) return;
  for (const std::string& agent : folders(*evidence)) {
    auto dir = os::open_directory_beneath(*evidence, agent);
    if (!dir) continue;
    for (const std::string& name : folders(*dir)) {
      auto kept = os::open_directory_beneath(*dir, name);
      if (!kept || age_of(*kept, "log.jsonl") < o.older_than) continue;
      std::string shown = agent + "/" + name;
      progress.say("removing the evidence of " + shown);
      if (!o.dry_run) {
        auto removed = os::remove_tree(*dir, name);
        if (!removed) {
          out.fail(shown, removed.error());
          continue;
        }
      }
      out.remove(shown, "evidence", root + "/evidence/" + shown);
    }
  }
}

Result<Collected> collect(Context& ctx, const Options& o) {
  auto dirs = H5I_TRY(session::UserDirs::from_environment());
  Collected out;
  sweep_place();
  Progress progress(ctx);
  for (const std::string& root : H5I_TRY(roots(o, dirs))) {
    collect_boxes(ctx, o, root, progress, out);
    if (o.evidence) collect_evidence(o, root, progress, out);
  }
  return out;
}

}  // namespace

int box_gc(Context& ctx, const Parsed& words) {
  auto options = options_of(words);
  if (!options) return ctx.refuse(options.error());
  auto done = collect(ctx, *options);
  if (!done) return ctx.refuse(done.error());
  ctx.result(json::Object{{"schema", "h5i.box-gc/1"}, {"dry_run", options->dry_run}, {"removed", done->removed}, {"swept", done->swept}, {"failed", done->failed}});
  if (!ctx.json) {
    for (const Json& r : done->removed.array())
      ctx.line((options->dry_run ? "would remove " : "removed ") + r["what"].string() + " " + r["box"].string() + ": " + r["directory"].string());
    for (const Json& s : done->swept.array())
      ctx.line("swept " + s["box"].string() + ": " + std::to_string(s["killed"].integer()) + " processes killed");
    for (const Json& f : done->failed.array()) ctx.note(f["box"].string() + ": " + f["evidence"].string() + " [" + f["id"].string() + "]");
    if (done->removed.array().empty() && done->swept.array().empty()) ctx.note("nothing to remove");
  }
  return done->failed.array().empty() ? 0 : 1;
}

}  // namespace h5i::cli
