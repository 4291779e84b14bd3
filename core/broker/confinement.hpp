// What the proxy's process may do, settled before it reads a byte of a box: dial, look names up, and nothing else.
#pragma once
#include "core/base/result.hpp"

namespace h5i::broker {

// Of this process and every thread that it starts from now on, for ever. It reads the system's public files for name look-up, writes none,
// starts no program and no process, opens internet sockets only and listens on none. TIER_PROBE_MISSING: what this kernel lacks.
Result<void> confine_proxy();

}  // namespace h5i::broker
