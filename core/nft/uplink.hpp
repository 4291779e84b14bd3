// The program that carries a box's packets to the world: slirp4netns, a TCP/IP stack in user space with the rights of whoever
// runs it. It is started only after the rules were read back, and ends with this process.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/nft/egress.hpp"
#include "core/nft/inside.hpp"

namespace h5i::nft {

// "slirp4netns" where the system has one that nobody but root could have put there: /usr/bin/slirp4netns.
std::optional<std::string> find_uplink();

// The uplink's own end of the link, of a network that is nobody's (TEST-NET-1).
constexpr const char* kGateway = "192.0.2.2";

struct UplinkOptions {
  bool ipv6 = false;
  bool host_loopback = false;  // the host's 127.0.0.1 answers at kGateway; the rules say at which ports
};

// The one destination that may name the gateway when the host's loopback answers there: else a rule for a wide network would
// reach the host's own services. INVALID with the destination that does.
constexpr const char* kHostLoopback = "host-loopback";
Result<void> check_gateway(const Egress& egress, bool host_loopback);

class Uplink {
 public:
  // Returns when packets are carried; TIER_SETUP with the program's own words when it ended, TIMEOUT after 5 s.
  static Result<Uplink> start(const Namespaces& namespaces, const UplinkOptions& options);
  Uplink(Uplink&& other) noexcept;
  ~Uplink();
  int pidfd() const { return pidfd_.get(); }  // readable when it has ended
  const std::string& path() const { return path_; }

 private:
  Uplink() = default;
  std::string path_;
  UniqueFd pidfd_;
  UniqueFd alive_;  // its end is the program's
  UniqueFd words_;  // what it prints: held, so that no print of it is its end
  pid_t pid_ = -1;
};

}  // namespace h5i::nft
