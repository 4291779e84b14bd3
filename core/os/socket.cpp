#include "core/os/socket.hpp"

#include <poll.h>
#include <unistd.h>

#include <cstring>

#include "core/base/ids.hpp"

namespace h5i::os {

Result<SocketPair> seqpacket_pair() {
  int s[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) != 0) return sys_error("socketpair");
  return SocketPair{UniqueFd(s[0]), UniqueFd(s[1])};
}

Result<void> pass_credentials(int fd) {
  int one = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) != 0) return sys_error("SO_PASSCRED");
  return {};
}

Result<void> send_packet(int fd, std::string_view bytes, const std::vector<int>& fds, bool dont_wait) {
  if (bytes.empty()) return make_error(Errc::INVALID, "empty packet", "an empty packet reads as the end");
  if (bytes.size() > kMaxPacket || fds.size() > kMaxFds)
    return make_error(Errc::TOO_LARGE, "packet is too large", std::to_string(bytes.size()) + " bytes");
  iovec v{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  msghdr m{};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  if (!fds.empty()) {
    m.msg_control = control;
    m.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    memcpy(CMSG_DATA(h), fds.data(), sizeof(int) * fds.size());
  }
  for (;;) {
    ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL | (dont_wait ? MSG_DONTWAIT : 0));
    if (n >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return make_error(Errc::BUSY, "the other end does not read");
    return sys_error("sendmsg");
  }
}

Result<std::optional<Packet>> receive_packet(int fd, bool dont_wait) {
  const int flags = dont_wait ? MSG_DONTWAIT : 0;
  // The length first, so that a small packet costs a small buffer. It cannot change: packets are whole, we are the
  // reader.
  ssize_t length;
  do {
    length = recv(fd, nullptr, 0, MSG_PEEK | MSG_TRUNC | flags);
  } while (length < 0 && errno == EINTR);
  if (length < 0 && errno == EAGAIN) return make_error(Errc::BUSY, "no packet is waiting");
  if (length < 0 && errno == ECONNRESET) return std::optional<Packet>();  // closed with our packet unread
  if (length < 0) return sys_error("recv");
  Packet p;
  p.bytes.resize(static_cast<size_t>(length) <= kMaxPacket ? static_cast<size_t>(length) : kMaxPacket);
  iovec v{p.bytes.data(), p.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds) + CMSG_SPACE(sizeof(ucred))] = {};
  msghdr m{};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  ssize_t n;
  do {
    n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | flags);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) return make_error(Errc::BUSY, "no packet is waiting");
  if (n < 0 && errno == ECONNRESET) return std::optional<Packet>();  // closed with our packet unread
  if (n < 0) return sys_error("recvmsg");
  for (cmsghdr* h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
    if (h->cmsg_level != SOL_SOCKET) continue;
    if (h->cmsg_type == SCM_RIGHTS) {
      size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; i++) {
        int got;
        memcpy(&got, CMSG_DATA(h) + i * sizeof(int), sizeof got);
        p.fds.emplace_back(got);
      }
    } else if (h->cmsg_type == SCM_CREDENTIALS && h->cmsg_len == CMSG_LEN(sizeof(ucred))) {
      ucred c;
      memcpy(&c, CMSG_DATA(h), sizeof c);
      p.peer = PeerIds{c.pid, c.uid, c.gid};
    }
  }
  // Room that is left because no credentials came must not let more descriptors in.
  if (p.fds.size() > kMaxFds) return make_error(Errc::TOO_LARGE, "packet has too many descriptors");
  if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
    return make_error(Errc::TOO_LARGE, "packet was cut", m.msg_flags & MSG_TRUNC ? "its bytes" : "its descriptors");
  if (n == 0) return std::optional<Packet>();
  p.bytes.resize(static_cast<size_t>(n));
  return std::optional<Packet>(std::move(p));
}

Result<bool> wait_readable(int fd, int64_t timeout_ms) {
  int64_t until = timeout_ms < 0 ? 0 : monotonic_ns() + timeout_ms * 1000000;
  for (;;) {
    int64_t left = timeout_ms < 0 ? -1 : (until - monotonic_ns() + 999999) / 1000000;
    if (timeout_ms >= 0 && left < 0) left = 0;
    pollfd q{fd, POLLIN, 0};
    int n = poll(&q, 1, left > 1000000000 ? 1000000000 : static_cast<int>(left));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return sys_error("poll");
    if (timeout_ms >= 0 && monotonic_ns() >= until) return false;
  }
}

}  // namespace h5i::os
