// The part of macOS's profile language that h5i writes, read by its grammar and not by what wrote it: s-expressions, strings with escapes,
// parameters, and the last rule that matches decides. What is not known here is an error, never a guess.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::sbpl {

struct Node {
  enum class Kind { LIST, SYMBOL, STRING } kind = Kind::LIST;
  std::string text;         // of a symbol or string, escapes read
  std::vector<Node> items;  // of a list
};
// The lists of a text; nothing where it is not well formed.
std::optional<std::vector<Node>> parse(std::string_view text);

struct Filter {
  std::string kind;   // "literal", "subpath", "remote tcp", "target", "sysctl-name", "global-name"
  std::string value;  // a parameter's is looked up
  bool parameter = false;
};
struct Rule {
  bool allow = false;
  std::vector<std::string> operations;  // a last `*` is every operation that begins so
  std::vector<Filter> filters;          // any of them; none: everything
};
struct Rules {
  std::vector<Rule> rules;
  std::vector<std::string> used;  // names of parameters, in the order of the text

  // May `operation` be done to `subject` (a path, "localhost:8080", "self", a name)?
  bool may(std::string_view operation, std::string_view subject) const;
};
// `why` says what was not understood.
std::optional<Rules> read(std::string_view text, const std::map<std::string, std::string>& parameters, std::string* why = nullptr);

}  // namespace h5i::sbpl
