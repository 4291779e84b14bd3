#include "core/gate/scan.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"
#include "core/gate/ignore.hpp"
#include "core/gate/nested.hpp"
#include "core/os/beneath.hpp"

namespace h5i::gate {
namespace {

constexpr uint64_t kMaxIgnoreFile = 1u << 20;
// A write that had begun before the first look shows in no time stamp after it: the kernel stamps first and copies then.
// What changed this recently is read a second time, once it has had this long to settle.
constexpr int64_t kSettleNs = 50'000'000;

bool same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_mode == b.st_mode && a.st_size == b.st_size && git::mtime_ns(a) == git::mtime_ns(b) &&
         git::ctime_ns(a) == git::ctime_ns(b);
}

// What an error of opening or reading a path means for the gate.
Violation moved(const Error& e, const std::string& path) {
  switch (e.sys_errno) {
    case ENOENT: return {Errc::GATE_VANISHED, path, "it was there when its directory was listed"};
    case EXDEV: return {Errc::GATE_SPECIAL, path, "a mount point"};
    case ELOOP: return {Errc::GATE_SYMLINK_PARENT, path, "a directory became a symbolic link"};
    case EACCES:
    case EPERM: return {Errc::GATE_PATH, path, "it cannot be read: " + e.evidence};
    default: return {Errc::GATE_CHANGED, path, e.what + ": " + e.evidence};
  }
}

class Walk {
 public:
  Walk(const UniqueFd& work, const ScanOptions& o) : work_(work), o_(o), rules_(o.limits.ignore_steps) {
    rules_.add("", o.ignore_rules);
    for (const std::string& p : o.placeholders) placeholders_.insert(p);
    for (const std::string& p : o.private_paths) private_.insert(p);
  }

  Result<Scanned> run() {
    H5I_TRY(directory(work_, "", 0, false));
    if (!stopped_) {
      missing_gitlinks();
      keep_private_of_base();
    }
    auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    std::sort(out_.tree.begin(), out_.tree.end(), by_path);
    if (!stopped_) {
      links();
      repositories_without_dot_git();
      H5I_TRY(hard_links());
      read_files_are_still_the_same();
    }
    std::sort(out_.states.begin(), out_.states.end(), by_path);
    std::stable_sort(out_.violations.begin(), out_.violations.end(), by_path);
    return std::move(out_);
  }

 private:
  void refuse(Violation v) {
    out_.violations.push_back(std::move(v));
    if (out_.violations.size() >= kMaxViolations) stopped_ = true;
  }
  void refuse(Errc rule, const std::string& path, std::string detail) { refuse(Violation{rule, path, std::move(detail)}); }
  // A limit ends the walk: what lies beyond it is not looked at.
  void stop(const std::string& path, const std::string& detail) {
    refuse(Errc::GATE_LIMIT, path, detail);
    stopped_ = true;
  }
  bool tracked(const std::string& path, bool is_directory) const { return is_directory ? git::has_below(o_.base, path) || gitlink(path) : git::find_entry(o_.base, path) != nullptr; }
  const git::Entry* gitlink(const std::string& path) const {
    const git::Entry* e = git::find_entry(o_.base, path);
    return e && git::plain_mode(e->mode) == git::kGitlink ? e : nullptr;
  }
  bool base_had(const std::string& path) const { return git::find_entry(o_.base, path) || git::has_below(o_.base, path); }
  void ignored(const std::string& path) {
    out_.ignored_count++;
    if (out_.ignored.size() < kMaxListed) out_.ignored.push_back(path);
  }

  // ---- directories

  Result<void> directory(const UniqueFd& dir, const std::string& path, uint64_t depth, bool in_ignored) {
    struct stat before{};
    if (fstat(dir.get(), &before) != 0) return sys_error("stat " + printable(path));
    if (path.empty()) device_ = before.st_dev;
    auto listed = os::list_directory(dir);
    if (!listed) {
      if (path.empty()) return std::move(listed).error();
      refuse(moved(listed.error(), path));
      return {};
    }
    // By name, so that the same tree always gives the same answer, whatever order the file system has.
    std::sort(listed->begin(), listed->end(), [](const os::DirectoryEntry& a, const os::DirectoryEntry& b) { return a.name < b.name; });
    if (nested_repository(dir, path, *listed)) return {};
    size_t outer_rules = rules_.size();
    if (o_.ignore) read_ignore_file(dir, path);
    for (const os::DirectoryEntry& e : *listed) {
      if (stopped_) break;
      H5I_TRY(entry(dir, path.empty() ? e.name : path + "/" + e.name, e.name, depth, in_ignored));
    }
    rules_.resize(outer_rules);
    struct stat after{};
    if (fstat(dir.get(), &after) != 0 || !same(before, after)) refuse(Errc::GATE_CHANGED, path.empty() ? "." : path, "the directory changed while it was read");
    return {};
  }

