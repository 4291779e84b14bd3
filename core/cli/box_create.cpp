// box create: everything is checked before anything is made.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/cli/caller.hpp"
#include "core/cli/create_stage.hpp"
#include "core/cli/progress.hpp"
#include "core/cli/repo_verbs.hpp"
#include "core/cli/tier_pick.hpp"
#include "core/git/alternates.hpp"
#include "core/git/shape.hpp"
#include "core/os/beneath.hpp"
#include "core/session/index.hpp"

namespace h5i::cli {
namespace {

Result<History> history_of(const Parsed& p) {
  std::string h = p.get("--history", "full");
  if (h == "full") return History::FULL;
  if (h == "shallow") return History::SHALLOW;
  if (h == "none") return History::NONE;
  return make_error(Errc::USAGE, "--history takes full, shallow or none", printable(h), "h5i box create --help");
}

Result<std::string> agent_of(const Parsed& p) {
  std::string agent = p.get("--agent");
  if (agent.empty()) agent = environment("H5I_AGENT");
  if (agent.empty()) agent = "human";
  if (!valid_slug(agent, true)) return make_error(Errc::BOX_NAME, "the agent's name is refused: " + printable(agent), "[A-Za-z0-9][A-Za-z0-9._-]{0,63}, no '..', no '.lock'");
  return agent;
}

// The given name, or the first free one that the source suggests.
Result<BoxName> name_of(const Parsed& p, const SourcePlan& source, const std::string& agent, const std::vector<session::BoxEntry>& boxes) {
  auto taken = [&](const BoxName& n) { return std::any_of(boxes.begin(), boxes.end(), [&](const session::BoxEntry& b) { return b.name == n; }); };
  if (p.has("--name")) {
    BoxName n = H5I_TRY(BoxName::parse(p.get("--name"), agent));
    if (p.has("--agent") && n.agent != agent)
      return make_error(Errc::BOX_NAME, "the box's name says another agent than --agent", printable(p.get("--name")) + " and " + printable(agent));
    if (taken(n)) return make_error(Errc::BOX_EXISTS, "there is a box " + n.str() + " already", "h5i box status " + n.str());
    return n;
  }
  std::string stem = source.suggested_name.empty() ? "box" : source.suggested_name;
  for (int i = source.suggested_name.empty() ? 1 : 0; i < 10000; i++) {
    BoxName n{agent, i == 0 ? stem : stem + "-" + std::to_string(i)};
    if (!taken(n)) return n;
  }
  return make_error(Errc::BOX_NAME, "no free name was found", stem, "--name NAME");
}

// A repository's policy is the user's own file: of their work tree, or of the revision when there is none. What a URL or a
// pull request brings along is not asked: its author would choose what its box may read.
Result<policy::Resolved> resolve_policy(const Parsed& p, const SourcePlan& source, const session::UserDirs& dirs, const git::UserConfig& user, const std::string& agent_given) {
  policy::ResolveInput in;
  UniqueFd root;
  std::string repo_dir = source.kind == SourceKind::DIRECTORY ? source.directory : source.location ? source.location->work_dir : "";
  if (!repo_dir.empty()) {
    root = H5I_TRY(os::open_directory(repo_dir));
    in.repo_root_fd = root.get();
    in.repo = repo_dir;
  } else if (source.kind == SourceKind::REVISION) {
    git::Repository repo = H5I_TRY(open_host_repository(*source.location, user));
    git::CommitInfo commit = H5I_TRY(repo.commit(*source.commit));
    git::Tree tree = H5I_TRY(repo.read_tree(commit.tree));
    const git::Entry *yaml = git::find_entry(tree, ".h5i/env.yaml"), *toml = git::find_entry(tree, ".h5i/env.toml");
    if (yaml && toml) return make_error(Errc::POLICY_TWO_FILES, "the revision holds two policies", ".h5i/env.yaml and .h5i/env.toml");
    if (yaml || toml) {
      std::string bytes = H5I_TRY(repo.read_blob((yaml ? yaml : toml)->oid, 256 << 10));
      in.config = policy::ConfigBytes{(yaml ? yaml : toml)->path, std::move(bytes), toml != nullptr};
    }
  }
  if (p.has("--profile")) in.profile = p.get("--profile");
  if (p.has("--isolation") && p.get("--isolation") != "auto") in.isolation = p.get("--isolation");
  if (p.has("--image")) in.image = p.get("--image");
  in.home = dirs.home;
  in.own_dirs = {dirs.config, dirs.state, dirs.cache, dirs.runtime};
  in.uid = geteuid();
  in.agent = agent_given;
  in.runtimes = policy::installed_runtimes(dirs.home, environment("PATH"));
  in.host = H5I_TRY(policy::load_host_policy("/etc/h5i/host.yaml", dirs.config + "/host.yaml", geteuid()));
  in.exists = [](const std::string& path) {
    struct stat st{};
    return stat(path.c_str(), &st) == 0;
  };
  return policy::resolve(in);
}

std::string counted(uint64_t n, const char* what) { return std::to_string(n) + " " + what; }

Result<void> create(Context& ctx, const Parsed& p) {
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  git::UserConfig user = user_config();
  SourceRequest request;
  request.source = p.arguments.empty() ? "" : p.arguments[0];
  request.from = p.get("--from");
  request.pull = p.get("--pr");
  request.empty = p.has("--new");
  request.with_changes = p.has("--with-changes");
  request.cwd = H5I_TRY(current_directory());
  if ((p.has("--pr") && request.pull.empty()) || (p.has("--from") && request.from.empty()) || (!p.arguments.empty() && request.source.empty()))
    return make_error(Errc::USAGE, "an empty word names no source", "", "h5i box create --help");

  Progress progress(ctx);
  StageRequest stage;
  stage.user = user;
  stage.step = [&](const std::string& text) { progress.say(text); };
  stage.history = H5I_TRY(history_of(p));
  stage.with_changes = request.with_changes;
  std::string agent = H5I_TRY(agent_of(p));
  if (p.has("--name")) H5I_TRY(BoxName::parse(p.get("--name"), agent));
  stage.source = H5I_TRY(plan_source(request, user));
  if (stage.with_changes && stage.source.location->work_dir.empty())
    return make_error(Errc::GIT_BARE, "--with-changes needs a work tree", printable(stage.source.location->common_dir));
  std::vector<session::BoxEntry> boxes = H5I_TRY(session::list_boxes(request.cwd, dirs));
  stage.name = H5I_TRY(name_of(p, stage.source, agent, boxes));
  std::vector<uint32_t> taken;
  for (const session::BoxEntry& b : boxes)
    if (auto m = session::load_manifest(b.paths)) taken.push_back(m->host_uid);
  stage.host_uid = H5I_TRY(new_box_id(taken));
  stage.host_gid = geteuid() == 0 ? stage.host_uid : getegid();
  policy::Resolved resolved = H5I_TRY(resolve_policy(p, stage.source, dirs, user, p.has("--agent") ? p.get("--agent") : environment("H5I_AGENT")));
  std::vector<std::string> object_dirs;
  if (stage.source.location && stage.history == History::FULL) {
    const std::string& common = stage.source.location->common_dir;
    object_dirs = H5I_TRY(git::object_directories(common + "/objects"));
    std::vector<std::string> others = git::borrowed(common, object_dirs);
    // The repository's maker chose what it borrows from; only the user may show that to a box.
    if (!others.empty() && !p.has("--history")) {
      stage.history = History::SHALLOW;
      resolved.notes.push_back("the repository borrows objects from " + others[0] + "; the box gets a copy of its own commit alone (--history full shows it all)");
    }
  }
  PickRequest pick;
  pick.flag = p.get("--isolation");
  pick.environment = environment("H5I_DEFAULT_ISOLATION");
  pick.allow_unconfined = p.has("--allow-unconfined");
  pick.dirs = dirs;
  pick.like.name = stage.name;
  pick.like.host_uid = stage.host_uid;
  pick.like.host_gid = stage.host_gid;
  pick.like.policy_digest = resolved.digest;
  if (stage.source.location) {
    pick.like.repo_git_dir = stage.source.location->common_dir;
    pick.like.repo_work_dir = stage.source.location->work_dir;
    if (stage.history == History::FULL) pick.like.object_dirs = object_dirs;
  }
  progress.say("looking at the tiers");
  PickedTier picked = H5I_TRY(pick_tier(std::move(resolved), pick));
  stage.policy = std::move(picked.policy);
  stage.tier_from = picked.choice.from;
  stage.boxes_dir = stage.source.detached() ? dirs.state + "/boxes" : stage.source.location->common_dir + "/h5i/boxes";

  // Looked at before anything is made: nothing after that may fail.
  LeftBehind left;
  bool looked = false;
  if (stage.source.kind == SourceKind::REVISION && !stage.source.location->work_dir.empty()) {
    progress.say("looking at the work tree");
    git::Repository repo = H5I_TRY(open_host_repository(*stage.source.location, user));
    git::Head head = H5I_TRY(repo.head(stage.source.location->git_dir));
    if (head.commit)
      if (auto counts = left_behind(repo, *stage.source.location, *head.commit, user)) left = *counts, looked = true;
    if (stage.with_changes) left.modified = left.untracked = 0;
  }

  StagedBox box = H5I_TRY(make_box(stage));
  progress.done();
  if (!box.manifest.repo_git_dir.empty())
    if (auto remembered = session::remember_repository(dirs, box.manifest.repo_git_dir); !remembered) ctx.note("the repository could not be remembered: " + remembered.error().what);

  const std::string name = box.manifest.name.str();
  json::Array notes, skipped, next, raw;
  for (const std::string& c : box.converted) raw.push_back(c);
  for (const std::string& n : stage.policy.notes) notes.push_back(n);
  for (const plugin::Skipped& s : picked.choice.skipped) skipped.push_back(json::Object{{"tier", s.tier}, {"id", s.why.id()}, {"reason", s.why.what}});
  const std::string commands[] = {"h5i box run " + name + " -- COMMAND", "h5i box diff " + name,
                                  stage.source.kind == SourceKind::REVISION ? "h5i box apply " + name : "h5i box export " + name + " --output DIR"};
  for (const std::string& c : commands) next.push_back(c);
  Json out = json::Object{{"schema", "h5i.box-create/1"},
                          {"box", name},
                          {"work", box.paths.work()},
                          {"branch", box.manifest.branch},
                          {"parent_branch", box.manifest.parent_branch},
                          {"base_commit", box.manifest.base_commit},
                          {"base_tree", box.manifest.base_tree},
                          {"profile", box.manifest.profile},
                          {"tier", box.manifest.tier},
                          {"tier_from", box.manifest.tier_from},
                          {"skipped_tiers", std::move(skipped)},
                          {"policy_digest", box.manifest.policy_digest.value},
                          {"source", box.manifest.source},
                          {"files", box.files},
                          {"carried", box.carried},
                          {"left_behind", looked ? Json(json::Object{{"modified", left.modified}, {"untracked", left.untracked}, {"ignored", left.ignored}}) : Json()},
                          {"raw", std::move(raw)},
                          {"notes", std::move(notes)},
                          {"next", std::move(next)}};
  if (ctx.json) {
    ctx.result(out);
    return {};
  }
  if (ctx.quiet) {
    ctx.line(name);
    return {};
  }
  ctx.line("box " + name + " from " + box.manifest.base_commit.substr(0, 12) + " " + printable(box.summary, {.limit = 120}) + ", " + counted(box.files, "files"));
  ctx.line("  profile " + box.manifest.profile + " (" + stage.policy.profile_from + "), policy " + box.manifest.policy_digest.value.substr(0, 16));
  for (const std::string& l : picked.choice.lines()) ctx.line("  " + l);
  for (const std::string& n : stage.policy.notes) ctx.note(n);
  if (box.carried) ctx.line("  carried: " + counted(box.carried, "changed paths of your work tree"));
  if (looked)
    ctx.line("  stayed behind: " + counted(left.modified, "modified, ") + counted(left.untracked, "untracked, ") + counted(left.ignored, "ignored paths") +
             (left.modified + left.untracked ? " (--with-changes carries the first two)" : ""));
  for (const std::string& c : box.converted) ctx.line("  raw: " + c + " has a filter or is a pointer of large-file storage; the box has the bytes of the repository");
  ctx.line("next:");
  for (const std::string& c : commands) ctx.line("  " + c);
  return {};
}

}  // namespace

int box_create(Context& ctx, const Parsed& p) {
  auto done = create(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
