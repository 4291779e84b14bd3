// Finding a repository without a git program and without reading its configuration.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"
#include "core/session/box.hpp"

namespace h5i::session {
namespace {

constexpr uint64_t kPointerLimit = 8192;  // a `.git` file or `commondir` holds one path

bool is_directory(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}
bool exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

// What git itself asks of a git directory: HEAD, objects, refs; a linked work tree's has HEAD and commondir.
bool is_git_directory(const std::string& path) {
  if (!exists(path + "/HEAD")) return false;
  return exists(path + "/commondir") || (is_directory(path + "/objects") && is_directory(path + "/refs"));
}

Result<std::string> canonical_path(const std::string& path) {
  char buffer[PATH_MAX];
  if (!::realpath(path.c_str(), buffer)) return sys_error("resolve " + printable(path));
  return std::string(buffer);
}

Result<std::string> read_pointer(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return sys_error("open " + printable(path));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode))
    return make_error(Errc::INVALID, "not a regular file: " + printable(path));
  std::string text = H5I_TRY(os::read_all(fd, kPointerLimit));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.find('\0') != std::string::npos) return make_error(Errc::INVALID, "not a path in " + printable(path));
  return text;
}

std::string joined(const std::string& base, const std::string& path) {
  return !path.empty() && path[0] == '/' ? path : base + "/" + path;
}

Error redirected(const std::string& what, const std::string& evidence, const std::string& next) {
  return make_error(Errc::GIT_REDIRECTED, what, printable(evidence), next);
}

// A linked work tree's git directory is one of its repository's own, and names the work tree's .git file. Without that
// anybody's folder could name any repository of the user's, and what runs in its box would get that one's files.
Result<void> check_linked(const RepoLocation& at) {
  if (at.git_dir.substr(0, at.git_dir.rfind('/')) != at.common_dir + "/worktrees")
    return redirected("commondir names a repository that this git directory does not belong to", at.git_dir + " is not in " + at.common_dir + "/worktrees", "use the other repository itself");
  if (at.work_dir.empty()) return {};
  auto back = read_pointer(at.git_dir + "/gitdir");
  auto named = back ? canonical_path(joined(at.git_dir, *back)) : std::move(back);
  auto ours = canonical_path(at.work_dir + "/.git");
  if (!named || !ours || *named != *ours)
    return redirected("the repository knows no work tree here", at.git_dir + "/gitdir does not name " + at.work_dir + "/.git", "git worktree repair, if you moved it");
  return {};
}

Result<RepoLocation> location(const std::string& git_dir, const std::string& work_dir) {
  RepoLocation at;
  at.git_dir = H5I_TRY(canonical_path(git_dir));
  at.common_dir = at.git_dir;
  at.work_dir = work_dir;
  if (exists(at.git_dir + "/commondir")) {
    std::string common = H5I_TRY(read_pointer(at.git_dir + "/commondir"));
    at.common_dir = H5I_TRY(canonical_path(joined(at.git_dir, common)));
    if (!is_git_directory(at.common_dir))
      return make_error(Errc::GIT_NO_REPOSITORY, "the common git directory is not one", printable(at.common_dir));
    if (exists(at.common_dir + "/commondir")) return redirected("the common git directory names another one", at.common_dir + "/commondir", "use the other repository itself");
    H5I_TRY(check_linked(at));
  } else if (!work_dir.empty() && at.git_dir.ends_with("/.git") && at.git_dir != (work_dir == "/" ? "" : work_dir) + "/.git") {
    return redirected(".git leads to the repository of another work tree", at.git_dir, "cd " + printable(at.git_dir.substr(0, at.git_dir.size() - 5)));
  }
  return at;
}

Error no_repository(const std::string& start, std::string evidence) {
  return make_error(Errc::GIT_NO_REPOSITORY, "no repository at or above " + printable(start), std::move(evidence));
}

}  // namespace

Result<RepoLocation> find_repository(const std::string& start) {
  auto resolved = canonical_path(start);
  if (!resolved) return no_repository(start, resolved.error().evidence);
  for (std::string at = *resolved;; at = at.substr(0, at.rfind('/'))) {
    std::string dot_git = at + "/.git";
    struct stat st{};
    if (::stat(dot_git.c_str(), &st) == 0) {
      if (S_ISDIR(st.st_mode) && is_git_directory(dot_git)) return location(dot_git, at.empty() ? "/" : at);
      if (S_ISREG(st.st_mode)) {
        auto pointer = read_pointer(dot_git);
        if (!pointer) return std::move(pointer).error();
        constexpr std::string_view kPrefix = "gitdir: ";
        if (!std::string_view(*pointer).starts_with(kPrefix))
          return no_repository(start, printable(dot_git) + " is not a git directory's pointer");
        std::string target = joined(at, pointer->substr(kPrefix.size()));
        if (!is_git_directory(target)) return no_repository(start, printable(dot_git) + " points to " + printable(target));
        return location(target, at.empty() ? "/" : at);
      }
    }
    if (!at.empty() && is_git_directory(at)) return location(at, "");
    if (at.empty()) break;
  }
  return no_repository(start, "no .git in any folder up to /");
}

}  // namespace h5i::session
