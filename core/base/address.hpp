// Addresses as values: strict parsing, one spelling, and which of them no box may ever reach. Pure; no resolver.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace h5i {

struct Address {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};  // IPv4 in the first four
  bool operator==(const Address&) const = default;
};

struct Prefix {
  Address base;
  int length = 0;  // 0..32 or 0..128
  bool contains(const Address& a) const;
  bool contains(const Prefix& p) const;
  bool operator==(const Prefix&) const = default;
};

// Four decimal numbers without leading zeros. None of inet_aton's other spellings ("127.1", "0x7f.1", "2130706433").
std::optional<Address> parse_ipv4(std::string_view text);
// RFC 4291 section 2.2, with an embedded IPv4 tail; no zone, no brackets.
std::optional<Address> parse_ipv6(std::string_view text);
// Dotted quad, or RFC 5952 section 4 (lower case, longest run of zeros compressed).
std::string to_text(const Address& a);

enum class Reach { OPEN, PRIVATE, NEVER };
struct AddressClass {
  Reach reach = Reach::OPEN;
  std::string_view name;  // "loopback", "link-local", "metadata", "multicast", "private", ... ; "public" when OPEN
};
// What an address is for egress. An IPv6 address that carries an IPv4 one (mapped, compatible, NAT64, 6to4, Teredo,
// ISATAP) is at least as restricted as the address inside.
AddressClass classify(const Address& a);
// A prefix that lies whole in one class has it; a wider one is OPEN, and its restricted parts stay unreachable.
AddressClass classify(const Prefix& p);

// What of a prefix a box may reach, as closed ranges in order: without what is never reachable, and without private ranges
// unless `private_ok`. Of IPv6, forms that carry an IPv4 address are left out whole when the prefix is wider than the form.
// ISATAP addresses, which differ in their middle bits, are no range and stay in.
std::vector<std::pair<Address, Address>> reachable_parts(const Prefix& p, bool private_ok);

}  // namespace h5i
