// A resolved policy as a sandbox profile of macOS (SBPL): text and parameters. Pure, and it decides only: nothing in this tree hands a profile to
// a kernel. No path stands in the text: each is a parameter (`-D NAME=VALUE`) and the text is ASCII whatever a path holds.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/policy/resolve.hpp"

namespace h5i::policy {

// What one run knows and a policy does not.
struct SeatbeltRun {
  std::string work;                  // what $WORK means: absolute, normal
  std::vector<std::string> locked;   // never written whatever the policy grants
  std::vector<std::string> hidden;   // neither read nor written
  std::optional<uint16_t> proxy;     // the egress proxy's port on the loopback; used only when the policy has egress rules
};

struct SeatbeltProfile {
  struct Parameter {
    std::string name, value;
    bool operator==(const Parameter&) const = default;
  };
  std::string text;
  std::vector<Parameter> parameters;  // in the order of the text, each used there
  std::vector<Unheld> not_held;       // what the policy says and these rules do not hold
};

// `document` is an h5i.policy/1. Refuses POLICY_PATH for a path that is not absolute and normal, for a NUL byte and for a grant of everything;
// POLICY_FIELD_TIER for net.mode: host; INVALID for what is no such document.
//
// Later rules win, so grants come first and denials last: hidden and denied names over locked ones over every grant. Paths are compared as
// the kernel has them, without links: the caller resolves its own; /etc, /tmp, /var and /System/Volumes/Data are known here.
Result<SeatbeltProfile> seatbelt_profile(const Json& document, const SeatbeltRun& run);

}  // namespace h5i::policy
