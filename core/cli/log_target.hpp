// Which log a person means: a box, a session, or a file.
#pragma once
#include <optional>
#include <string>

#include "core/session/box.hpp"

namespace h5i::cli {

struct LogTarget {
  std::string path;
  std::optional<session::BoxEntry> box;  // of a box, or of the box that a session ran in
  std::string session;                   // when a session was named
};

// A path when it begins with '/', './' or '../'. Else a box of that name when there is one; else a file whose name ends in
// ".jsonl", a session by its 26 digits, the newest evidence that removed boxes of that name left.
Result<LogTarget> log_target(const std::string& text);
// The same for a verb that writes: a box or a session, never a file of unknown origin.
Result<LogTarget> box_log_target(const std::string& text);

}  // namespace h5i::cli
