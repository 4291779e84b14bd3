// What this host could enforce, each component tried in a child of its own: a version number proves nothing.
#pragma once
#include <vector>

#include "host_view.hpp"
#include "request.hpp"

namespace h5i::confined {

struct Component {
  const char* id;
  bool ok = false;
  std::string evidence;
  const char* reason = "";  // an error id when it is not there
  bool required = true;
};

// Leaves nothing behind: every child has ended when it returns.
std::vector<Component> probe_components(const HostFacts& facts, bool as_root, const TierKind& tier = kProcess);

// h5i.probe/1.
json::Value probe_document(const std::vector<Component>& components, const TierKind& tier = kProcess);

}  // namespace h5i::confined
