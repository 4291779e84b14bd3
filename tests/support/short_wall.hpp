#pragma once

#include "tests/support/slower.hpp"

namespace h5i::test {

// Seconds that a box may take whose deadline is to end what runs in it, not what is still being started.
inline constexpr int kShortWall = kSlower > 1 ? 9 : 2;

}  // namespace h5i::test
