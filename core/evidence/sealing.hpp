// Signing the head of a log with the host's key.
#pragma once
#include <string>

#include "core/evidence/keys.hpp"
#include "core/evidence/seal.hpp"

namespace h5i::evidence {

// Signs the log's head: what was appended since the last seal is checked first, and the log flushed. The seal goes to
// the host's own store and beside the log. Safe when several run at once: they take turns, and no seal is replaced by
// an older one. A log that does not continue its last seal is not signed again (LOG_CHAIN, LOG_TRUNCATED, LOG_FOREIGN),
// so that a changed log cannot be made good by sealing it. `made` is false when the newest seal covers everything
// already.
struct Sealed {
  Seal seal;
  bool made = false;
};
Result<Sealed> seal_log(const std::string& log_path, const std::string& state_dir);

// What the git ref of a log's head holds (refs/h5i/...): the seal's bytes, and the public key that checks them in a
// second file, so that a clone can be verified by somebody who trusts that key.
struct Published {
  std::string seal_bytes;        // as in "<log>.seal"
  std::string public_key_bytes;  // PEM
};
// KEY_MISSING, or NOT_FOUND when the log has no seal.
Result<Published> published_head(const std::string& log_path, const std::string& state_dir);

}  // namespace h5i::evidence
