// A host to addresses: looked up once for each send, so that what was judged is what is dialled.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plugins/websec-http/engine/wire.hpp"
#include "plugins/websec-http/scope/dial.hpp"

namespace h5i::websec {

struct Found {
  std::vector<Address> addresses;  // each once, in the order of the resolver
  std::string error;               // in words, when there are none
};
// By the system's resolver, for `timeout_ns` at most; of a host that is an address, that address.
Found look_up(const Host& host, int64_t timeout_ns);

Endpoint endpoint(const Address& address, uint16_t port);

}  // namespace h5i::websec
