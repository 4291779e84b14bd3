// One call of the core at a time: the frame becomes a call of the plugin's function, what it gives to the sink becomes a
// DOCUMENT, what it returns becomes the RESULT.
#pragma once
#include "core/base/result.hpp"
#include "core/host/services.hpp"
#include "core/plugin/frame.hpp"
#include "h5i/tier.h"
#include "h5i/websec.h"

namespace h5i::host {

// The plugin's functions, of one kind or the other.
struct Verbs {
  const h5i_tier* tier = nullptr;
  const h5i_websec* websec = nullptr;
};

// Runs the verb of `call` and answers it. Fails only when the core is gone or the frame was none that a core sends.
Result<void> serve(Services& services, const Verbs& verbs, void* instance, const plugin::Frame& call);

// RESULT for a call that did not come as far as the plugin.
Result<void> answer_error(Services& services, const Error& e);

}  // namespace h5i::host
