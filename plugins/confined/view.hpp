// The box's file view: which parts of the host are mounted where, with which flags, and the Landlock rules that say the
// same a second time. Decides only; the host's spawner mounts.
#pragma once
#include <string>
#include <vector>

#include "host_view.hpp"
#include "request.hpp"

namespace h5i::confined {

struct NotEnforced {
  std::string field, reason, detail;
};

// A name that must exist on the host for the time of a run, so that a mount can stand on it.
struct Placeholder {
  std::string root, relative;  // an area's directory on the host, and the path below it
  bool directory = false;
};

struct View {
  json::Array mounts;          // entries of h5i.plan/1, in order
  json::Array landlock_rules;  // {path, access}
  std::vector<NotEnforced> not_enforced;
  std::vector<Placeholder> placeholders;  // parents first
};

// What Landlock of this ABI can decide about files; the whole set is handled.
uint64_t landlock_rights(int abi);

// POLICY_PATH, POLICY_SOCKET, POLICY_FIELD_TIER.
sdk::Result<View> build_view(const Request& request, const HostFacts& facts, const HostView& host);

// Host directories behind fs.private, one a row of request.private_dirs; run() makes them.
std::string private_source(const Request& request, const PrivateDir& directory);

}  // namespace h5i::confined
