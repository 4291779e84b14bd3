#include "core/cli/create_stage.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/cli/leftovers.hpp"
#include "core/cli/repo_box.hpp"
#include "core/evidence/log.hpp"
#include "core/gate/ignore.hpp"
#include "core/git/alternates.hpp"
#include "core/git/checkout.hpp"
#include "core/git/private_git.hpp"
#include "core/git/user_index.hpp"
#include "core/os/beneath.hpp"
#include "core/session/index.hpp"

namespace h5i::cli {
namespace {

// Ids that root gives to boxes: nobody's on an ordinary system, above what containers' subordinate ranges take.
constexpr uint32_t kFirstBoxId = 1879048192, kBoxIds = 1u << 28;

std::string ref_of(const char* prefix, const BoxName& name) { return prefix + name.agent + "/" + name.slug; }

gate::ScanOptions user_scan(const git::Repository& repo, const git::Tree& base, const std::string& git_dir, const std::string& common_dir, const git::UserConfig& user,
                            Result<git::UserIndex>& index) {
  gate::ScanOptions o;
  o.base = base;
  o.root_git = gate::RootGit::SKIP;
  o.populated_submodules = true;
  o.ignore_rules = host_ignore_rules(common_dir, user);
  index = git::read_user_index(git_dir);
  o.known = [&index](const std::string& path, const struct stat& st) -> std::optional<git::Oid> {
    if (!index) return std::nullopt;
    const git::IndexEntry* e = index->find(path);
    return e && index->vouches(*e, st) ? std::optional<git::Oid>(e->oid) : std::nullopt;
  };
  o.base_link = [&repo](const git::Oid& id) -> std::optional<std::string> {
    auto text = repo.read_blob(id, gate::kMaxPath);
    return text ? std::optional<std::string>(*text) : std::nullopt;
  };
  return o;
}

struct Base {
  git::Oid commit, tree_id;
  git::Tree tree;
  std::string summary;
  uint64_t carried = 0;
};

Result<Base> base_of(const git::Repository& repo, const git::Oid& commit) {
  git::CommitInfo info = H5I_TRY(repo.commit(commit));
  git::Tree tree = H5I_TRY(repo.read_tree(info.tree));
  return Base{commit, info.tree, std::move(tree), info.summary, 0};
}

// A commit for content that had none, or that carries the user's changes: made by h5i, on no branch of the user's.
Result<Base> synthetic(const git::Repository& repo, git::Tree tree, const std::vector<git::Oid>& parents, const git::Identity& who, const std::string& message) {
  Base b;
  b.tree_id = H5I_TRY(repo.write_tree(tree));
  b.commit = H5I_TRY(repo.write_commit(b.tree_id, parents, who, message, realtime_ns() / 1000000000));
  b.tree = std::move(tree);
  b.summary = message;
  return b;
}

Result<Base> with_changes(const git::Repository& repo, const session::RepoLocation& at, Base base, const git::UserConfig& user, const git::Identity& who) {
  Result<git::UserIndex> index{git::UserIndex{}};
  gate::ScanOptions o = user_scan(repo, base.tree, at.git_dir, at.common_dir, user, index);
  UniqueFd work = H5I_TRY(os::open_directory(at.work_dir));
  gate::Scanned scanned = H5I_TRY(gate::scan(work, o));
  if (!scanned.violations.empty()) return gate_error(scanned.violations, "the changes of the work tree cannot be carried");
  size_t carried = git::changes_between(base.tree, scanned.tree).size();
  if (carried == 0) return base;
  H5I_TRY(gate::store(work, scanned, base.tree, repo));
  Base out = H5I_TRY(synthetic(repo, std::move(scanned.tree), {base.commit}, who, "Changes carried into a box"));
  out.carried = carried;
  return out;
}

Result<Base> from_directory(const git::Repository& store, const std::string& path, const git::UserConfig& user, const git::Identity& who) {
  UniqueFd dir = H5I_TRY(os::open_directory(path));
  gate::ScanOptions o;
  o.root_git = gate::RootGit::SKIP;
  o.ignore_rules = host_ignore_rules("", user);
  gate::Scanned scanned = H5I_TRY(gate::scan(dir, o));
  if (!scanned.violations.empty()) return gate_error(scanned.violations, "the directory cannot be taken");
  H5I_TRY(gate::store(dir, scanned, {}, store));
  return synthetic(store, std::move(scanned.tree), {}, who, "Files of a directory");
}

// A pointer of large-file storage: what a smudge filter would replace.
bool lfs_pointer(const std::string& bytes) { return bytes.rfind("version https://git-lfs.github.com/spec/", 0) == 0; }

// The patterns of the tree's .gitattributes files that name a filter. The attributes have no effect here; a person is told
// which paths another git would convert.
gate::IgnoreRules filtered_patterns(const git::Repository& repo, const git::Tree& tree) {
  gate::IgnoreRules out;
  for (const git::Entry& e : tree) {
    if (e.path.substr(e.path.rfind('/') + 1) != ".gitattributes" || git::plain_mode(e.mode) == git::kLink) continue;
    auto text = repo.read_blob(e.oid, 1 << 20);
    if (!text) continue;
    size_t slash = e.path.rfind('/');
    std::string directory = slash == std::string::npos ? "" : e.path.substr(0, slash);
    for (size_t i = 0; i < text->size();) {
      size_t end = std::min(text->find('\n', i), text->size());
      std::string line = text->substr(i, end - i);
      i = end + 1;
      size_t space = line.find_first_of(" \t");
      if (space != std::string::npos && line[0] != '#' && line[0] != '!' && line.find(" filter=", space) != std::string::npos) out.add(directory, line.substr(0, space));
    }
  }
  return out;
}

std::vector<std::string> converted_paths(const git::Repository& repo, const git::Tree& tree, const git::States& states) {
  std::vector<std::string> out;
  gate::IgnoreRules filtered = filtered_patterns(repo, tree);
  for (const git::FileState& s : states) {
    if (s.mode == git::kLink) continue;
    bool converted = filtered.size() > 0 && filtered.ignored(s.path, false);
    if (!converted && s.size >= 100 && s.size <= 1024) {
      auto bytes = repo.read_blob(s.oid, 1024);
      converted = bytes && lfs_pointer(*bytes);
    }
    if (converted) out.push_back(s.path);
    if (out.size() >= 20) break;
  }
  return out;
}

// Removes what a create made unless it was kept: the staged folder, then refs.
class Undo {
 public:
  Undo(const UniqueFd& parent, std::string name) : parent_(parent), name_(std::move(name)) {}
  ~Undo() {
    if (kept_) return;
    (void)os::remove_tree(parent_, name_).ok();
    if (repo_)
      for (const auto& [ref, value] : refs_) (void)repo_->remove_ref(ref, value).ok();
  }
  void ref(const git::Repository& repo, const std::string& name, const git::Oid& value) {
    repo_ = &repo;
    refs_.emplace_back(name, value);
  }
  void keep() { kept_ = true; }

