// Whether this host gives a user and a pid namespace, tried in a child.
#pragma once
#include "h5i/plugin.hpp"

namespace h5i::tier_workspace {

inline constexpr const char* kPidNamespace = "pid-namespace";  // the component's id

struct Trial {
  bool ok = false;
  std::string evidence;
};

// Leaves nothing behind.
Trial try_namespaces();
// h5i.probe/1: always available; what it claims does not depend on the kernel.
json::Value probe_document(const Trial& namespaces);

}  // namespace h5i::tier_workspace
