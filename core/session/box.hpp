// A box on disk: where its files are, its manifest, its lock. One folder a box, below the repository's git directory or
// (for boxes without a repository) below the user's state directory.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::session {

enum class BoxState { CREATED, RUNNING, IDLE, PROPOSED, APPLIED, ABORTED };
std::string_view state_name(BoxState s);  // "created" ...
std::optional<BoxState> state_from(std::string_view name);

// Absolute paths; the folder's parent is 0700 (a box must not leave a set-user-id file where others reach it).
struct BoxPaths {
  std::string dir;  // <gitdir>/h5i/boxes/<agent>/<slug>
  std::string manifest() const { return dir + "/manifest.json"; }
  std::string policy() const { return dir + "/policy.resolved.json"; }
  std::string log() const { return dir + "/log.jsonl"; }
  std::string blobs() const { return dir + "/blobs"; }
  std::string spool() const { return dir + "/spool"; }
  std::string work() const { return dir + "/work"; }
  std::string git() const { return dir + "/git"; }        // the box's private git directory, outside $WORK
  std::string priv() const { return dir + "/private"; }   // fs.private caches
  std::string lock() const { return dir + "/lock"; }
  std::string control() const { return dir + "/control"; } // socket of a running command, see control.hpp
  std::string live() const { return dir + "/live.json"; } // session, pids and start times of a running command
};

struct Manifest {                // schema "h5i.box/1"
  BoxName name;
  BoxState state = BoxState::CREATED;
  std::string created;           // RFC 3339
  std::string repo_git_dir;      // common git directory of the host repository; empty: detached box
  std::string repo_work_dir;     // its work tree at create; may be empty
  std::string parent_branch;     // refs/heads/...; empty when HEAD was detached
  std::string branch;            // refs/heads/h5i/box/<agent>/<slug>
  std::string base_ref;          // refs/h5i/base/<agent>/<slug>
  std::string base_commit;       // hex oid; empty: no commit (a directory or --new)
  std::string base_tree;         // hex oid of the tree that was checked out
  std::string proposed_commit;   // hex oid of the last proposal; empty
  std::string applied_commit;    // hex oid; empty
  Json source;                   // what create was asked for, for people
  std::string profile;           // name of the profile
  std::string tier;              // pinned tier id
  std::string tier_from;         // "flag", "profile", "environment", "auto"
  PolicyDigest policy_digest;
  std::vector<std::string> object_dirs;  // alternates that the box may read, absolute
  std::vector<std::string> placeholders; // paths relative to $WORK that h5i made for fs.deny
  uint32_t host_uid = 0;         // as root: the unprivileged id that the workload runs as; else the owner's
  uint32_t host_gid = 0;
  std::string last_session;      // id of the newest run

  Json to_json() const;
  static Result<Manifest> from_json(const Json& v);
};

// Reads with a size limit through a descriptor of the box's folder, without following links.
Result<Manifest> load_manifest(const BoxPaths& paths);
// Atomic: temporary file in the same folder, fsync, rename, fsync of the folder. Caller holds the lock.
Result<void> save_manifest(const BoxPaths& paths, const Manifest& m);
// Reads policy.resolved.json, checks that its digest is the manifest's. POLICY_DIGEST when not.
Result<Json> load_policy(const BoxPaths& paths, const Manifest& m);

// flock(2) on the lock file. BUSY (box.busy) with the holder's pid and verb when somebody has it.
class BoxLock {
 public:
  static Result<BoxLock> acquire(const BoxPaths& paths, std::string_view verb);
  BoxLock(BoxLock&&) noexcept = default;
  BoxLock& operator=(BoxLock&&) = delete;
  // Unlocks by name: a child that is about to exec still holds a copy of the descriptor for a moment after vfork returned.
  ~BoxLock();

 private:
  BoxLock() = default;
  UniqueFd fd_;
};

// Finds a repository's common git directory by walking up from `start` without running git or reading its config:
// a `.git` directory, a `.git` file's gitdir and its commondir. NOT a judgement about the repository's contents.
struct RepoLocation {
  std::string git_dir;     // of this work tree
  std::string common_dir;  // where refs, objects and h5i/ are
  std::string work_dir;    // empty when bare
};
Result<RepoLocation> find_repository(const std::string& start);

// Directories of the invoking user. NO_HOME names the variable that would help.
struct UserDirs {
  std::string home, config, state, cache, runtime;  // .../h5i each, but home
  static Result<UserDirs> from_environment();
};

// Makes a directory of h5i's own and its missing parents, mode 0700 whatever the umask; DENIED when it is somebody else's.
// An existing one that others could enter is closed to them.
Result<UniqueFd> make_private_directory(const std::string& path);

// All boxes that are visible from `cwd`: those of the repository around it and the detached ones of the user.
struct BoxEntry {
  BoxName name;
  BoxPaths paths;
};
Result<std::vector<BoxEntry>> list_boxes(const std::string& cwd, const UserDirs& dirs);
// By "agent/slug", or by slug alone when only one box has it (BOX_AMBIGUOUS lists the candidates).
Result<BoxEntry> find_box(std::string_view text, const std::string& cwd, const UserDirs& dirs);

}  // namespace h5i::session
