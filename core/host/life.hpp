// What h5i-host and h5i-engine share: descriptors at their places, one library, verbs until the core has enough.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

#include "core/base/json.hpp"
#include "core/host/services.hpp"

namespace h5i::host {

// Statuses of a host that failed before it could say so in a frame; the core shows the number.
enum { kDone = 0, kNotStartedByCore = 64, kNoSpawner = 65, kCoreBrokeProtocol = 66 };

// Close-on-exec set on everything up to `last`; false when one is not open.
bool started_by_core(int last);
// Nothing of a dead core's run may go on: the kernel kills us with it. False when it was gone before that was set.
bool die_with_core(const UniqueFd& control);

// Called with the LOAD frame and the library before that is mapped.
using BeforeMapping = std::function<Result<void>(const Json& load, const UniqueFd& library)>;

// Loads the plugin that the core sends and serves its verbs. `kind`: "tier" or "websec"; a frame that names the other is refused. `spawner`: its
// process, for the greeting; 0 where there is none. A status.
int serve_core(Services& services, const std::string& kind, pid_t spawner, const BeforeMapping& before = {});

}  // namespace h5i::host
