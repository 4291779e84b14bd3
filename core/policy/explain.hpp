// A resolved policy as lines for a person: what each field says, where that was said, and who holds it.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "core/policy/resolve.hpp"

namespace h5i::policy {

struct FieldLine {
  std::string field, value, origin;
  // "enforced", "in part" (claimed, but the tier's plan names a gap), "not enforced", "core" (held by h5i itself at every
  // tier), "refused" (a run is refused because of it)
  std::string state;
};

// In the order of docs/policy.md; a field that nothing sets is left out. `unheld`: names of fields that the tier does not
// claim; `gaps`: those for which its plan says what is not held.
std::vector<FieldLine> explain_fields(const Resolved& resolved, const std::set<std::string>& unheld,
                                      const std::set<std::string>& gaps = {});

}  // namespace h5i::policy
