// Files that make other tools run code on the side of whoever takes the patch, and text that reads differently than it
// runs. Judged by name at any depth; nothing is refused here, it is shown.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/git/object.hpp"

namespace h5i::gate {

struct Handoff {
  std::string path;
  std::string kind;  // "git-hook", "editor", "ci", "package-script", "shell", "agent", "build", "container", "git", "policy"
  std::string why;   // what runs it, for a person
};

// The rule that a path falls under, if any.
std::optional<Handoff> hands_off(const std::string& path);
// "Will run on your side": for all paths that were added or changed (not those that were only removed), by their own names and
// as they are seen through the links of the tree (path -> target), new and old ones.
std::vector<Handoff> handoffs(const std::vector<git::Change>& changes, const std::map<std::string, std::string>& links);

// What of `.gitmodules` would act on the reader's side: an update command, URLs that are options or helpers, paths that
// leave. Lines for a person.
std::vector<std::string> submodule_warnings(std::string_view gitmodules);

// Lines whose text may read differently than it is: reordering or invisible characters, letters of two scripts in a word,
// a carriage return inside a line. Numbers from 1, at most `limit`.
struct Deception {
  uint64_t line = 0;
  std::string what;
};
std::vector<Deception> deceptions(std::string_view text, size_t limit = 20);

}  // namespace h5i::gate
