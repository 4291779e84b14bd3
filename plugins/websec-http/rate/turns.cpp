#include "plugins/websec-http/rate/turns.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {
constexpr int64_t kLookNs = 50'000'000;
}

bool Turns::wait() {
  const int64_t asked = clock_.now_ns();
  std::lock_guard lock(one_);
  for (;;) {
    if (stop_()) return false;
    const int64_t now = clock_.now_ns(), at = gate_.next(now);
    if (at <= now) {
      gate_.take(now, asked);
      return true;
    }
    clock_.sleep(std::min(at, now + kLookNs));
  }
}

}  // namespace h5i::websec
