// Strong types for the ids and digests that cross seams, and the sources of time and randomness.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace h5i {

template <class Tag>
struct StrongString {
  std::string value;
  StrongString() = default;
  explicit StrongString(std::string v) : value(std::move(v)) {}
  bool empty() const { return value.empty(); }
  const std::string& str() const { return value; }
  auto operator<=>(const StrongString&) const = default;
};

using SessionId = StrongString<struct SessionIdTag>;            // 26 characters, sortable by time
using PolicyDigest = StrongString<struct PolicyDigestTag>;      // 64 lower-case hex digits
using EffectiveDigest = StrongString<struct EffectiveDigestTag>;
using PluginDigest = StrongString<struct PluginDigestTag>;      // SHA-256 of the library's bytes, hex
using TierId = StrongString<struct TierIdTag>;                  // "process", "com.example.my"

// Fills `out` from getrandom(2); NO_ENTROPY when the kernel has none.
Result<void> random_bytes(void* out, size_t n);
// Crockford base32: 48 bits of milliseconds, 80 bits of randomness.
Result<SessionId> new_session_id();
// RFC 3339 UTC with milliseconds, e.g. 2026-11-30T00:28:47.123Z. `realtime_ns` from CLOCK_REALTIME.
std::string rfc3339(int64_t realtime_ns);
int64_t realtime_ns();
int64_t monotonic_ns();
// /proc/sys/kernel/random/boot_id without the newline; empty when unreadable.
std::string boot_id();

// The box's name, "agent/slug". parse() refuses everything that cli.md refuses (box.name).
struct BoxName {
  std::string agent, slug;
  std::string str() const { return agent + "/" + slug; }
  auto operator<=>(const BoxName&) const = default;
  static Result<BoxName> parse(std::string_view text, std::string_view default_agent);
};
bool valid_slug(std::string_view part, bool upper_ok);

}  // namespace h5i