  // `.git` below the top. What git takes for a repository without one is judged when the whole tree is known.
  bool nested_repository(const UniqueFd& dir, const std::string& path, const std::vector<os::DirectoryEntry>& entries) {
    auto has = [&](std::string_view name) { return std::any_of(entries.begin(), entries.end(), [&](const os::DirectoryEntry& e) { return e.name == name; }); };
    if (path.empty()) {
      if (has(".git")) root_git(dir);
      else if (o_.root_git == RootGit::EMPTY_DIRECTORY) refuse(Errc::GIT_REDIRECTED, ".git", "the empty directory that h5i made is gone");
    } else if (has(".git")) {
      refuse(Errc::GATE_NESTED_REPO, path, "a repository of its own: " + printable(path) + "/.git");
      return true;
    }
    return false;
  }

  void root_git(const UniqueFd& dir) {
    if (o_.root_git == RootGit::SKIP) return;
    auto git = os::open_directory_beneath(dir, ".git");
    if (!git) return refuse(Errc::GIT_REDIRECTED, ".git", "it is not the empty directory that h5i made");
    auto entries = os::list_directory(*git);
    if (!entries || !entries->empty()) refuse(Errc::GIT_REDIRECTED, ".git", "it is not empty; nothing in it was read");
  }

  void read_ignore_file(const UniqueFd& dir, const std::string& path) {
    // A link or anything else that is no file is no ignore file; the walk judges it like any other path.
    auto text = os::read_file_beneath(dir, ".gitignore", kMaxIgnoreFile);
    if (text) rules_.add(path, *text);
  }

  // ---- one entry

  Result<void> entry(const UniqueFd& dir, const std::string& path, const std::string& name, uint64_t depth, bool in_ignored) {
    if (path == ".git") return {};  // judged by root_git()
    struct stat st{};
    if (fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      refuse(moved(sys_error("stat"), path));
      return {};
    }
    bool is_directory = S_ISDIR(st.st_mode);
    if (hidden(dir, path, name, st)) return {};
    bool tracked_path = tracked(path, is_directory);
    // A tracked file is taken whatever the rules say; below a tracked directory they count.
    bool is_ignored = o_.ignore && (in_ignored || ((is_directory || !tracked_path) && rules_.ignored(path, is_directory)));
    if (rules_.exhausted()) {
      stop(path, "the ignore rules of the tree take too long to decide, or are too many");
      return {};
    }
    if (is_ignored && !tracked_path) {
      ignored(path);
      return {};
    }
    if (auto v = check_name(name, path, base_had(path))) {
      refuse(*v);
      return {};
    }
    if (path.size() > kMaxPath) {
      refuse(Errc::GATE_NAME, path, "a path of more than 4096 bytes");
      return {};
    }
    if (auto v = check_mode(st.st_mode, path)) {
      refuse(*v);
      return {};
    }
    if (st.st_dev != device_) {
      // Another device is no other mount yet: overlayfs gives the files of its layers numbers of their own.
      auto there = os::open_beneath(dir, name, O_PATH, 0, true);
      if (!there) {
        refuse(moved(there.error(), path));
        return {};
      }
    }
    if (const git::Entry* submodule = gitlink(path)) {
      check_gitlink(dir, *submodule, name, st);
      return {};
    }
    if (is_directory) return enter(dir, path, name, depth, is_ignored);
    if (out_.tree.size() >= o_.limits.files) {
      stop(path, "more than " + std::to_string(o_.limits.files) + " files");
      return {};
    }
    if (S_ISLNK(st.st_mode)) link(dir, path, name, st);
    else file(dir, path, name, st);
    return {};
  }

