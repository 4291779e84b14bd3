#include "plugins/websec-http/http/websocket.hpp"

#include <algorithm>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kMaxControl = 125;

uint64_t big_endian(std::string_view s) {
  uint64_t n = 0;
  for (char c : s) n = n << 8 | static_cast<uint8_t>(c);
  return n;
}

void unmask(std::string* s, const std::array<char, 4>& mask) {
  for (size_t i = 0; i < s->size(); i++) (*s)[i] = static_cast<char>((*s)[i] ^ mask[i & 3]);
}

}  // namespace

std::string websocket_frame(const WsFrame& f, std::string_view payload, const std::optional<std::array<uint8_t, 4>>& mask) {
  std::string out;
  out.reserve(payload.size() + 14);
  out += static_cast<char>((f.final ? 0x80 : 0) | (f.reserved & 7) << 4 | (f.opcode & 15));
  int marked = mask ? 0x80 : 0;
  size_t n = payload.size();
  int bytes = n < 126 ? 0 : n < 65536 ? 2 : 8;
  out += static_cast<char>(marked | (bytes == 0 ? static_cast<int>(n) : bytes == 2 ? 126 : 127));
  for (int i = bytes - 1; i >= 0; i--) out += static_cast<char>(static_cast<uint64_t>(n) >> (8 * i));
  if (!mask) return out.append(payload);
  for (uint8_t b : *mask) out += static_cast<char>(b);
  for (size_t i = 0; i < n; i++) out += static_cast<char>(payload[i] ^ static_cast<char>((*mask)[i & 3]));
  return out;
}

std::string websocket_close(uint16_t code, std::string_view reason) {
  size_t n = std::min(reason.size(), kMaxControl - 2);
  if (n < reason.size())
    while (n > 0 && (static_cast<uint8_t>(reason[n]) & 0xC0) == 0x80) n--;
  std::string out{static_cast<char>(code >> 8), static_cast<char>(code)};
  return out.append(reason.substr(0, n));
}

bool websocket_code_may_be_sent(uint16_t c) {
  return (c >= 1000 && c <= 1003) || (c >= 1007 && c <= 1014) || (c >= 3000 && c <= 4999);
}

// Reads the header once enough of it is there; false while it is not, or when it is refused.
bool WebsocketReader::header_known() {
  if (header_.size() < 2) return false;
  auto b0 = static_cast<uint8_t>(header_[0]), b1 = static_cast<uint8_t>(header_[1]);
  bool masked = (b1 & 0x80) != 0;
  size_t extended = (b1 & 127) == 126 ? 2 : (b1 & 127) == 127 ? 8 : 0;
  size_t size = 2 + extended + (masked ? 4 : 0);
  if (header_.size() < size) return false;
  frame_ = {(b0 & 0x80) != 0, static_cast<uint8_t>(b0 >> 4 & 7), static_cast<uint8_t>(b0 & 15), masked, offset_ - header_.size()};
  left_ = extended == 0 ? b1 & 127 : big_endian(std::string_view(header_).substr(2, extended));
  if (masked) std::copy(header_.end() - 4, header_.end(), mask_.begin());
  auto add = [&](OddityId id) { oddities_.add(id, frame_.offset); };
  if (frame_.reserved) add(OddityId::WS_RESERVED_BITS);
  bool known = frame_.opcode <= kWsBinary || (frame_.opcode >= kWsClose && frame_.opcode <= kWsPong);
  if (!known) add(OddityId::WS_OPCODE);
  if (masked && !from_client_) add(OddityId::WS_MASKED);
  if (!masked && from_client_) add(OddityId::WS_UNMASKED);
  if (extended == 8 && left_ >> 63) add(OddityId::WS_LENGTH_TOO_LARGE);
  if ((extended == 2 && left_ < 126) || (extended == 8 && left_ < 65536)) add(OddityId::WS_LENGTH_NOT_MINIMAL);
  if (frame_.control() && !frame_.final) add(OddityId::WS_CONTROL_FRAGMENTED);
  if (frame_.control() && left_ > kMaxControl) add(OddityId::WS_CONTROL_LONG);
  if (frame_.opcode == kWsContinuation && !message_) add(OddityId::WS_CONTINUES_NOTHING);
  if ((frame_.opcode == kWsText || frame_.opcode == kWsBinary) && message_) add(OddityId::WS_MESSAGE_INSIDE);
  if (left_ > limits_.frame_bytes) add(OddityId::WS_FRAME_TOO_LARGE);
  bool continues = frame_.opcode == kWsContinuation && message_;
  if (!frame_.control() && left_ + (continues ? assembled_.size() : 0) > limits_.message_bytes) add(OddityId::WS_MESSAGE_TOO_LARGE);
  header_.clear();
  in_payload_ = true;
  return !oddities_.refused();
}

