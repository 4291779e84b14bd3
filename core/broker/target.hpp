// Where a request wants to go, in one spelling, and which rule of the policy lets it. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/address.hpp"
#include "core/policy/egress.hpp"

namespace h5i::broker {

struct Target {
  std::string name;                // canonical; empty when an address is meant
  std::optional<Address> address;  // written as an address
  uint16_t port = 0;

  std::string host_text() const;  // "api.example.com", "10.1.0.7", "[2001:db8::5]"
  std::string text() const;       // with the port, always
  bool operator==(const Target&) const = default;
};

// HOST[:PORT] as in an authority or a Host field; nothing when it is none, or has no port and `port` is 0. Neither user
// information nor any other spelling of an address than the one (RFC 3986 section 3.2.2 without IPvFuture and zones).
std::optional<Target> parse_target(std::string_view text, uint16_t port = 0);

// The rules that let `t` through as far as its name or address goes, in order; indices of `rules`.
std::vector<size_t> matching(const std::vector<policy::EgressRule>& rules, const Target& t);
// Why none does: "no-rule", or "address-loopback", "address-private", "address-metadata" ... for an address that no rule could open
// or that is named by none.
std::string refusal(const Target& t);

// Of what a name means, the addresses that one of these rules admits.
std::vector<Address> admitted(const std::vector<policy::EgressRule>& rules, const std::vector<size_t>& by,
                              const std::vector<Address>& found, uint16_t port);

}  // namespace h5i::broker
