// Which address of a host is dialled. The caller resolves once and gives everything that came back: every address is judged, and one
// that may not be dialled refuses the host, for a name that mixes them is a name that changes under us.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plugins/websec-http/scope/scope.hpp"

namespace h5i::websec {

constexpr size_t kMaxAddresses = 256;  // of one answer

struct AddressVerdict {
  Address address;
  AddressClass kind;
  bool admitted = false;
  std::string why;  // "public", "loopback, and the rule grants public", ...
};

struct Dial {
  std::optional<Address> pinned;  // the first one; none when anything is refused
  std::vector<AddressVerdict> verdicts;
  std::string refusal;  // "" with a pinned address
};

// `decision` is what `scope.decide(url)` said. Admitted is: of a host that is an address, that very address; of a name, what
// the rules that grant it say after "at" (public addresses without one; loopback for localhost), less the addresses that a
// deny names. Of the rules that grant a name the exact ones speak, and wildcards only where there is no exact one.
Dial choose_address(const Scope& scope, const Decision& decision, const Url& url, const std::vector<Address>& resolved);

}  // namespace h5i::websec
