// Frames of HTTP/2 as a peer may write them, right or wrong.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/websec-http/h2/frames.hpp"

namespace h5i::test {

using Lines = std::vector<std::pair<std::string, std::string>>;

inline std::string h2_frame_of(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out;
  websec::append_h2_frame(&out, {static_cast<uint32_t>(payload.size()), type, flags, stream});
  return out.append(payload);
}

// An integer of HPACK (RFC 7541 section 5.1) in `bits`, with what stands before them.
inline void append_hpack_number(std::string* out, uint8_t before, int bits, size_t n) {
  size_t most = (1U << bits) - 1;
  if (n < most) return out->push_back(static_cast<char>(before | n));
  out->push_back(static_cast<char>(before | most));
  for (n -= most; n >= 128; n >>= 7) out->push_back(static_cast<char>(0x80 | (n & 0x7f)));
  out->push_back(static_cast<char>(n));
}
// Lines as literals that go into no table: any bytes can be said.
inline std::string hpack(const Lines& lines) {
  std::string out;
  for (const auto& [name, value] : lines) {
    out.push_back('\0');
    append_hpack_number(&out, 0, 7, name.size());
    out += name;
    append_hpack_number(&out, 0, 7, value.size());
    out += value;
  }
  return out;
}

inline std::string settings(std::string_view payload = {}) { return h2_frame_of(websec::kH2Settings, 0, 0, payload); }
inline std::string headers(uint32_t stream, const Lines& lines, bool ends = false) {
  return h2_frame_of(websec::kH2Headers, static_cast<uint8_t>(websec::kH2EndHeaders | (ends ? websec::kH2EndStream : 0)), stream, hpack(lines));
}
inline std::string data(uint32_t stream, std::string_view bytes, bool ends = false) {
  return h2_frame_of(websec::kH2Data, ends ? websec::kH2EndStream : 0, stream, bytes);
}
inline std::string number(uint32_t n) {
  std::string out;
  websec::append_h2_number(&out, n);
  return out;
}
inline std::string reset(uint32_t stream, uint32_t code) { return h2_frame_of(websec::kH2Reset, 0, stream, number(code)); }
inline std::string goaway(uint32_t last, uint32_t code, std::string_view debug = {}) {
  return h2_frame_of(websec::kH2Goaway, 0, 0, number(last) + number(code) + std::string(debug));
}
inline std::string ping() { return h2_frame_of(websec::kH2Ping, 0, 0, "12345678"); }

}  // namespace h5i::test
