#include "core/spawn/channel.hpp"

#include "core/os/socket.hpp"

namespace h5i::spawn {

void Channel::send(const Message& m, std::vector<UniqueFd> fds) {
  queue_.push_back({encode(m), std::move(fds)});
  flush();
}

void Channel::flush() {
  while (!queue_.empty()) {
    std::vector<int> raw;
    for (const UniqueFd& f : queue_.front().fds) raw.push_back(f.get());
    auto sent = os::send_packet(fd_.get(), queue_.front().bytes, raw, true);
    if (!sent && sent.error().code == Errc::BUSY) return;
    queue_.pop_front();  // sent, or the peer is gone: then its end shows as closed
  }
}

}  // namespace h5i::spawn