  bool hidden(const UniqueFd& dir, const std::string& path, const std::string& name, const struct stat& st) {
    if (private_.count(path)) {
      out_.hidden.push_back(path);
      return true;
    }
    if (!placeholders_.count(path) || base_had(path)) return false;
    // Only as h5i made it: at a tier that does not hold fs.deny a box can fill it, and then it is a change like any other.
    bool empty = S_ISREG(st.st_mode) && st.st_size == 0;
    if (S_ISDIR(st.st_mode)) {
      auto below = os::open_directory_beneath(dir, name);
      auto entries = below ? os::list_directory(*below) : Result<std::vector<os::DirectoryEntry>>(below.error());
      empty = entries && entries->empty();
    }
    if (empty) out_.hidden.push_back(path);
    return empty;
  }

  Result<void> enter(const UniqueFd& dir, const std::string& path, const std::string& name, uint64_t depth, bool in_ignored) {
    if (depth + 1 > o_.limits.depth) {
      refuse(Errc::GATE_LIMIT, printable(path, {.limit = 400}), "nested deeper than " + std::to_string(o_.limits.depth) + " directories");
      return {};
    }
    auto below = os::open_directory_beneath(dir, name, true);
    if (!below) {
      refuse(moved(below.error(), path));
      return {};
    }
    return directory(*below, path, depth + 1, in_ignored);
  }

  void check_gitlink(const UniqueFd& dir, const git::Entry& base, const std::string& name, const struct stat& st) {
    gitlinks_seen_.insert(base.path);
    if (!S_ISDIR(st.st_mode)) return refuse(Errc::GATE_GITLINK, base.path, "the submodule was replaced");
    if (!o_.populated_submodules) {
      auto below = os::open_directory_beneath(dir, name, true);
      if (!below) return refuse(moved(below.error(), base.path));
      auto entries = os::list_directory(*below);
      if (!entries || !entries->empty()) return refuse(Errc::GATE_GITLINK, base.path, "the submodule's directory has content, which a patch of this repository cannot carry");
    }
    out_.tree.push_back(base);
  }

  void file(const UniqueFd& dir, const std::string& path, const std::string& name, const struct stat& st) {
    uint32_t mode = git::plain_mode(st.st_mode);
    if (st.st_nlink > 1) {
      Links& links = hard_links_[{st.st_dev, st.st_ino}];
      links.expected = st.st_nlink;
      links.paths.push_back(path);
    }
    if (o_.known)
      if (auto oid = o_.known(path, st)) return keep(path, *oid, mode, st);
    if (static_cast<uint64_t>(st.st_size) > o_.limits.file_bytes)
      return refuse(Errc::GATE_LIMIT, path, std::to_string(st.st_size) + " bytes; at most " + std::to_string(o_.limits.file_bytes) + " a file");
    if (out_.bytes_read + static_cast<uint64_t>(st.st_size) > o_.limits.bytes) return stop(path, "more than " + std::to_string(o_.limits.bytes) + " changed bytes");
    auto fd = os::open_beneath(dir, name, O_RDONLY | O_NONBLOCK, 0, true);
    if (!fd) return refuse(moved(fd.error(), path));
    struct stat opened{}, after{};
    if (fstat(fd->get(), &opened) != 0 || !same(st, opened)) return refuse(Errc::GATE_CHANGED, path, "another file took its place");
    auto bytes = os::read_all(*fd, o_.limits.file_bytes);
    if (!bytes) return refuse(Errc::GATE_CHANGED, path, bytes.error().what);
    if (fstat(fd->get(), &after) != 0 || !same(st, after) || bytes->size() != static_cast<uint64_t>(st.st_size))
      return refuse(Errc::GATE_CHANGED, path, "it was written to while it was read");
    out_.files_read++;
    out_.bytes_read += bytes->size();
    read_.push_back(path);
    if (realtime_ns() - git::ctime_ns(st) < kSettleNs) {
      fresh_.push_back(path);
      newest_ = std::max(newest_, git::ctime_ns(st));
    }
    keep(path, git::blob_id(*bytes), mode, st);
  }

  void link(const UniqueFd& dir, const std::string& path, const std::string& name, const struct stat& st) {
    std::string target(kMaxPath + 1, '\0');
    ssize_t n = readlinkat(dir.get(), name.c_str(), target.data(), target.size());
    if (n < 0) return refuse(moved(sys_error("read link"), path));
    if (static_cast<size_t>(n) > kMaxPath) return refuse(Errc::GATE_NAME, path, "a link target of more than 4096 bytes");
    target.resize(static_cast<size_t>(n));
    struct stat after{};
    if (fstatat(dir.get(), name.c_str(), &after, AT_SYMLINK_NOFOLLOW) != 0 || !same(st, after)) return refuse(Errc::GATE_CHANGED, path, "the link changed while it was read");
    keep(path, git::blob_id(target), git::kLink, st);
    out_.links[path] = target;
  }

