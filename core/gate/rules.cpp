#include "core/gate/rules.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "core/base/text.hpp"

namespace h5i::gate {
namespace {

// Length of a character that HFS+ leaves out when it compares names, 0 for any other (the list of git's utf8.c and of
// Apple's technical note 1150).
size_t hfs_ignored(std::string_view s) {
  auto b = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  if (b(0) == 0xE2 && b(1) == 0x80 && ((b(2) >= 0x8C && b(2) <= 0x8F) || (b(2) >= 0xAA && b(2) <= 0xAE))) return 3;  // U+200C..F, 202A..E
  if (b(0) == 0xE2 && b(1) == 0x81 && b(2) >= 0xAA && b(2) <= 0xAF) return 3;                                          // U+206A..F
  if (b(0) == 0xEF && b(1) == 0xBB && b(2) == 0xBF) return 3;                                                          // U+FEFF
  return 0;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Characters that fold to ASCII letters where names are compared without case (Unicode's CaseFolding.txt, C and F).
struct Fold {
  std::string_view from, to;
};
constexpr Fold kFolds[] = {{"\xC5\xBF", "s"},      {"\xC3\x9F", "ss"},      {"\xE1\xBA\x9E", "ss"},  {"\xE2\x84\xAA", "k"},  {"\xEF\xAC\x80", "ff"}, {"\xEF\xAC\x81", "fi"},
                           {"\xEF\xAC\x82", "fl"}, {"\xEF\xAC\x83", "ffi"}, {"\xEF\xAC\x84", "ffl"}, {"\xEF\xAC\x85", "st"}, {"\xEF\xAC\x86", "st"}};

Violation violation(Errc rule, const std::string& path, std::string detail) { return {rule, path, std::move(detail)}; }

std::vector<std::string_view> split(std::string_view s, char at) {
  std::vector<std::string_view> out;
  for (size_t i = 0;;) {
    size_t next = s.find(at, i);
    out.push_back(s.substr(i, next == std::string_view::npos ? next : next - i));
    if (next == std::string_view::npos) return out;
    i = next + 1;
  }
}

}  // namespace

std::string folded_name(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    if (static_cast<unsigned char>(name[i]) >= 0x80) {
      if (size_t skip = hfs_ignored(name.substr(i))) {
        i += skip;
        continue;
      }
      const Fold* fold = std::find_if(std::begin(kFolds), std::end(kFolds), [&](const Fold& f) { return name.substr(i, f.from.size()) == f.from; });
      if (fold != std::end(kFolds)) {
        out += fold->to;
        i += fold->from.size();
        continue;
      }
    }
    if (name[i] == ':') break;
    out += lower(name[i++]);
  }
  while (!out.empty() && (out.back() == '.' || out.back() == ' ')) out.pop_back();
  return out;
}

bool disguised(std::string_view name, std::string_view dot_name, std::string_view ntfs_short) {
  for (std::string_view part : split(name, '\\')) {
    std::string f = folded_name(part);
    if (f == dot_name) return true;
    // NTFS keeps a short name for each: the first one is NAME~1, later ones up to ~4, then a hash of four digits.
    if (!ntfs_short.empty() && f.size() > ntfs_short.size() && f.compare(0, ntfs_short.size(), ntfs_short) == 0 && f[ntfs_short.size()] == '~') {
      std::string_view digits = std::string_view(f).substr(ntfs_short.size() + 1);
      if (!digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return true;
    }
  }
  return false;
}

bool disguised_git(std::string_view name) { return disguised(name, ".git", "git"); }

std::optional<Violation> check_name(std::string_view name, const std::string& path, bool base_had) {
  if (name.empty() || name == "." || name == "..") return violation(Errc::GATE_PATH, path, "an empty, '.' or '..' component");
  if (disguised_git(name)) return violation(Errc::GATE_DOTGIT, path, "the name is .git to some file system or program");
  if (name.size() > kMaxName) return violation(Errc::GATE_NAME, path, "a name of more than 255 bytes");
  for (char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return violation(Errc::GATE_NAME, path, "a control character in the name");
  if (base_had) return std::nullopt;
  if (!valid_utf8(name)) return violation(Errc::GATE_ENCODING, path, "the name is not UTF-8");
  // What a terminal would not show as it is: C1 controls, characters that reorder text or cannot be seen.
  if (std::string shown = printable(name); shown != name) return violation(Errc::GATE_NAME, path, "a character in the name that hides or reorders text: " + shown);
  return std::nullopt;
}

std::optional<Violation> check_path(const std::string& path, bool base_had) {
  if (path.empty() || path[0] == '/') return violation(Errc::GATE_PATH, path, "an absolute or empty path");
  if (path.size() > kMaxPath) return violation(Errc::GATE_NAME, path, "a path of more than 4096 bytes");
  if (path.find('\0') != std::string::npos) return violation(Errc::GATE_NAME, path, "a zero byte in the path");
  for (std::string_view part : split(path, '/'))
    if (auto v = check_name(part, path, base_had)) return v;
  return std::nullopt;
}

std::vector<Violation> check_tree(const git::Tree& tree) {
  std::vector<Violation> out;
  for (const git::Entry& e : tree) {
    if (auto v = check_path(e.path, true)) out.push_back(*v);
    uint32_t mode = git::plain_mode(e.mode);
    if (mode != git::kFile && mode != git::kExecutable && mode != git::kLink && mode != git::kGitlink)
      out.push_back(violation(Errc::GATE_SPECIAL, e.path, "an entry of an unknown kind"));
  }
  return out;
}

LinkEnd follow_link(const std::string& link_path, const std::string& target, const TargetOf& target_of, uint64_t& steps) {
  constexpr size_t kMaxFollowed = 40;  // the kernel's limit
  if (target.empty()) return {};
  if (target[0] == '/') return {LinkLeads::OUTSIDE, {}, {}};
  size_t slash = link_path.rfind('/');
  std::string at = slash == std::string::npos ? std::string() : link_path.substr(0, slash);  // directory that is being walked
  std::vector<std::string> todo;  // components still to walk, the next one last
  auto push = [&](std::string_view path) {
    auto parts = split(path, '/');
    for (auto it = parts.rbegin(); it != parts.rend(); ++it) todo.emplace_back(*it);
  };
  push(target);
  std::vector<std::string> through;
  while (!todo.empty()) {
    if (steps == 0) return {};
    steps--;
    std::string part = std::move(todo.back());
    todo.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (at.empty()) return {LinkLeads::OUTSIDE, {}, {}};
      size_t parent = at.rfind('/');
      at.resize(parent == std::string::npos ? 0 : parent);
      continue;
    }
    if (disguised_git(part)) return {LinkLeads::GIT, {}, {}};
    size_t before = at.size();
    at += (at.empty() ? "" : "/") + part;
    if (at.size() > 2 * kMaxPath) return {};
    if (auto next = target_of(at)) {
      through.push_back(at);
      if (through.size() > kMaxFollowed || next->empty()) return {};
      if ((*next)[0] == '/') return {LinkLeads::OUTSIDE, {}, {}};
      at.resize(before);
      push(*next);
    }
  }
  return {LinkLeads::INSIDE, std::move(at), std::move(through)};
}

LinkLeads resolve_link(const std::string& link_path, const std::string& target, const TargetOf& target_of) {
  uint64_t steps = kMaxLinkSteps;
  return follow_link(link_path, target, target_of, steps).leads;
}

std::optional<Violation> check_link(const std::string& path, const std::string& target, bool keep_links, const TargetOf& target_of) {
  uint64_t steps = kMaxLinkSteps;
  return check_link(path, target, keep_links, target_of, steps);
}

std::optional<Violation> check_link(const std::string& path, const std::string& target, bool keep_links, const TargetOf& target_of, uint64_t& steps) {
  // git itself refuses to follow these two when they are links; other programs do not.
  std::string name = path.substr(path.rfind('/') + 1);
  if (disguised(name, ".gitmodules", "gitmod") || disguised(name, ".gitattributes", "gitatt"))
    return violation(Errc::GATE_DOTGIT, path, "git's own file as a symbolic link");
  switch (follow_link(path, target, target_of, steps).leads) {
    case LinkLeads::INSIDE: return std::nullopt;
    case LinkLeads::GIT: return violation(Errc::GATE_DOTGIT, path, "the link leads into .git: " + printable(target));
    case LinkLeads::LOOP: return violation(Errc::GATE_SYMLINK_OUT, path, "the link cannot be resolved: " + printable(target));
    case LinkLeads::OUTSIDE:
      if (keep_links) return std::nullopt;
      return violation(Errc::GATE_SYMLINK_OUT, path, "the link leaves the work tree: " + printable(target));
  }
  return std::nullopt;
}

std::optional<Violation> check_mode(unsigned mode, const std::string& path) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      // Set-group-id on a directory is how some systems hand down a group; on a file it runs as that group.
      if (mode & (S_ISUID | S_ISGID)) return violation(Errc::GATE_SETID, path, mode & S_ISUID ? "set-user-id" : "set-group-id");
      return std::nullopt;
    case S_IFDIR:
    case S_IFLNK: return std::nullopt;
    case S_IFIFO: return violation(Errc::GATE_SPECIAL, path, "a fifo");
    case S_IFSOCK: return violation(Errc::GATE_SPECIAL, path, "a socket");
    case S_IFCHR: return violation(Errc::GATE_SPECIAL, path, "a character device");
    case S_IFBLK: return violation(Errc::GATE_SPECIAL, path, "a block device");
    default: return violation(Errc::GATE_SPECIAL, path, "a file of an unknown kind");
  }
}

}  // namespace h5i::gate
