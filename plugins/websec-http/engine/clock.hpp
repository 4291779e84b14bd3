// The machine's own clock, for what waits its turn.
#pragma once
#include <time.h>

#include <cstdint>

#include "plugins/websec-http/rate/turns.hpp"

namespace h5i::websec {

inline Clock machine_clock() {
  constexpr int64_t kSecond = 1'000'000'000;
  return {[] {
            timespec t{};
            clock_gettime(CLOCK_MONOTONIC, &t);
            return int64_t{t.tv_sec} * kSecond + t.tv_nsec;
          },
          [](int64_t until) {
            timespec t{until / kSecond, until % kSecond};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
          }};
}

}  // namespace h5i::websec
