// Where a new box's content comes from: judged first, fetched only when everything else was checked.
#pragma once
#include <optional>
#include <string>

#include "core/git/repository.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {

struct SourceRequest {
  std::string source;  // the positional argument
  std::string from;    // --from
  std::string pull;    // --pr
  bool empty = false;  // --new
  bool with_changes = false;
  std::string cwd;
};

enum class SourceKind { REVISION, PULL_REQUEST, DIRECTORY, URL, EMPTY };

// What can be known without writing anything. A box of the kinds REVISION and PULL_REQUEST belongs to the repository
// `location`; the others are detached and have a store of their own.
struct SourcePlan {
  SourceKind kind = SourceKind::REVISION;
  std::optional<session::RepoLocation> location;
  std::optional<git::Oid> commit;   // REVISION
  std::string parent_branch;        // REVISION, when the revision is where a branch is checked out
  std::string url;                  // URL, PULL_REQUEST
  std::string directory;            // DIRECTORY, absolute
  std::string pull;                 // PULL_REQUEST
  std::string from;
  std::string suggested_name;       // empty: none
  bool detached() const { return kind != SourceKind::REVISION && kind != SourceKind::PULL_REQUEST; }
  Json for_people() const;          // the manifest's `source`
};

Result<SourcePlan> plan_source(const SourceRequest& request, const git::UserConfig& user);

// The repository that a plan's box belongs to, opened after owner and format were checked.
Result<git::Repository> open_host_repository(const session::RepoLocation& at, const git::UserConfig& user);
git::UserConfig user_config();

// What is being done now, for who waits.
using Step = std::function<void(const std::string&)>;

// Fetches for URL and PULL_REQUEST into `repo`; the commit to begin from.
Result<git::Oid> fetch_source(const SourcePlan& plan, const git::Repository& repo, const Step& step);

}  // namespace h5i::cli
