#include "core/git/repository.hpp"

#include <fcntl.h>
#include <git2/sys/repository.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/base/text.hpp"
#include "core/git/alternates.hpp"
#include "core/git/config_file.hpp"
#include "core/git/handles.hpp"
#include "core/git/library.hpp"
#include "core/git/packed_refs.hpp"
#include "core/git/shape.hpp"
#include "core/os/beneath.hpp"
#include "core/os/fs.hpp"

namespace h5i::git {
namespace {

constexpr int kMaxTreeDepth = 256;
constexpr size_t kMaxTreeEntries = 2'000'000;

Error revision_error(const std::string& revision, const std::string& why) {
  return make_error(Errc::GIT_REVISION, "no such revision: " + printable(revision), why);
}

// Flushes refs while it lives; loose objects are flushed once, by flush_objects().
struct FlushRefs {
  FlushRefs() { git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1); }
  ~FlushRefs() { git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 0); }
};

Result<SignatureHandle> signature(const Identity& who, int64_t seconds) {
  git_signature* raw = nullptr;
  if (git_signature_new(&raw, who.name.c_str(), who.email.c_str(), seconds, 0) < 0)
    return library_error(Errc::GIT_FAILED, "the name for the commit is refused: " + printable(who.name));
  return SignatureHandle(raw);
}

Result<void> flatten(git_repository* repo, const git_oid& id, const std::string& prefix, int depth, Tree& out) {
  if (depth > kMaxTreeDepth) return make_error(Errc::TOO_LARGE, "the tree is nested too deeply", printable(prefix, {.limit = 200}));
  git_tree* raw = nullptr;
  if (git_tree_lookup(&raw, repo, &id) < 0) return library_error(Errc::GIT_FAILED, "a tree object cannot be read");
  TreeHandle tree(raw);
  size_t n = git_tree_entrycount(tree.get());
  for (size_t i = 0; i < n; i++) {
    const git_tree_entry* e = git_tree_entry_byindex(tree.get(), i);
    uint32_t mode = static_cast<uint32_t>(git_tree_entry_filemode_raw(e));
    std::string path = prefix + git_tree_entry_name(e);
    if ((mode & 0170000) == kDirectory) {
      H5I_TRY(flatten(repo, *git_tree_entry_id(e), path + "/", depth + 1, out));
    } else {
      if (out.size() >= kMaxTreeEntries) return make_error(Errc::TOO_LARGE, "the tree has too many entries");
      out.push_back({std::move(path), mode, from_git(*git_tree_entry_id(e))});
    }
  }
  return {};
}

// A file that stays open as long as the library may ask for it.
struct OwnConfig {
  UniqueFd text;
  ConfigHandle handle;
};

// From libgit2 1.7 on every way of opening reads the repository's configuration, and what that includes.
bool reads_config_when_opening() {
  int major = 0, minor = 0, revision = 0;
  git_libgit2_version(&major, &minor, &revision);
  return major > 1 || minor >= 7;
}

// What the library may know of a repository's configuration: the few settings that concern what h5i writes there. All
// others could only make it do something else than h5i says.
Result<OwnConfig> own_config(const std::vector<Setting>& settings) {
  std::string text = "[core]\n\tbare = true\n";
  for (const char* key : {"logallrefupdates", "compression", "loosecompression"}) {
    const std::string* v = last_value(settings, std::string("core.") + key);
    if (v && !v->empty() && v->find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == std::string::npos) text += std::string("\t") + key + " = " + *v + "\n";
  }
  for (const Setting& s : settings)
    if (reads_config_when_opening() && (s.name == "include.path" || (s.name.starts_with("includeif.") && s.name.ends_with(".path"))))
      return make_error(Errc::GIT_UNSUPPORTED, "the repository's configuration includes another file, which this git library would read", printable(s.value), "copy what is needed of it into the configuration");
  OwnConfig out{H5I_TRY(os::sealed_memfd("git-config", text)), nullptr};
  git_config* raw = nullptr;
  if (git_config_new(&raw) < 0) return library_error(Errc::GIT_FAILED, "configuration");
  out.handle.reset(raw);
  if (git_config_add_file_ondisk(raw, ("/proc/self/fd/" + std::to_string(out.text.get())).c_str(), GIT_CONFIG_LEVEL_LOCAL, nullptr, 0) < 0)
    return library_error(Errc::GIT_FAILED, "configuration");
  return out;
}

}  // namespace

