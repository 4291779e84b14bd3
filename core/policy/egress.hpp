// Egress rules: one grammar, one canonical form, one match, for policy, host allow-list, dial, firewall and receipt.
//
//   rule   = host [":" ports]          no ports: 443
//   host   = name / "*." name / IPv4 / IPv4 "/" length / "[" IPv6 "]" / "[" IPv6 "]/" length
//   ports  = port / port "-" port      TCP
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/base/address.hpp"

namespace h5i::policy {

struct EgressRule {
  enum class Kind { NAME, SUFFIX, NETWORK };  // one address is a NETWORK of full length
  Kind kind = Kind::NAME;
  std::string name;   // NAME: "api.github.com"; SUFFIX: "example.com" for "*.example.com"
  Prefix network;     // NETWORK
  uint16_t low = 443, high = 443;
  // A name may then resolve into private ranges. Always true for a NETWORK that lies in one.
  bool private_ok = false;

  std::string host_text() const;  // "api.github.com", "*.example.com", "10.1.0.0/16", "[2001:db8::5]"
  std::string text() const;       // canonical: "api.github.com:443"
  Json to_json() const;           // {"to": text(), "private": bool}
  bool operator==(const EgressRule&) const = default;
};

// POLICY_EGRESS with the reason as evidence. `text` is taken as it stands: no trimming.
Result<EgressRule> parse_egress(std::string_view text, bool private_ok = false);
// The form that a resolved policy holds.
Result<EgressRule> egress_from_json(const Json& rule);
// A host name alone, canonical (lower case, no trailing dot); POLICY_EGRESS when it is none.
Result<std::string> canonical_host(std::string_view text);

// May a connection to `name` (canonical) be dialled under this rule, as far as the name goes?
bool matches_name(const EgressRule& rule, std::string_view name, uint16_t port);
// May `address` be dialled under this rule? For NAME and SUFFIX the caller has resolved a matching name to it.
// False for every address that is never reachable, and for private ones unless the rule allows them.
bool admits_address(const EgressRule& rule, const Address& address, uint16_t port);
// Everything that `b` admits, `a` admits.
bool covers(const EgressRule& a, const EgressRule& b);
// Sorted by text, duplicates gone; of two equal rules the one with private_ok stays.
void sort_rules(std::vector<EgressRule>& rules);

}  // namespace h5i::policy