 private:
  const UniqueFd& parent_;
  std::string name_;
  const git::Repository* repo_ = nullptr;
  std::vector<std::pair<std::string, git::Oid>> refs_;
  bool kept_ = false;
};

Result<git::Repository> repository_for(const StageRequest& r, const std::string& staged) {
  if (!r.source.detached()) return open_host_repository(*r.source.location, r.user);
  return git::Repository::create_store(staged + "/store.git");
}

Result<Base> base_for(const StageRequest& r, const git::Repository& repo, const git::Identity& who) {
  switch (r.source.kind) {
    case SourceKind::REVISION: {
      Base base = H5I_TRY(base_of(repo, *r.source.commit));
      return r.with_changes ? with_changes(repo, *r.source.location, std::move(base), r.user, who) : Result<Base>(std::move(base));
    }
    case SourceKind::PULL_REQUEST:
    case SourceKind::URL: return base_of(repo, H5I_TRY(fetch_source(r.source, repo, r.step)));
    case SourceKind::DIRECTORY: return from_directory(repo, r.source.directory, r.user, who);
    case SourceKind::EMPTY: return synthetic(repo, {}, {}, who, "Empty");
  }
  return make_error(Errc::INTERNAL, "a source of an unknown kind");
}

Result<void> private_git(const StageRequest& r, const git::Repository& repo, const Base& base, const git::Identity& who, const UniqueFd& dir, const std::string& staged,
                         const session::Manifest& m, const git::States& states) {
  git::PrivateGit g;
  g.branch = m.branch;
  g.head = base.commit;
  g.object_dirs = m.object_dirs;
  g.foreign_owner = geteuid() == 0;
  g.excluded = names_apart(r.policy.document);
  g.user_name = m.name.agent;
  g.user_email = m.name.agent + "@box.invalid";
  if (r.history == History::FULL) {
    g.refs = H5I_TRY(readable_refs(repo));
  } else {
    g.copy_from = &repo;
    g.shallow = r.history == History::SHALLOW && !H5I_TRY(repo.commit(base.commit)).parents.empty();
    // Without history the box gets a commit of its own: no author, date or message of the repository's.
    if (r.history == History::NONE) g.head = H5I_TRY(repo.write_commit(base.tree_id, {}, who, "Base of the box", 0));
  }
  return git::write_private_git(dir, staged, g, base.tree, states);
}

Json list(const std::vector<std::string>& v) {
  json::Array out;
  for (const std::string& s : v) out.push_back(s);
  return out;
}

Result<void> write_log(const session::Manifest& m, const std::string& path, const Base& base) {
  evidence::Log log = H5I_TRY(evidence::Log::open(path));
  evidence::Record record;
  record.kind = "created";
  record.body = json::Object{{"box", m.name.str()},          {"source", m.source},        {"base_commit", m.base_commit}, {"base_tree", m.base_tree},
                             {"parent_branch", m.parent_branch}, {"profile", m.profile}, {"tier", m.tier},               {"tier_from", m.tier_from},
                             {"policy_digest", m.policy_digest.value}, {"object_dirs", list(m.object_dirs)}, {"carried", base.carried}};
  H5I_TRY(log.append(record));
  return log.flush();
}

Error exists(const BoxName& name, const std::string& evidence) {
  return make_error(Errc::BOX_EXISTS, "there is a box " + name.str() + " already", evidence);
}

}  // namespace

Result<uint32_t> new_box_id(const std::vector<uint32_t>& taken) {
  if (geteuid() != 0) return static_cast<uint32_t>(geteuid());
  for (int attempt = 0; attempt < 1000; attempt++) {
    uint32_t r = 0;
    H5I_TRY(random_bytes(&r, sizeof r));
    uint32_t id = kFirstBoxId + r % kBoxIds;
    if (std::find(taken.begin(), taken.end(), id) == taken.end()) return id;
  }
  return make_error(Errc::BUSY, "no free user id for the box", "the reserved range is full", "h5i box gc");
}

Result<LeftBehind> left_behind(const git::Repository& repo, const session::RepoLocation& at, const git::Oid& commit, const git::UserConfig& user) {
  git::CommitInfo info = H5I_TRY(repo.commit(commit));
  git::Tree base = H5I_TRY(repo.read_tree(info.tree));
  Result<git::UserIndex> index{git::UserIndex{}};
  gate::ScanOptions o = user_scan(repo, base, at.git_dir, at.common_dir, user, index);
  UniqueFd work = H5I_TRY(os::open_directory(at.work_dir));
  gate::Scanned scanned = H5I_TRY(gate::scan(work, o));
  LeftBehind out;
  out.ignored = scanned.ignored_count;
  for (const git::Change& c : git::changes_between(base, scanned.tree)) (c.kind == git::ChangeKind::ADDED ? out.untracked : out.modified)++;
  return out;
}

Result<StagedBox> make_box(const StageRequest& r) {
  std::string agent_dir = r.boxes_dir + "/" + r.name.agent, final_dir = agent_dir + "/" + r.name.slug;
  UniqueFd boxes = H5I_TRY(session::make_private_directory(r.boxes_dir));
  UniqueFd parent = H5I_TRY(session::make_private_directory(agent_dir));
  // A folder that stays empty because the create failed goes again; one with boxes in it stays, as rmdir refuses.
  struct Tidy {
    const UniqueFd& boxes;
    const std::string& agent;
    ~Tidy() { unlinkat(boxes.get(), agent.c_str(), AT_REMOVEDIR); }
  } tidy{boxes, r.name.agent};
  struct stat st{};
  if (fstatat(parent.get(), r.name.slug.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return exists(r.name, printable(final_dir));

  std::string temporary = folder_name("new", r.name.slug, H5I_TRY(new_session_id()).value);
  std::string staged = agent_dir + "/" + temporary;
  std::optional<git::Repository> opened;  // outlives `undo`, which takes refs back through it
  Undo undo(parent, temporary);
  if (mkdirat(parent.get(), temporary.c_str(), 0700) != 0) return sys_error("make " + printable(staged));
  UniqueFd dir = H5I_TRY(os::open_directory_beneath(parent, temporary));
  // Held until we end, so that nobody takes the half-made box for one that a death left.
  session::BoxLock lock = H5I_TRY(session::BoxLock::acquire(session::BoxPaths{staged}, "box create"));
  for (const char* d : {"work", "spool", "blobs", "private"})
    if (mkdirat(dir.get(), d, std::string_view(d) == "work" ? 0755 : 0700) != 0) return sys_error("make " + printable(staged));
  UniqueFd work = H5I_TRY(os::open_directory_beneath(dir, "work"));
  if (mkdirat(work.get(), ".git", 0755) != 0) return sys_error("make $WORK/.git");

  opened.emplace(H5I_TRY(repository_for(r, staged)));
  const git::Repository& repo = *opened;
  H5I_TRY(sweep_leftovers(r.boxes_dir, r.source.detached() ? nullptr : &repo));
  git::Identity who = H5I_TRY(git::commit_identity(r.source.location ? r.source.location->common_dir : "", r.user));
  Base base = H5I_TRY(base_for(r, repo, who));
  std::vector<gate::Violation> bad = gate::check_tree(base.tree);
  if (!bad.empty()) return gate_error(bad, "the source holds paths that no box gets");

  session::Manifest m;
  m.name = r.name;
  m.created = rfc3339(realtime_ns());
  if (r.source.location) {
    m.repo_git_dir = r.source.location->common_dir;
    m.repo_work_dir = r.source.location->work_dir;
  }
  m.parent_branch = r.source.parent_branch;
  m.branch = ref_of("refs/heads/h5i/box/", r.name);
  m.base_ref = ref_of("refs/h5i/base/", r.name);
  m.base_commit = base.commit.hex();
  m.base_tree = base.tree_id.hex();
  m.source = r.source.for_people();
  m.profile = r.policy.profile;
  m.tier = r.policy.document["tier"].string();
  m.tier_from = r.tier_from;
  m.policy_digest = r.policy.digest;
  if (r.history == History::FULL) {
    // A detached box's store moves into place with it.
    if (r.source.detached()) m.object_dirs = {final_dir + "/store.git/objects"};
    else m.object_dirs = H5I_TRY(git::object_directories(repo.directory() + "/objects"));
  }
  m.host_uid = r.host_uid;
  m.host_gid = r.host_gid;

  r.step("writing " + std::to_string(base.tree.size()) + " files");
  // Two seconds back: no file is as new as an index, so that none has to be read again by git to be called clean.
  int64_t when = (realtime_ns() / 1000000000 - 2) * 1000000000;
  git::States states = H5I_TRY(git::checkout(repo, base.tree, work, when));
  H5I_TRY(private_git(r, repo, base, who, dir, staged, m, states));
  H5I_TRY(git::save_states(dir, states, realtime_ns()));
  H5I_TRY(os::replace_file(dir, "policy.resolved.json", json::canonical(r.policy.document), 0600));
  session::BoxPaths staged_paths{staged};
  H5I_TRY(session::save_manifest(staged_paths, m));
  H5I_TRY(write_log(m, staged_paths.log(), base));

  r.step("flushing to disk");
  // A box at a commit of the repository wrote no object there; flushing a whole file system is not free.
  if (base.commit != r.source.commit || r.history == History::NONE) H5I_TRY(repo.flush_objects());
  for (const std::string& ref : {m.base_ref, m.branch}) {
    auto set = repo.set_ref(ref, base.commit, std::nullopt, who, "h5i box create");
    if (!set && set.error().code == Errc::GIT_REF_CHANGED) return exists(r.name, printable(ref) + " exists without a box; git branch -D or h5i box rm");
    H5I_TRY(std::move(set));
    undo.ref(repo, ref, base.commit);
  }
  if (renameat2(parent.get(), temporary.c_str(), parent.get(), r.name.slug.c_str(), RENAME_NOREPLACE) != 0)
    return errno == EEXIST ? exists(r.name, printable(final_dir)) : sys_error("move the box into place");
  undo.keep();
  StagedBox out;
  out.paths = session::BoxPaths{final_dir};
  out.summary = base.summary;
  out.files = base.tree.size();
  out.carried = base.carried;
  out.converted = converted_paths(repo, base.tree, states);
  out.manifest = std::move(m);
  return out;
}

}  // namespace h5i::cli
