// YAML and TOML to one located tree. No exception of a library leaves these functions; hostile bytes cost bounded stack.
#pragma once
#include "core/policy/node.hpp"

namespace h5i::policy {

// yaml-cpp's event parser. Refuses anchors, aliases, tags, merge keys, directives, several documents, duplicate or
// non-text keys (POLICY_PARSE), and nesting beyond kMaxNesting (POLICY_LIMIT). An empty file is an empty map.
Result<Node> read_yaml(std::string_view bytes, const std::string& name);

// toml++. Nesting and dotted keys are counted before the library sees the text.
Result<Node> read_toml(std::string_view bytes, const std::string& name);

}  // namespace h5i::policy
