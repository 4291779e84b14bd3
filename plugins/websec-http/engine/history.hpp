// The sends of a session, as its log has them. Asked through the index (index/), which only says where in the log something stands; without one, the
// same answer from the whole log. A send without an outcome is one whose end nobody saw.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/budget/budget.hpp"
#include "plugins/websec-http/index/filter.hpp"

namespace h5i::websec {

struct PastSend {
  uint64_t seq = 0;
  bool refused = false;
  std::string time;      // of the line
  json::Value body;      // of "send" or "refused"
  json::Value outcome;   // null: unknown
  std::string ended() const { return row().ended; }
  int status() const { return static_cast<int>(outcome["status"].integer()); }
  IndexRow row() const { return row_of(seq, refused, body, outcome); }
};

// A send with what came after it.
struct Told {
  PastSend send;
  std::vector<json::Value> frames;  // bodies of its lines "frame", where they were asked for
  size_t bytes = 0;                 // of the lines that it was read from
};

// Which sends: all the filters hold, from line `from` on, in the log that ends with line `until`.
struct Wanted {
  Filters filters;
  uint64_t from = 0, until = UINT64_MAX;
  bool frames = false;
};
// Each, in the order of the log, and never all of them in memory. Ends early when `each` says false.
sdk::Status each_send(const sdk::Host& host, const Wanted& wanted, const std::function<sdk::Result<bool>(Told&)>& each);

// The number of the log's last line.
sdk::Result<uint64_t> last_line(const sdk::Host& host);

// The last `most` for which the filters hold: where they begin and end. `cut`: there are more before them.
struct Last {
  uint64_t from = 0, until = 0;
  bool cut = false;
};
sdk::Result<Last> last_sends(const sdk::Host& host, const Filters& filters, uint64_t most);

// What all sends of the session used up, those included whose end nobody saw.
sdk::Result<Amounts> spent_so_far(const sdk::Host& host);

// The engine's lines of these kinds, which are none of a send or an outcome, in their order.
sdk::Status each_line(const sdk::Host& host, const std::vector<std::string>& kinds, uint64_t until, const std::function<bool(const json::Value& record)>& each);

}  // namespace h5i::websec