  void keep(const std::string& path, const git::Oid& oid, uint32_t mode, const struct stat& st) {
    const git::Entry* base = git::find_entry(o_.base, path);
    // The base's own spelling of an old mode stays, so that an untouched directory keeps its object.
    bool same_mode = base && git::plain_mode(base->mode) == mode;
    out_.tree.push_back({path, same_mode ? base->mode : mode, oid});
    out_.states.push_back(git::state_of(path, oid, mode, st));
  }

  // ---- after the walk

  void missing_gitlinks() {
    for (const git::Entry& e : o_.base)
      if (git::plain_mode(e.mode) == git::kGitlink && !gitlinks_seen_.count(e.path) && !in_private(e.path)) {
        if (o_.populated_submodules) out_.tree.push_back(e);
        else refuse(Errc::GATE_GITLINK, e.path, "the submodule was removed");
      }
  }

  bool in_private(const std::string& path) const {
    for (const std::string& p : private_)
      if (path == p || (path.size() > p.size() && path.compare(0, p.size(), p) == 0 && path[p.size()] == '/')) return true;
    return false;
  }
  void keep_private_of_base() {
    if (private_.empty()) return;
    for (const git::Entry& e : o_.base)
      if (in_private(e.path)) {
        out_.tree.push_back(e);
        if (auto target = link_before(e.path)) out_.links[e.path] = *target;
      }
  }

  std::optional<std::string> link_now(const std::string& path) const {
    auto it = out_.links.find(path);
    return it == out_.links.end() ? std::nullopt : std::optional<std::string>(it->second);
  }
  std::optional<std::string> link_before(const std::string& path) const {
    const git::Entry* e = git::find_entry(o_.base, path);
    if (!e || git::plain_mode(e->mode) != git::kLink || !o_.base_link) return std::nullopt;
    return o_.base_link(e->oid);
  }

  void links() {
    auto now = [this](const std::string& p) { return link_now(p); };
    auto before = [this](const std::string& p) { return link_before(p); };
    uint64_t steps = o_.limits.link_steps;
    for (const auto& [path, target] : out_.links) {
      auto v = check_link(path, target, o_.keep_links, now, steps);
      // What the reviewed base already holds in the very same form is no news.
      if (v) {
        auto old = before(path);
        if (old && *old == target && check_link(path, target, o_.keep_links, before, steps)) v.reset();
      }
      if (steps == 0) return stop(path, "the symbolic links lead through too many others");
      if (v) refuse(*v);
      if (stopped_) return;
    }
  }

  void repositories_without_dot_git() {
    auto text = [this](const git::Entry& e) { return o_.base_link ? o_.base_link(e.oid) : std::nullopt; };
    for (Violation& v : gate::nested_repositories({out_.tree, [this](const std::string& p) { return link_now(p); }, text},
                                                  {o_.base, [this](const std::string& p) { return link_before(p); }, text}))
      refuse(std::move(v));
  }

  struct Links {
    uint64_t expected = 0;
    uint64_t found = 0;
    std::vector<std::string> paths;
  };

