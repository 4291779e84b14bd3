// Waits for a turn at a gate. One for all who share a ceiling; may be used by several threads.
#pragma once
#include <functional>
#include <mutex>

#include "plugins/websec-http/rate/rate.hpp"

namespace h5i::websec {

struct Clock {
  std::function<int64_t()> now_ns;                // one that only goes forward
  std::function<void(int64_t until_ns)> sleep;    // may return early
};

class Turns {
 public:
  // `stop` is asked while it waits, at least every 50 ms.
  Turns(const Rate& rate, Clock clock, std::function<bool()> stop) : gate_(rate), clock_(std::move(clock)), stop_(std::move(stop)) {}
  // True: start now. False: it was stopped, and nothing was taken.
  bool wait();

 private:
  std::mutex one_;  // who has it sleeps; the others queue for it
  Gate gate_;
  Clock clock_;
  std::function<bool()> stop_;
};

}  // namespace h5i::websec
