// The newest run of a box, found from the end of its log, so that a list of boxes does not read every log whole.
#pragma once
#include <optional>

#include "core/session/box.hpp"

namespace h5i::session {

struct LastRun {
  std::string kind;     // "receipt", "run-refused"; "attested": it began, and its end was not recorded (yet)
  SessionId session;
  std::string time;     // RFC 3339 of the record
  uint64_t index = 0;   // the record's seq
  Json body;            // the record's body: the receipt, or why it was refused
};

// nullopt when the last kTail bytes hold none of the three. Checks nothing of the chain.
Result<std::optional<LastRun>> last_run(const BoxPaths& paths);

}  // namespace h5i::session