Result<Repository> Repository::open(const std::string& common_dir) {
  H5I_TRY(ready());
  std::vector<std::string> objects = H5I_TRY(object_directories(common_dir + "/objects"));
  H5I_TRY(check_shape(common_dir, objects));
  H5I_TRY(check_format(common_dir));
  std::vector<Setting> settings = H5I_TRY(read_config(common_dir));
  OwnConfig config = H5I_TRY(own_config(settings));
  git_repository* raw = nullptr;
  // Bare whatever the configuration says: core.worktree has no effect. No search: nothing above is looked at. This way of
  // opening reads no configuration; what is asked for later is answered by ours.
  if (git_repository_open_bare(&raw, common_dir.c_str()) < 0) return library_error(Errc::GIT_NO_REPOSITORY, "not a repository that can be read: " + printable(common_dir));
  RepositoryHandle repo(raw);
  if (git_repository_set_config(repo.get(), config.handle.get()) < 0) return library_error(Errc::GIT_FAILED, "the repository takes no configuration");
  git_odb* odb = nullptr;
  if (git_repository_odb(&odb, repo.get()) < 0) return library_error(Errc::GIT_FAILED, "the object store cannot be opened");
  Repository out(repo.release(), odb, common_dir);
  out.config_ = std::move(config.text);
  return out;
}

Result<Repository> Repository::create_store(const std::string& dir) {
  H5I_TRY(ready());
  git_repository_init_options options = GIT_REPOSITORY_INIT_OPTIONS_INIT;
  options.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_NO_REINIT | GIT_REPOSITORY_INIT_MKDIR;
  options.initial_head = "main";
  git_repository* raw = nullptr;
  if (git_repository_init_ext(&raw, dir.c_str(), &options) < 0) return library_error(Errc::GIT_FAILED, "a new repository cannot be made");
  git_repository_free(raw);
  return open(dir);
}

Repository::Repository(Repository&& o) noexcept
    : repo_(std::exchange(o.repo_, nullptr)), odb_(std::exchange(o.odb_, nullptr)), dir_(std::move(o.dir_)), config_(std::move(o.config_)) {}
Repository& Repository::operator=(Repository&& o) noexcept {
  std::swap(repo_, o.repo_);
  std::swap(odb_, o.odb_);
  std::swap(dir_, o.dir_);
  std::swap(config_, o.config_);
  return *this;
}
Repository::~Repository() {
  git_odb_free(odb_);
  git_repository_free(repo_);
}

Result<Head> Repository::head(const std::string& git_dir) const {
  UniqueFd dir = H5I_TRY(os::open_directory(git_dir));
  std::string text = H5I_TRY(os::read_file_beneath(dir, "HEAD", 4096));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  Head out;
  if (text.rfind("ref:", 0) == 0) {
    text.erase(0, 4);
    while (!text.empty() && text[0] == ' ') text.erase(0, 1);
    if (text.rfind("refs/heads/", 0) != 0) return make_error(Errc::GIT_UNSUPPORTED, "HEAD names no branch", printable(text));
    out.branch = text;
    out.commit = H5I_TRY(ref(text));
    return out;
  }
  out.commit = Oid::from_hex(text);
  if (!out.commit) return make_error(Errc::GIT_UNSUPPORTED, "HEAD cannot be read", printable(text));
  return out;
}

