// One call of the core at a time: the frame becomes a call of the plugin's function, what it gives to the sink becomes a
// DOCUMENT, what it returns becomes the RESULT.
#pragma once
#include "core/base/result.hpp"
#include "core/host/services.hpp"
#include "core/plugin/frame.hpp"
#include "h5i/tier.h"

namespace h5i::host {

// Runs the verb of `call` and answers it. Fails only when the core is gone or the frame was none that a core sends.
Result<void> serve(Services& services, const h5i_tier& tier, void* instance, const plugin::Frame& call);

// RESULT for a call that did not come as far as the plugin.
Result<void> answer_error(Services& services, const Error& e);

}  // namespace h5i::host
