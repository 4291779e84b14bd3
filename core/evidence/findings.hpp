// Boundary pressure: how often something tried a boundary and was denied, for each boundary and each lane. A lane is
// part of the type, so that what a box says of itself cannot be added to what was seen.
#pragma once
#include <map>
#include <set>
#include <string>

#include "core/evidence/log.hpp"

namespace h5i::evidence {

template <Lane L>
struct Pressure {
  struct Count {
    uint64_t denials = 0;                     // attempts that were refused
    uint64_t records = 0;                     // of the log that say so
    std::map<std::string, uint64_t> by_what;  // "connect", "gate.dotgit": attempts
  };
  std::map<Boundary, Count> at;
};

struct Findings {
  Pressure<Lane::HOST_OBSERVED> host_observed;
  Pressure<Lane::ENGINE_CLAIMED> engine_claimed;
  Pressure<Lane::BOX_CLAIMED> box_claimed;
  uint64_t claims = 0;  // records that a box staged; nobody outside it observed what they say
  // What could not be observed, by what it is about, and why. Not the same as nothing having happened.
  std::map<std::string, std::string> unobserved;
};

// Feed records in order, then take the findings. A receipt holds the sums of its run; the single denials that the same
// observer logged while it ran are then not counted a second time.
class FindingsBuilder {
 public:
  void add(const Json& record);
  Findings take();

 private:
  struct Denial {
    Boundary boundary;
    std::string what;
    uint64_t count;
  };
  std::map<std::string, std::vector<Denial>> live_;  // by session: system calls, until its receipt comes
  std::set<std::string> with_receipt_;
  Findings out_;
};

// {"host-observed":{"NET":{"denials":3,"records":1,"by":{"connect":3}}},"engine-claimed":{},"box-claimed":{},"unobserved":{}}
Json findings_json(const Findings& f);
// One line for each boundary and lane that has any; empty when none has.
std::vector<std::string> findings_lines(const Findings& f);

// The boundary that a system call is about, by its name.
Boundary boundary_of_syscall(std::string_view name);

}  // namespace h5i::evidence
