// One repository, opened by path as a bare store of objects and refs: its work tree, hooks, filters, replace refs and
// grafts have no effect here.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/git/config.hpp"
#include "core/git/object.hpp"

struct git_repository;
struct git_odb;

namespace h5i::git {

struct CommitInfo {
  Oid id, tree;
  std::vector<Oid> parents;
  std::string summary, message;
  int64_t time = 0;
};

struct Merge {
  Tree tree;                             // valid when there are no conflicts
  std::vector<std::string> conflicts;    // paths, sorted, each once
};

struct RefValue {
  std::string name;
  Oid target;
};

// What HEAD of a work tree says.
struct Head {
  std::string branch;        // refs/heads/...; empty: detached
  std::optional<Oid> commit; // nothing: unborn
};

class Repository {
 public:
  // After check_format(). `common_dir` is absolute.
  static Result<Repository> open(const std::string& common_dir);
  // A new bare repository for a box that comes from elsewhere; `dir` must not exist, its parent must.
  static Result<Repository> create_store(const std::string& dir);
  Repository(Repository&&) noexcept;
  Repository& operator=(Repository&&) noexcept;
  ~Repository();

  const std::string& directory() const { return dir_; }

  // For a ref that only h5i writes, by who holds its box's lock: the ref's lock file goes when nobody lets go of it within a
  // moment (git's own programs hold it for one). It is what a killed h5i left.
  void remove_dead_lock(const std::string& ref) const;

  // `git_dir` is the work tree's own directory (of a linked work tree it differs from ours).
  Result<Head> head(const std::string& git_dir) const;
  // A commit by any spelling that git-rev-parse knows; HEAD and @ are those of `git_dir`. GIT_REVISION.
  Result<Oid> resolve_commit(const std::string& revision, const std::string& git_dir) const;
  Result<CommitInfo> commit(const Oid& id) const;
  bool has(const Oid& id) const;

  Result<Tree> read_tree(const Oid& tree) const;
  Result<std::string> read_blob(const Oid& blob, uint64_t limit) const;  // TOO_LARGE before it is inflated
  Result<uint64_t> blob_size(const Oid& blob) const;

  Result<Oid> write_blob(std::string_view bytes) const;
  Result<Oid> write_tree(const Tree& tree) const;
  Result<Oid> write_commit(const Oid& tree, const std::vector<Oid>& parents, const Identity& who, const std::string& message,
                           int64_t seconds) const;
  // Everything written before is on disk afterwards. Call it before a ref names what was written.
  Result<void> flush_objects() const;

  Result<std::optional<Oid>> ref(const std::string& name) const;
  // Compare and set: `expected` nothing means that the ref must not exist. GIT_REF_CHANGED.
  Result<void> set_ref(const std::string& name, const Oid& target, const std::optional<Oid>& expected, const Identity& who,
                       const std::string& log) const;
  // What does not exist is fine; another value than `expected` (when given) is GIT_REF_CHANGED.
  Result<void> remove_ref(const std::string& name, const std::optional<Oid>& expected) const;
  // Refs below `prefix` that name commits or tags, by name.
  Result<std::vector<RefValue>> refs(const std::string& prefix) const;

  // False also where the history is cut (a shallow clone).
  bool descends(const Oid& commit, const Oid& ancestor) const;
  // Three-way merge of trees by content; no rename detection, no drivers.
  Result<Merge> merge(const Oid& ancestor, const Oid& ours, const Oid& theirs) const;

  // Writes one pack and its index into `pack_dir` with `commit` and all that its tree reaches; no parents.
  Result<void> write_pack(const Oid& commit, const std::string& pack_dir) const;

  git_repository* handle() const { return repo_; }

 private:
  Repository(git_repository* repo, git_odb* odb, std::string dir) : repo_(repo), odb_(odb), dir_(std::move(dir)) {}
  git_repository* repo_ = nullptr;
  git_odb* odb_ = nullptr;
  std::string dir_;
  UniqueFd config_;  // what the library is told of the configuration
};

// The id that a blob of these bytes has; writes nothing.
Oid blob_id(std::string_view bytes);

}  // namespace h5i::git
