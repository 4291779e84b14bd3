// The newest run of a box, in the words of a list and in the form of the schemas.
#pragma once
#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/session/last_run.hpp"

namespace h5i::cli {

// null when nothing ran: {"session","time","status","exit_status","reason"}.
Json run_summary(const std::optional<session::LastRun>& run);
// "exited 0, 2026-01-02T03:04:05.678Z"; "-" when nothing ran.
std::string run_words(const std::optional<session::LastRun>& run);

}  // namespace h5i::cli
