// What only a process inside a box's namespaces can open or do. A short-lived child joins the two that it takes, does it and hands
// over the descriptors; the caller stays outside.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::nft {

struct Namespaces {
  int user = -1, net = -1, mnt = -1;  // borrowed; `user` owns the other that is used, and the caller is its owner or has CAP_SYS_ADMIN there
};

constexpr const char* kInterface = "h5i0";  // of the way out, whoever reads it

struct Wanted {
  size_t netfilter = 0;  // sockets
  bool ipv6 = false;     // the interface that an uplink made gets an IPv6 address and a route, at once
  bool tun = false;      // an interface `kInterface`, up, with a default route, and the descriptor that reads its packets
};
struct Opened {
  std::vector<UniqueFd> netfilter;
  UniqueFd tun;  // non-blocking, packets of layer 3
};

// The caller has one thread. DENIED when the namespaces may not be joined; else what the kernel said.
Result<Opened> open_inside(const Namespaces& namespaces, const Wanted& wanted);

// The box's /etc/hosts says `content` from now on. It must be there, behind no link. `net` is not used.
Result<void> replace_hosts(const Namespaces& namespaces, const std::string& content);

}  // namespace h5i::nft
