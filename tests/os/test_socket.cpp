#include "core/os/socket.hpp"

#include <fcntl.h>
#include <sys/wait.h>

#include "tests/support/catch.hpp"
#include "tests/support/kernel_test.hpp"

using namespace h5i;
using namespace h5i::test;

KERNEL_TEST("a packet arrives whole, with its descriptors and its sender", "[os][socket]") {
  auto s = os::seqpacket_pair();
  KREQUIRE(s && os::pass_credentials(s->a.get()));
  int p[2];
  KREQUIRE(pipe2(p, O_CLOEXEC) == 0);
  pid_t child = fork();
  if (child == 0) _exit(os::send_packet(s->b.get(), "hello", {p[1]}) ? 0 : 1);
  auto got = os::receive_packet(s->a.get());
  KREQUIRE(got && *got);
  KCHECK((*got)->bytes == "hello");
  KCHECK((*got)->peer && (*got)->peer->pid == child && (*got)->peer->uid == getuid());
  KREQUIRE((*got)->fds.size() == 1);
  KCHECK(fcntl((*got)->fds[0].get(), F_GETFD) & FD_CLOEXEC);
  KCHECK(write((*got)->fds[0].get(), "x", 1) == 1);
  waitpid(child, nullptr, 0);
  close(p[0]);
  close(p[1]);
}

KERNEL_TEST("what does not fit is an error and leaks no descriptor", "[os][socket]") {
  auto s = os::seqpacket_pair();
  KREQUIRE(s);
  KCHECK(!os::send_packet(s->a.get(), std::string(os::kMaxPacket + 1, 'x')));
  KCHECK(!os::send_packet(s->a.get(), ""));
  // By hand: longer than any packet of ours, with more descriptors than one of ours.
  std::string big(os::kMaxPacket + 1000, 'x');
  int fds[20];
  for (int& fd : fds) fd = s->b.get();
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec v{big.data(), 10};
  msghdr m{};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  cmsghdr* h = CMSG_FIRSTHDR(&m);
  h->cmsg_level = SOL_SOCKET;
  h->cmsg_type = SCM_RIGHTS;
  h->cmsg_len = CMSG_LEN(sizeof fds);
  memcpy(CMSG_DATA(h), fds, sizeof fds);
  size_t before = open_descriptors().size();
  KREQUIRE(sendmsg(s->a.get(), &m, 0) == 10);
  auto got = os::receive_packet(s->b.get());
  KCHECK(!got && got.error().code == Errc::TOO_LARGE);
  KCHECK(open_descriptors().size() == before);
  KREQUIRE(send(s->a.get(), big.data(), big.size(), 0) == static_cast<ssize_t>(big.size()));
  got = os::receive_packet(s->b.get());
  KCHECK(!got && got.error().code == Errc::TOO_LARGE);
}

KERNEL_TEST("an empty queue, a full one and a closed end are told apart", "[os][socket]") {
  auto s = os::seqpacket_pair();
  KREQUIRE(s);
  auto none = os::receive_packet(s->a.get(), true);
  KCHECK(!none && none.error().code == Errc::BUSY);
  auto quiet = os::wait_readable(s->a.get(), 20);
  KCHECK(quiet && !*quiet);
  Errc full = Errc::OK;
  for (int i = 0; i < 1000 && full == Errc::OK; i++) {
    auto sent = os::send_packet(s->a.get(), std::string(10000, 'x'), {}, true);
    if (!sent) full = sent.error().code;
  }
  KCHECK(full == Errc::BUSY);
  s->a.reset();
  int packets = 0;
  for (;;) {
    auto got = os::receive_packet(s->b.get());
    KREQUIRE(got);
    if (!*got) break;
    packets++;
  }
  KCHECK(packets > 0);
  auto gone = os::send_packet(s->b.get(), "x");
  KCHECK(!gone && gone.error().sys_errno == EPIPE);
}
