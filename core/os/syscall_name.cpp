#include "core/os/syscall_name.hpp"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstring>

namespace h5i::os {
namespace {

struct Name {
  uint32_t number;
  const char* text;
};
constexpr Name kNames[] = {
#include "syscall_names.inc"  // written by CMake from <sys/syscall.h>
};

constexpr Name kFamilies[] = {{AF_UNSPEC, "unspec"}, {AF_UNIX, "unix"}, {AF_INET, "inet"}, {AF_INET6, "inet6"}, {AF_NETLINK, "netlink"}, {AF_PACKET, "packet"},
                              {AF_KEY, "key"}, {AF_RDS, "rds"}, {AF_CAN, "can"}, {AF_TIPC, "tipc"}, {AF_BLUETOOTH, "bluetooth"}, {AF_ALG, "alg"}, {AF_NFC, "nfc"},
                              {AF_VSOCK, "vsock"}, {AF_KCM, "kcm"}, {AF_QIPCRTR, "qipcrtr"}, {AF_SMC, "smc"}, {AF_XDP, "xdp"}};
constexpr Name kTypes[] = {{SOCK_STREAM, "stream"}, {SOCK_DGRAM, "dgram"}, {SOCK_RAW, "raw"}, {SOCK_RDM, "rdm"}, {SOCK_SEQPACKET, "seqpacket"}, {SOCK_DCCP, "dccp"}, {SOCK_PACKET, "packet"}};
constexpr Name kProtocols[] = {{IPPROTO_ICMP, "icmp"}, {IPPROTO_IGMP, "igmp"}, {IPPROTO_TCP, "tcp"}, {IPPROTO_UDP, "udp"}, {IPPROTO_DCCP, "dccp"}, {IPPROTO_GRE, "gre"},
                               {IPPROTO_ESP, "esp"}, {IPPROTO_ICMPV6, "icmpv6"}, {IPPROTO_SCTP, "sctp"}, {IPPROTO_UDPLITE, "udplite"}, {IPPROTO_RAW, "raw"}, {IPPROTO_MPTCP, "mptcp"}};
constexpr Name kNetlinks[] = {{NETLINK_SOCK_DIAG, "sock_diag"}, {NETLINK_XFRM, "xfrm"}, {NETLINK_AUDIT, "audit"}, {NETLINK_NETFILTER, "netfilter"}, {NETLINK_CONNECTOR, "connector"},
                              {NETLINK_KOBJECT_UEVENT, "kobject_uevent"}, {NETLINK_GENERIC, "generic"}, {NETLINK_CRYPTO, "crypto"}};

template <size_t N>
std::string name_in(const Name (&names)[N], uint32_t number, const char* otherwise) {
  for (const Name& n : names)
    if (n.number == number) return n.text;
  return otherwise + std::to_string(number);
}

}  // namespace

std::string socket_name(uint32_t family, uint32_t type, uint32_t protocol) {
  std::string out = name_in(kFamilies, family, "family ") + " " + name_in(kTypes, type, "type ");
  if (protocol == 0) return out;
  if (family == AF_INET || family == AF_INET6) return out + " " + name_in(kProtocols, protocol, "protocol ");
  if (family == AF_NETLINK) return out + " " + name_in(kNetlinks, protocol, "protocol ");
  return out + " protocol " + std::to_string(protocol);
}

std::string syscall_name(uint32_t number) {
  for (const Name& n : kNames)
    if (n.number == number) return n.text;
  if (number == kOtherNumbers) return "other numbers";
  return "system call " + std::to_string(number);
}

std::string errno_name(int err) {
  const char* name = strerrorname_np(err);
  return name ? name : "error " + std::to_string(err);
}

}  // namespace h5i::os
