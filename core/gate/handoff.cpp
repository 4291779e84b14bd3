#include "core/gate/handoff.hpp"

#include <algorithm>
#include <set>

#include "core/base/text.hpp"
#include "core/gate/rules.hpp"

namespace h5i::gate {
namespace {

// What is seen through links: many changed files may be, by many links.
constexpr size_t kMaxSeen = 1000, kMaxSeenName = 4096;
constexpr uint64_t kMaxSeenWork = 10'000'000;

// The changed paths as they are seen through links: `.vscode -> s` makes s/tasks.json an editor's. A place of the tree, a
// file or a directory that is no link, is known by a rule when some way of links leads there under a name that falls under
// the rule; all that lies below it, and what links there lead to, is known by the rule as well.
class Seen {
 public:
  Seen(const std::vector<git::Change>& changes, const std::map<std::string, std::string>& links) : links_(links) {
    for (const git::Change& c : changes)
      if (c.new_mode != 0) changed_.push_back(c.path);
    std::sort(changed_.begin(), changed_.end());
  }

  std::vector<Handoff> run() {
    uint64_t steps = kMaxLinkSteps;
    auto target_of = [this](const std::string& p) -> std::optional<std::string> {
      auto it = links_.find(p);
      return it == links_.end() ? std::nullopt : std::optional<std::string>(it->second);
    };
    for (const auto& [path, target] : links_) {
      LinkEnd end = follow_link(path, target, target_of, steps);
      if (end.leads != LinkLeads::INSIDE) continue;
      ends_[path] = end.path;
      for (std::string& other : end.through)
        if (std::binary_search(changed_.begin(), changed_.end(), other)) turned_[path].push_back(std::move(other));
    }
    index_second_components();
    for (const auto& [link, end] : ends_) named(link, end);
    if (steps == 0 || work_ == 0) out_.push_back({links_.begin()->first, "shell", "there are too many links; not all that is seen through them was looked at"});
    return std::move(out_);
  }

 private:
  // A place and the name by which it is seen.
  struct Place {
    std::string path, seen, link;
  };

  // Children that the second component of a rule may name, by the directory that they lie in: links and changed paths.
  void index_second_components() {
    std::set<std::string_view> seconds;
    for (const auto& [first, rule] : directory_rules())
      if (std::string_view s = second_component(*rule); !s.empty()) seconds.insert(s);
    auto add = [&](const std::string& path) {
      for (size_t i = 0; i < path.size();) {
        size_t end = std::min(path.find('/', i), path.size());
        std::string name = folded_name(std::string_view(path).substr(i, end - i));
        if (seconds.count(name)) children_[i == 0 ? "" : path.substr(0, i - 1)].insert({name, path.substr(0, end)});
        i = end + 1;
      }
    };
    for (const std::string& p : changed_) add(p);
    for (const auto& [p, end] : ends_) add(p);
  }

  void named(const std::string& link, const std::string& end) {
    std::vector<std::string> components = folded_components(link);
    // All rules: a place may be known by several, and what lies below is judged for each.
    for (size_t i = 0; i < components.size(); i++) {
      auto [from, to] = directory_rules().equal_range(components[i]);
      for (; from != to; ++from) {
        const Rule* r = from->second;
        std::string_view second = second_component(*r);
        bool last = i + 1 == components.size();
        if (second.empty() || (!last && components[i + 1] == second)) spread(*r, {end, link, link});
        else if (last) below_first(*r, second, link, end);
      }
    }
    // A name counts for the file that the link ends at.
    if (const Rule* r = name_rule(components.back())) {
      if (std::binary_search(changed_.begin(), changed_.end(), end)) report(end, link, link, r->kind, r->why);
      for (const std::string& other : turned(link)) report(other, link, link, r->kind, r->why);
    }
  }

