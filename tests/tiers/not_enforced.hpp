// What a plan says that its tier does not enforce.
#pragma once
#include <string>
#include <string_view>

#include "h5i/json.hpp"

namespace h5i::test {

// The reason of a field in the plan's not_enforced; empty when it is not listed.
inline std::string reason(const json::Value& plan, std::string_view field) {
  for (const json::Value& n : plan["not_enforced"].array())
    if (n["field"].string() == field) return n["reason"].string();
  return {};
}

}  // namespace h5i::test