Result<Oid> Repository::resolve_commit(const std::string& revision, const std::string& git_dir) const {
  if (revision.empty() || revision[0] == '-' || revision.find('\0') != std::string::npos)
    return revision_error(revision, "a revision does not begin with '-'");
  std::string spelled = revision;
  // HEAD is the work tree's, which may be a linked one; the store's own HEAD is the main work tree's.
  for (std::string_view head : {std::string_view("HEAD"), std::string_view("@")}) {
    if (revision.compare(0, head.size(), head) != 0) continue;
    char next = revision.size() > head.size() ? revision[head.size()] : '\0';
    if (next != '\0' && next != '~' && next != '^' && next != ':') continue;
    Head h = H5I_TRY(this->head(git_dir));
    if (!h.commit) return make_error(Errc::GIT_UNBORN, "the repository has no commit yet", printable(h.branch));
    spelled = h.commit->hex() + revision.substr(head.size());
    break;
  }
  git_object* raw = nullptr;
  if (git_revparse_single(&raw, repo_, spelled.c_str()) < 0) return revision_error(revision, library_error(Errc::GIT_REVISION, "").evidence);
  ObjectHandle object(raw);
  git_object* peeled = nullptr;
  if (git_object_peel(&peeled, object.get(), GIT_OBJECT_COMMIT) < 0) return revision_error(revision, "it does not name a commit");
  ObjectHandle commit(peeled);
  return from_git(*git_object_id(commit.get()));
}

Result<CommitInfo> Repository::commit(const Oid& id) const {
  git_oid g = to_git(id);
  git_commit* raw = nullptr;
  if (git_commit_lookup(&raw, repo_, &g) < 0) return library_error(Errc::GIT_FAILED, "the commit " + id.hex() + " cannot be read");
  CommitHandle c(raw);
  CommitInfo out;
  out.id = id;
  out.tree = from_git(*git_commit_tree_id(c.get()));
  for (unsigned i = 0; i < git_commit_parentcount(c.get()); i++) out.parents.push_back(from_git(*git_commit_parent_id(c.get(), i)));
  const char* summary = git_commit_summary(c.get());
  out.summary = summary ? summary : "";
  const char* message = git_commit_message(c.get());
  out.message = message ? message : "";
  out.time = git_commit_time(c.get());
  return out;
}

bool Repository::has(const Oid& id) const {
  git_oid g = to_git(id);
  return git_odb_exists(odb_, &g) == 1;
}

Result<Tree> Repository::read_tree(const Oid& id) const {
  Tree out;
  H5I_TRY(flatten(repo_, to_git(id), "", 0, out));
  // A tree that git would never write may be out of order or name a path twice; what is ambiguous is not used.
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.path < b.path; });
  for (size_t i = 1; i < out.size(); i++)
    if (out[i].path == out[i - 1].path)
      return make_error(Errc::CORRUPT, "the tree names a path twice", printable(out[i].path), "git fsck");
  return out;
}

Result<uint64_t> Repository::blob_size(const Oid& id) const {
  git_oid g = to_git(id);
  size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
  if (git_odb_read_header(&size, &type, odb_, &g) < 0) return library_error(Errc::GIT_FAILED, "the object " + id.hex() + " cannot be read");
  if (type != GIT_OBJECT_BLOB) return make_error(Errc::CORRUPT, "the object " + id.hex() + " is not a blob");
  return static_cast<uint64_t>(size);
}

Result<std::string> Repository::read_blob(const Oid& id, uint64_t limit) const {
  uint64_t size = H5I_TRY(blob_size(id));
  if (size > limit) return make_error(Errc::TOO_LARGE, "the object " + id.hex() + " is too large", std::to_string(size) + " bytes");
  git_oid g = to_git(id);
  git_odb_object* raw = nullptr;
  if (git_odb_read(&raw, odb_, &g) < 0) return library_error(Errc::GIT_FAILED, "the object " + id.hex() + " cannot be read");
  OdbObjectHandle object(raw);
  return std::string(static_cast<const char*>(git_odb_object_data(object.get())), git_odb_object_size(object.get()));
}

