// The host of a URL (URL Standard, section 3): one value for each machine however it is spelled.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "h5i/plugin.hpp"

namespace h5i::websec {

// A name in DNS has at most 253 bytes. The standard sets no limit; this one bounds the work of IDNA.
constexpr size_t kMaxHost = 2048;

struct Host {
  enum class Kind { EMPTY, DOMAIN, IPV4, IPV6, OPAQUE };
  Kind kind = Kind::EMPTY;
  std::string text;                  // serialised: "example.com", "127.0.0.1", "[::1]"
  std::array<uint8_t, 16> address{};  // IPV4 in the first four bytes, network order
  bool is_address() const { return kind == Kind::IPV4 || kind == Kind::IPV6; }
  bool operator==(const Host&) const = default;
};

// `text` is valid UTF-8, as it stands between the delimiters of a URL. `special`: of a special scheme, so a domain or an
// address; otherwise opaque or IPv6 in brackets. H5I_E_INVALID or H5I_E_TOO_LARGE with what is wrong.
sdk::Result<Host> parse_host(std::string_view text, bool special);

// "::1", without brackets; RFC 4291 with an IPv4 tail, no zone.
std::optional<std::array<uint8_t, 16>> parse_ipv6(std::string_view text);
std::string ipv6_text(const std::array<uint8_t, 16>& address);  // RFC 5952: shortest, longest run of zeros compressed
std::string ipv4_text(const std::array<uint8_t, 16>& address);  // of the first four bytes

}  // namespace h5i::websec
