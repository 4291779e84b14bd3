// The far end of a box's network when there is no way out: it sees which packets the rules let through, and turns each
// connection down at once. What a tier's proof of its rules is observed by.
#pragma once
#include <string>
#include <string_view>

#include "core/base/unique_fd.hpp"
#include "core/nft/packet_log.hpp"

namespace h5i::nft {

// The answer of a host on which nobody listens, to the first packet of a TCP connection: a whole IP packet. Empty for
// anything else.
std::string turned_down(std::string_view packet);

class FarEnd {
 public:
  explicit FarEnd(UniqueFd tun) : tun_(std::move(tun)) {}
  int fd() const { return tun_.get(); }
  // Whatever is there now; never waits.
  void read(int64_t now_ns);
  const Refusals& seen() const { return seen_; }

 private:
  UniqueFd tun_;
  Refusals seen_;
};

}  // namespace h5i::nft
