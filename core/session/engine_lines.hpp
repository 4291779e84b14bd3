// What an engine wrote into the log that it was given: the process that writes it also maps a plugin and reads what a target sends.
#pragma once
#include <string>

#include "core/evidence/log.hpp"

namespace h5i::session {

// `before`, `bytes`: the log's head and size when the engine got it. Everything after continues the chain from there, and each record is the
// engine's own: lane engine-claimed, this observer. LOG_CHAIN or LOG_TRUNCATED names the first record that is not.
// A last line that is not whole is none: who writes next cuts it off.
Result<void> check_engine_lines(const std::string& log, const evidence::Head& before, uint64_t bytes, const std::string& observer);

}  // namespace h5i::session
