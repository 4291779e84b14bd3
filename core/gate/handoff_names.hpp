// What makes other tools run code on the side of whoever takes the patch, by the names of a path alone.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::gate {

struct Handoff {
  std::string path;
  std::string kind;  // "git-hook", "editor", "ci", "package-script", "shell", "agent", "build", "container", "git", "policy"
  std::string why;   // what runs it, for a person
};

// The rule that a path falls under, if any.
std::optional<Handoff> hands_off(const std::string& path);

// ---- for who looks at a path under other names than its own ----

enum class By {
  NAME,
  STEM,       // the name, and the name with any ending but that of a text for people: tools take several spellings
  DATA,       // the name with an ending of a data format, "compose.override.yaml"
  SUFFIX,
  PREFIX,
  DOTRC,      // a hidden name with this ending
  DIRECTORY,  // one component, or two
};
struct Rule {
  By by;
  std::string_view text;  // lower case
  const char* kind;
  const char* why;
};

// The components of a path, each as a file system that folds names knows it.
std::vector<std::string> folded_components(std::string_view path);
// Those By::DIRECTORY, by the first component of their text; `second_component` of it is empty when there is none.
const std::multimap<std::string_view, const Rule*>& directory_rules();
std::string_view second_component(const Rule& rule);
// The rule that a last component, folded, falls under; nullptr when none.
const Rule* name_rule(const std::string& name);

}  // namespace h5i::gate
