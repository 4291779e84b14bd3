// The little that this tier says: a program runs, with the environment of the request and no other.
#pragma once
#include "h5i/plugin.hpp"

namespace h5i::tier_workspace {

// h5i.verify/1. `plan` is the one of the request.
sdk::Result<json::Value> verify(const sdk::Host& host, json::Value plan);

}  // namespace h5i::tier_workspace
