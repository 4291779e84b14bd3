// What one resolved policy allows more, and what less, than another: field by field, by what is admitted and not by spelling.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::policy {

enum class Direction { WIDENED, NARROWED, CHANGED };  // CHANGED: neither, or not comparable (another tier, a constant)
std::string_view direction_name(Direction d);

struct Change {
  std::string field;
  Direction direction;
  std::string detail;  // "+ /opt/tool", "4G -> 8G"
};

// Both are documents of h5i.policy/1.
std::vector<Change> compare(const Json& from, const Json& to);

}  // namespace h5i::policy
