// The sends of a session one after another, so that a long session is never held whole.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>

#include "plugins/websec-http/engine/history.hpp"

namespace h5i::websec {

// What must be known of a log before its sends can be told in order: how far it goes, and for which sends to wait for how much.
struct Outline {
  uint64_t until = 0;                   // number of its last line now: later ones are not looked at
  std::set<uint64_t> open;              // sends without an outcome
  std::map<uint64_t, uint64_t> frames;  // lines of kind "frame", of sends that have some
};
sdk::Result<Outline> outline(const sdk::Host& host);

// Each send and refusal from line `from` to the outline's end, in the order of the log, whole: with its outcome and its frames. Held are those
// whose end comes later than that of one behind them. Ends early when `each` says false.
struct Told {
  PastSend send;
  std::vector<json::Value> frames;
};
sdk::Status each_send(const sdk::Host& host, const Outline& outline, uint64_t from, const std::function<sdk::Result<bool>(Told&)>& each);

}  // namespace h5i::websec
