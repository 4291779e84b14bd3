// Giving rules to the kernel and asking what it has. Everything works on the namespace that the socket was opened in, and
// needs CAP_NET_ADMIN over it. A socket serves one call at a time; a fresh one for each transaction keeps late answers out.
#pragma once
#include "core/base/unique_fd.hpp"
#include "core/nft/codec.hpp"

namespace h5i::nft {

// In this process's network namespace. UNSUPPORTED when the kernel has no netfilter sockets.
Result<UniqueFd> open_netfilter_socket();

// All of it or nothing. EXISTS: CREATE found the table; NOT_FOUND: REPLACE found none; DENIED: no CAP_NET_ADMIN there;
// UNSUPPORTED: the kernel lacks a kind of rule (named by errno), SYSTEM: anything else.
Result<void> apply(const UniqueFd& socket, const Ruleset& ruleset, Change change);

struct State {
  std::string inventory;      // of everything in the namespace, whoever made it
  std::vector<Count> counts;
};
// BUSY when somebody changes the rules all the while.
Result<State> read_state(const UniqueFd& socket);

// The namespace holds exactly `ruleset`: else TIER_SETUP with the first differences as evidence.
Result<State> confirm(const UniqueFd& socket, const Ruleset& ruleset);

}  // namespace h5i::nft
