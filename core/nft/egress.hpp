// What may leave a box over the network, as data (h5i.egress/1): destinations that are accepted. What is not named is
// refused, so no such document can open a box further than it says. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/json.hpp"
#include "core/base/result.hpp"

namespace h5i::nft {

enum class Protocol : uint8_t { TCP, UDP };
std::string_view protocol_name(Protocol p);  // "tcp"

// Closed ranges; both ends of one family.
struct AddressRange {
  Address from, to;
  bool operator==(const AddressRange&) const = default;
};
struct PortRange {
  uint16_t from = 0, to = 0;
  bool operator==(const PortRange&) const = default;
};
AddressRange range_of(const Prefix& p);
// "10.0.0.0/8" where a range is one network, "10.0.0.7", else "10.0.0.3-10.0.0.9".
std::string to_text(const AddressRange& r);
std::string to_text(const PortRange& r);  // "443", "8000-8100"

// One accepted kind of destination, with counters of its own: each of `addresses` at each of `ports`.
struct Allow {
  std::string id;     // [a-z0-9-], 1..24 characters: names its sets and rules
  std::string about;  // for people: the rule of the policy that it comes from, at most 256 bytes; no part of what is enforced
  bool pinned = false;  // the addresses are what a name meant on the host; no part of what is enforced either
  Protocol protocol = Protocol::TCP;
  std::vector<AddressRange> addresses;  // sorted, disjoint, IPv4 first
  std::vector<PortRange> ports;         // sorted, disjoint
};

struct Egress {
  std::vector<Allow> allow;
  uint16_t log_group = 0;  // of NFLOG, where refused packets are told; 1..65535

  // INVALID, with the place: what the kernel or a reader of the text could take for something else. `normalize` first.
  Result<void> check() const;
  // Sorts and joins ranges that touch or overlap.
  void normalize();
  Json to_json() const;
  static Result<Egress> from_json(const Json& document);  // normalized and checked
};

constexpr size_t kMaxAllow = 256;
constexpr size_t kMaxDestinations = 1024;  // address ranges times port ranges, over all of `allow`

}  // namespace h5i::nft
