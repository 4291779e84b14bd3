// One send as the session's log and payloads have it, for a document that leaves the session.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "h5i/json.hpp"

namespace h5i::websec {

// A line of kind "frame": one message or control frame of a WebSocket. `of` is the send that opened it.
struct ExportedFrame {
  json::Value body;  // of, direction "send" or "receive", opcode, time, payload (SHA-256)
  std::optional<std::string> payload;
};

struct ExportedSend {
  uint64_t number = 0;
  std::string time;      // of the record, RFC 3339 with its offset
  std::string ended;     // "complete", "tunnel", ..., "unknown-outcome"; of a refusal its "why"
  bool refused = false;  // never sent
  json::Value record, outcome;
  // The messages, when the session keeps them: heads with their first line, bodies without chunks, content codings still on.
  std::optional<std::string> request_head, request_body, response_head, response_body;
  std::vector<ExportedFrame> frames;

  bool kept() const { return request_head.has_value(); }
};

// What may leave. A value that says who asks is a number of bytes, unless its user named it.
struct ExportRules {
  bool with_credentials = false;
  bool (*is_credential)(std::string_view header_name) = nullptr;
};

}  // namespace h5i::websec
