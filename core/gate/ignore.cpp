#include "core/gate/ignore.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace h5i::gate {
namespace {

constexpr size_t kMaxPattern = 4096;

void spend(uint64_t& steps, uint64_t n) { steps -= n < steps ? n : steps; }

// Nothing: no such class.
std::optional<bool> class_has(std::string_view name, unsigned char c) {
  if (name == "alnum") return 0 != std::isalnum(c);
  if (name == "alpha") return 0 != std::isalpha(c);
  if (name == "blank") return c == ' ' || c == '\t';
  if (name == "cntrl") return 0 != std::iscntrl(c);
  if (name == "digit") return 0 != std::isdigit(c);
  if (name == "graph") return 0 != std::isgraph(c);
  if (name == "lower") return 0 != std::islower(c);
  if (name == "print") return 0 != std::isprint(c);
  if (name == "punct") return 0 != std::ispunct(c);
  if (name == "space") return 0 != std::isspace(c);
  if (name == "upper") return 0 != std::isupper(c);
  if (name == "xdigit") return 0 != std::isxdigit(c);
  return std::nullopt;
}

// `i` stands behind '['. Moves it behind ']'. Returns 1 match, 0 none, -1 malformed: git's dowild() to the letter.
int bracket(std::string_view p, size_t& i, char text) {
  auto c = static_cast<unsigned char>(text);
  auto at = [&](size_t k) { return k < p.size() ? static_cast<unsigned char>(p[k]) : 0; };
  bool negated = at(i) == '!' || at(i) == '^';
  if (negated) i++;
  bool matched = false;
  int previous = 0;
  do {
    int here = at(i);
    if (!here) return -1;
    if (here == '\\') {
      here = at(++i);
      if (!here) return -1;
      if (c == here) matched = true;
    } else if (here == '-' && previous && at(i + 1) && at(i + 1) != ']') {
      here = at(++i);
      if (here == '\\') here = at(++i);
      if (!here) return -1;
      if (c <= here && c >= previous) matched = true;
      here = 0;
    } else if (here == '[' && at(i + 1) == ':') {
      size_t name = i + 2, end = name;
      while (at(end) && at(end) != ']') end++;
      if (!at(end)) return -1;
      if (end == name || at(end - 1) != ':') {  // a set like any other
        if (c == '[') matched = true;
      } else {
        auto has = class_has(p.substr(name, end - 1 - name), c);
        if (!has) return -1;
        if (*has) matched = true;
        i = end;
        here = 0;
      }
    } else if (c == here) {
      matched = true;
    }
    previous = here;
  } while (at(++i) != ']');
  i++;
  return c != '/' && matched != negated;
}

size_t literal_prefix(std::string_view pattern) { return std::min(pattern.find_first_of("*?[\\"), pattern.size()); }

// Trailing spaces go unless a backslash keeps them.
std::string_view without_trailing_spaces(std::string_view line) {
  size_t keep = 0;
  for (size_t i = 0; i < line.size(); i++) {
    if (line[i] == '\\') {
      if (++i >= line.size()) return line;
    } else if (line[i] == ' ') {
      continue;
    }
    keep = i + 1;
  }
  return line.substr(0, keep);
}

}  // namespace