bool WebsocketReader::judge_close(std::string_view payload) {
  closed_ = true;
  if (payload.empty()) return true;
  if (payload.size() == 1) return oddities_.add(OddityId::WS_CLOSE_LENGTH, frame_.offset);
  close_code_ = static_cast<uint16_t>(big_endian(payload.substr(0, 2)));
  bool on = websocket_code_may_be_sent(*close_code_) || oddities_.add(OddityId::WS_CLOSE_CODE, frame_.offset);
  return (is_utf8(payload.substr(2)) || oddities_.add(OddityId::WS_CLOSE_NOT_UTF8, frame_.offset)) && on;
}

bool WebsocketReader::frame_done(WsSink& sink) {
  in_payload_ = false;
  if (frame_.masked) unmask(&payload_, mask_);
  std::string payload = std::move(payload_);
  payload_.clear();
  auto stopped = [&] {
    oddities_.add(OddityId::READER_STOPPED, frame_.offset);
    return false;
  };
  if (!sink.frame(frame_, payload)) return stopped();
  if (frame_.control()) {
    if (frame_.opcode == kWsClose && !judge_close(payload)) return false;
    return frame_.opcode > kWsPong || sink.message(frame_.opcode, payload) || stopped();
  }
  if (frame_.opcode == kWsText || frame_.opcode == kWsBinary) {
    message_ = frame_.opcode;
    assembled_.clear();
    text_ = {};
  } else if (frame_.opcode != kWsContinuation || !message_) {
    return true;
  }
  if (message_ == kWsText && (!text_.feed(payload) || (frame_.final && !text_.whole())) &&
      !oddities_.add(OddityId::WS_TEXT_NOT_UTF8, frame_.offset))
    return false;
  if (!frame_.final) {
    assembled_.append(payload);
    return true;
  }
  uint8_t opcode = *message_;
  message_.reset();
  if (assembled_.empty()) return sink.message(opcode, payload) || stopped();
  assembled_.append(payload);
  std::string whole = std::move(assembled_);
  assembled_.clear();
  return sink.message(opcode, whole) || stopped();
}

size_t WebsocketReader::feed(std::string_view in, WsSink& sink) {
  size_t at = 0;
  while (at < in.size() && !oddities_.refused()) {
    if (closed_) {
      oddities_.add(OddityId::WS_AFTER_CLOSE, offset_);
      return at;
    }
    if (!in_payload_) {
      header_ += in[at++];
      offset_++;
      if (!header_known()) continue;
      if (left_ > 0) continue;
    } else {
      size_t n = static_cast<size_t>(std::min<uint64_t>(left_, in.size() - at));
      payload_.append(in.substr(at, n));
      at += n;
      offset_ += n;
      left_ -= n;
    }
    if (left_ == 0 && !frame_done(sink)) return at;
  }
  return at;
}

void WebsocketReader::end() {
  if (!header_.empty() || in_payload_ || message_) oddities_.add(OddityId::WS_CUT, offset_);
}

std::optional<uint16_t> WebsocketReader::failure_code() const {
  auto why = oddities_.refusal();
  if (!why) return std::nullopt;
  switch (*why) {
    case OddityId::WS_TEXT_NOT_UTF8:
    case OddityId::WS_CLOSE_NOT_UTF8: return 1007;
    case OddityId::WS_FRAME_TOO_LARGE:
    case OddityId::WS_MESSAGE_TOO_LARGE: return 1009;
    default: return 1002;
  }
}

}  // namespace h5i::websec
