#include "core/nft/far_end.hpp"

#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>

namespace h5i::nft {
namespace {

constexpr size_t kTcp = 20;  // without options
constexpr int kMaxReads = 1024;
enum : uint8_t { kSyn = 2, kReset = 4, kAck = 16 };

uint8_t byte_at(std::string_view p, size_t i) { return static_cast<uint8_t>(p[i]); }

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = bytes; i-- > 0;) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint16_t checksum(std::string_view bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i++) sum += static_cast<uint32_t>(byte_at(bytes, i)) << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}
void set(std::string& packet, size_t at, uint16_t value) {
  packet[at] = static_cast<char>(value >> 8);
  packet[at + 1] = static_cast<char>(value);
}

}  // namespace

std::string turned_down(std::string_view p) {
  if (p.empty()) return "";
  const bool v6 = byte_at(p, 0) >> 4 == 6;
  const size_t header = v6 ? 40 : (byte_at(p, 0) & 15u) * 4;
  if ((!v6 && byte_at(p, 0) >> 4 != 4) || header < 20 || p.size() < header + kTcp || byte_at(p, v6 ? 6 : 9) != IPPROTO_TCP) return "";
  std::string_view tcp = p.substr(header);
  if ((byte_at(tcp, 13) & (kSyn | kAck | kReset)) != kSyn) return "";
  const size_t length = v6 ? 16 : 4, at = v6 ? 8 : 12;
  std::string from(p.substr(at, length)), to(p.substr(at + length, length));
  uint32_t sequence = 0;
  for (size_t i = 4; i < 8; i++) sequence = sequence << 8 | byte_at(tcp, i);

  std::string segment(tcp.substr(2, 2));
  segment.append(tcp.substr(0, 2));
  put(segment, 0, 4);
  put(segment, sequence + 1, 4);
  put(segment, 5u << 12 | kReset | kAck, 2);
  put(segment, 0, 6);  // window, checksum, urgent pointer
  std::string covered = to + from;
  put(covered, kTcp, v6 ? 4 : 2);
  covered.insert(v6 ? covered.size() : covered.size() - 2, v6 ? std::string("\0\0\0\x06", 4) : std::string("\0\x06", 2));
  set(segment, 16, checksum(covered + segment));

  std::string out;
  if (v6) {
    put(out, 6u << 28, 4);
    put(out, kTcp, 2);
    put(out, IPPROTO_TCP << 8 | 64, 2);
    return out + to + from + segment;
  }
  put(out, 0x4500, 2);
  put(out, 20 + kTcp, 2);
  put(out, 0, 4);
  put(out, 64 << 8 | IPPROTO_TCP, 2);
  put(out, 0, 2);
  out += to + from;
  set(out, 10, checksum(out));
  return out + segment;
}

void FarEnd::read(int64_t now_ns) {
  char buffer[65536];
  for (int i = 0; i < kMaxReads; i++) {
    ssize_t n = ::read(tun_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    std::string_view packet(buffer, static_cast<size_t>(n));
    if (auto to = read_packet(packet)) seen_.add(*to, now_ns);
    std::string answer = turned_down(packet);
    if (!answer.empty()) (void)!::write(tun_.get(), answer.data(), answer.size());
  }
}

}  // namespace h5i::nft
