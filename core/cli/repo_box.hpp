// What the verbs of h5i-repo share: a box that is locked and idle, and its work seen through the gate.
#pragma once
#include <string>
#include <vector>

#include "core/cli/command.hpp"
#include "core/evidence/log.hpp"
#include "core/gate/handoff.hpp"
#include "core/gate/scan.hpp"
#include "core/git/repository.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {

struct IdleBox {
  session::UserDirs dirs;
  git::UserConfig user;
  session::BoxEntry entry;
  session::BoxLock lock;
  session::Manifest manifest;
  Json policy;
  git::Repository repo;  // the host repository, or the store of a detached box
  git::Identity who;     // what commits of h5i say
  UniqueFd dir, work;
  bool detached() const { return manifest.repo_git_dir.empty(); }
  std::string name() const { return manifest.name.str(); }
};

// Locks; refuses while something runs in it (box.busy). What a killed run or apply left is cleared up first.
Result<IdleBox> open_idle_box(const std::string& text, const std::string& verb);

struct Review {
  git::Tree base;
  gate::Scanned scanned;
  std::vector<git::Change> changes;   // base -> work tree
  std::vector<gate::Handoff> handoffs;
};
// Reads the work tree through the gate. Violations are in the result; refuse_violations() makes them an error.
Result<Review> review_box(const IdleBox& box, bool keep_links);
// Appends one `violation` record a path to the box's log, then the error that names them. Nothing when there are none.
Result<void> refuse_violations(const IdleBox& box, const Review& review);

// The gate refuses the path: its bytes may not be the box's own, so no verb shows them.
bool withheld(const Review& review, const std::string& path);
// Both sides of one change. Absent is "".
Result<std::string> content_before(const git::Repository& repo, const git::Change& c);
Result<std::string> content_after(const UniqueFd& work, const git::Change& c);
// A side of a diff larger than this is shown as binary.
constexpr uint64_t kMaxShown = 32u << 20;

Result<void> record(const IdleBox& box, const std::string& kind, Json body, evidence::Boundary boundary = evidence::Boundary::NONE);

struct Proposed {
  git::Oid commit, tree;
  size_t changes = 0;
  bool again = false;  // the same tree was proposed before
};
// Through the gate into a commit on the box's branch. Nothing changed: `changes` is 0 and no commit is made.
Result<Proposed> propose_box(IdleBox& box, const Review& review, const std::string& message);

// Paths of $WORK that a policy denies or makes private: the box's own git leaves them alone.
std::vector<std::string> names_apart(const Json& policy);

// Signs the head of the box's log and publishes it as refs/h5i/log/<agent>/<slug>: a commit with the seal and the host's
// public key, that travels with the repository. False, with a note in `why`, when the host could not sign: the log itself is
// whole then, its end is just not proven.
Result<bool> seal_and_publish(const IdleBox& box, std::string* why = nullptr);

// Branches, tags and remote branches of the host, for a box that may read the history; not those of other boxes.
Result<std::vector<git::RefValue>> readable_refs(const git::Repository& repo);

// JSON forms that several verbs print.
Json to_json(const git::Change& c);
Json to_json(const gate::Handoff& h);
Json to_json(const gate::Violation& v);
// The current directory; where it cannot be named, the root: a box of no repository can still be found.
std::string directory_or_root();
// Rules of the host's own git besides the tree's .gitignore files.
std::string host_ignore_rules(const std::string& common_dir, const git::UserConfig& user);
Error gate_error(const std::vector<gate::Violation>& violations, const std::string& what);
// The section "will run on your side", one line a file.
void print_handoffs(Context& ctx, const std::vector<gate::Handoff>& handoffs);

}  // namespace h5i::cli
