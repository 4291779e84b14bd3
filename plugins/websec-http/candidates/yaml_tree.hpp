// One YAML document as the tree that the same document in JSON would be. Less of YAML than there is: an alias is null and is counted, a tag says nothing,
// a key is text.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "h5i/plugin.hpp"

namespace h5i::websec {

struct YamlLimits {
  size_t depth = 64, members = 4000;  // of one mapping
  size_t values = 300'000;
};

struct YamlTree {
  std::optional<json::Value> root;
  std::string error;   // and where; when there is no root
  size_t aliases = 0;  // values that stand elsewhere
};

YamlTree yaml_tree(std::string_view text, const YamlLimits& limits = {});

}  // namespace h5i::websec
