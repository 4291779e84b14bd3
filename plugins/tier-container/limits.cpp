#include "limits.hpp"

#include <cstdio>

namespace h5i::container {

sdk::Result<Limits> build_limits(const Resources& r, bool group) {
  Limits out;
  if (group) {
    out.words = {"--cgroups=enabled", "--memory=" + std::to_string(r.mem) + "b", "--memory-swap=" + std::to_string(r.mem) + "b", "--pids-limit=" + std::to_string(r.procs)};
    if (r.cpus) {
      char text[32];
      snprintf(text, sizeof text, "%.2f", *r.cpus);
      out.words.push_back(std::string("--cpus=") + text);
    }
    return out;
  }
  struct {
    const char* field;
    bool there;
  } all[] = {{"resources.mem", true}, {"resources.procs", true}, {"resources.cpus", r.cpus.has_value()}};
  for (const auto& f : all) {
    if (!f.there) continue;
    if (r.named.count(f.field))
      return sdk::failure(H5I_E_POLICY_LIMIT_TIER, std::string(f.field) + ": no control group is delegated here, and the engine would ignore the limit without a word");
    out.not_enforced.push_back({f.field, "no-cgroup", "no control group is delegated here: the built-in limit is not held"});
  }
  out.words = {"--cgroups=disabled"};
  return out;
}

}  // namespace h5i::container
