// One Set-Cookie line into its parts (RFC 6265bis, section 5.6). What they mean for a jar is jar.hpp's.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace h5i::websec {

constexpr size_t kMaxNameAndValue = 4096;    // octets of both together; more, and the cookie is refused
constexpr size_t kMaxAttributeValue = 1024;  // octets; a longer attribute is not seen
constexpr int64_t kMaxLifetime = int64_t{400} * 86400;  // seconds; a later end is this one

enum class SameSite { DEFAULT, NONE, LAX, STRICT };

struct SetCookie {
  std::string name, value;
  // Each as the last attribute of its name says.
  std::optional<std::string> domain;  // lower case, without a first dot; may be empty
  std::optional<std::string> path;    // as written; none when it does not begin with a slash
  std::optional<int64_t> expires;     // by Max-Age, or by Expires where there is none; capped
  bool secure = false, http_only = false;
  SameSite same_site = SameSite::DEFAULT;
};

// Nothing when the line holds a control character or is too long; `why` says which. `now` in seconds since 1970.
std::optional<SetCookie> parse_set_cookie(std::string_view line, int64_t now, const char** why = nullptr);

}  // namespace h5i::websec
