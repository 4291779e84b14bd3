#include "core/cli/repo_box.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/cli/caller.hpp"
#include "core/cli/create_source.hpp"
#include "core/cli/create_stage.hpp"
#include "core/cli/leftovers.hpp"
#include "core/cli/rebase_work.hpp"
#include "core/evidence/sealing.hpp"
#include "core/git/worktree.hpp"
#include "core/os/beneath.hpp"
#include "core/policy/host_policy.hpp"
#include "core/session/cleanup.hpp"
#include "core/session/sweep.hpp"

namespace h5i::cli {
namespace {

constexpr uint64_t kMaxExclude = 1u << 20;

// The box's folder lies where its manifest's repository is, or the two do not belong together.
Result<git::Repository> repository_of(const session::BoxEntry& entry, const session::Manifest& m, const git::UserConfig& user) {
  if (m.repo_git_dir.empty()) return git::Repository::open(store_of(entry.paths));
  std::string expected = m.repo_git_dir + "/h5i/boxes/" + m.name.agent + "/" + m.name.slug;
  if (entry.paths.dir != expected)
    return make_error(Errc::GIT_REDIRECTED, "the box does not lie in the repository that its manifest names", printable(entry.paths.dir) + ", not " + printable(expected));
  session::RepoLocation at{m.repo_git_dir, m.repo_git_dir, m.repo_work_dir};
  return open_host_repository(at, user);
}

std::string log_ref(const BoxName& n) { return "refs/h5i/log/" + n.agent + "/" + n.slug; }

// A box that is not found may be one that a killed rm had begun to take away.
void sweep_around(const session::UserDirs& dirs, const git::UserConfig& user) {
  (void)sweep_leftovers(dirs.state + "/boxes", nullptr).ok();
  auto at = session::find_repository(directory_or_root());
  if (!at) return;
  auto repo = open_host_repository(*at, user);
  if (repo) (void)sweep_leftovers(at->common_dir + "/h5i/boxes", &*repo).ok();
}

gate::Limits limits_of(const policy::HostPolicy& host) {
  gate::Limits out;
  auto set = [&](const char* key, uint64_t& value) {
    auto it = host.gate.find(key);
    if (it != host.gate.end() && it->second > 0) value = static_cast<uint64_t>(it->second);
  };
  set("files", out.files);
  set("bytes", out.bytes);
  set("file_bytes", out.file_bytes);
  set("depth", out.depth);
  return out;
}

}  // namespace

std::string directory_or_root() {
  auto here = current_directory();
  return here ? *here : "/";
}

std::string host_ignore_rules(const std::string& common_dir, const git::UserConfig& user) {
  std::string out;
  for (const std::string& f : user.files) {
    // Beside each configuration file of the XDG form lies git's default for core.excludesFile.
    if (f.size() < 11 || f.substr(f.size() - 11) != "/git/config") continue;
    if (auto dir = os::open_directory(f.substr(0, f.size() - 7)))
      if (auto text = os::read_file_beneath(*dir, "ignore", kMaxExclude)) out += *text + "\n";
  }
  if (!common_dir.empty())
    if (auto dir = os::open_directory(common_dir))
      if (auto text = os::read_file_beneath(*dir, "info/exclude", kMaxExclude)) out += *text + "\n";
  return out;
}

Error gate_error(const std::vector<gate::Violation>& violations, const std::string& what) {
  std::string list;
  for (size_t i = 0; i < violations.size(); i++) {
    if (list.size() > 3000) {
      list += "; and " + std::to_string(violations.size() - i) + " more";
      break;
    }
    list += (i ? "; " : "") + printable(violations[i].path, {.limit = 300}) + ": " + std::string(errc_id(violations[i].rule)) + ", " + violations[i].detail;
  }
  return make_error(violations[0].rule, what, list);
}

Result<IdleBox> open_idle_box(const std::string& text, const std::string& verb) {
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  git::UserConfig user = user_config();
  auto found = session::find_box(text, directory_or_root(), dirs);
  if (!found && found.error().code == Errc::BOX_NOT_FOUND) sweep_around(dirs, user);
  session::BoxEntry entry = H5I_TRY(std::move(found));
  auto swept = session::sweep_box(entry, session::cleanup_tier);
  if (!swept && swept.error().code != Errc::BOX_BUSY) return std::move(swept).error();
  session::BoxLock lock = H5I_TRY(session::BoxLock::acquire(entry.paths, verb));
  session::Manifest m = H5I_TRY(session::load_manifest(entry.paths));
  if (m.state == session::BoxState::RUNNING) return make_error(Errc::BOX_BUSY, "something runs in the box " + m.name.str(), "its manifest says running");
  Json policy = H5I_TRY(session::load_policy(entry.paths, m));
  git::Repository repo = H5I_TRY(repository_of(entry, m, user));
  if (!m.repo_git_dir.empty()) H5I_TRY(git::finish_interrupted(repo));
  for (const std::string& ref : {m.branch, m.base_ref, log_ref(m.name)})
    if (!ref.empty()) repo.remove_dead_lock(ref);
  std::string agent_dir = entry.paths.dir.substr(0, entry.paths.dir.rfind('/'));
  H5I_TRY(sweep_leftovers(agent_dir.substr(0, agent_dir.rfind('/')), m.repo_git_dir.empty() ? nullptr : &repo));
  git::Identity who = H5I_TRY(git::commit_identity(m.repo_git_dir, user));
  UniqueFd dir = H5I_TRY(os::open_directory(entry.paths.dir));
  os::remove_dead_files(dir);
  UniqueFd work = H5I_TRY(os::open_directory_beneath(dir, "work"));
  IdleBox box{std::move(dirs), std::move(user), std::move(entry), std::move(lock), std::move(m), std::move(policy), std::move(repo), std::move(who), std::move(dir), std::move(work)};
  H5I_TRY(finish_rebase(box));
  return box;
}

Result<Review> review_box(const IdleBox& box, bool keep_links) {
  auto tree_id = git::Oid::from_hex(box.manifest.base_tree);
  if (!tree_id) return make_error(Errc::BOX_MANIFEST, "the manifest's base tree is no object id", printable(box.manifest.base_tree));
  Review r;
  r.base = H5I_TRY(box.repo.read_tree(*tree_id));
  git::States states = H5I_TRY(git::load_states(box.dir));
  gate::ScanOptions o = gate::box_scan(box.repo, r.base, std::move(states));
  o.placeholders = box.manifest.placeholders;
  for (const auto& [path, kind] : box.policy["profile"]["fs"]["private"].object()) o.private_paths.push_back(path);
  o.ignore_rules = host_ignore_rules(box.manifest.repo_git_dir, box.user);
  o.keep_links = keep_links;
  policy::HostPolicy host = H5I_TRY(policy::load_host_policy("/etc/h5i/host.yaml", box.dirs.config + "/host.yaml", geteuid()));
  o.limits = limits_of(host);
  r.scanned = H5I_TRY(gate::scan(box.work, o));
  r.changes = git::changes_between(r.base, r.scanned.tree);
  r.handoffs = gate::handoffs(r.changes, r.scanned.links);
  // So that the next look at the same tree reads only what changed since; where it cannot be kept, that look takes longer.
  if (r.scanned.files_read > 0) (void)git::save_states(box.dir, r.scanned.states, realtime_ns()).ok();
  return r;
}

Result<void> record(const IdleBox& box, const std::string& kind, Json body, evidence::Boundary boundary) {
  evidence::Log log = H5I_TRY(evidence::Log::open(box.entry.paths.log()));
  evidence::Record r;
  r.kind = kind;
  r.boundary = boundary;
  r.body = std::move(body);
  H5I_TRY(log.append(r));
  return log.flush();
}

Result<std::vector<git::RefValue>> readable_refs(const git::Repository& repo) {
  std::vector<git::RefValue> out;
  for (const char* prefix : {"refs/heads/", "refs/tags/", "refs/remotes/"})
    for (git::RefValue& r : H5I_TRY(repo.refs(prefix)))
      if (r.name.rfind("refs/heads/h5i/", 0) != 0) out.push_back(std::move(r));
  return out;
}

std::vector<std::string> names_apart(const Json& policy) {
  std::vector<std::string> out;
  const Json& fs = policy["profile"]["fs"];
  for (const Json& path : fs["deny"].array())
    if (path.string().starts_with("$WORK/")) out.push_back(path.string().substr(6));
  for (const auto& [path, kind] : fs["private"].object()) out.push_back(path);
  return out;
}

Result<bool> seal_and_publish(const IdleBox& box, std::string* why) {
  auto sealed = evidence::seal_log(box.entry.paths.log(), box.dirs.state);
  auto published = sealed ? evidence::published_head(box.entry.paths.log(), box.dirs.state) : Result<evidence::Published>(sealed.error());
  if (!published) {
    if (why) *why = published.error().what + ": " + published.error().evidence;
    return false;
  }
  std::string ref = log_ref(box.manifest.name);
  git::Tree tree;
  git::Oid key = H5I_TRY(box.repo.write_blob(published->public_key_bytes)), seal = H5I_TRY(box.repo.write_blob(published->seal_bytes));
  tree.push_back({"host.pub", git::kFile, key});
  tree.push_back({"log.jsonl.seal", git::kFile, seal});
  git::Oid id = H5I_TRY(box.repo.write_tree(tree));
  std::optional<git::Oid> before = H5I_TRY(box.repo.ref(ref));
  std::vector<git::Oid> parents;
  if (before) {
    git::CommitInfo info = H5I_TRY(box.repo.commit(*before));
    if (info.tree == id) return true;
    parents.push_back(*before);
  }
  git::Oid commit = H5I_TRY(box.repo.write_commit(id, parents, box.who, "Head of the log of box " + box.name() + "\n", realtime_ns() / 1000000000));
  H5I_TRY(box.repo.set_ref(ref, commit, before, box.who, "h5i: signed head"));
  return true;
}

Result<void> refuse_violations(const IdleBox& box, const Review& review) {
  const std::vector<gate::Violation>& all = review.scanned.violations;
  if (all.empty()) return {};
  evidence::Log log = H5I_TRY(evidence::Log::open(box.entry.paths.log()));
  for (const gate::Violation& v : all) {
    evidence::Record r;
    r.kind = "violation";
    r.boundary = evidence::Boundary::PROVENANCE;
    r.body = to_json(v);
    H5I_TRY(log.append(r));
  }
  H5I_TRY(log.flush());
  return gate_error(all, "the gate refuses " + std::to_string(all.size()) + (all.size() == 1 ? " path" : " paths") + "; nothing left the box");
}

bool withheld(const Review& review, const std::string& path) {
  // A link that leaves holds nothing but its own text, which the box wrote.
  const auto& all = review.scanned.violations;
  auto it = std::lower_bound(all.begin(), all.end(), path, [](const gate::Violation& v, const std::string& p) { return v.path < p; });
  for (; it != all.end() && it->path == path; ++it)
    if (it->rule != Errc::GATE_SYMLINK_OUT) return true;
  return false;
}

Result<std::string> content_before(const git::Repository& repo, const git::Change& c) {
  if (c.old_mode == 0) return std::string();
  if (c.old_mode == git::kGitlink) return "Subproject commit " + c.old_oid.hex() + "\n";
  return repo.read_blob(c.old_oid, UINT64_MAX);
}

Result<std::string> content_after(const UniqueFd& work, const git::Change& c) {
  if (c.new_mode == 0) return std::string();
  return gate::read_scanned(work, {c.path, c.new_mode, c.new_oid}, UINT64_MAX);
}

namespace {

std::string trailers_of(const IdleBox& box) {
  const session::Manifest& m = box.manifest;
  return "\nH5i-Box: " + box.name() + "\nH5i-Tier: " + m.tier + "\nH5i-Policy: " + m.policy_digest.value + "\n";
}

// What the branch holds when a death came between it and the manifest: a proposal of this box that nobody was told of.
Result<std::optional<git::Oid>> unrecorded_proposal(const IdleBox& box, const git::Oid& base) {
  std::optional<git::Oid> now = H5I_TRY(box.repo.ref(box.manifest.branch));
  if (!now || *now == base || now->hex() == box.manifest.proposed_commit) return std::optional<git::Oid>{};
  git::CommitInfo info = H5I_TRY(box.repo.commit(*now));
  bool ours = info.parents == std::vector<git::Oid>{base} && info.message.ends_with(trailers_of(box));
  return ours ? now : std::optional<git::Oid>{};
}

}  // namespace

Result<Proposed> propose_box(IdleBox& box, const Review& review, const std::string& message) {
  H5I_TRY(refuse_violations(box, review));
  session::Manifest& m = box.manifest;
  if (m.state == session::BoxState::ABORTED) return make_error(Errc::BOX_STATE, "the box " + box.name() + " was given up", "state aborted", "h5i box create makes a new one");
  Proposed out;
  out.changes = review.changes.size();
  if (out.changes == 0) return out;
  auto base = git::Oid::from_hex(m.base_commit);
  if (!base) return make_error(Errc::BOX_MANIFEST, "the manifest's base commit is no object id", printable(m.base_commit));
  H5I_TRY(gate::store(box.work, review.scanned, review.base, box.repo));
  out.tree = H5I_TRY(box.repo.write_tree(review.scanned.tree));
  std::optional<git::Oid> before = git::Oid::from_hex(m.proposed_commit);
  if (before && box.repo.has(*before)) {
    git::CommitInfo info = H5I_TRY(box.repo.commit(*before));
    if (info.tree == out.tree) {
      std::optional<git::Oid> now = H5I_TRY(box.repo.ref(m.branch));
      if (!now || *now != *before)
        return make_error(Errc::GIT_REF_CHANGED, "the box's branch is not what was proposed", printable(m.branch) + " is " + (now ? now->hex() : "gone"), "git update-ref " + m.branch + " " + before->hex());
      out.commit = *before;
      out.again = true;
      return out;
    }
  }
  std::string text = message.empty() ? "Changes of box " + box.name() + "\n" : message + (message.back() == '\n' ? "" : "\n");
  text += trailers_of(box);
  out.commit = H5I_TRY(box.repo.write_commit(out.tree, {*base}, box.who, text, realtime_ns() / 1000000000));
  H5I_TRY(box.repo.flush_objects());
  std::optional<git::Oid> expected = before ? before : base;
  if (auto lost = H5I_TRY(unrecorded_proposal(box, *base))) expected = lost;
  H5I_TRY(box.repo.set_ref(m.branch, out.commit, expected, box.who, "h5i box propose"));
  json::Array handoffs;
  for (const gate::Handoff& h : review.handoffs) handoffs.push_back(to_json(h));
  auto recorded = record(box, "proposed", json::Object{{"commit", out.commit.hex()}, {"tree", out.tree.hex()}, {"base_commit", m.base_commit}, {"base_tree", m.base_tree},
                                                       {"changes", out.changes}, {"runs_on_your_side", std::move(handoffs)}});
  if (!recorded) {
    // What is not recorded did not happen.
    (void)box.repo.set_ref(m.branch, *expected, out.commit, box.who, "h5i box propose: not recorded").ok();
    return std::move(recorded).error();
  }
  m.proposed_commit = out.commit.hex();
  m.state = session::BoxState::PROPOSED;
  H5I_TRY(session::save_manifest(box.entry.paths, m));
  return out;
}

Json to_json(const git::Change& c) {
  auto mode = [](uint32_t v) {
    char buf[16];
    snprintf(buf, sizeof buf, "%06o", v);
    return v ? Json(std::string(buf)) : Json();
  };
  Json out = json::Object{{"path", c.path}, {"kind", git::change_name(c.kind)}, {"old_mode", mode(c.old_mode)}, {"new_mode", mode(c.new_mode)},
                          {"old_oid", c.old_mode ? Json(c.old_oid.hex()) : Json()}, {"new_oid", c.new_mode ? Json(c.new_oid.hex()) : Json()}};
  // The spelling of such a name may be another file's name.
  if (!valid_utf8(c.path)) out["path_hex"] = hex(c.path.data(), c.path.size());
  return out;
}
Json to_json(const gate::Handoff& h) { return json::Object{{"path", h.path}, {"kind", h.kind}, {"why", h.why}}; }
Json to_json(const gate::Violation& v) { return json::Object{{"rule", errc_id(v.rule)}, {"path", printable(v.path)}, {"detail", v.detail}}; }

void print_handoffs(Context& ctx, const std::vector<gate::Handoff>& handoffs) {
  if (handoffs.empty()) return;
  ctx.line("will run on your side:");
  for (const gate::Handoff& h : handoffs) ctx.line("  " + h.path + "  (" + h.kind + ": " + h.why + ")");
}

}  // namespace h5i::cli
