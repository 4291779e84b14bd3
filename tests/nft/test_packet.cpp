#include "core/nft/packet_log.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::nft;

namespace {

std::string ipv4(uint8_t protocol, const std::string& payload, uint16_t fragment = 0, size_t options = 0) {
  std::string p(20 + options, '\0');
  p[0] = static_cast<char>(0x40 | (5 + options / 4));
  p[6] = static_cast<char>(fragment >> 8), p[7] = static_cast<char>(fragment);
  p[9] = static_cast<char>(protocol);
  p[16] = 10, p[17] = 1, p[18] = 2, p[19] = 3;
  return p + payload;
}
std::string ipv6(uint8_t next, const std::string& payload) {
  std::string p(40, '\0');
  p[0] = 0x60;
  p[6] = static_cast<char>(next);
  p[24] = 0x20, p[25] = 0x01, p[26] = 0x0d, p[27] = static_cast<char>(0xb8), p[39] = 9;
  return p + payload;
}
std::string ports(uint16_t to) { return {'\x12', '\x34', static_cast<char>(to >> 8), static_cast<char>(to), 'x', 'x', 'x', 'x'}; }
std::string extension(uint8_t next, uint8_t length, size_t size) {
  std::string e(size, '\0');
  e[0] = static_cast<char>(next), e[1] = static_cast<char>(length);
  return e;
}
std::string text(const std::string& packet) {
  auto r = read_packet(packet);
  return r ? to_text(*r) : "-";
}

}  // namespace

TEST_CASE("the destination of a packet, whatever stands before it") {
  CHECK(text(ipv4(6, ports(443))) == "tcp 10.1.2.3:443");
  CHECK(text(ipv4(17, ports(53), 0, 40)) == "udp 10.1.2.3:53");
  CHECK(text(ipv4(1, "\x08\0\0\0")) == "icmp 10.1.2.3");
  CHECK(text(ipv4(132, ports(9))) == "sctp 10.1.2.3:9");
  CHECK(text(ipv4(47, ports(9))) == "protocol-47 10.1.2.3");
  CHECK(text(ipv6(6, ports(443))) == "tcp [2001:db8::9]:443");
  CHECK(text(ipv6(58, ports(1))) == "icmpv6 2001:db8::9");
  CHECK(text(ipv6(0, extension(60, 0, 8) + extension(17, 1, 16) + ports(53))) == "udp [2001:db8::9]:53");
  CHECK(text(ipv6(51, extension(6, 4, 24) + ports(22))) == "tcp [2001:db8::9]:22");
  CHECK(text(ipv6(44, extension(6, 0, 8) + ports(22))) == "tcp [2001:db8::9]:22");
}

TEST_CASE("what a packet does not say is not made up") {
  CHECK(text("") == "-");
  CHECK(text("\x45") == "-");
  CHECK(text(std::string(60, '\x15')) == "-");
  CHECK(text(ipv4(6, ports(443)).substr(0, 19)) == "-");
  CHECK(text(ipv4(6, ports(443)).substr(0, 23)) == "tcp 10.1.2.3");
  CHECK(text(ipv4(6, ports(443), 0x2000)) == "tcp 10.1.2.3:443");  // the first of several
  CHECK(text(ipv4(6, ports(443), 100)) == "tcp 10.1.2.3");
  std::string lies = ipv4(6, ports(443));
  lies[0] = 0x41;  // a header of four bytes
  CHECK(text(lies) == "-");
  lies[0] = 0x4f;  // one that goes beyond the packet
  CHECK(text(lies) == "tcp 10.1.2.3");
  std::string later = extension(6, 0, 8);
  later[3] = 8;
  CHECK(text(ipv6(44, later + ports(22))) == "tcp 2001:db8::9");
  CHECK(text(ipv6(0, extension(6, 255, 8))) == "tcp 2001:db8::9");
  std::string chain;
  for (int i = 0; i < 20; i++) chain += extension(0, 0, 8);
  CHECK(text(ipv6(0, chain)) == "protocol-0 2001:db8::9");
  for (size_t n = 0; n < 80; n++) (void)read_packet(ipv6(0, extension(60, 0, 8) + extension(17, 1, 16) + ports(53)).substr(0, n));
}

TEST_CASE("64 destinations are told by name, the others as one number") {
  Refusals all;
  auto to = [](int i) {
    Refused r;
    r.to.bytes[0] = 10, r.to.bytes[3] = static_cast<uint8_t>(i);
    r.protocol = 6, r.port = 80;
    return r;
  };
  for (int i = 64; i-- > 0;) all.add(to(i), 1000 - i);
  CHECK_FALSE(all.truncated());
  for (int i = 0; i < 100; i++) all.add(to(i), 5000);
  CHECK(all.truncated());
  CHECK(all.others() == 36);
  auto entries = all.entries();
  REQUIRE(entries.size() == 64);
  CHECK(entries.front().to == to(63));
  CHECK(entries.front().first_ns == 937);
  for (const auto& e : entries) CHECK(e.packets == 2);
  all.add(PacketLog::Read{{to(0)}, 3, true}, 6000);
  CHECK(all.lost());
  CHECK(all.unreadable() == 3);
}
