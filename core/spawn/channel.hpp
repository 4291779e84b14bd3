// Packets for one peer of the spawner, kept until it takes them.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/spawn/protocol.hpp"

namespace h5i::spawn {

// The spawner never blocks on a peer that does not read: it could not kill anything meanwhile.
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}

  int fd() const { return fd_.get(); }
  bool waiting() const { return !queue_.empty(); }
  size_t queued() const { return queue_.size(); }
  // Both descriptors and message are its own from here on. A peer that is gone loses them.
  void send(const Message& m, std::vector<UniqueFd> fds = {});
  void flush();

 private:
  struct Packet {
    std::string bytes;
    std::vector<UniqueFd> fds;
  };
  UniqueFd fd_;
  std::deque<Packet> queue_;
};

}  // namespace h5i::spawn