Result<Oid> Repository::write_blob(std::string_view bytes) const {
  git_oid id;
  if (git_odb_write(&id, odb_, bytes.data(), bytes.size(), GIT_OBJECT_BLOB) < 0) return library_error(Errc::GIT_FAILED, "an object cannot be written");
  return from_git(id);
}

namespace {

struct TreeWriter {
  git_odb* odb;
  const Tree& tree;

  // Entries [from, to) all begin with the first `skip` bytes of their paths in common: one directory.
  Result<Oid> directory(size_t from, size_t to, size_t skip) const {
    std::string raw;
    char octal[16];
    while (from < to) {
      const std::string& path = tree[from].path;
      size_t slash = path.find('/', skip);
      if (slash == std::string::npos) {
        snprintf(octal, sizeof octal, "%o ", tree[from].mode);
        raw += octal;
        raw.append(path, skip, std::string::npos);
        raw += '\0';
        raw.append(reinterpret_cast<const char*>(tree[from].oid.raw.data()), 20);
        from++;
        continue;
      }
      size_t end = from + 1;
      while (end < to && tree[end].path.compare(0, slash + 1, path, 0, slash + 1) == 0) end++;
      Oid below = H5I_TRY(directory(from, end, slash + 1));
      raw += "40000 ";
      raw.append(path, skip, slash - skip);
      raw += '\0';
      raw.append(reinterpret_cast<const char*>(below.raw.data()), 20);
      from = end;
    }
    git_oid id;
    if (git_odb_write(&id, odb, raw.data(), raw.size(), GIT_OBJECT_TREE) < 0) return library_error(Errc::GIT_FAILED, "a tree cannot be written");
    return from_git(id);
  }
};

}  // namespace

Result<Oid> Repository::write_tree(const Tree& tree) const {
  for (size_t i = 1; i < tree.size(); i++)
    if (!(tree[i - 1].path < tree[i].path)) return make_error(Errc::INTERNAL, "a tree is not in order", printable(tree[i].path));
  return TreeWriter{odb_, tree}.directory(0, tree.size(), 0);
}

Result<Oid> Repository::write_commit(const Oid& tree, const std::vector<Oid>& parents, const Identity& who, const std::string& message,
                                     int64_t seconds) const {
  SignatureHandle sig = H5I_TRY(signature(who, seconds));
  std::vector<git_oid> ids;
  for (const Oid& p : parents) ids.push_back(to_git(p));
  std::vector<const git_oid*> pointers;
  for (const git_oid& id : ids) pointers.push_back(&id);
  git_oid tree_id = to_git(tree), out;
  git_tree* raw_tree = nullptr;
  if (git_tree_lookup(&raw_tree, repo_, &tree_id) < 0) return library_error(Errc::GIT_FAILED, "the commit's tree cannot be read");
  TreeHandle tree_handle(raw_tree);
  std::vector<CommitHandle> handles;
  std::vector<const git_commit*> commits;
  for (const git_oid* id : pointers) {
    git_commit* c = nullptr;
    if (git_commit_lookup(&c, repo_, id) < 0) return library_error(Errc::GIT_FAILED, "a parent commit cannot be read");
    handles.emplace_back(c);
    commits.push_back(c);
  }
  if (git_commit_create(&out, repo_, nullptr, sig.get(), sig.get(), nullptr, message.c_str(), tree_handle.get(), commits.size(), commits.data()) < 0)
    return library_error(Errc::GIT_FAILED, "the commit cannot be written");
  return from_git(out);
}

Result<void> Repository::flush_objects() const {
  UniqueFd dir = H5I_TRY(os::open_directory(dir_ + "/objects"));
  // One flush of the file system for all new objects instead of one a file: twenty thousand of them are ordinary.
  if (syncfs(dir.get()) != 0) return sys_error("flush the object store");
  return {};
}

