#include "plugins/websec-http/engine/wire.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace h5i::websec {
namespace {

constexpr size_t kPiece = 16 << 10;         // of what TLS takes and gives at a time
constexpr int64_t kLookNs = 100'000'000;  // how often a wait asks whether the run was cancelled

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::string why(int err) { return strerror(err); }

}  // namespace

std::string Endpoint::text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET6) {
    auto* a = reinterpret_cast<const sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(a->sin6_port));
  }
  auto* a = reinterpret_cast<const sockaddr_in*>(&address);
  inet_ntop(AF_INET, &a->sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(ntohs(a->sin_port));
}

Wire::~Wire() {
  if (fd_ >= 0) close(fd_);
}

std::optional<WireError> Wire::wait(short what) {
  for (;;) {
    int64_t left = deadline_ns_ - now_ns();
    if (left <= 0) return WireError{"timeout", "the time of this send is over"};
    if (host_.cancelled()) return WireError{"cancelled", "the act was cancelled"};
    pollfd p{fd_, what, 0};
    int n = poll(&p, 1, static_cast<int>(std::min(left, kLookNs) / 1'000'000 + 1));
    if (n > 0) return std::nullopt;
    if (n < 0 && errno != EINTR) return WireError{"connection-lost", why(errno)};
  }
}

std::optional<WireError> Wire::connect(const Recorded& sent, const Endpoint& to) {
  if (fd_ >= 0 || sent.intent().peer != to.text()) return WireError{"connect-failed", "the record names another address"};
  fd_ = socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return WireError{"connect-failed", why(errno)};
  peer_ = sent.intent().peer;
  const int one = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0) return std::nullopt;
  if (errno != EINPROGRESS) return WireError{"connect-failed", why(errno)};
  if (auto e = wait(POLLOUT)) return e;
  int err = 0;
  socklen_t size = sizeof err;
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &err, &size) != 0) err = errno;
  if (err != 0) return WireError{"connect-failed", why(err)};
  return std::nullopt;
}

std::optional<WireError> Wire::secure(const Recorded& sent, const TlsContext& context, bool is_address, const std::vector<std::string>& alpn) {
  if (fd_ < 0 || tls_ || sent.intent().peer != peer_ || sent.intent().tls_name.empty()) return WireError{"tls-failed", "the record names no TLS here"};
  tls_name_ = sent.intent().tls_name;
  tls_.emplace(context, tls_name_, is_address, alpn);
  std::string piece(kPiece, '\0');
  for (;;) {
    const TlsSession::State state = tls_->handshake();
    auto lost = flush();
    if (state == TlsSession::State::FAILED) return WireError{tls_->untrusted() ? "tls-untrusted" : "tls-failed", tls_->error()};
    if (lost) return lost;
    if (state == TlsSession::State::DONE) return std::nullopt;
    size_t got = 0;
    if (auto e = receive(piece.data(), piece.size(), &got)) return e;
    if (got == 0 || state == TlsSession::State::CLOSED) return WireError{"tls-failed", "the peer closed the connection in the handshake"};
    tls_->give({piece.data(), got});
  }
}

std::optional<WireError> Wire::write(const Recorded& sent, const std::function<void()>& before_last) {
  if (!is_of(sent)) return WireError{"connection-lost", "the record names another connection"};
  fresh_ = false;
  const Intent& intent = sent.intent();
  if (intent.protocol == "h2" && !opening_.empty()) {
    auto failed = put(std::exchange(opening_, {}), {});
    bytes_sent_ = 0;
    if (failed) return failed;
  }
  std::string_view head = intent.head, body = intent.protocol == "h2" ? intent.framed_body : intent.body;
  if (before_last && head.size() + body.size() > 0) {
    std::string_view& last = body.empty() ? head : body;
    const size_t size = std::clamp<size_t>(intent.last_piece, 1, last.size());
    const std::string_view held = last.substr(last.size() - size);
    last.remove_suffix(size);
    auto failed = put(head, body);
    before_last();
    return failed ? failed : put(held, {});
  }
  return put(head, body);
}

