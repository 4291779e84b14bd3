// The refused packets that the last rule logs to an NFLOG group, told by the kernel to one reader in the host, and what they
// come to: where to, how often, since when.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::nft {

// Of one packet: what of it is a destination. A port is there for TCP, UDP, SCTP, DCCP and UDP-Lite alone.
struct Refused {
  Address to;
  uint8_t protocol = 0;        // IPPROTO_*
  std::optional<uint16_t> port;
  bool operator==(const Refused&) const = default;
  bool operator<(const Refused& o) const { return std::tie(to.v6, to.bytes, protocol, port) < std::tie(o.to.v6, o.to.bytes, o.protocol, o.port); }
};
// "tcp 93.184.216.34:443", "icmpv6 2001:db8::1". IPv6 with a port is in brackets.
std::string to_text(const Refused& r);

// From the bytes of a packet as the kernel cuts it; nothing when it is too short to say, or no IP. Walks IPv6 extension
// headers; of a later fragment the port is not known.
std::optional<Refused> read_packet(std::string_view packet);

// Listens to a group on a netfilter socket of its own that was opened in the namespace of the rules.
class PacketLog {
 public:
  // DENIED when somebody else listens to the group, and without CAP_NET_ADMIN there.
  static Result<PacketLog> listen(UniqueFd socket, uint16_t group);
  int fd() const { return socket_.get(); }
  struct Read {
    std::vector<Refused> packets;
    uint64_t unreadable = 0;
    bool lost = false;  // the kernel had more than the socket could hold
  };
  // What is there now; never waits.
  Result<Read> read();

 private:
  explicit PacketLog(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

// Counts destinations, the first `kMaxTold` by name and the others as one number.
class Refusals {
 public:
  static constexpr size_t kMaxTold = 64;
  void add(const Refused& r, int64_t now_ns);
  void add(const PacketLog::Read& read, int64_t now_ns);
  struct Entry {
    Refused to;
    uint64_t packets = 0;
    int64_t first_ns = 0;
  };
  std::vector<Entry> entries() const;  // in the order of their first packets
  uint64_t others() const { return others_; }          // packets to destinations that are not told
  bool truncated() const { return others_ > 0; }
  bool lost() const { return lost_; }                  // the counts are lower bounds
  uint64_t unreadable() const { return unreadable_; }

 private:
  std::map<Refused, Entry> known_;
  uint64_t others_ = 0, unreadable_ = 0;
  bool lost_ = false;
};

}  // namespace h5i::nft
