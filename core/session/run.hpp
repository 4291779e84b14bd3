// One run, from the box's name to the receipt: the steps of "Life of one run" in docs/architecture.md.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/session/box.hpp"

namespace h5i::session {

struct RunOptions {
  std::vector<std::string> argv;
  std::string cwd;                // relative to $WORK; empty: $WORK
  bool shell = false;             // own pty, no deadline, nothing captured unless `record`
  bool record = false;
  bool readonly = false;          // $WORK read-only
  // A program of h5i's own instead of a command: executed from a sealed copy, which is its standard input, and speaking on `channel`, its standard
  // output. It sees no variable of the profile's. Both are borrowed.
  struct Own {
    int program = -1, channel = -1;
    std::string name, word;
  };
  std::optional<Own> own;
  int status_fd = -1;             // one JSON object there at the end
  bool quiet = false, json = false;

  std::string verb() const { return own ? "websec" : shell ? "box shell" : "box run"; }
};

// What happened, as in the receipt (schema "h5i.receipt/1"), and the exit status that follows from it.
struct RunReport {
  Json receipt;
  int exit_status = 125;
  std::string receipt_record;  // digest of the log's record
};

// Fails only when nothing of the command ran and nothing could be recorded beyond `run-refused`.
Result<RunReport> run_in_box(const BoxEntry& box, const RunOptions& options);

}  // namespace h5i::session