H2Connection& Wire::h2(bool strict, const H2Limits& limits) {
  if (!h2_) {
    h2_ = std::make_unique<H2Connection>(strict, limits);
    opening_ = h2_->start();
  }
  return *h2_;
}

std::optional<WireError> Wire::pump(const Recorded& sent) {
  if (!is_of(sent) || !h2_) return WireError{"connection-lost", "the record names another connection"};
  return put(h2_->pending(), {});
}

std::optional<WireError> Wire::write(const Recorded& sent, const RecordedFrame& frame) {
  if (!is_of(sent)) return WireError{"connection-lost", "the record names another connection"};
  return put(frame.bytes(), {});
}

bool Wire::tunnel(const Recorded& connect) {
  if (!is_of(connect) || connect.intent().tunnel_to.empty() || tls_) return false;
  peer_ = connect.intent().tunnel_to;
  fresh_ = true;
  return true;
}

std::optional<WireError> Wire::put(std::string_view head, std::string_view body) {
  if (!tls_) return plain(head, body);
  for (std::string_view part : {head, body})
    while (!part.empty()) {
      const std::string_view piece = part.substr(0, kPiece);
      if (tls_->write(piece) != TlsSession::State::DONE) return WireError{"connection-lost", tls_->error()};
      if (auto e = flush()) return e;
      bytes_sent_ += piece.size();
      part.remove_prefix(piece.size());
    }
  return std::nullopt;
}

std::optional<WireError> Wire::flush() {
  const uint64_t before = bytes_sent_;
  auto failed = plain(tls_->take(), {});
  bytes_sent_ = before;
  return failed;
}

std::optional<WireError> Wire::plain(std::string_view head, std::string_view body) {
  while (!head.empty() || !body.empty()) {
    iovec io[2] = {{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(body.data()), body.size()}};
    msghdr m{};
    m.msg_iov = head.empty() ? io + 1 : io;
    m.msg_iovlen = head.empty() || body.empty() ? 1 : 2;
    ssize_t n = sendmsg(fd_, &m, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (auto e = wait(POLLOUT)) return e;
      continue;
    }
    if (n < 0) return WireError{"connection-lost", why(errno)};
    auto went = static_cast<size_t>(n);
    bytes_sent_ += went;
    const size_t of_head = std::min(went, head.size());
    head.remove_prefix(of_head);
    body.remove_prefix(went - of_head);
  }
  return std::nullopt;
}

std::optional<WireError> Wire::read(const Recorded& sent, char* into, size_t size, size_t* got) {
  if (!is_of(sent)) return WireError{"connection-lost", "the record names another connection"};
  if (!tls_) return receive(into, size, got);
  std::string piece(kPiece, '\0');
  for (;;) {
    const TlsSession::State state = tls_->read(into, size, got);
    (void)flush();  // an alert, or new keys: what came counts whether the peer still hears or not
    if (state == TlsSession::State::DONE || state == TlsSession::State::CLOSED) return std::nullopt;
    if (state == TlsSession::State::FAILED) return WireError{"connection-lost", tls_->error()};
    size_t raw = 0;
    if (auto e = receive(piece.data(), piece.size(), &raw)) return e;
    // An end that TLS did not announce: a body that is read to the end may have been cut.
    if (raw == 0) return WireError{"connection-lost", "the connection ended without TLS's own end"};
    tls_->give({piece.data(), raw});
  }
}

std::optional<WireError> Wire::receive(char* into, size_t size, size_t* got) {
  for (;;) {
    ssize_t n = recv(fd_, into, size, 0);
    if (n >= 0) {
      *got = static_cast<size_t>(n);
      return std::nullopt;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return WireError{"connection-lost", why(errno)};
    if (auto e = wait(POLLIN)) return e;
  }
}

bool Wire::idle() const {
  pollfd p{fd_, POLLIN, 0};
  return fd_ >= 0 && poll(&p, 1, 0) == 0;
}

}  // namespace h5i::websec
