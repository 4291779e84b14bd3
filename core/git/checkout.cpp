#include "core/git/checkout.hpp"

#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

constexpr uint64_t kMaxBlob = 2ull << 30;
constexpr size_t kShare = 256;       // entries that a thread takes at once
constexpr unsigned kMaxThreads = 8;

// The directory of the entry that is being written; entries come sorted, so it is nearly always the last one's.
class Place {
 public:
  explicit Place(const UniqueFd& work) : work_(work) {}

  // The directory of `path`, made when missing; the last component to `name`.
  Result<const UniqueFd*> parent(const std::string& path, std::string* name) {
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
    *name = slash == std::string::npos ? path : path.substr(slash + 1);
    H5I_TRY(check(path));
    if (!at_ || folder != folder_) {
      at_ = H5I_TRY(os::make_directories_beneath(work_, folder, 0777));
      folder_ = folder;
    }
    return &at_;
  }

 private:
  static Result<void> check(const std::string& path) {
    for (size_t i = 0; i <= path.size();) {
      size_t slash = std::min(path.find('/', i), path.size());
      if (!plain_component(std::string_view(path).substr(i, slash - i)))
        return make_error(Errc::PATH_ESCAPE, "the tree holds a path that is not written", printable(path));
      i = slash + 1;
    }
    return {};
  }
  const UniqueFd& work_;
  UniqueFd at_;
  std::string folder_;
};

Result<void> write_file(const UniqueFd& dir, const std::string& name, std::string_view bytes, uint32_t mode, int64_t mtime, struct stat* st) {
  UniqueFd fd = H5I_TRY(os::open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL, mode == kExecutable ? 0777 : 0666));
  H5I_TRY(os::write_all(fd, bytes));
  timespec times[2] = {{mtime / 1000000000, mtime % 1000000000}, {mtime / 1000000000, mtime % 1000000000}};
  if (futimens(fd.get(), times) != 0) return sys_error("set the time of " + printable(name));
  if (fstat(fd.get(), st) != 0) return sys_error("stat " + printable(name));
  return {};
}

