#include "core/gate/nested.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/text.hpp"

namespace h5i::gate {
namespace {

enum class Part { NONE, HEAD, REPOSITORY, CODE };  // CODE: no sign of a repository, but what one would run

Part part_of(std::string_view name) {
  std::string f = folded_name(name);
  if (f == "head") return Part::HEAD;
  for (std::string_view sign : {"objects", "refs", "config", "gitdir"})
    if (f == sign) return Part::REPOSITORY;
  if (f == "hooks" || f == "config.worktree") return Part::CODE;
  // The one with more than eight letters, so the one that NTFS gives a short name.
  if (disguised(name, "commondir", "common")) return Part::REPOSITORY;
  return Part::NONE;
}

// Two directories with one key may be one on some file system. Letters outside ASCII have too many ways to be the same there:
// all names that hold one are held to be the same.
std::string key_of(std::string_view name) {
  std::string f = folded_name(name);
  if (std::any_of(f.begin(), f.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) return "\x80";
  return f;
}

using Mark = std::tuple<std::string, uint32_t, git::Oid>;  // path, mode, content; a directory has no content
struct Marks {
  std::set<Mark> all;
  bool head = false, repository = false;
  std::string directory;  // of HEAD, as the tree spells it
};
using Groups = std::map<std::string, Marks>;

// The components of a path, with the keys of the directories that they lie in. Sorted paths share most of them.
class Components {
 public:
  void next(std::string_view path) {
    size_t same = 0;
    while (same < path.size() && same < path_.size() && path[same] == path_[same]) same++;
    while (!ends_.empty() && ends_.back() > same) {
      ends_.pop_back();
      keys_.pop_back();
    }
    // A component that the last path ended with, or that goes on here, is no whole one yet.
    if (!ends_.empty() && ends_.back() == same && !(same < path.size() && separator(path[same]))) {
      ends_.pop_back();
      keys_.pop_back();
    }
    path_ = path;
    size_t from = ends_.empty() ? 0 : ends_.back() + 1;
    while (from <= path_.size()) {
      size_t end = from;
      while (end < path_.size() && !separator(path_[end])) end++;
      keys_.push_back(ends_.empty() ? std::string() : keys_.back() + "/" + key_of(name(ends_.size() - 1)));
      ends_.push_back(end);
      from = end + 1;
    }
  }
  size_t size() const { return ends_.size(); }
  size_t begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1] + 1; }
  size_t end(size_t i) const { return ends_[i]; }
  std::string_view name(size_t i) const { return std::string_view(path_).substr(begin(i), ends_[i] - begin(i)); }
  const std::string& key(size_t i) const { return keys_[i]; }  // of the directory that component i lies in

