#include "core/nft/packet_log.hpp"

#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "core/nft/attributes.hpp"

namespace h5i::nft {
namespace {

constexpr uint32_t kCopy = 256;        // both headers; the rule's snap length is less
constexpr int kBuffer = 1 << 20;
constexpr int kAnswerMs = 5000;
constexpr int kMaxReads = 1024;        // of one call, so that a flood does not hold the reader
constexpr int kMaxExtensions = 8;

bool has_ports(uint8_t protocol) {
  return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP || protocol == IPPROTO_DCCP || protocol == IPPROTO_UDPLITE;
}
uint8_t byte_at(std::string_view p, size_t i) { return static_cast<uint8_t>(p[i]); }
uint16_t word_at(std::string_view p, size_t i) { return static_cast<uint16_t>(byte_at(p, i) << 8 | byte_at(p, i + 1)); }

void take_port(std::string_view packet, size_t transport, Refused& r) {
  if (has_ports(r.protocol) && packet.size() >= transport + 4) r.port = word_at(packet, transport + 2);
}

std::optional<Refused> read_ipv4(std::string_view p) {
  size_t header = (byte_at(p, 0) & 15u) * 4;
  if (p.size() < 20 || header < 20) return std::nullopt;
  Refused r;
  r.protocol = byte_at(p, 9);
  memcpy(r.to.bytes.data(), p.data() + 16, 4);
  bool first = (word_at(p, 6) & 0x1fff) == 0;
  if (first) take_port(p, header, r);
  return r;
}

std::optional<Refused> read_ipv6(std::string_view p) {
  if (p.size() < 40) return std::nullopt;
  Refused r;
  r.to.v6 = true;
  memcpy(r.to.bytes.data(), p.data() + 24, 16);
  r.protocol = byte_at(p, 6);
  size_t at = 40;
  for (int i = 0; i < kMaxExtensions; i++) {
    bool fragment = r.protocol == IPPROTO_FRAGMENT, authentication = r.protocol == IPPROTO_AH;
    if (!fragment && !authentication && r.protocol != IPPROTO_HOPOPTS && r.protocol != IPPROTO_ROUTING && r.protocol != IPPROTO_DSTOPTS) {
      take_port(p, at, r);
      return r;
    }
    if (p.size() < at + 8) return r;  // cut: the outermost that is known
    bool later = fragment && (word_at(p, at + 2) & 0xfff8) != 0;
    r.protocol = byte_at(p, at);
    if (later) return r;
    at += fragment ? 8 : authentication ? (byte_at(p, at + 1) + 2u) * 4 : (byte_at(p, at + 1) + 1u) * 8;
  }
  return r;
}

std::string protocol_text(uint8_t p) {
  switch (p) {
    case IPPROTO_TCP: return "tcp";
    case IPPROTO_UDP: return "udp";
    case IPPROTO_ICMP: return "icmp";
    case IPPROTO_ICMPV6: return "icmpv6";
    case IPPROTO_SCTP: return "sctp";
    case IPPROTO_DCCP: return "dccp";
    case IPPROTO_UDPLITE: return "udplite";
    case IPPROTO_IGMP: return "igmp";
    default: return "protocol-" + std::to_string(p);
  }
}

// Sends one configuration message and waits for its acknowledgement.
Result<void> configure(const UniqueFd& socket, uint8_t family, uint16_t group, uint32_t sequence, uint16_t attribute, const void* data, size_t size) {
  std::vector<char> buffer(4096);
  nlmsghdr* h = mnl_nlmsg_put_header(buffer.data());
  h->nlmsg_type = (NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG;
  h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  h->nlmsg_seq = sequence;
  auto* g = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(h, sizeof(nfgenmsg)));
  g->nfgen_family = family;
  g->version = NFNETLINK_V0;
  g->res_id = htons(group);
  mnl_attr_put(h, attribute, size, data);
  if (send(socket.get(), h, h->nlmsg_len, 0) < 0) return sys_error("configure the packet log");
  for (;;) {
    pollfd p{socket.get(), POLLIN, 0};
    int ready = poll(&p, 1, kAnswerMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return make_error(Errc::TIMEOUT, "the kernel does not answer about its packet log");
    ssize_t n = recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return sys_error("configure the packet log");
    int left = static_cast<int>(n);
    for (const auto* m = reinterpret_cast<const nlmsghdr*>(buffer.data()); mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left)) {
      if (m->nlmsg_type != NLMSG_ERROR || m->nlmsg_seq != sequence || m->nlmsg_len < NLMSG_LENGTH(sizeof(nlmsgerr))) continue;
      int err = -static_cast<const nlmsgerr*>(NLMSG_DATA(m))->error;
      if (err == 0) return {};
      if (err == EPERM || err == EBUSY)  // the kernel says the same of both
        return make_error(Errc::DENIED, "the packet log may not be read here", "somebody else listens to group " + std::to_string(group) + ", or CAP_NET_ADMIN over the network namespace is missing");
      return sys_error("configure the packet log", err);
    }
  }
}

}  // namespace

std::string to_text(const Refused& r) {
  std::string address = h5i::to_text(r.to);
  if (r.port) address = (r.to.v6 ? "[" + address + "]" : address) + ":" + std::to_string(*r.port);
  return protocol_text(r.protocol) + " " + address;
}

std::optional<Refused> read_packet(std::string_view packet) {
  if (packet.empty()) return std::nullopt;
  unsigned version = byte_at(packet, 0) >> 4;
  return version == 4 ? read_ipv4(packet) : version == 6 ? read_ipv6(packet) : std::nullopt;
}

Result<PacketLog> PacketLog::listen(UniqueFd socket, uint16_t group) {
  int size = kBuffer;  // as much of it as the machine lets anybody have
  (void)setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  nfulnl_msg_config_cmd bind{NFULNL_CFG_CMD_BIND};
  H5I_TRY(configure(socket, AF_UNSPEC, group, 1, NFULA_CFG_CMD, &bind, sizeof bind));
  nfulnl_msg_config_mode mode{htonl(kCopy), NFULNL_COPY_PACKET, 0};
  H5I_TRY(configure(socket, AF_UNSPEC, group, 2, NFULA_CFG_MODE, &mode, sizeof mode));
  uint32_t at_once = htonl(1);  // a packet that waits in the kernel for company could miss the end of the run
  H5I_TRY(configure(socket, AF_UNSPEC, group, 3, NFULA_CFG_QTHRESH, &at_once, sizeof at_once));
  return PacketLog(std::move(socket));
}

Result<PacketLog::Read> PacketLog::read() {
  Read out;
  std::vector<char> buffer(64 * 1024);
  for (int i = 0; i < kMaxReads; i++) {
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    ssize_t n = recvfrom(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == ENOBUFS) {
      out.lost = true;
      continue;
    }
    if (n < 0 && errno == EAGAIN) return out;
    if (n < 0) return sys_error("read the packet log");
    if (from.nl_pid != 0) continue;
    int left = static_cast<int>(n);
    for (const auto* h = reinterpret_cast<const nlmsghdr*>(buffer.data()); mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
      if (h->nlmsg_type != ((NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_PACKET)) continue;
      std::optional<Refused> packet;
      for_each_attribute(h, [&](const nlattr* a) {
        if (mnl_attr_get_type(a) == NFULA_PAYLOAD) packet = read_packet({static_cast<const char*>(mnl_attr_get_payload(a)), mnl_attr_get_payload_len(a)});
      });
      if (packet) out.packets.push_back(*packet);
      else out.unreadable++;
    }
  }
  return out;
}

void Refusals::add(const Refused& r, int64_t now_ns) {
  auto it = known_.find(r);
  if (it == known_.end()) {
    if (known_.size() >= kMaxTold) {
      others_++;
      return;
    }
    it = known_.emplace(r, Entry{r, 0, now_ns}).first;
  }
  it->second.packets++;
}

void Refusals::add(const PacketLog::Read& read, int64_t now_ns) {
  for (const Refused& r : read.packets) add(r, now_ns);
  unreadable_ += read.unreadable;
  lost_ = lost_ || read.lost;
}

std::vector<Refusals::Entry> Refusals::entries() const {
  std::vector<Entry> out;
  for (const auto& [to, entry] : known_) out.push_back(entry);
  std::stable_sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.first_ns < b.first_ns; });
  return out;
}

}  // namespace h5i::nft