Result<std::optional<Oid>> Repository::ref(const std::string& name) const {
  git_oid id;
  int error = git_reference_name_to_id(&id, repo_, name.c_str());
  if (error == GIT_ENOTFOUND) return std::optional<Oid>{};
  if (error < 0) return library_error(Errc::GIT_FAILED, "the ref " + printable(name) + " cannot be read");
  return std::optional<Oid>(from_git(id));
}

Result<void> Repository::set_ref(const std::string& name, const Oid& target, const std::optional<Oid>& expected, const Identity& who,
                                 const std::string& log) const {
  FlushRefs flush;
  git_repository_set_ident(repo_, who.name.c_str(), who.email.c_str());
  git_oid id = to_git(target), old = expected ? to_git(*expected) : git_oid{};
  git_reference* raw = nullptr;
  // A zero id asks for a ref that does not exist yet; libgit2 checks both under the ref's lock.
  int error = expected ? git_reference_create_matching(&raw, repo_, name.c_str(), &id, 1, &old, log.c_str())
                       : git_reference_create(&raw, repo_, name.c_str(), &id, 0, log.c_str());
  ReferenceHandle handle(raw);
  if (error == GIT_EMODIFIED || error == GIT_EEXISTS || (expected && error == GIT_ENOTFOUND))
    return make_error(Errc::GIT_REF_CHANGED, printable(name) + " is not what it was", library_error(Errc::GIT_REF_CHANGED, "").evidence);
  if (error == GIT_ELOCKED) return library_error(Errc::BUSY, printable(name) + " is locked by another program");
  if (error < 0) return library_error(Errc::GIT_FAILED, printable(name) + " cannot be written");
  return {};
}

void Repository::remove_dead_lock(const std::string& ref) const {
  constexpr int kLooks = 50;
  const std::string path = dir_ + "/" + ref + ".lock";
  struct stat first{}, now{};
  if (lstat(path.c_str(), &first) != 0) return;
  for (int look = 0; look < kLooks; look++) {
    timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
    if (lstat(path.c_str(), &now) != 0 || now.st_ino != first.st_ino) return;
  }
  unlink(path.c_str());
}

Result<void> Repository::remove_ref(const std::string& name, const std::optional<Oid>& expected) const {
  FlushRefs flush;
  git_reference* raw = nullptr;
  int error = git_reference_lookup(&raw, repo_, name.c_str());
  if (error == GIT_ENOTFOUND) return {};
  if (error < 0) return library_error(Errc::GIT_FAILED, printable(name) + " cannot be read");
  ReferenceHandle handle(raw);
  const git_oid* target = git_reference_target(handle.get());
  if (expected && (!target || from_git(*target) != *expected))
    return make_error(Errc::GIT_REF_CHANGED, printable(name) + " is not what it was", target ? from_git(*target).hex() : "a symbolic ref");
  // First where it is packed: the other way round it would have an old value for a moment.
  H5I_TRY(remove_packed_ref(dir_, name));
  error = git_reference_lookup(&raw, repo_, name.c_str());
  if (error == GIT_ENOTFOUND) return {};
  if (error < 0) return library_error(Errc::GIT_FAILED, printable(name) + " cannot be read");
  handle.reset(raw);
  if (git_reference_delete(handle.get()) < 0) return library_error(Errc::GIT_FAILED, printable(name) + " cannot be removed");
  return {};
}

Result<std::vector<RefValue>> Repository::refs(const std::string& prefix) const {
  git_reference_iterator* raw = nullptr;
  if (git_reference_iterator_glob_new(&raw, repo_, (prefix + "*").c_str()) < 0) return library_error(Errc::GIT_FAILED, "refs cannot be read");
  ReferenceIteratorHandle it(raw);
  std::vector<RefValue> out;
  git_reference* r = nullptr;
  while (git_reference_next(&r, it.get()) == 0) {
    ReferenceHandle handle(r);
    if (const git_oid* target = git_reference_target(r)) out.push_back({git_reference_name(r), from_git(*target)});
  }
  std::sort(out.begin(), out.end(), [](const RefValue& a, const RefValue& b) { return a.name < b.name; });
  return out;
}