  // The link is the first component of a rule with two: the second lies in the directory where it ends.
  void below_first(const Rule& r, std::string_view second, const std::string& link, const std::string& end) {
    // Turned by the box, it may show what was there before.
    auto turned_now = [&](const std::string& path) {
      if (reported_.insert({nullptr, path}).second) out_.push_back({path, r.kind, "it may show " + printable(link, {.limit = 300}) + "/" + std::string(second) + ": " + r.why});
    };
    if (auto it = std::lower_bound(changed_.begin(), changed_.end(), link); it != changed_.end() && *it == link) turned_now(*it);
    for (const std::string& other : turned(link)) turned_now(other);
    auto it = children_.find(end);
    if (it == children_.end()) return;
    for (const auto& [name, path] : it->second) {
      if (name != second) continue;
      auto other = ends_.find(path);
      bool is_link = other != ends_.end();
      spread(r, {is_link ? other->second : path, link + "/" + std::string(second), is_link ? path : link});
    }
  }

  void spread(const Rule& r, Place first) {
    std::set<std::string>& known = known_[&r];
    std::vector<Place> todo{std::move(first)};
    while (!todo.empty()) {
      Place p = std::move(todo.back());
      todo.pop_back();
      // Whoever turns a link on the way turns what is seen.
      for (const std::string& other : turned(p.link))
        if (reported_.insert({&r, other}).second) report(other, p.seen, p.link, r.kind, r.why);
      if (covered(known, p.path)) continue;
      known.insert(p.path);
      auto seen_as = [&](const std::string& path) { return p.path.empty() ? p.seen + "/" + path : p.seen + path.substr(p.path.size()); };
      if (p.seen.size() > kMaxSeenName) p.seen = p.link;
      for (auto it = std::lower_bound(changed_.begin(), changed_.end(), p.path); it != changed_.end() && it->starts_with(p.path) && spend(); ++it) {
        if (below(*it, p.path) && reported_.insert({&r, *it}).second) report(*it, seen_as(*it), p.link, r.kind, r.why);
      }
      for (auto it = ends_.lower_bound(p.path); it != ends_.end() && it->first.starts_with(p.path) && spend(); ++it)
        if (below(it->first, p.path) && (!covered(known, it->second) || turned_.count(it->first))) todo.push_back({it->second, seen_as(it->first), it->first});
    }
  }

  const std::vector<std::string>& turned(const std::string& link) const {
    static const std::vector<std::string> none;
    auto it = turned_.find(link);
    return it == turned_.end() ? none : it->second;
  }
  bool spend() { return work_ > 0 && --work_ > 0; }
  static bool below(const std::string& path, const std::string& at) { return at.empty() || path.size() == at.size() || path[at.size()] == '/'; }
  static bool covered(const std::set<std::string>& known, const std::string& path) {
    if (known.count("")) return true;
    for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1))
      if (known.count(path.substr(0, end))) return true;
    return known.count(path) != 0;
  }

  void report(const std::string& path, const std::string& seen, const std::string& link, const char* kind, const char* why) {
    if (seen == path) return;  // a link that leads to itself by another way
    if (out_.size() == kMaxSeen) out_.push_back({link, kind, "more than " + std::to_string(kMaxSeen) + " changed paths are seen through links; these are the first"});
    if (out_.size() >= kMaxSeen) return;
    out_.push_back({path, kind, "seen as " + printable(seen, {.limit = 300}) + " through the link " + printable(link, {.limit = 300}) + ": " + why});
  }

  const std::map<std::string, std::string>& links_;
  std::vector<std::string> changed_;
  std::map<std::string, std::string> ends_;  // of each link that ends inside
  std::map<std::string, std::vector<std::string>> turned_;  // the changed links that it leads through
  std::map<std::string, std::set<std::pair<std::string, std::string>>> children_;  // directory -> folded name, path
  std::map<const Rule*, std::set<std::string>> known_;
  std::set<std::pair<const Rule*, std::string_view>> reported_;
  uint64_t work_ = kMaxSeenWork;
  std::vector<Handoff> out_;
};

}  // namespace

std::vector<Handoff> handoffs(const std::vector<git::Change>& changes, const std::map<std::string, std::string>& links) {
  std::vector<Handoff> out;
  for (const git::Change& c : changes)
    if (c.new_mode != 0)
      if (auto h = hands_off(c.path)) out.push_back(*h);
  if (!links.empty())
    for (Handoff& h : Seen(changes, links).run()) out.push_back(std::move(h));
  return out;
}

}  // namespace h5i::gate
