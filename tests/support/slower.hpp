// How many times as long something may take as in an ordinary build.
#pragma once

namespace h5i::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlower = 50;  // unoptimised, and each access to memory is looked at
#else
inline constexpr int kSlower = 1;
#endif

}  // namespace h5i::test
