#include "core/cli/create_source.hpp"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/cli/caller.hpp"
#include "core/git/fetch.hpp"
#include "core/git/source.hpp"

namespace h5i::cli {
namespace {

bool is_directory(const std::string& path) {
  struct stat st{};
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

Result<void> at_most_one(const SourceRequest& r) {
  int n = !r.source.empty() + !r.pull.empty() + r.empty;
  if (n > 1) return make_error(Errc::USAGE, "more than one source was named", "SOURCE, --pr and --new exclude each other", "h5i box create --help");
  if (r.with_changes && (n > 0 || !r.from.empty()))
    return make_error(Errc::USAGE, "--with-changes carries the changes of this work tree", "it goes with no other source and no --from", "h5i box create --help");
  if (!r.from.empty() && (r.empty || !r.pull.empty()))
    return make_error(Errc::USAGE, "--from does not go with --new and --pr", "", "h5i box create --help");
  return {};
}

Result<SourcePlan> from_revision(const SourceRequest& r, const git::UserConfig& user, const std::string& revision) {
  SourcePlan p;
  p.kind = SourceKind::REVISION;
  p.location = H5I_TRY(session::find_repository(r.cwd));
  git::Repository repo = H5I_TRY(open_host_repository(*p.location, user));
  git::Head head = H5I_TRY(repo.head(p.location->git_dir));
  p.from = revision;
  if (revision.empty() && !head.commit)
    return make_error(Errc::GIT_UNBORN, "the repository has no commit yet", printable(p.location->common_dir), "make a first commit, or h5i box create --new");
  p.commit = revision.empty() ? *head.commit : H5I_TRY(repo.resolve_commit(revision, p.location->git_dir));
  // The parent is the branch that the result goes back to: the one that is checked out.
  p.parent_branch = head.branch;
  if (!revision.empty()) {
    auto named = repo.ref("refs/heads/" + revision);
    if (named && *named) p.parent_branch = "refs/heads/" + revision;
  }
  return p;
}

Result<SourcePlan> from_pull(const SourceRequest& r, const git::UserConfig& user) {
  if (r.pull.empty() || r.pull.size() > 9 || !std::all_of(r.pull.begin(), r.pull.end(), [](char c) { return c >= '0' && c <= '9'; }) || r.pull[0] == '0')
    return make_error(Errc::USAGE, "--pr takes a number", printable(r.pull), "h5i box create --pr 7");
  SourcePlan p;
  p.kind = SourceKind::PULL_REQUEST;
  p.location = H5I_TRY(session::find_repository(r.cwd));
  git::Repository repo = H5I_TRY(open_host_repository(*p.location, user));
  p.url = H5I_TRY(git::remote_url(p.location->common_dir, "origin"));
  // git allows a plain path as a remote; here it is spelled as the URL that it means.
  if (!git::looks_like_url(p.url) && is_directory(p.url[0] == '/' ? p.url : p.location->common_dir + "/" + p.url)) {
    char real[PATH_MAX];
    if (!realpath((p.url[0] == '/' ? p.url : p.location->common_dir + "/" + p.url).c_str(), real)) return sys_error("resolve " + printable(p.url));
    p.url = "file://" + std::string(real);
  }
  H5I_TRY(git::check_url(p.url));
  p.pull = r.pull;
  p.suggested_name = "pr-" + r.pull;
  return p;
}

}  // namespace

git::UserConfig user_config() { return git::UserConfig::of(environment("HOME"), environment("XDG_CONFIG_HOME")); }

Result<git::Repository> open_host_repository(const session::RepoLocation& at, const git::UserConfig& user) {
  std::string sudo = environment("SUDO_UID");
  long sudo_uid = geteuid() == 0 && !sudo.empty() ? strtol(sudo.c_str(), nullptr, 10) : -1;
  H5I_TRY(git::check_owner(at.common_dir, at.work_dir, geteuid(), sudo_uid, user));
  return git::Repository::open(at.common_dir);
}

Json SourcePlan::for_people() const {
  switch (kind) {
    case SourceKind::REVISION: return json::Object{{"kind", "revision"}, {"from", from.empty() ? "HEAD" : from}};
    case SourceKind::PULL_REQUEST: return json::Object{{"kind", "pull-request"}, {"number", pull}, {"url", url}};
    case SourceKind::DIRECTORY: return json::Object{{"kind", "directory"}, {"path", directory}};
    case SourceKind::URL: return json::Object{{"kind", "url"}, {"url", url}, {"from", from}};
    case SourceKind::EMPTY: return json::Object{{"kind", "new"}};
  }
  return {};
}

Result<SourcePlan> plan_source(const SourceRequest& r, const git::UserConfig& user) {
  H5I_TRY(at_most_one(r));
  SourcePlan p;
  if (r.empty) {
    p.kind = SourceKind::EMPTY;
    p.suggested_name = "new";
    return p;
  }
  if (!r.pull.empty()) return from_pull(r, user);
  if (r.source.empty()) return from_revision(r, user, r.from);
  if (r.source[0] == '-') return make_error(Errc::GIT_SOURCE, "source refused: " + printable(r.source), "it begins with '-', as an option does");
  if (git::looks_like_url(r.source)) {
    H5I_TRY(git::check_url(r.source));
    p.kind = SourceKind::URL;
    p.url = r.source;
    p.from = r.from;
    p.suggested_name = git::name_from(r.source);
    return p;
  }
  std::string path = r.source[0] == '/' ? r.source : r.cwd + "/" + r.source;
  if (is_directory(path)) {
    if (!r.from.empty()) return make_error(Errc::USAGE, "--from does not go with a directory", "its files are taken as they are", "h5i box create --help");
    char real[PATH_MAX];
    if (!realpath(path.c_str(), real)) return sys_error("resolve " + printable(path));
    p.kind = SourceKind::DIRECTORY;
    p.directory = real;
    p.suggested_name = git::name_from(real);
    return p;
  }
  if (!r.from.empty()) return make_error(Errc::GIT_SOURCE, "no such source: " + printable(r.source), "neither a URL nor a directory", "h5i box create --name NAME names the box");
  auto revision = from_revision(r, user, r.source);
  if (!revision && revision.error().code == Errc::GIT_REVISION)
    return make_error(Errc::GIT_SOURCE, "no such source: " + printable(r.source), "neither a URL, a directory nor a revision of this repository",
                      "h5i box create --name NAME names the box");
  return revision;
}

Result<git::Oid> fetch_source(const SourcePlan& plan, const git::Repository& repo, const Step& step) {
  auto progress = [&](const git::Arrived& a) {
    step("fetching: " + std::to_string(a.objects) + " of " + std::to_string(a.of) + " objects, " + std::to_string(a.bytes >> 10) + " KiB");
  };
  step("connecting to " + plan.url);
  auto has = [](const std::vector<git::RemoteHead>& all, const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const git::RemoteHead& h) { return h.name == name; });
  };
  if (plan.kind == SourceKind::PULL_REQUEST) {
    auto heads = H5I_TRY(git::fetch(repo, plan.url, [&](const std::vector<git::RemoteHead>& all) -> Result<std::vector<std::string>> {
      for (const char* prefix : {"refs/pull/", "refs/merge-requests/", "refs/pull-requests/"})
        for (const char* end : {"/head", "/from"})
          if (has(all, prefix + plan.pull + end)) return std::vector<std::string>{prefix + plan.pull + end};
      return make_error(Errc::GIT_REVISION, "the remote origin has no pull request " + plan.pull, printable(plan.url), "check the number");
    }, progress));
    return heads[0].target;
  }
  auto heads = H5I_TRY(git::fetch(repo, plan.url, [&](const std::vector<git::RemoteHead>& all) -> Result<std::vector<std::string>> {
    std::vector<std::string> out;
    for (const git::RemoteHead& h : all)
      if (h.name == "HEAD" || h.name.rfind("refs/heads/", 0) == 0 || (h.name.rfind("refs/tags/", 0) == 0 && h.name.find("^{}") == std::string::npos)) out.push_back(h.name);
    if (out.empty()) return make_error(Errc::GIT_UNBORN, "the source has no commit", printable(plan.url));
    return out;
  }, progress));
  git::Identity who;
  std::optional<git::Oid> start;
  for (const git::RemoteHead& h : heads) {
    if (h.name == "HEAD") {
      start = h.target;
      continue;
    }
    std::string local = h.name.rfind("refs/heads/", 0) == 0 ? "refs/remotes/origin/" + h.name.substr(11) : h.name;
    H5I_TRY(repo.set_ref(local, h.target, std::nullopt, who, "h5i box create"));
  }
  if (plan.from.empty()) {
    if (!start) return make_error(Errc::GIT_REVISION, "the source does not say which branch is its own", printable(plan.url), "--from BRANCH");
    // HEAD may name a tag object of a hostile server; only a commit is a base.
    H5I_TRY(repo.commit(*start));
    return *start;
  }
  auto branch = repo.resolve_commit("refs/remotes/origin/" + plan.from, repo.directory());
  return branch ? std::move(branch) : repo.resolve_commit(plan.from, repo.directory());
}

}  // namespace h5i::cli
