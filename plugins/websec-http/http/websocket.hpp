// WebSocket (RFC 6455): frames to write, frames to read. Randomness is given by the caller.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/websec-http/http/oddity.hpp"
#include "plugins/websec-http/http/utf8_check.hpp"

namespace h5i::websec {

enum WsOpcode : uint8_t { kWsContinuation = 0, kWsText = 1, kWsBinary = 2, kWsClose = 8, kWsPing = 9, kWsPong = 10 };

struct WsFrame {
  bool final = true;
  uint8_t reserved = 0;  // the three bits, 4 for RSV1
  uint8_t opcode = kWsText;
  bool masked = false;
  uint64_t offset = 0;   // in the stream of the side that sent it
  bool control() const { return opcode >= 8; }
};

// One frame. A client masks; without a mask it is a server's, or a client's that breaks the rule on purpose.
std::string websocket_frame(const WsFrame& frame, std::string_view payload, const std::optional<std::array<uint8_t, 4>>& mask);
// A close frame's payload; the reason is cut, at a character, to the 123 bytes that fit.
std::string websocket_close(uint16_t code, std::string_view reason);
bool websocket_code_may_be_sent(uint16_t code);  // RFC 6455 section 7.4, and 1012 to 1014 of the registry

class WsSink {
 public:
  virtual ~WsSink() = default;
  // Each frame as it is whole, without its mask.
  virtual bool frame(const WsFrame& frame, std::string_view payload) = 0;
  // Each message as its last frame came, and each control frame.
  virtual bool message(uint8_t opcode, std::string_view payload) = 0;
};

struct WsLimits {
  size_t frame_bytes = 16 * 1024 * 1024;
  size_t message_bytes = 64 * 1024 * 1024;
};

class WebsocketReader {
 public:
  // `from_client`: the frames must be masked, otherwise they must not.
  WebsocketReader(bool from_client, bool strict, const WsLimits& limits) : from_client_(from_client), limits_(limits), oddities_(strict) {}
  // How many bytes were used: all, but behind a close frame or a refusal.
  size_t feed(std::string_view in, WsSink& sink);
  void end();  // the connection closed
  bool closed() const { return closed_; }
  std::optional<uint16_t> close_code() const { return close_code_; }
  const Oddities& oddities() const { return oddities_; }
  // The code with which this reading should be closed: 1002, 1007 or 1009; nothing while all is well.
  std::optional<uint16_t> failure_code() const;

 private:
  bool header_known();
  bool frame_done(WsSink& sink);
  bool judge_close(std::string_view payload);

  bool from_client_;
  WsLimits limits_;
  Oddities oddities_;
  std::string header_;   // of the frame being read
  bool in_payload_ = false, closed_ = false;
  WsFrame frame_;
  uint64_t left_ = 0;
  std::array<char, 4> mask_{};
  std::string payload_;
  std::optional<uint8_t> message_;  // the opcode of a message that is not whole yet
  std::string assembled_;
  Utf8Check text_;
  std::optional<uint16_t> close_code_;
  uint64_t offset_ = 0;
};

}  // namespace h5i::websec
