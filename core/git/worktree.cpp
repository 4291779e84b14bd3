#include "core/git/worktree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/git/checkout.hpp"
#include "core/git/handles.hpp"
#include "core/git/library.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

constexpr const char* kJournal = "apply.json";
constexpr uint64_t kMaxJournal = 256u << 20;
constexpr std::string_view kLockMark = "h5i apply\n";
constexpr const char* kStaging = "h5i-apply.";
constexpr size_t kIdLength = 26;

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}
std::string last_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// What lies at a path of the work tree: nothing when it or a parent is missing. A parent that is a link is PATH_ESCAPE.
struct Found {
  bool present = false;
  struct stat st {};
};
Result<Found> look(const UniqueFd& work, const std::string& path) {
  auto dir = os::open_directory_beneath(work, parent_of(path));
  if (!dir) {
    if (dir.error().sys_errno == ENOENT || dir.error().sys_errno == ENOTDIR) return Found{};
    return std::move(dir).error();
  }
  Found out;
  if (fstatat(dir->get(), last_of(path).c_str(), &out.st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? Result<Found>(Found{}) : Result<Found>(sys_error("stat " + printable(path)));
  out.present = true;
  return out;
}

Result<bool> holds(const UniqueFd& work, const std::string& path, uint32_t mode, const Oid& oid) {
  Found f = H5I_TRY(look(work, path));
  if (!f.present) return false;
  if (plain_mode(mode) == kGitlink) return S_ISDIR(f.st.st_mode) != 0;
  if (plain_mode(f.st.st_mode) != plain_mode(mode)) return false;
  if (S_ISLNK(f.st.st_mode)) return blob_id(H5I_TRY(os::read_link_beneath(work, path))) == oid;
  if (!S_ISREG(f.st.st_mode)) return false;
  return blob_id(H5I_TRY(os::read_file_beneath(work, path, UINT64_MAX))) == oid;
}

Error in_the_way(const std::string& path) {
  return make_error(Errc::GIT_DIRTY, "an untracked path is in the way: " + printable(path), "the work tree was not changed", "move it aside and try again");
}

// ---- the plan of one update, as it is written down

struct Op {
  std::string path;
  bool remove = false;     // what is there goes
  std::string staged;      // name in the staging folder; empty: nothing new
  uint32_t old_mode = 0;
  Oid old_oid;
};

struct Journal {
  std::string work_dir, git_dir, staging;
  std::string branch;
  Oid old_commit, new_commit;
  std::vector<Op> ops;

  std::string text() const {
    json::Array list;
    for (const Op& o : ops)
      list.push_back(json::Object{{"path", base64(o.path)}, {"remove", o.remove}, {"staged", o.staged}, {"old_mode", o.old_mode}, {"old_oid", o.old_oid.hex()}});
    return json::canonical(json::Object{{"schema", "h5i.apply/1"}, {"work_dir", base64(work_dir)}, {"git_dir", base64(git_dir)}, {"staging", base64(staging)},
                                        {"branch", base64(branch)}, {"old", old_commit.hex()}, {"new", new_commit.hex()}, {"ops", std::move(list)}});
  }
  static Result<Journal> from(std::string_view bytes) {
    Json v = H5I_TRY(parse_json(bytes, kJournal, kMaxJournal));
    Journal j;
    auto text = [](const Json& value, std::string& out) { return unbase64(value.string(), &out); };
    auto old_id = Oid::from_hex(v["old"].string()), new_id = Oid::from_hex(v["new"].string());
    bool ok = v["schema"].string() == "h5i.apply/1" && text(v["work_dir"], j.work_dir) && text(v["git_dir"], j.git_dir) && text(v["staging"], j.staging) &&
              text(v["branch"], j.branch) && old_id && new_id;
    if (ok) j.old_commit = *old_id, j.new_commit = *new_id;
    for (const Json& o : v["ops"].array()) {
      Op op;
      auto oid = Oid::from_hex(o["old_oid"].string());
      ok = ok && oid && text(o["path"], op.path);
      op.remove = o["remove"].boolean();
      op.staged = o["staged"].string();
      op.old_mode = static_cast<uint32_t>(o["old_mode"].integer());
      if (oid) op.old_oid = *oid;
      j.ops.push_back(std::move(op));
    }
    if (!ok) return make_error(Errc::CORRUPT, "the record of an interrupted apply is damaged", kJournal, "look at the work tree, then remove h5i/apply.json from the git directory");
    return j;
  }
};

// A folder for the new files, on the work tree's own file system so that each gets in place by rename.
Result<std::string> make_staging(const WorkTree& at) {
  struct stat git{}, work{};
  if (stat(at.git_dir.c_str(), &git) != 0 || stat(at.work_dir.c_str(), &work) != 0) return sys_error("stat the work tree");
  std::string path = (git.st_dev == work.st_dev ? at.git_dir + "/" + kStaging : at.work_dir + "/." + kStaging) + H5I_TRY(new_session_id()).value;
  if (mkdir(path.c_str(), 0700) != 0) return sys_error("make " + printable(path));
  return path;
}

void remove_staging(const std::string& path) {
  if (auto parent = os::open_directory(parent_of(path))) (void)os::remove_tree(*parent, last_of(path)).ok();
}

Result<void> stage_entry(const Repository& repo, const UniqueFd& staging, const std::string& name, const Change& c) {
  std::string bytes = H5I_TRY(repo.read_blob(c.new_oid, UINT64_MAX));
  if (c.new_mode == kLink) {
    if (symlinkat(bytes.c_str(), staging.get(), name.c_str()) != 0) return sys_error("stage " + printable(c.path));
    return {};
  }
  UniqueFd fd = H5I_TRY(os::open_beneath(staging, name, O_WRONLY | O_CREAT | O_EXCL, c.new_mode == kExecutable ? 0777 : 0666));
  return os::write_all(fd, bytes);
}

// The index with the new entries, beside the old one. Entries get no times: git looks at the files once and writes them.
Result<void> stage_index(const std::string& git_dir, const std::string& staging, const std::vector<Change>& changes) {
  UniqueFd from_dir = H5I_TRY(os::open_directory(git_dir));
  auto old = os::read_file_beneath(from_dir, "index", UINT64_MAX);
  std::string path = staging + "/index";
  if (old) {
    UniqueFd to_dir = H5I_TRY(os::open_directory(staging));
    UniqueFd fd = H5I_TRY(os::open_beneath(to_dir, "index", O_WRONLY | O_CREAT | O_EXCL, 0644));
    H5I_TRY(os::write_all(fd, *old));
  } else if (old.error().sys_errno != ENOENT) {
    return std::move(old).error();
  }
  git_index* raw = nullptr;
  if (git_index_open(&raw, path.c_str()) < 0) return library_error(Errc::GIT_UNSUPPORTED, "the index cannot be read");
  IndexHandle index(raw);
  for (const Change& c : changes)
    if (c.new_mode == 0 && git_index_remove(index.get(), c.path.c_str(), 0) < 0) return library_error(Errc::GIT_FAILED, "the index cannot forget " + printable(c.path));
  for (const Change& c : changes) {
    if (c.new_mode == 0) continue;
    git_index_entry e{};
    e.path = c.path.c_str();
    e.mode = c.new_mode;
    e.id = to_git(c.new_oid);
    if (git_index_add(index.get(), &e) < 0) return library_error(Errc::GIT_FAILED, "the index refuses " + printable(c.path));
  }
  if (git_index_write(index.get()) < 0) return library_error(Errc::GIT_FAILED, "the index cannot be written");
  return {};
}

// The lock that git itself takes for the index. Ours says so, and gets its name when it does: who holds the ApplyLock and
// finds one knows that its owner is dead.
class IndexLock {
 public:
  static Result<IndexLock> take(const std::string& git_dir) {
    UniqueFd dir = H5I_TRY(os::open_directory(git_dir));
    auto file = os::open_nameless(dir, 0644);
    if (file) {
      H5I_TRY(os::write_all(*file, kLockMark));
      auto named = os::give_name(*file, dir, kName);
      if (named) return IndexLock(git_dir);
      if (named.error().sys_errno == EEXIST) return held(git_dir);
    }
    UniqueFd fd(openat(dir.get(), kName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd && errno == EEXIST) return held(git_dir);
    if (!fd) return sys_error("lock the index");
    IndexLock lock(git_dir);
    H5I_TRY(os::write_all(fd, kLockMark));
    return lock;
  }
  static bool is_ours(const UniqueFd& git_dir) {
    auto text = os::read_file_beneath(git_dir, kName, kLockMark.size());
    return text && *text == kLockMark;
  }
  static void remove(const UniqueFd& git_dir) { unlinkat(git_dir.get(), kName, 0); }
  IndexLock(IndexLock&& o) noexcept : path_(std::exchange(o.path_, {})) {}
  IndexLock(const IndexLock&) = delete;
  ~IndexLock() { release(); }
  void release() {
    if (!path_.empty()) unlink(path_.c_str());
    path_.clear();
  }
  void leave() { path_.clear(); }

 private:
  static constexpr const char* kName = "index.lock";
  explicit IndexLock(const std::string& git_dir) : path_(git_dir + "/" + kName) {}
  static Error held(const std::string& git_dir) {
    return make_error(Errc::BUSY, "the index is locked by another git program", printable(git_dir) + "/" + kName, "wait for it; remove the file when none runs");
  }
  std::string path_;
};

// What a death before the journal left, the index's lock and new files that nothing leads to, is cleared by who has the
// ApplyLock. `staging`: how the names of staging folders begin in `where`.
std::vector<std::string> unfinished(const UniqueFd& where, const std::string& staging) {
  std::vector<std::string> out;
  auto entries = os::list_directory(where);
  if (!entries) return out;
  for (const os::DirectoryEntry& e : *entries)
    if (e.name.starts_with(staging) && e.name.size() == staging.size() + kIdLength) out.push_back(e.name);
  return out;
}

bool looks_unfinished(const std::string& git_dir) {
  auto dir = os::open_directory(git_dir);
  return dir && (IndexLock::is_ours(*dir) || !unfinished(*dir, kStaging).empty());
}

void clear_unfinished(const std::string& git_dir, const std::string& work_dir = "") {
  if (auto dir = os::open_directory(git_dir)) {
    if (IndexLock::is_ours(*dir)) IndexLock::remove(*dir);
    for (const std::string& name : unfinished(*dir, kStaging)) (void)os::remove_tree(*dir, name).ok();
  }
  if (work_dir.empty()) return;
  if (auto dir = os::open_directory(work_dir))
    for (const std::string& name : unfinished(*dir, "." + std::string(kStaging))) (void)os::remove_tree(*dir, name).ok();
}

// ---- what must hold before anything changes

// A directory where a file will be: all that is in it must be going.
Result<void> only_leaving(const UniqueFd& work, const std::string& path, const std::set<std::string>& leaving) {
  UniqueFd dir = H5I_TRY(os::open_directory_beneath(work, path));
  for (const os::DirectoryEntry& e : H5I_TRY(os::list_directory(dir))) {
    std::string below = path + "/" + e.name;
    struct stat st{};
    if (fstatat(dir.get(), e.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return sys_error("stat " + printable(below));
    if (S_ISDIR(st.st_mode)) H5I_TRY(only_leaving(work, below, leaving));
    else if (!leaving.count(below)) return in_the_way(below);
  }
  return {};
}

Result<void> check_targets(const UniqueFd& work, const std::vector<Change>& changes) {
  std::set<std::string> leaving;
  for (const Change& c : changes)
    if (c.old_mode != 0 && (c.new_mode == 0 || c.kind == ChangeKind::TYPE)) leaving.insert(c.path);
  for (const Change& c : changes) {
    if (c.old_mode == kGitlink || c.new_mode == kGitlink) return make_error(Errc::GATE_GITLINK, "a submodule would change", printable(c.path));
    if (c.old_mode != 0) continue;
    Found f = H5I_TRY(look(work, c.path));
    if (f.present && !S_ISDIR(f.st.st_mode)) return in_the_way(c.path);
    if (f.present) H5I_TRY(only_leaving(work, c.path, leaving));
    // A parent that is a file now must be one that goes.
    for (std::string up = parent_of(c.path); !up.empty(); up = parent_of(up)) {
      Found p = H5I_TRY(look(work, up));
      if (p.present && !S_ISDIR(p.st.st_mode) && !leaving.count(up)) return in_the_way(up);
    }
  }
  return {};
}

// ---- carrying it out; each step may be repeated

void remove_empty_parents(const UniqueFd& work, const std::string& path) {
  for (std::string folder = parent_of(path); !folder.empty(); folder = parent_of(folder)) {
    auto above = os::open_directory_beneath(work, parent_of(folder));
    if (!above || unlinkat(above->get(), last_of(folder).c_str(), AT_REMOVEDIR) != 0) return;
  }
}

// `careful`: after a death; what the user changed since stays.
Result<void> carry_out(const Journal& j, bool careful) {
  UniqueFd work = H5I_TRY(os::open_directory(j.work_dir)), staging = H5I_TRY(os::open_directory(j.staging));
  auto untouched = [&](const Op& o) -> Result<bool> {
    if (!careful) return true;
    Found f = H5I_TRY(look(work, o.path));
    if (!f.present) return true;
    if (o.old_mode == 0) return S_ISDIR(f.st.st_mode) != 0;
    return holds(work, o.path, o.old_mode, o.old_oid);
  };
  for (const Op& o : j.ops) {
    if (!o.remove) continue;
    struct stat st{};
    if (careful && !o.staged.empty() && fstatat(staging.get(), o.staged.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;  // its successor is in place
    if (!H5I_TRY(untouched(o))) continue;
    auto dir = os::open_directory_beneath(work, parent_of(o.path));
    if (!dir) continue;
    if (unlinkat(dir->get(), last_of(o.path).c_str(), 0) != 0 && errno != ENOENT && errno != EISDIR) return sys_error("remove " + printable(o.path));
    remove_empty_parents(work, o.path);
  }
  for (const Op& o : j.ops) {
    if (o.staged.empty()) continue;
    struct stat st{};
    if (fstatat(staging.get(), o.staged.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!H5I_TRY(untouched(o))) continue;
    UniqueFd dir = H5I_TRY(os::make_directories_beneath(work, parent_of(o.path), 0777));
    const std::string name = last_of(o.path);
    // An empty directory left where a file belongs.
    if (fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) unlinkat(dir.get(), name.c_str(), AT_REMOVEDIR);
    if (renameat(staging.get(), o.staged.c_str(), dir.get(), name.c_str()) != 0) return sys_error("put " + printable(o.path) + " in place");
  }
  if (renameat(staging.get(), "index", AT_FDCWD, (j.git_dir + "/index").c_str()) != 0 && errno != ENOENT) return sys_error("put the index in place");
  if (syncfs(work.get()) != 0) return sys_error("flush the work tree");
  return {};
}

Result<UniqueFd> h5i_dir(const std::string& common_dir) {
  UniqueFd common = H5I_TRY(os::open_directory(common_dir));
  return os::make_directories_beneath(common, "h5i", 0700);
}

// The library writes the new id into the ref's lock file before it renames it. One that is empty or holds that very id while
// the journal is there was left by the death that the journal tells of.
void remove_branch_lock(const std::string& common_dir, const Journal& j) {
  auto common = os::open_directory(common_dir);
  if (!common) return;
  auto text = os::read_file_beneath(*common, j.branch + ".lock", 256);
  if (text && (text->empty() || text->starts_with(j.new_commit.hex()))) unlinkat(common->get(), (j.branch + ".lock").c_str(), 0);
}

Result<void> drop_journal(const UniqueFd& dir) {
  if (unlinkat(dir.get(), kJournal, 0) != 0 && errno != ENOENT) return sys_error("remove the record of the apply");
  if (fsync(dir.get()) != 0) return sys_error("flush");
  return {};
}

// ---- the record of an interrupted apply is believed only where move_branch() itself could have written it

constexpr std::string_view kIdDigits = "0123456789abcdefghjkmnpqrstvwxyz";

std::string real_path(const std::string& path) {
  char out[PATH_MAX];
  return ::realpath(path.c_str(), out) ? out : "";
}

// Where the .git of a work tree leads: a directory, or what its file names. Empty when to none.
std::string git_dir_of(const std::string& work_dir) {
  struct stat st{};
  if (::stat((work_dir + "/.git").c_str(), &st) != 0) return "";
  if (S_ISDIR(st.st_mode)) return real_path(work_dir + "/.git");
  auto work = os::open_directory(work_dir);
  auto text = work ? os::read_file_beneath(*work, ".git", PATH_MAX + 16) : Result<std::string>(work.error());
  if (!text || !text->starts_with("gitdir: ")) return "";
  std::string to = text->substr(8);
  while (!to.empty() && (to.back() == '\n' || to.back() == '\r')) to.pop_back();
  if (to.find('\0') != std::string::npos) return "";
  return to.starts_with('/') ? real_path(to) : real_path(work_dir + "/" + to);
}

bool plain_path(std::string_view path) {
  while (true) {
    size_t slash = path.find('/');
    if (!plain_component(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

// Empty when it is one.
std::string fault_of(const Journal& j, const Repository& repo) {
  std::string common = real_path(repo.directory()), git_dir = real_path(j.git_dir);
  bool linked = !git_dir.empty() && parent_of(git_dir) == common + "/worktrees";
  if (git_dir.empty() || (git_dir != common && !linked)) return "git_dir is not this repository's";
  if (j.work_dir.empty() || j.work_dir[0] != '/' || git_dir_of(j.work_dir) != git_dir) return "work_dir is not the work tree of git_dir";
  std::string in_git = j.git_dir + "/" + kStaging, in_work = j.work_dir + "/." + kStaging;
  std::string id = j.staging.starts_with(in_git) ? j.staging.substr(in_git.size()) : j.staging.starts_with(in_work) ? j.staging.substr(in_work.size()) : "";
  if (id.size() != kIdLength || id.find_first_not_of(kIdDigits) != std::string::npos) return "staging is no folder that an apply makes";
  struct stat st{};
  if (::lstat(j.staging.c_str(), &st) == 0 && (!S_ISDIR(st.st_mode) || st.st_uid != ::geteuid() || (st.st_mode & 022) != 0)) return "staging is not this user's own folder";
  if (!j.branch.starts_with("refs/heads/") || !plain_path(j.branch)) return "branch is none";
  for (size_t i = 0; i < j.ops.size(); i++) {
    const Op& o = j.ops[i];
    if (!plain_path(o.path)) return "an operation names " + printable(o.path, {.limit = 200});
    if (!o.staged.empty() && o.staged != std::to_string(i)) return "a new file's name is not one that an apply makes";
    if (o.old_mode != 0 && o.old_mode != kFile && o.old_mode != kExecutable && o.old_mode != kLink) return "an operation has a mode that no file has";
  }
  return {};
}

// What would get in place is what the branch's new commit says, and what would go is not in it.
Result<std::string> content_fault(const Journal& j, const Repository& repo) {
  CommitInfo commit = H5I_TRY(repo.commit(j.new_commit));
  Tree tree = H5I_TRY(repo.read_tree(commit.tree));
  UniqueFd staging = H5I_TRY(os::open_directory(j.staging));
  for (const Op& o : j.ops) {
    const Entry* e = find_entry(tree, o.path);
    bool fits = o.staged.empty() == (e == nullptr);
    struct stat st{};
    if (fits && e && fstatat(staging.get(), o.staged.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) fits = H5I_TRY(holds(staging, o.staged, e->mode, e->oid));
    if (!fits) return printable(o.path, {.limit = 200}) + " is not what the commit " + j.new_commit.hex() + " says";
  }
  return std::string();
}

Error not_believed(const std::string& why) {
  return make_error(Errc::CORRUPT, "the record of an interrupted apply is not one that h5i wrote: nothing was done", std::string(kJournal) + ": " + why,
                    "look at the work tree, then remove h5i/apply.json from the git directory");
}

}  // namespace

Result<std::vector<std::string>> dirty_paths(const Repository&, const WorkTree& at, const UserIndex& index, const Tree& head) {
  std::set<std::string> out;
  for (const IndexEntry& e : index.entries)
    if (e.stage != 0 || e.intent_to_add) out.insert(e.path);
  for (const Change& c : changes_between(head, index.tree())) out.insert(c.path);
  UniqueFd work = H5I_TRY(os::open_directory(at.work_dir));
  for (const IndexEntry& e : index.entries) {
    if (e.stage != 0 || e.intent_to_add || e.skip_worktree || plain_mode(e.mode) == kGitlink) continue;
    auto found = look(work, e.path);
    if (!found && found.error().code == Errc::PATH_ESCAPE) {
      out.insert(e.path);
      continue;
    }
    if (!found) return std::move(found).error();
    if (found->present && index.vouches(e, found->st)) continue;
    if (!found->present || !H5I_TRY(holds(work, e.path, e.mode, e.oid))) out.insert(e.path);
  }
  return std::vector<std::string>(out.begin(), out.end());
}

Result<ApplyLock> ApplyLock::acquire(const std::string& common_dir) {
  UniqueFd dir = H5I_TRY(h5i_dir(common_dir));
  ApplyLock lock;
  lock.fd_ = H5I_TRY(os::open_beneath(dir, "apply.lock", O_RDWR | O_CREAT, 0600));
  while (flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return make_error(Errc::BUSY, "another apply or rebase works on this repository", printable(common_dir) + "/h5i/apply.lock is held");
    return sys_error("lock the repository");
  }
  return lock;
}

Result<void> move_branch(const Repository& repo, const WorkTree& at, const BranchUpdate& u, const Identity& who) {
  UniqueFd journal_dir = H5I_TRY(h5i_dir(repo.directory())), work = H5I_TRY(os::open_directory(at.work_dir));
  clear_unfinished(at.git_dir, at.work_dir);
  IndexLock index_lock = H5I_TRY(IndexLock::take(at.git_dir));
  H5I_TRY(check_targets(work, u.changes));
  Journal j;
  j.work_dir = at.work_dir;
  j.git_dir = at.git_dir;
  j.branch = u.branch;
  j.old_commit = u.old_commit;
  j.new_commit = u.new_commit;
  j.staging = H5I_TRY(make_staging(at));
  struct Unstage {
    const std::string& path;
    bool on = true;
    ~Unstage() {
      if (on) remove_staging(path);
    }
  } unstage{j.staging};
  {
    UniqueFd staging = H5I_TRY(os::open_directory(j.staging));
    for (const Change& c : u.changes) {
      Op op;
      op.path = c.path;
      op.old_mode = c.old_mode;
      op.old_oid = c.old_oid;
      // A file that only gets another content is replaced by rename; every other change first makes room.
      op.remove = c.old_mode != 0 && (c.new_mode == 0 || c.kind == ChangeKind::TYPE);
      if (c.new_mode != 0) {
        op.staged = std::to_string(j.ops.size());
        H5I_TRY(stage_entry(repo, staging, op.staged, c));
      }
      j.ops.push_back(std::move(op));
    }
    H5I_TRY(stage_index(at.git_dir, j.staging, u.changes));
    if (syncfs(staging.get()) != 0) return sys_error("flush the new files");
  }
  // The last look, after everything slow: what is there now must still be what HEAD says.
  UserIndex index = H5I_TRY(read_user_index(at.git_dir));
  for (const Change& c : u.changes) {
    if (c.old_mode == 0) continue;
    Found f = H5I_TRY(look(work, c.path));
    const IndexEntry* e = index.find(c.path);
    bool same = f.present && ((e && e->oid == c.old_oid && index.vouches(*e, f.st)) || H5I_TRY(holds(work, c.path, c.old_mode, c.old_oid)));
    if (!same) return make_error(Errc::GIT_DIRTY, "a path changed while the patch was prepared: " + printable(c.path), "the work tree was not changed");
  }
  H5I_TRY(check_targets(work, u.changes));
  // From here on a death leads forward once the branch has moved, and back before that.
  H5I_TRY(os::replace_file(journal_dir, kJournal, j.text(), 0600));
  auto moved = repo.set_ref(u.branch, u.new_commit, u.old_commit, who, u.log);
  if (!moved) {
    H5I_TRY(drop_journal(journal_dir));
    return std::move(moved).error();
  }
  unstage.on = false;
  index_lock.leave();
  H5I_TRY(carry_out(j, false));
  unlink((at.git_dir + "/index.lock").c_str());
  remove_staging(j.staging);
  return drop_journal(journal_dir);
}

Result<void> finish_interrupted(const Repository& repo) {
  UniqueFd dir = H5I_TRY(h5i_dir(repo.directory()));
  os::remove_dead_files(dir);
  bool journal = faccessat(dir.get(), kJournal, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  if (!journal && !looks_unfinished(repo.directory())) return {};
  auto lock = ApplyLock::acquire(repo.directory());
  if (!lock) return lock.error().code == Errc::BUSY ? Result<void>{} : Result<void>(std::move(lock).error());
  auto text = os::read_file_beneath(dir, kJournal, kMaxJournal);
  if (!text && text.error().sys_errno == ENOENT) {
    clear_unfinished(repo.directory());
    return {};
  }
  if (!text) return std::move(text).error();
  Journal j = H5I_TRY(Journal::from(*text));
  if (std::string why = fault_of(j, repo); !why.empty()) return not_believed(why);
  std::optional<Oid> now = H5I_TRY(repo.ref(j.branch));
  struct stat st{};
  bool staged = lstat(j.staging.c_str(), &st) == 0;
  if (now && *now == j.new_commit && staged)
    if (std::string why = H5I_TRY(content_fault(j, repo)); !why.empty()) return not_believed(why);
  if (now && *now == j.new_commit && staged) H5I_TRY(carry_out(j, true));
  if (staged) unlink((j.git_dir + "/index.lock").c_str());  // ours: taken before the staging folder was made, left by the death
  remove_staging(j.staging);
  remove_branch_lock(repo.directory(), j);
  return drop_journal(dir);
}

}  // namespace h5i::git
