// What this host could enforce, each component tried in a child of its own: a version number proves nothing.
#pragma once
#include <vector>

#include "host_view.hpp"

namespace h5i::tier_process {

struct Component {
  const char* id;
  bool ok = false;
  std::string evidence;
  const char* reason = "";  // an error id when it is not there
  bool required = true;
};

// Leaves nothing behind: every child has ended when it returns.
std::vector<Component> probe_components(const HostFacts& facts, bool as_root);

// h5i.probe/1.
json::Value probe_document(const std::vector<Component>& components);

}  // namespace h5i::tier_process
