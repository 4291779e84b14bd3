// Takes in what a box staged in its spool: one record a file, JSON, relabelled box-claimed. The box wrote every byte of
// it, names included: read beneath the spool's descriptor, no links, regular files only, counted and bounded.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::session {

inline constexpr size_t kSpoolEntries = 200;
inline constexpr size_t kSpoolBytes = 4u << 20;
inline constexpr size_t kSpoolEntryBytes = 64u << 10;
inline constexpr int kSpoolDepth = 32;  // a record can nest deeper, so that a claim always fits into one

struct SpoolEntry {
  std::string name;  // raw, as the box chose it
  Json body;         // an object
};
struct SpoolRefusal {
  std::string name, reason;
};
struct SpoolTaken {
  std::vector<SpoolEntry> entries;     // sorted by name
  std::vector<SpoolRefusal> refused;   // at most kSpoolEntries of them
  uint64_t ignored = 0;                // entries beyond the caps, not looked at
};
// Nothing stays, listed or not, so that the next run's claims are its own.
Result<SpoolTaken> take_spool(const std::string& dir);
// Before a run: what a run that was killed left behind is nobody's claim.
Result<void> empty_spool(const std::string& dir);

}  // namespace h5i::session
