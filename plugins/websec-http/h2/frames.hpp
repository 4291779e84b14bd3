// The nine bytes in front of every frame (RFC 9113 section 4.1).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace h5i::websec {

enum H2Type : uint8_t {
  kH2Data = 0, kH2Headers = 1, kH2Priority = 2, kH2Reset = 3, kH2Settings = 4, kH2Push = 5, kH2Ping = 6, kH2Goaway = 7, kH2WindowUpdate = 8,
  kH2Continuation = 9,
};
enum H2Flag : uint8_t { kH2EndStream = 1, kH2Ack = 1, kH2EndHeaders = 4, kH2Padded = 8, kH2HasPriority = 0x20 };

constexpr size_t kH2FrameHeader = 9;
constexpr uint32_t kH2MaxPayload = 16384;  // what a peer may send as long as we do not say otherwise, and we never do

struct H2Frame {
  uint32_t length = 0;
  uint8_t type = 0, flags = 0;
  uint32_t stream = 0;
};

inline uint32_t h2_number(std::string_view bytes) {  // four bytes
  uint32_t n = 0;
  for (size_t i = 0; i < 4; i++) n = n << 8 | static_cast<uint8_t>(bytes[i]);
  return n;
}
inline H2Frame h2_frame(std::string_view nine) {
  H2Frame f;
  f.length = h2_number(nine) >> 8;
  f.type = static_cast<uint8_t>(nine[3]);
  f.flags = static_cast<uint8_t>(nine[4]);
  f.stream = h2_number(nine.substr(5)) & 0x7fffffff;
  return f;
}
inline void append_h2_number(std::string* out, uint32_t n) {
  for (int shift : {24, 16, 8, 0}) out->push_back(static_cast<char>(n >> shift & 0xff));
}
inline void append_h2_frame(std::string* out, const H2Frame& f) {
  append_h2_number(out, f.length << 8 | f.type);
  out->push_back(static_cast<char>(f.flags));
  append_h2_number(out, f.stream);
}

}  // namespace h5i::websec
