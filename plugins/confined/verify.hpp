// Proves the claims under the exact plan of a request: a canary does what the policy forbids and must fail with the
// expected error, and the same act without the confinement must succeed, or the claim is not made.
#pragma once
#include "plan.hpp"

namespace h5i::confined {

// h5i.verify/1.
sdk::Result<json::Value> verify(const sdk::Host& host, const Request& request, const Plan& plan);

}  // namespace h5i::confined
