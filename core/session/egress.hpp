// What the egress rules of a policy mean on this host now: names are looked up once, here, every address is checked, and a box
// gets addresses and a hosts file. No resolver is reachable from a box.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/policy/egress.hpp"
#include "core/session/box.hpp"

namespace h5i::session {

// Name -> its addresses; a name that has none is left out.
using Addresses = std::map<std::string, std::vector<Address>>;
using Lookup = std::function<Result<Addresses>(const std::vector<std::string>& names)>;

// By the C library, in a child that is ended after ten seconds: a resolver that hangs holds up no run for longer.
Result<Addresses> look_up(const std::vector<std::string>& names);

struct EgressNow {
  Json network;  // of h5i.run/1: {"egress": h5i.egress/1, "hosts": lines for /etc/hosts}
  Json added;    // the host allow-list's rules that the profile did not have, as text
  Json refused;  // [{"rule","address"}]: where a name pointed and no box may go
};

// `profile`: of a resolved policy. POLICY_EGRESS_TIER: `*.suffix`, which no address stands for. EGRESS_RESOLVE: a name
// without an address that a box may reach.
Result<EgressNow> egress_now(const Json& profile, const UserDirs& dirs, const Lookup& lookup = look_up);

// The names that must be looked up, each once.
std::vector<std::string> names_of(const std::vector<policy::EgressRule>& rules);
// One rule as a destination of h5i.egress/1. Where a name points and no box may go is added to `refused`.
Result<Json> destination(const policy::EgressRule& rule, const Addresses& found, const std::string& id, Json& refused);
// Of destinations: what their pinned names are, as lines for /etc/hosts.
std::string hosts_lines(const Json& allow);

// Whether a tier with these claims needs to be told.
bool takes_egress(const Json& claims);

}  // namespace h5i::session