bool wildmatch(std::string_view p, std::string_view t, uint64_t& steps) {
  constexpr size_t kNone = std::string_view::npos;
  // Where to go on when what follows does not match. A star takes one more character, but never a '/'; the stars before the
  // last one have nothing left to try, because what stands between two of them fits best as early as it can. "**" takes one
  // more directory; between two of them stands a fixed number of components, so the first place that matches is as good as any.
  size_t star = kNone, star_text = 0, cross = kNone, cross_text = 0;
  bool cross_directories = true;  // what `cross` takes ends with '/'
  size_t i = 0, k = 0;
  for (;;) {
    if (steps == 0) return false;
    steps--;
    bool good = false;
    if (i == p.size()) {
      if (k == t.size()) return true;
    } else if (p[i] == '*') {
      size_t end = i;
      while (end < p.size() && p[end] == '*') end++;
      spend(steps, end - i);
      bool slash = end < p.size() && p[end] == '/', escaped_slash = end + 1 < p.size() && p[end] == '\\' && p[end + 1] == '/';
      bool crosses = end - i >= 2 && (i == 0 || p[i - 1] == '/') && (end == p.size() || slash || escaped_slash);
      if (crosses && end == p.size()) return true;
      if (crosses) {
        cross_directories = slash;  // "**/" may take nothing at all
        i = cross = slash ? end + 1 : end;
        cross_text = k;
        star = kNone;
      } else {
        i = star = end;
        star_text = k;
      }
      continue;
    } else if (k < t.size()) {
      char c = p[i];
      if (c == '?') {
        good = t[k] != '/';
        i++;
      } else if (c == '[') {
        size_t from = i++;
        int in = bracket(p, i, t[k]);
        if (in < 0) return false;
        good = in == 1;
        spend(steps, i - from);
      } else {
        bool escaped_nothing = c == '\\' && i + 1 == p.size();
        if (c == '\\' && !escaped_nothing) c = p[++i];
        good = !escaped_nothing && c == t[k];
        i++;
      }
      k++;
    }
    if (good) continue;
    if (star != kNone && star_text < t.size() && t[star_text] != '/') {
      i = star;
      k = ++star_text;
      continue;
    }
    if (cross == kNone) return false;
    star = kNone;
    if (cross_directories) {
      size_t next = t.find('/', cross_text);
      if (next == kNone) return false;
      spend(steps, next - cross_text);
      cross_text = next + 1;
    } else if (cross_text++ >= t.size()) {
      return false;
    }
    i = cross;
    k = cross_text;
  }
}

void IgnoreRules::add(const std::string& directory, std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  spend(steps_, text.size());
  directories_.push_back(directory);
  while (!text.empty() && !exhausted()) {
    size_t end = text.find('\n');
    std::string_view raw = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
    raw = raw.substr(0, raw.find('\0'));
    if (raw.empty() || raw[0] == '#' || raw.size() > kMaxPattern) continue;
    raw = without_trailing_spaces(raw);
    Rule r;
    r.directory = directories_.size() - 1;
    if (!raw.empty() && raw[0] == '!') {
      r.negated = true;
      raw.remove_prefix(1);
    }
    if (!raw.empty() && raw.back() == '/') {
      r.only_directories = true;
      raw.remove_suffix(1);
    }
    r.anchored = raw.find('/') != std::string_view::npos;
    if (!raw.empty() && raw[0] == '/') raw.remove_prefix(1);
    if (raw.empty()) continue;
    // git compares what comes before the first wildcard by itself; "**" right behind it begins a pattern then.
    size_t literal = literal_prefix(raw);
    r.prefix = raw.substr(0, literal);
    r.pattern = raw.substr(literal);
    if (rules_.size() >= kMaxIgnoreRules) {
      steps_ = 0;
      return;
    }
    rules_.push_back(std::move(r));
  }
}

void IgnoreRules::resize(size_t n) {
  rules_.resize(n);
  while (!directories_.empty() && (rules_.empty() || rules_.back().directory + 1 < directories_.size())) directories_.pop_back();
}

bool IgnoreRules::matches(const Rule& r, const std::string& path) {
  const std::string& directory = directories_[r.directory];
  std::string_view below = path;
  if (!directory.empty()) {
    if (path.size() <= directory.size() || path[directory.size()] != '/' || path.compare(0, directory.size(), directory) != 0) return false;
    below.remove_prefix(directory.size() + 1);
  }
  std::string_view subject = r.anchored ? below : below.substr(below.rfind('/') + 1);
  if (subject.substr(0, r.prefix.size()) != r.prefix) return false;
  subject.remove_prefix(r.prefix.size());
  return wildmatch(r.pattern, subject, steps_);
}

bool IgnoreRules::ignored(const std::string& path, bool is_directory) {
  for (auto it = rules_.rbegin(); it != rules_.rend(); ++it) {
    if (exhausted()) return false;
    spend(steps_, 1 + directories_[it->directory].size() / 64 + it->prefix.size() / 64);
    if (it->only_directories && !is_directory) continue;
    if (matches(*it, path)) return !it->negated;
  }
  return false;
}

}  // namespace h5i::gate
