// Tries of h5i-attack: sockets.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
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
    r = socket(family, type, family == AF_PACKET ? htons(3) : family == AF_KEY ? 2 /* PF_KEY_V2, its only one */ : 0);
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
    inet_aton(w[1], &a.sin_addr);  // in any of its spellings: 0x7f.1, 2130706433
  }
  bool udp = is(w[0], "udp");
  int fd = socket(family, udp ? SOCK_DGRAM : SOCK_STREAM, is(w[0], "mptcp") ? 262 : 0);
  if (fd < 0) return -1;
  if (!udp) return connect(fd, to, n);
  if (sendto(fd, "x", 1, 0, to, n) != 1) return -1;
  // What nobody hears comes back as an error of the connected socket; the listener's side is looked at by the driver.
  return 0;
}

// Where ADDRESS and PORT lead.
sockaddr_in place(const char* address, const char* port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<uint16_t>(number(port)));
  inet_aton(address, &a.sin_addr);
  return a;
}

// ADDRESS PORT: a datagram that is answered.
long do_ask(const Words& w) {
  sockaddr_in to = place(w[0], w[1]);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  timeval soon{3, 0};
  char answer[64];
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 || send(fd, "x", 1, 0) != 1) return -1;
  return recv(fd, answer, sizeof answer, 0);
}

// ADDRESS FROM TO: every TCP port; did when one of them answers.
long do_scan(const Words& w) {
  sockaddr_in to = place(w[0], "0");
  int last = ENOENT;
  for (long port = number(w[1]); port <= number(w[2]); port++) {
    to.sin_port = htons(static_cast<uint16_t>(port));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    int r = connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
    if (r != 0 && errno == EINPROGRESS) {
      pollfd p{fd, POLLOUT, 0};
      socklen_t n = sizeof errno;
      int err = ETIMEDOUT;
      if (poll(&p, 1, 1000) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n);
      errno = err;
      r = err == 0 ? 0 : -1;
    }
    last = errno;
    close(fd);
    if (r == 0) {
      say("port %ld", port);
      return 0;
    }
  }
  return refused(last);
}

// ADDRESS OTHER PORT TIMES: connects while another thread turns the address that the kernel is given into OTHER and back; did when
// OTHER was reached. Nothing that looks at the call's memory first could tell.
sockaddr_in turned, as_one, as_other;
volatile bool turning = true;
void* turn(void*) {
  auto* address = static_cast<volatile in_addr_t*>(&turned.sin_addr.s_addr);
  while (turning)
    for (in_addr_t to : {as_other.sin_addr.s_addr, as_one.sin_addr.s_addr})
      for (int i = 0; i < 100; i++) *address = to;  // each stays as long, so that one processor alone meets both
  return nullptr;
}
long do_turn(const Words& w) {
  as_one = turned = place(w[0], w[2]);
  as_other = place(w[1], w[2]);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, turn, nullptr) != 0) return refused(EAGAIN);
  long one = 0, other = 0, closed = 0;
  for (long i = 0; i < number(w[3]); i++) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    socklen_t n = sizeof at;
    if (fd < 0) return -1;
    if (connect(fd, reinterpret_cast<sockaddr*>(&turned), sizeof turned) != 0) closed++;
    else if (getpeername(fd, reinterpret_cast<sockaddr*>(&at), &n) == 0) (at.sin_addr.s_addr == as_other.sin_addr.s_addr ? other : one)++;
    close(fd);
  }
  turning = false;
  pthread_join(thread, nullptr);
  say("one %ld, the other %ld, refused %ld", one, other, closed);
  // Without both the threads never met, which proves nothing.
  if (one == 0 || other + closed == 0) return refused(EPROTO);
  return other > 0 ? 0 : refused(ECONNREFUSED);
}

// Addresses that are too short, too long, or end in the middle, and messages of too many parts: did when the kernel itself refused each of
// them and the socket still works.
long do_odd_lengths(const Words&) {
  Listening l;
  if (!l.ok()) return -1;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  for (unsigned n : {0u, 1u, 3u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    if (syscall(SYS_connect, fd, &l.at, n) == 0) return refused(EPROTO);
    if (errno != EINVAL && errno != EFAULT) return -1;
  }
  iovec parts[1] = {{&l, 1}};
  msghdr m{};
  m.msg_iov = parts;
  m.msg_iovlen = 1025;
  if (sendmsg(fd, &m, 0) >= 0 || errno != EMSGSIZE) return -1;
  m.msg_iovlen = 1;
  m.msg_name = &l.at;
  m.msg_namelen = 0x7fffffff;
  if (sendmsg(fd, &m, MSG_NOSIGNAL) >= 0 || errno == EPROTO) return -1;
  return connect(fd, reinterpret_cast<sockaddr*>(&l.at), sizeof l.at);
}

// CHILDREN TIMES: all of them at once ask for a socket that is refused, that often each; did when any of them got another answer than EPERM.
long do_crowd(const Words& w) {
  int start[2];
  if (pipe(start) != 0) return -1;
  long children = number(w[0]), made = 0;
  for (; made < children; made++) {
    pid_t p = fork();
    if (p < 0) break;
    if (p > 0) continue;
    char byte;
    close(start[1]);
    (void)!read(start[0], &byte, 1);
    for (long i = 0; i < number(w[1]); i++)
      if (socket(AF_NETLINK, SOCK_RAW, 12) >= 0 || errno != EPERM) _exit(1);
    _exit(0);
  }
  close(start[1]);
  long odd = children - made;
  for (int status; wait(&status) > 0;) odd += status != 0;
  return odd == 0 ? refused(EPERM) : 0;
}

// Its own addresses, as a program asks for them: by a socket of netlink.
long do_addresses(const Words&) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return -1;
  long n = 0;
  for (ifaddrs* a = list; a; a = a->ifa_next) n += a->ifa_addr != nullptr && (a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6);
  freeifaddrs(list);
  say("%ld addresses", n);
  return n > 0 ? 0 : refused(ENOENT);
}

// ADDRESS PORT SECONDS: listens there, and did when somebody came.
long do_listen(const Words& w) {
  sockaddr_in at = place(w[0], w[1]);
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(fd, 4) != 0) return -1;
  say("listening");
  pollfd p{fd, POLLIN, 0};
  if (poll(&p, 1, static_cast<int>(number(w[2])) * 1000) != 1) return refused(ETIMEDOUT);
  return accept(fd, nullptr, nullptr);
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
      {"ask", do_ask},
      {"scan", do_scan},
      {"turn", do_turn},
      {"odd-lengths", do_odd_lengths},
      {"crowd", do_crowd},
      {"addresses", do_addresses},
      {"listen", do_listen},
      {"unix", do_unix},
  };
  return kTries;
}

}  // namespace attack