 private:
  // Windows reads a backslash as a separator.
  static bool separator(char c) { return c == '/' || c == '\\'; }
  std::string path_;
  std::vector<size_t> ends_;
  std::vector<std::string> keys_;
};

bool may_be_head(const std::string& path) {
  size_t from = path.find_last_of("/\\");
  from = from == std::string::npos ? 0 : from + 1;
  if (from >= path.size()) return false;
  auto c = static_cast<unsigned char>(path[from]);
  return (c == 'h' || c == 'H' || c >= 0x80) && part_of(std::string_view(path).substr(from)) == Part::HEAD;
}

// The marks of the directories in `keys`.
Groups groups_of(const git::Tree& tree, const std::set<std::string>& keys) {
  Groups out;
  Components c;
  for (const git::Entry& e : tree) {
    c.next(e.path);
    for (size_t i = 0; i < c.size(); i++) {
      if (!keys.count(c.key(i))) continue;
      Part part = part_of(c.name(i));
      if (part == Part::NONE) continue;
      bool last = i + 1 == c.size();
      Marks& m = out[c.key(i)];
      if (part == Part::HEAD && last) {
        m.head = true;
        m.directory = i == 0 ? "" : e.path.substr(0, c.end(i - 1));
      }
      if (part == Part::REPOSITORY) m.repository = true;
      if (!last) m.all.insert({e.path.substr(0, c.end(i)), git::kDirectory, {}});
      if (last || part == Part::CODE) m.all.insert({e.path, git::plain_mode(e.mode), e.oid});
    }
  }
  return out;
}

std::set<std::string> keys_with_head(const git::Tree& tree) {
  std::set<std::string> out;
  for (const git::Entry& e : tree) {
    if (!may_be_head(e.path)) continue;
    Components c;
    c.next(e.path);
    out.insert(c.key(c.size() - 1));
  }
  return out;
}

void add_below(const git::Tree& tree, const std::string& at, std::set<Mark>* out) {
  std::string below = at.empty() ? "" : at + "/";
  auto it = std::lower_bound(tree.begin(), tree.end(), below, [](const git::Entry& e, const std::string& p) { return e.path < p; });
  for (; it != tree.end() && it->path.compare(0, below.size(), below) == 0; ++it) out->insert({it->path, git::plain_mode(it->mode), it->oid});
}

// What the marks lead to: the ends of links, and for a commondir the signs of the directory that it names. Bounded: a base
// that needs more of these has too strange a repository in it to vouch for.
constexpr size_t kMaxLed = 64;
bool add_led(const TreeView& v, std::set<Mark>* marks) {
  std::vector<Mark> todo(marks->begin(), marks->end());
  uint64_t steps = kMaxLinkSteps;
  for (size_t i = 0, led = 0; i < todo.size(); i++) {
    auto [path, mode, oid] = todo[i];
    std::string name = folded_name(path.substr(path.find_last_of("/\\") + 1));
    std::optional<std::string> target;
    bool directory_of_git = false;
    if (mode == git::kLink) {
      target = v.link ? v.link(path) : std::nullopt;
    } else if (mode != git::kDirectory && name == "commondir") {
      const git::Entry* e = git::find_entry(v.tree, path);
      target = e && v.text ? v.text(*e) : std::nullopt;
      while (target && !target->empty() && (target->back() == '\n' || target->back() == '\r')) target->pop_back();
      directory_of_git = true;
    } else {
      continue;
    }
    if (!target || ++led > kMaxLed) return false;
    LinkEnd end = follow_link(path, *target, v.link, steps);
    if (end.leads == LinkLeads::OUTSIDE) continue;  // no bytes of the tree
    if (end.leads != LinkLeads::INSIDE) return false;
    std::set<Mark> more;
    if (const git::Entry* e = git::find_entry(v.tree, end.path)) more.insert({e->path, git::plain_mode(e->mode), e->oid});
    if (!directory_of_git) {
      add_below(v.tree, end.path, &more);
    } else {
      std::set<Mark> below;
      add_below(v.tree, end.path, &below);
      size_t from = end.path.empty() ? 0 : end.path.size() + 1;
      for (const Mark& m : below) {
        const std::string& p = std::get<0>(m);
        size_t slash = p.find('/', from);
        Part part = part_of(std::string_view(p).substr(from, slash == std::string::npos ? slash : slash - from));
        if (part == Part::NONE) continue;
        if (slash == std::string::npos || part == Part::CODE) more.insert(m);
        else more.insert({p.substr(0, slash), git::kDirectory, {}});
      }
    }
    for (const Mark& m : more)
      if (marks->insert(m).second) todo.push_back(m);
  }
  return true;
}

}  // namespace

std::vector<Violation> nested_repositories(const TreeView& now, const TreeView& before) {
  std::vector<Violation> out;
  std::set<std::string> keys = keys_with_head(now.tree);
  if (keys.empty()) return out;
  Groups groups = groups_of(now.tree, keys);
  std::erase_if(groups, [](const auto& g) { return !g.second.head || !g.second.repository; });
  if (groups.empty()) return out;
  keys.clear();
  for (const auto& [key, marks] : groups) keys.insert(key);
  Groups old = groups_of(before.tree, keys);
  for (auto& [key, marks] : groups) {
    auto it = old.find(key);
    if (it != old.end() && add_led(now, &marks.all) && add_led(before, &it->second.all) && it->second.all == marks.all) continue;
    std::string names;
    for (const Mark& m : marks.all) {
      if (names.size() > 200) break;
      names += (names.empty() ? "" : ", ") + printable(std::get<0>(m), {.limit = 200});
    }
    out.push_back({Errc::GATE_NESTED_REPO, marks.directory.empty() ? "." : marks.directory, "git takes the directory for a repository of its own: " + names});
  }
  return out;
}

}  // namespace h5i::gate
