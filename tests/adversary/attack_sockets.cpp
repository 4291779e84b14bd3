// Tries of h5i-attack: sockets.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "attack.hpp"

namespace attack {
namespace {

long do_socket(const Words& w) {
  return socket(static_cast<int>(number(w[0])), static_cast<int>(number(w[1])), static_cast<int>(number(w[2])));
}

// FAMILY, every type: the first that works, else the last error.
long do_any_socket(const Words& w) {
  int family = static_cast<int>(number(w[0]));
  long r = -1;
  int best = 0;
  for (int type : {1, 2, 3, 4, 5, 10}) {
    r = socket(family, type, family == AF_PACKET ? htons(3) : 0);
    if (r >= 0) return r;
    if (best == 0 || best == EPROTONOSUPPORT || best == ESOCKTNOSUPPORT) best = errno;
  }
  return refused(best);
}

struct Listening {
  int fd = -1;
  sockaddr_in at{};
  bool ok() {
    fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof at;
    auto* a = reinterpret_cast<sockaddr*>(&at);
    return fd >= 0 && bind(fd, a, n) == 0 && listen(fd, 4) == 0 && getsockname(fd, a, &n) == 0;
  }
};

constexpr int kFastOpen = 0x20000000;  // MSG_FASTOPEN

// HOW: sendto, sendmsg, sendmmsg, option. To a listener of its own, so that only the way counts.
long do_fast_open(const Words& w) {
  Listening l;
  if (!l.ok()) return -1;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  char byte = 'x';
  iovec v{&byte, 1};
  mmsghdr m{};
  m.msg_hdr.msg_name = &l.at;
  m.msg_hdr.msg_namelen = sizeof l.at;
  m.msg_hdr.msg_iov = &v;
  m.msg_hdr.msg_iovlen = 1;
  if (is(w[0], "sendto")) return sendto(fd, &byte, 1, kFastOpen, reinterpret_cast<sockaddr*>(&l.at), sizeof l.at);
  if (is(w[0], "sendmsg")) return sendmsg(fd, &m.msg_hdr, kFastOpen);
  if (is(w[0], "sendmmsg")) return sendmmsg(fd, &m, 1, kFastOpen);
  int one = 1;
  // The level and option with garbage above their 32 bits, as a filter that compares 64 would not see them.
  long high = is(w[0], "option-high") ? 0x100000000L : 0;
  return syscall(SYS_setsockopt, fd, high | IPPROTO_TCP, high | 30 /* TCP_FASTOPEN_CONNECT */, &one, sizeof one);
}

long do_upper_protocol(const Words&) {
  Listening l;
  if (!l.ok()) return -1;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&l.at), sizeof l.at) != 0) return -1;
  return setsockopt(fd, IPPROTO_TCP, 31 /* TCP_ULP */, "tls", 3);
}

// HOW ADDRESS PORT: tcp, udp, mptcp. A datagram counts when the kernel took it.
long do_connect(const Words& w) {
  sockaddr_in a{};
  sockaddr_in6 a6{};
  sockaddr* to = reinterpret_cast<sockaddr*>(&a);
  socklen_t n = sizeof a;
  int family = AF_INET;
  a.sin_family = AF_INET;
  a.sin_port = a6.sin6_port = htons(static_cast<uint16_t>(number(w[2])));
  if (strchr(w[1], ':')) {
    family = AF_INET6;
    a6.sin6_family = AF_INET6;
    inet_pton(AF_INET6, w[1], &a6.sin6_addr);
    to = reinterpret_cast<sockaddr*>(&a6);
    n = sizeof a6;
  } else {
    inet_pton(AF_INET, w[1], &a.sin_addr);
  }
  bool udp = is(w[0], "udp");
  int fd = socket(family, udp ? SOCK_DGRAM : SOCK_STREAM, is(w[0], "mptcp") ? 262 : 0);
  if (fd < 0) return -1;
  if (!udp) return connect(fd, to, n);
  if (sendto(fd, "x", 1, 0, to, n) != 1) return -1;
  // What nobody hears comes back as an error of the connected socket; the listener's side is looked at by the driver.
  return 0;
}

// TYPE NAME; a leading @ is the abstract name space.
long do_unix(const Words& w) {
  bool datagram = is(w[0], "dgram");
  int fd = socket(AF_UNIX, datagram ? SOCK_DGRAM : SOCK_STREAM, 0);
  if (fd < 0) return -1;
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  size_t len = strlen(w[1]);
  if (len >= sizeof a.sun_path) return refused(ENAMETOOLONG);
  memcpy(a.sun_path, w[1], len);
  if (a.sun_path[0] == '@') a.sun_path[0] = 0;
  return connect(fd, reinterpret_cast<sockaddr*>(&a), static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + len));
}

}  // namespace

std::span<const Try> socket_tries() {
  static constexpr Try kTries[] = {
      {"socket", do_socket},
      {"any-socket", do_any_socket},
      {"fast-open", do_fast_open},
      {"upper-protocol", do_upper_protocol},
      {"connect", do_connect},
      {"unix", do_unix},
  };
  return kTries;
}

}  // namespace attack
