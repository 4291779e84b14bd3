// The SDK's JSON with errors of this tree.
#pragma once
#include "core/base/result.hpp"
#include "core/base/sha256.hpp"
#include "h5i/json.hpp"

namespace h5i {
using Json = json::Value;

// `what` names the document in the error. At most `limit` bytes.
Result<Json> parse_json(std::string_view text, std::string_view what, size_t limit = 64u << 20);
inline std::string canonical_digest(const Json& v) { return sha256_hex(json::canonical(v)); }
}  // namespace h5i
