// The sends of a session, read from its log. A send without an outcome is one whose end nobody saw.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::websec {

struct PastSend {
  uint64_t seq = 0;
  bool refused = false;
  std::string time;      // of the line
  json::Value body;      // of "send" or "refused"
  json::Value outcome;   // null: unknown
  std::string ended() const;  // "complete", ..., "unknown-outcome"; of a refusal its "why"
  int status() const { return static_cast<int>(outcome["status"].integer()); }
};

// In the order of the log.
sdk::Result<std::vector<PastSend>> history(const sdk::Host& host);

// "host:app.test", "status:4xx", "size>1000", ...: H5I_E_INVALID names what is no filter.
using Filter = std::function<bool(const PastSend&)>;
sdk::Result<Filter> parse_filter(const std::string& text);

}  // namespace h5i::websec