Result<void> write_entry(const Repository& repo, Place& place, const Entry& e, int64_t mtime, States& states) {
  std::string name;
  const UniqueFd& dir = *H5I_TRY(place.parent(e.path, &name));
  struct stat st{};
  uint32_t mode = plain_mode(e.mode);
  switch (mode) {
    case kGitlink:
      if (mkdirat(dir.get(), name.c_str(), 0777) != 0 && errno != EEXIST) return sys_error("make directory " + printable(e.path));
      return {};
    case kLink: {
      std::string target = H5I_TRY(repo.read_blob(e.oid, 4095));
      if (target.empty() || target.find('\0') != std::string::npos)
        return make_error(Errc::CORRUPT, "the tree holds a symbolic link that cannot be made", printable(e.path));
      if (symlinkat(target.c_str(), dir.get(), name.c_str()) != 0) return sys_error("make link " + printable(e.path));
      if (fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return sys_error("stat " + printable(e.path));
      break;
    }
    case kFile:
    case kExecutable: {
      std::string bytes = H5I_TRY(repo.read_blob(e.oid, kMaxBlob));
      H5I_TRY(write_file(dir, name, bytes, mode, mtime, &st));
      break;
    }
    default: return make_error(Errc::CORRUPT, "the tree holds an entry of an unknown kind", printable(e.path));
  }
  states.push_back(state_of(e.path, e.oid, mode, st));
  return {};
}

Result<void> remove_entry(const UniqueFd& work, const Change& c) {
  size_t slash = c.path.rfind('/');
  auto dir = os::open_directory_beneath(work, slash == std::string::npos ? "" : c.path.substr(0, slash));
  if (!dir) return dir.error().sys_errno == ENOENT ? Result<void>{} : Result<void>(std::move(dir).error());
  std::string name = slash == std::string::npos ? c.path : c.path.substr(slash + 1);
  int flags = c.old_mode == kGitlink ? AT_REMOVEDIR : 0;
  if (unlinkat(dir->get(), name.c_str(), flags) != 0 && errno != ENOENT) return sys_error("remove " + printable(c.path));
  // Directories that this emptied go too, as git does; one with anything left stays.
  for (std::string folder = slash == std::string::npos ? "" : c.path.substr(0, slash); !folder.empty();) {
    size_t up = folder.rfind('/');
    auto above = os::open_directory_beneath(work, up == std::string::npos ? "" : folder.substr(0, up));
    if (!above || unlinkat(above->get(), (up == std::string::npos ? folder : folder.substr(up + 1)).c_str(), AT_REMOVEDIR) != 0) break;
    folder = up == std::string::npos ? "" : folder.substr(0, up);
  }
  return {};
}

// Inflating and checking a blob takes about as long as making its file, so the tree is shared out among the processors.
// The library's handles belong to one thread each: every thread but the caller's opens the repository again.
class Checkout {
 public:
  Checkout(const Repository& repo, const Tree& tree, const UniqueFd& work, int64_t mtime)
      : repo_(repo), tree_(tree), work_(work), mtime_(mtime), shares_((tree.size() + kShare - 1) / kShare) {}

  Result<States> run() {
    std::vector<std::thread> helpers;
    size_t wanted = std::min<size_t>({std::max(1u, std::thread::hardware_concurrency()), kMaxThreads, shares_.size()});
    try {
      while (helpers.size() + 1 < wanted) helpers.emplace_back([this] { help(); });
    } catch (const std::system_error&) {  // no more threads for this user: those that are there do it
    }
    write_shares(repo_);
    for (std::thread& t : helpers) t.join();
    States all;
    all.reserve(tree_.size());
    for (std::optional<Result<States>>& share : shares_) {
      if (!share) return make_error(Errc::INTERNAL, "a part of the tree was not written");  // shares are taken in order: a failure comes first
      States states = H5I_TRY(std::move(*share));
      std::move(states.begin(), states.end(), std::back_inserter(all));
    }
    return all;
  }

 private:
  void help() {
    // One that cannot be opened again is no failure: the caller's thread writes all that nobody took.
    if (auto repo = Repository::open(repo_.directory())) write_shares(*repo);
  }
  void write_shares(const Repository& repo) {
    Place place(work_);
    for (size_t i; !failed_ && (i = next_++) < shares_.size();) {
      shares_[i].emplace(write_share(repo, place, i * kShare));
      if (!*shares_[i]) failed_ = true;
    }
  }
  Result<States> write_share(const Repository& repo, Place& place, size_t from) const {
    States states;
    size_t to = std::min(from + kShare, tree_.size());
    states.reserve(to - from);
    for (size_t i = from; i < to; i++) H5I_TRY(write_entry(repo, place, tree_[i], mtime_, states));
    return states;
  }

  const Repository& repo_;
  const Tree& tree_;
  const UniqueFd& work_;
  const int64_t mtime_;
  std::vector<std::optional<Result<States>>> shares_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace

bool plain_component(std::string_view p) {
  return !p.empty() && p != "." && p != ".." && p.find('/') == std::string_view::npos && p.find('\0') == std::string_view::npos &&
         !(p.size() == 4 && strncasecmp(p.data(), ".git", 4) == 0);
}

Result<States> checkout(const Repository& repo, const Tree& tree, const UniqueFd& work, int64_t mtime) {
  return Checkout(repo, tree, work, mtime).run();
}

Result<void> update_checkout(const Repository& repo, const std::vector<Change>& changes, const UniqueFd& work, int64_t mtime, States& states) {
  for (const Change& c : changes)
    if (c.old_mode != 0) H5I_TRY(remove_entry(work, c));
  auto touched = [&](const std::string& path) {
    auto it = std::lower_bound(changes.begin(), changes.end(), path, [](const Change& c, const std::string& p) { return c.path < p; });
    return it != changes.end() && it->path == path;
  };
  std::erase_if(states, [&](const FileState& s) { return touched(s.path); });
  Place place(work);
  for (const Change& c : changes) {
    if (c.new_mode == 0) continue;
    // What a run of this that was killed left half written goes first; removing is not following.
    std::string name;
    const UniqueFd& dir = *H5I_TRY(place.parent(c.path, &name));
    if (c.new_mode != kGitlink && unlinkat(dir.get(), name.c_str(), 0) != 0 && errno != ENOENT) return sys_error("replace " + printable(c.path));
    H5I_TRY(write_entry(repo, place, {c.path, c.new_mode, c.new_oid}, mtime, states));
  }
  std::sort(states.begin(), states.end(), [](const FileState& a, const FileState& b) { return a.path < b.path; });
  return {};
}

}  // namespace h5i::git
