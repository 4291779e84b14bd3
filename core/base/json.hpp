// The SDK's JSON with errors of this tree.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/sha256.hpp"
#include "h5i/json.hpp"

namespace h5i {
using Json = json::Value;

// `what` names the document in the error. At most `limit` bytes.
Result<Json> parse_json(std::string_view text, std::string_view what, size_t limit = 64u << 20);
// The texts of a list; "" for an element that is none, nothing for what is no list.
inline std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> out;
  for (const Json& v : list.array()) out.push_back(v.string());
  return out;
}
inline std::string canonical_digest(const Json& v) { return sha256_hex(json::canonical(v)); }
}  // namespace h5i