  // Another name of a file may lie in an ignored or private directory of the same tree, which is as much inside.
  Result<void> count_names(const UniqueFd& dir, uint64_t depth) {
    if (depth > o_.limits.depth) return {};
    auto entries = os::list_directory(dir);
    if (!entries) return {};
    for (const os::DirectoryEntry& e : *entries) {
      struct stat st{};
      if (fstatat(dir.get(), e.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(st.st_mode)) {
        if (auto below = os::open_directory_beneath(dir, e.name, true)) H5I_TRY(count_names(*below, depth + 1));
      } else if (st.st_nlink > 1) {
        auto it = hard_links_.find({st.st_dev, st.st_ino});
        if (it != hard_links_.end()) it->second.found++;
      }
    }
    return {};
  }

  Result<void> hard_links() {
    bool open = std::any_of(hard_links_.begin(), hard_links_.end(), [](const auto& l) { return l.second.paths.size() < l.second.expected; });
    if (!open) return {};
    H5I_TRY(count_names(work_, 0));
    for (const auto& [inode, links] : hard_links_)
      if (links.found < links.expected)
        for (const std::string& path : links.paths)
          refuse(Errc::GATE_HARDLINK, path, std::to_string(links.expected) + " names, " + std::to_string(links.found) + " of them in the work tree");
    return {};
  }

  void read_files_are_still_the_same() {
    if (int64_t left = newest_ + kSettleNs - realtime_ns(); !fresh_.empty() && left > 0) {
      timespec pause{0, std::min(left, kSettleNs)};
      nanosleep(&pause, nullptr);
    }
    std::set<std::string_view> read(read_.begin(), read_.end()), fresh(fresh_.begin(), fresh_.end());
    for (const git::FileState& s : out_.states) {
      if (!read.count(s.path)) continue;
      auto fd = os::open_beneath(work_, s.path, O_PATH);
      struct stat st{};
      if (!fd) refuse(moved(fd.error(), s.path));
      else if (fstat(fd->get(), &st) != 0 || !git::unchanged(s, st) || (fresh.count(s.path) && !read_scanned(work_, {s.path, s.mode, s.oid}, o_.limits.file_bytes)))
        refuse(Errc::GATE_CHANGED, s.path, "it was written to while the tree was read");
    }
  }

  const UniqueFd& work_;
  const ScanOptions& o_;
  dev_t device_ = 0;
  Scanned out_;
  IgnoreRules rules_;
  std::set<std::string> placeholders_, private_, gitlinks_seen_;
  std::map<std::pair<dev_t, ino_t>, Links> hard_links_;
  std::vector<std::string> read_, fresh_;
  int64_t newest_ = 0;
  bool stopped_ = false;
};

}  // namespace

Result<Scanned> scan(const UniqueFd& work, const ScanOptions& options) { return Walk(work, options).run(); }

ScanOptions box_scan(const git::Repository& repo, git::Tree base, git::States states) {
  ScanOptions o;
  o.base = std::move(base);
  auto known = std::make_shared<git::States>(std::move(states));
  o.known = [known](const std::string& path, const struct stat& st) -> std::optional<git::Oid> {
    const git::FileState* s = git::find_state(*known, path);
    return s && git::unchanged(*s, st) ? std::optional<git::Oid>(s->oid) : std::nullopt;
  };
  o.base_link = [&repo](const git::Oid& blob) -> std::optional<std::string> {
    auto text = repo.read_blob(blob, kMaxPath);
    return text ? std::optional<std::string>(*text) : std::nullopt;
  };
  return o;
}

std::vector<Violation> nested_repositories(const git::Repository& repo, const git::Tree& tree, const git::Tree& before) {
  auto text = [&repo](const git::Entry& e) -> std::optional<std::string> {
    auto bytes = repo.read_blob(e.oid, kMaxPath);
    return bytes ? std::optional<std::string>(*bytes) : std::nullopt;
  };
  auto view = [&](const git::Tree& t) {
    return TreeView{t, [&t, text](const std::string& path) -> std::optional<std::string> {
                      const git::Entry* e = git::find_entry(t, path);
                      return e && git::plain_mode(e->mode) == git::kLink ? text(*e) : std::nullopt;
                    }, text};
  };
  return nested_repositories(view(tree), view(before));
}

Result<std::string> read_scanned(const UniqueFd& work, const git::Entry& e, uint64_t limit) {
  uint32_t mode = git::plain_mode(e.mode);
  std::string bytes;
  if (mode == git::kGitlink) return "Subproject commit " + e.oid.hex() + "\n";
  if (mode == git::kLink) bytes = H5I_TRY(os::read_link_beneath(work, e.path));
  else bytes = H5I_TRY(os::read_file_beneath(work, e.path, limit));
  if (git::blob_id(bytes) != e.oid) return make_error(Errc::GATE_CHANGED, "the file changed after it was looked at", printable(e.path));
  return bytes;
}

Result<void> store(const UniqueFd& work, const Scanned& scanned, const git::Tree& base, const git::Repository& repo) {
  for (const git::Entry& e : scanned.tree) {
    if (git::plain_mode(e.mode) == git::kGitlink) continue;
    const git::Entry* old = git::find_entry(base, e.path);
    if ((old && old->oid == e.oid) || repo.has(e.oid)) continue;
    std::string bytes = H5I_TRY(read_scanned(work, e, UINT64_MAX));
    git::Oid written = H5I_TRY(repo.write_blob(bytes));
    if (written != e.oid) return make_error(Errc::GATE_CHANGED, "the file changed after it was looked at", printable(e.path));
  }
  return {};
}

}  // namespace h5i::gate
