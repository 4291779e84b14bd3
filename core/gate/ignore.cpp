#include "core/gate/ignore.hpp"

#include <cctype>

namespace h5i::gate {
namespace {

constexpr size_t kMaxPattern = 1024;
// Steps of the matcher for one pattern and text; a pattern that needs more is hostile and matches nothing.
constexpr int kMaxSteps = 100'000;

bool class_has(std::string_view name, unsigned char c) {
  if (name == "alnum") return std::isalnum(c);
  if (name == "alpha") return std::isalpha(c);
  if (name == "blank") return c == ' ' || c == '\t';
  if (name == "cntrl") return std::iscntrl(c);
  if (name == "digit") return std::isdigit(c);
  if (name == "graph") return std::isgraph(c);
  if (name == "lower") return std::islower(c);
  if (name == "print") return std::isprint(c);
  if (name == "punct") return std::ispunct(c);
  if (name == "space") return std::isspace(c);
  if (name == "upper") return std::isupper(c);
  if (name == "xdigit") return std::isxdigit(c);
  return false;
}

// `p` begins after '['. Moves it behind ']'. Returns 1 match, 0 none, -1 malformed.
int bracket(std::string_view p, size_t& i, char c) {
  bool negated = i < p.size() && (p[i] == '!' || p[i] == '^');
  if (negated) i++;
  bool matched = false, first = true;
  unsigned char previous = 0;
  for (;; first = false) {
    if (i >= p.size()) return -1;
    if (p[i] == ']' && !first) break;
    if (p[i] == '[' && i + 1 < p.size() && p[i + 1] == ':') {
      size_t end = p.find(":]", i + 2);
      if (end == std::string_view::npos) return -1;
      if (class_has(p.substr(i + 2, end - i - 2), static_cast<unsigned char>(c))) matched = true;
      i = end + 2;
      previous = 0;
      continue;
    }
    if (p[i] == '-' && previous && i + 1 < p.size() && p[i + 1] != ']') {
      i++;
      if (p[i] == '\\' && ++i >= p.size()) return -1;
      auto high = static_cast<unsigned char>(p[i++]);
      if (static_cast<unsigned char>(c) >= previous && static_cast<unsigned char>(c) <= high) matched = true;
      previous = 0;
      continue;
    }
    if (p[i] == '\\' && ++i >= p.size()) return -1;
    previous = static_cast<unsigned char>(p[i++]);
    if (previous == static_cast<unsigned char>(c)) matched = true;
  }
  i++;
  if (c == '/') return 0;
  return matched != negated;
}

bool match(std::string_view p, std::string_view t, int& steps) {
  size_t i = 0, k = 0;
  while (i < p.size()) {
    if (--steps < 0) return false;
    char c = p[i];
    if (c == '*') {
      bool two = i + 1 < p.size() && p[i + 1] == '*';
      size_t end = i;
      while (end < p.size() && p[end] == '*') end++;
      // "**" crosses directories only as a whole component.
      bool crosses = two && end - i == 2 && (i == 0 || p[i - 1] == '/') && (end == p.size() || p[end] == '/');
      if (crosses && end == p.size()) return true;
      if (crosses) {
        // "**/rest": rest at this place or below any number of directories.
        std::string_view rest = p.substr(end + 1);
        if (match(rest, t.substr(k), steps)) return true;
        for (size_t s = k; s < t.size(); s++)
          if (t[s] == '/' && match(rest, t.substr(s + 1), steps)) return true;
        return false;
      }
      std::string_view rest = p.substr(end);
      for (size_t s = k;; s++) {
        if (match(rest, t.substr(s), steps)) return true;
        if (s >= t.size() || t[s] == '/' || steps < 0) return false;
      }
    }
    if (k >= t.size()) return false;
    if (c == '?') {
      if (t[k] == '/') return false;
      i++;
    } else if (c == '[') {
      i++;
      if (bracket(p, i, t[k]) != 1) return false;
    } else {
      if (c == '\\') {
        if (++i >= p.size()) return false;
        c = p[i];
      }
      if (c != t[k]) return false;
      i++;
    }
    k++;
  }
  return k == t.size();
}

}  // namespace

bool wildmatch(std::string_view pattern, std::string_view text) {
  int steps = kMaxSteps;
  return match(pattern, text, steps);
}

void IgnoreRules::add(const std::string& directory, std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view raw = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
    if (raw.empty() || raw[0] == '#' || raw.size() > kMaxPattern) continue;
    // Trailing spaces go unless a backslash keeps them.
    while (!raw.empty() && raw.back() == ' ' && !(raw.size() > 1 && raw[raw.size() - 2] == '\\')) raw.remove_suffix(1);
    Rule r;
    r.directory = directory;
    if (!raw.empty() && raw[0] == '!') {
      r.negated = true;
      raw.remove_prefix(1);
    }
    if (!raw.empty() && raw.back() == '/') {
      r.only_directories = true;
      raw.remove_suffix(1);
    }
    if (raw.empty()) continue;
    if (raw[0] == '/') {
      r.anchored = true;
      raw.remove_prefix(1);
    } else if (raw.find('/') != std::string_view::npos) {
      r.anchored = true;
    }
    if (raw.empty()) continue;
    r.pattern = raw;
    rules_.push_back(std::move(r));
  }
}

bool IgnoreRules::ignored(const std::string& path, bool is_directory) const {
  for (auto it = rules_.rbegin(); it != rules_.rend(); ++it) {
    if (it->only_directories && !is_directory) continue;
    std::string_view below = path;
    if (!it->directory.empty()) {
      if (path.size() <= it->directory.size() || path.compare(0, it->directory.size(), it->directory) != 0 || path[it->directory.size()] != '/') continue;
      below.remove_prefix(it->directory.size() + 1);
    }
    std::string_view subject = it->anchored ? below : below.substr(below.rfind('/') + 1);
    if (wildmatch(it->pattern, subject)) return !it->negated;
  }
  return false;
}

}  // namespace h5i::gate
