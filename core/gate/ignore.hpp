// The rules of gitignore(5), for deciding which untracked paths stay behind. Pure: the caller reads the files. Tracked
// paths are never ignored, so a rule that a box writes can keep new files in the box and hide no change of an old one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::gate {

// A step is one element of a pattern held against one character, one rule looked at, or one byte of rules read. The files
// are a box's own, so all of one scan together have a limit: some seconds.
constexpr uint64_t kMaxIgnoreSteps = 1'000'000'000;
constexpr size_t kMaxIgnoreRules = 200'000;  // in force at once

// git's wildmatch with WM_PATHNAME: '*' and '?' do not cross '/', "**" does in the places where gitignore(5) says so.
// Never goes back further than to the last star of a component and the last "**": time is the product of the two lengths for
// each directory of the text. `steps` counts down; at 0 the answer is false.
bool wildmatch(std::string_view pattern, std::string_view text, uint64_t& steps);

class IgnoreRules {
 public:
  explicit IgnoreRules(uint64_t steps = kMaxIgnoreSteps) : steps_(steps) {}
  // `directory`: where the file lies, relative to the root, "" or without a slash at its end. Rules that are added later
  // win, so add outer directories first.
  void add(const std::string& directory, std::string_view text);
  // Drops the rules of `directory` when the walk leaves it.
  size_t size() const { return rules_.size(); }
  void resize(size_t n);
  // The walk asks for parents first and does not enter an ignored directory.
  bool ignored(const std::string& path, bool is_directory);
  // The limit was met: answers since then mean nothing.
  bool exhausted() const { return steps_ == 0; }

 private:
  struct Rule {
    size_t directory;     // in directories_
    std::string pattern;  // from its first wildcard on
    std::string prefix;   // what comes before that
    bool negated = false, only_directories = false, anchored = false;
  };
  bool matches(const Rule& r, const std::string& path);
  uint64_t steps_;
  std::vector<Rule> rules_;
  std::vector<std::string> directories_;
};

}  // namespace h5i::gate