bool Repository::descends(const Oid& commit, const Oid& ancestor) const {
  if (commit == ancestor) return true;
  // libgit2 gives up where a shallow clone ends (and leaks what it had), also after it has met the ancestor. There is little to walk there.
  if (git_repository_is_shallow(repo_) == 1) {
    std::vector<Oid> todo{commit};
    std::set<Oid> seen;
    while (!todo.empty()) {
      auto c = this->commit(todo.back());
      todo.pop_back();
      if (!c) continue;  // what the clone left out
      for (const Oid& parent : c->parents) {
        if (parent == ancestor) return true;
        if (seen.insert(parent).second) todo.push_back(parent);
      }
    }
    return false;
  }
  git_oid a = to_git(commit), b = to_git(ancestor);
  return git_graph_descendant_of(repo_, &a, &b) == 1;
}

Result<Merge> Repository::merge(const Oid& ancestor, const Oid& ours, const Oid& theirs) const {
  auto lookup = [&](const Oid& id) -> Result<TreeHandle> {
    git_oid g = to_git(id);
    git_tree* raw = nullptr;
    if (git_tree_lookup(&raw, repo_, &g) < 0) return library_error(Errc::GIT_FAILED, "the tree " + id.hex() + " cannot be read");
    return TreeHandle(raw);
  };
  TreeHandle a = H5I_TRY(lookup(ancestor)), o = H5I_TRY(lookup(ours)), t = H5I_TRY(lookup(theirs));
  git_merge_options options = GIT_MERGE_OPTIONS_INIT;
  options.flags = 0;
  git_index* raw = nullptr;
  if (git_merge_trees(&raw, repo_, a.get(), o.get(), t.get(), &options) < 0) return library_error(Errc::GIT_FAILED, "the merge failed");
  IndexHandle index(raw);
  Merge out;
  std::set<std::string> conflicts;
  git_index_conflict_iterator* raw_conflicts = nullptr;
  if (git_index_conflict_iterator_new(&raw_conflicts, index.get()) < 0) return library_error(Errc::GIT_FAILED, "the merge failed");
  ConflictsHandle it(raw_conflicts);
  const git_index_entry *base = nullptr, *mine = nullptr, *other = nullptr;
  while (git_index_conflict_next(&base, &mine, &other, it.get()) == 0)
    for (const git_index_entry* e : {base, mine, other})
      if (e) conflicts.insert(e->path);
  out.conflicts.assign(conflicts.begin(), conflicts.end());
  if (!out.conflicts.empty()) return out;
  size_t n = git_index_entrycount(index.get());
  for (size_t i = 0; i < n; i++) {
    const git_index_entry* e = git_index_get_byindex(index.get(), i);
    out.tree.push_back({e->path, e->mode, from_git(e->id)});
  }
  std::sort(out.tree.begin(), out.tree.end(), [](const Entry& x, const Entry& y) { return x.path < y.path; });
  return out;
}

Result<void> Repository::write_pack(const Oid& commit, const std::string& pack_dir) const {
  git_packbuilder* raw = nullptr;
  if (git_packbuilder_new(&raw, repo_) < 0) return library_error(Errc::GIT_FAILED, "a pack cannot be made");
  PackHandle pack(raw);
  git_oid id = to_git(commit);
  if (git_packbuilder_insert_commit(pack.get(), &id) < 0 || git_packbuilder_write(pack.get(), pack_dir.c_str(), 0, nullptr, nullptr) < 0)
    return library_error(Errc::GIT_FAILED, "the box's objects cannot be copied");
  return {};
}

Oid blob_id(std::string_view bytes) {
  git_oid id;
  git_odb_hash(&id, bytes.data(), bytes.size(), GIT_OBJECT_BLOB);
  return from_git(id);
}

}  // namespace h5i::git
