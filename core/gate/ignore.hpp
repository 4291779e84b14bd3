// The rules of gitignore(5), for deciding which untracked paths stay behind. Pure: the caller reads the files. Tracked
// paths are never ignored, so a rule that a box writes can keep new files in the box and hide no change of an old one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace h5i::gate {

// git's wildmatch with WM_PATHNAME: '*' and '?' do not cross '/', "**" does in the places where gitignore(5) says so.
bool wildmatch(std::string_view pattern, std::string_view text);

class IgnoreRules {
 public:
  // `directory`: where the file lies, relative to the root, "" or without a slash at its end. Rules that are added later
  // win, so add outer directories first.
  void add(const std::string& directory, std::string_view text);
  // Drops the rules of `directory` when the walk leaves it.
  size_t size() const { return rules_.size(); }
  void resize(size_t n) { rules_.resize(n); }
  // The walk asks for parents first and does not enter an ignored directory.
  bool ignored(const std::string& path, bool is_directory) const;

 private:
  struct Rule {
    std::string directory, pattern;
    bool negated = false, only_directories = false, anchored = false;
  };
  std::vector<Rule> rules_;
};

}  // namespace h5i::gate
