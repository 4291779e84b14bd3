// What a websec plugin's process may do, decided before the plugin is mapped: no program, no file but its session's and the system's public
// ones, no socket but an internet one.
#pragma once
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::host {

// Of this process and for ever; it must have one thread. `session`: its folder, or -1; both are borrowed. In it the engine reads, and with `writes`
// writes the log, the payloads and its state; manifest, lock and marks are the core's. What the log can give again it always writes (state/index).
// Without `network` it makes no socket at all. TIER_PROBE_MISSING names what this kernel lacks: then nothing
// was confined and the plugin must not be loaded.
Result<void> confine_engine(const UniqueFd& library, int session, bool writes, bool network = true);
// Of an engine in a box, whose tier has settled files and network: no program, no process, no trace besides.
Result<void> confine_engine_in_box();

}  // namespace h5i::host
