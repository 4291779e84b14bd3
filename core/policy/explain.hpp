// A resolved policy as lines for a person: what each field says, where that was said, and who holds it.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "core/policy/resolve.hpp"

namespace h5i::policy {

struct FieldLine {
  std::string field, value, origin;
  std::string state;  // "enforced", "not enforced", "core" (held by h5i itself at every tier), "refused" (cannot run here)
};

// In the order of docs/policy.md; a field that nothing sets is left out. `unheld`: names of fields that the tier does not hold.
std::vector<FieldLine> explain_fields(const Resolved& resolved, const std::set<std::string>& unheld);

}  // namespace h5i::policy
