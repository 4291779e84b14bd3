// What follows on a connection that a 101 turned over to WebSocket frames: each frame is in the log before it goes, and as it came.
#pragma once
#include <string>
#include <vector>

#include "plugins/websec-http/engine/recorder.hpp"
#include "plugins/websec-http/engine/wire.hpp"

namespace h5i::websec {

struct Dialogue {
  std::vector<std::string> messages;     // texts to send, in order
  int64_t listen_ns = 2'000'000'000;     // how long is listened, from the last message on
  uint64_t most_bytes = 64u << 20;       // of what comes
  bool lenient = false;
  bool capture = false;
};

struct DialogueEnd {
  std::string ended;  // "closed", "listened", "refused", "connection-lost", "cancelled"
  std::string why;
  uint64_t frames_sent = 0, frames_received = 0, bytes_received = 0, bytes_sent = 0;
  int64_t close_code = 0;  // 0: none came
  json::Value facts = json::Array{};
};

// `rest`: what came behind the head. An error: the log could not be written.
sdk::Result<DialogueEnd> converse(Recorder& recorder, const Recorded& sent, Wire& wire, std::string_view rest, const Dialogue& dialogue);

}  // namespace h5i::websec
