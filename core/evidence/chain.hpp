// The chain of a log that may be a hostile copy: which record is the first that does not belong.
#pragma once
#include "core/evidence/log.hpp"

namespace h5i::evidence {

// A point that a signature vouches for.
struct Anchor {
  uint64_t count = 0;  // records up to and including the one whose digest this is
  std::string digest;
};

struct ChainReport {
  Head head;           // of what was read
  uint64_t bytes = 0;  // up to the end of the last good record
  bool broken = false;
  Errc code = Errc::OK;  // LOG_CHAIN, LOG_FOREIGN or LOG_TRUNCATED when broken
  uint64_t bad = 0;      // index of the first bad record
  std::string why;
  std::string digest_at_anchor;  // of the record that the anchor names; empty when there is no such record
};

// Reads the whole file. An error only when it cannot be read. With an anchor, a log that is shorter than the anchor or
// differs from it is broken too; without one, a change of the last record cannot be seen.
Result<ChainReport> examine_chain(const std::string& path, const std::optional<std::string>& expected_log_id = {},
                                  const std::optional<Anchor>& anchor = {});

// From a point that was checked before (`from.count` records in `bytes` bytes with the digest `from.digest`) to the
// end. Broken at record from.count-1 when the log does not hold that point.
Result<ChainReport> continue_chain(const std::string& path, const std::string& log_id, const Anchor& from,
                                   uint64_t bytes);

// "record N: why" as an Error.
Error chain_error(const std::string& path, const ChainReport& report);

}  // namespace h5i::evidence
