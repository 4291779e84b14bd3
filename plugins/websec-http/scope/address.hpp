// Addresses as values: what kind each is, after the special-purpose registries of IANA and the addresses at which clouds
// answer for a machine's credentials.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/url/host.hpp"

namespace h5i::websec {

struct Address {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};  // IPv4 in the first four, the rest zero
  std::string text() const;         // "127.0.0.1", "::1"
  bool operator==(const Address&) const = default;
};

// Of a host that is an address.
std::optional<Address> address_of(const Host& host);
// Four decimal numbers, or RFC 4291; no brackets, no zone, no other spelling.
std::optional<Address> parse_address(std::string_view text);

enum class Reach {
  PUBLIC,
  LOOPBACK,
  PRIVATE,  // of the site: 10/8, 172.16/12, 192.168/16, fc00::/7
  SPECIAL,  // everything else that is not somebody's public machine
};

struct AddressClass {
  Reach reach = Reach::PUBLIC;
  std::string_view name;  // "public", "loopback", "private", "link-local", "metadata", "shared", "multicast", "mapped", "nat64", ...
  // The form carries an IPv4 address that is not public: what it leads to is worse than the form.
  bool carries_restricted = false;
};
// An IPv6 address that carries an IPv4 one (mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP) is SPECIAL whatever it
// carries: which machine answers is for a gateway to say.
AddressClass classify(const Address& address);

// The IPv4 addresses that an IPv6 one carries by its form; where the form has several readings, all of them.
std::vector<Address> carried_by(const Address& address);

struct Prefix {
  Address base;
  int length = 0;
  bool contains(const Address& address) const;
  std::string text() const;  // "10.0.0.0/8"
  bool operator==(const Prefix&) const = default;
};
// "10.0.0.0/8" with no bit beyond its length.
std::optional<Prefix> parse_prefix(std::string_view text);
// The narrowest kind that holds the whole prefix, "public" when none does: what a grant of the prefix may be taken for. Addresses in
// it that are of another kind (the metadata service in 169.254.0.0/16) are not meant.
AddressClass classify(const Prefix& prefix);

}  // namespace h5i::websec
