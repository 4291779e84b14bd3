// h5i.host.session/1: the log and the payloads of the session that an engine serves.
#pragma once
#include <vector>

#include "core/host/services.hpp"

namespace h5i::host {

// What a websec plugin may have. Without Services::session every call of the session's is refused.
std::vector<Offer> engine_offers();

}  // namespace h5i::host
