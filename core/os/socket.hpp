// SEQPACKET pairs: whole messages, descriptors and credentials. Nothing is ever cut silently: a message or control
// block that did not fit is an error, and descriptors that arrived with it are closed.
#pragma once
#include <sys/socket.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::os {

constexpr size_t kMaxFds = 16;             // of one message
constexpr size_t kMaxPacket = 128 * 1024;  // fits the default send buffer of a UNIX socket

struct SocketPair {
  UniqueFd a, b;
};
Result<SocketPair> seqpacket_pair();

struct PeerIds {
  pid_t pid = 0;  // in the receiver's pid namespace; 0 when the sender has none there
  uid_t uid = 0;
  gid_t gid = 0;
};

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> fds;
  std::optional<PeerIds> peer;  // the kernel's word on the sender; only after pass_credentials()
};

// From now on each message received here says who sent it.
Result<void> pass_credentials(int fd);
// Blocks when the buffer is full unless `dont_wait` (BUSY then). SYSTEM with EPIPE when the other end is gone.
Result<void> send_packet(int fd, std::string_view bytes, const std::vector<int>& fds = {}, bool dont_wait = false);
// Nothing: the other end was closed. BUSY with `dont_wait` when there is none. TOO_LARGE when it was cut.
Result<std::optional<Packet>> receive_packet(int fd, bool dont_wait = false);
// Until `fd` is readable (or closed): true; false after `timeout_ms` (negative: for ever).
Result<bool> wait_readable(int fd, int64_t timeout_ms);

}  // namespace h5i::os
