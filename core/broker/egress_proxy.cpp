#include "core/broker/egress_proxy.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/ids.hpp"

namespace h5i::broker {
namespace {

constexpr size_t kBuffer = 32 * 1024;  // of one direction; more than a head or a hello
constexpr int kMaxAccepts = 64;        // at once, so that what is under way goes on
constexpr size_t kMaxFirst = 40;       // of a method, before it must have ended
constexpr size_t kMaxLingering = 64 * 1024;
constexpr size_t kMaxDialled = 8;  // addresses of one name, which share the time to dial

int64_t now() { return monotonic_ns(); }
int64_t after(int64_t ms) { return now() + ms * 1'000'000; }

// A fatal alert, access_denied (RFC 8446 section 6): what a TLS client can tell its user.
constexpr std::string_view kAlert("\x15\x03\x01\x00\x02\x02\x31", 7);

const char* status_words(int status) {
  switch (status) {
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 408: return "Request Timeout";
    case 431: return "Request Header Fields Too Large";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    default: return "Gateway Timeout";
  }
}

std::string answer(int status, const std::string& text, bool body) {
  std::string line = "h5i: " + text + "\n";
  return "HTTP/1.1 " + std::to_string(status) + " " + status_words(status) + "\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: " +
         std::to_string(line.size()) + "\r\n\r\n" + (body ? line : "");
}

// Reads what fits; 1: something, 0: it is over, -1: nothing now, -2: it broke.
int read_some(int fd, std::string& to, size_t most) {
  char buffer[16 * 1024];
  size_t room = std::min(sizeof buffer, most - std::min(most, to.size()));
  if (room == 0) return -1;
  ssize_t n = recv(fd, buffer, room, MSG_DONTWAIT);
  if (n > 0) return to.append(buffer, static_cast<size_t>(n)), 1;
  if (n == 0) return 0;
  return errno == EAGAIN || errno == EINTR ? -1 : -2;
}

// False when the other side is gone.
bool write_some(int fd, std::string& from, uint64_t* moved) {
  ssize_t n = send(fd, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  from.erase(0, static_cast<size_t>(n));
  *moved += static_cast<uint64_t>(n);
  return true;
}

socklen_t socket_address(const Address& a, uint16_t port, sockaddr_storage* out) {
  memset(out, 0, sizeof *out);
  if (a.v6) {
    auto* s = reinterpret_cast<sockaddr_in6*>(out);
    s->sin6_family = AF_INET6;
    s->sin6_port = htons(port);
    memcpy(&s->sin6_addr, a.bytes.data(), 16);
    return sizeof *s;
  }
  auto* s = reinterpret_cast<sockaddr_in*>(out);
  s->sin_family = AF_INET;
  s->sin_port = htons(port);
  memcpy(&s->sin_addr, a.bytes.data(), 4);
  return sizeof *s;
}

enum class First { MORE, HTTP, OTHER };
// Whether a tunnel's first bytes are a request that a plain HTTP server would take: such a one belongs to the proxy, which judges each.
First first_bytes(std::string_view b) {
  if (b[0] == '\r' || b[0] == '\n') return First::HTTP;
  for (size_t i = 0; i < b.size() && i < kMaxFirst; i++) {
    if ((b[i] == ' ' || b[i] == '\t') && i > 0) {
      if (i + 1 == b.size()) return First::MORE;
      // A target in any of its forms; of a CONNECT it is any name.
      std::string_view target = b.substr(i + 1), scheme = "http";
      if (std::string_view("/* \t").find(target[0]) != std::string_view::npos || b.substr(0, i) == "CONNECT") return First::HTTP;
      size_t n = std::min(target.size(), scheme.size());
      if (!std::equal(target.begin(), target.begin() + static_cast<long>(n), scheme.begin(), [](char x, char y) { return (x | 0x20) == y; })) return First::OTHER;
      return n == scheme.size() ? First::HTTP : First::MORE;
    }
    bool token = (b[i] >= 'A' && b[i] <= 'Z') || (b[i] >= 'a' && b[i] <= 'z') || (b[i] >= '0' && b[i] <= '9') || (b[i] && std::string_view("!#$%&'*+-.^_`|~").find(b[i]) != std::string_view::npos);
    if (!token) return First::OTHER;
  }
  return b.size() < kMaxFirst ? First::MORE : First::OTHER;
}

}  // namespace

Result<EgressProxy> EgressProxy::make(UniqueFd listener, std::vector<policy::EgressRule> rules, Lookup lookup, ProxyLimits limits) {
  EgressProxy p;
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return sys_error("getsockname");
  int listening = 0;
  socklen_t width = sizeof listening;
  if (getsockopt(listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &width) != 0) return sys_error("getsockopt");
  if (!listening || (own.ss_family != AF_INET && own.ss_family != AF_INET6)) return make_error(Errc::INVALID, "the proxy was given no listening internet socket");
  Address a;
  a.v6 = own.ss_family == AF_INET6;
  if (a.v6) memcpy(a.bytes.data(), &reinterpret_cast<sockaddr_in6&>(own).sin6_addr, 16);
  else memcpy(a.bytes.data(), &reinterpret_cast<sockaddr_in&>(own).sin_addr, 4);
  p.own_address_ = a;
  p.own_port_ = ntohs(a.v6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port : reinterpret_cast<sockaddr_in&>(own).sin_port);
  int flags = fcntl(listener.get(), F_GETFL);
  if (flags < 0 || fcntl(listener.get(), F_SETFL, flags | O_NONBLOCK) != 0) return sys_error("fcntl");
  p.listener_ = std::move(listener);
  p.rules_ = std::move(rules);
  p.resolver_.emplace(H5I_TRY(Resolver::make(std::move(lookup))));
  p.limits_ = limits;
  return p;
}

Result<void> EgressProxy::serve(int control) {
  for (;;) {
    std::vector<pollfd> q{{control, POLLIN, 0}, {now() < accept_after_ns_ ? -1 : listener_.get(), POLLIN, 0}, {resolver_->ready_fd(), POLLIN, 0}};
    int64_t until = accept_after_ns_ > now() ? accept_after_ns_ : INT64_MAX;
    for (const Connection& c : connections_) {
      auto events = [](bool in, bool out) { return static_cast<short>((in ? POLLIN : 0) | (out ? POLLOUT : 0)); };
      bool relay = c.state == State::RELAY;
      bool read_client = c.state == State::HEAD || c.state == State::LINGER || (relay && !c.client_over && c.in.size() < kBuffer && c.up.size() < kBuffer && !body_over(c));
      q.push_back({c.client_over && c.down.empty() ? -1 : c.client.get(), events(read_client, !c.down.empty()), 0});
      bool read_origin = relay && !c.origin_over && c.down.size() < kBuffer;
      // Not asked about at all when there is nothing to do with it: that it hung up would be said again and again while the client reads nothing.
      const bool write_origin = c.state == State::DIAL || !c.up.empty();
      q.push_back({read_origin || write_origin ? c.origin.get() : -1, events(read_origin, write_origin), 0});
      until = std::min(until, deadline(c));
    }
    int wait = until == INT64_MAX ? -1 : static_cast<int>(std::clamp<int64_t>((until - now()) / 1'000'000 + 1, 0, 60'000));
    int n = poll(q.data(), q.size(), wait);
    if (n < 0 && errno != EINTR) return sys_error("poll");
    if (n < 0) continue;
    size_t i = 3;
    for (Connection& c : connections_) {
      short client = q[i++].revents, origin = q[i++].revents;
      if (c.state == State::DIAL && origin) dialled(c);
      else if (origin & (POLLIN | POLLHUP | POLLERR)) origin_readable(c);
      if (client & POLLIN) client_readable(c);
      else if (client & (POLLHUP | POLLERR)) c.state = State::DEAD;
      if ((client | origin) & POLLOUT) flush(c);
      if (c.state != State::DEAD) advance(c);
      if (c.state != State::DEAD && now() >= deadline(c)) late(c);
    }
    if (q[2].revents) {
      std::vector<std::string> names = resolver_->take();
      for (Connection& c : connections_)
        if (c.state == State::LOOKUP && std::find(names.begin(), names.end(), c.to().name) != names.end()) {
          resolved(c);
          advance(c);
        }
    }
    for (auto it = connections_.begin(); it != connections_.end();) {
      if (it->state == State::DEAD) verdicts_.moved(it->to(), it->sent, it->received);
      it = it->state == State::DEAD ? connections_.erase(it) : std::next(it);
    }
    if (q[1].revents) accept_some();
    if (q[0].revents) return {};
  }
}

void EgressProxy::accept_some() {
  for (int i = 0; i < kMaxAccepts; i++) {
    UniqueFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) accept_after_ns_ = after(100);
      return;
    }
    if (connections_.size() >= limits_.connections) {
      verdicts_.over_limit();
      std::string full = answer(503, "refused: as many connections as a box may have are open", true);
      uint64_t moved = 0;
      (void)write_some(client.get(), full, &moved);
      shutdown(client.get(), SHUT_WR);
      continue;
    }
    int one = 1;
    setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Connection c;
    c.client = std::move(client);
    c.until_ns = after(limits_.head_ms);
    c.last_ns = now();
    connections_.push_back(std::move(c));
  }
}

bool EgressProxy::body_over(const Connection& c) const {
  if (c.head.connect) return false;
  switch (c.head.body) {
    case RequestHead::Body::NONE: return true;
    case RequestHead::Body::LENGTH: return c.body_left == 0;
    case RequestHead::Body::CHUNKED: return c.chunks.ended();
  }
  return true;
}

void EgressProxy::client_readable(Connection& c) {
  if (c.state == State::LINGER) {
    std::string dropped;
    int n = read_some(c.client.get(), dropped, kBuffer);
    c.drained += dropped.size();
    if (n == 0 || n == -2 || c.drained > kMaxLingering) c.state = State::DEAD;
    return;
  }
  int n = read_some(c.client.get(), c.in, kBuffer);
  if (n == 1) c.last_ns = now();
  if (n == 0) c.client_over = true;
  if (n == -2) c.state = State::DEAD;
}

void EgressProxy::origin_readable(Connection& c) {
  if (c.state != State::RELAY || c.origin_over) return;
  size_t before = c.down.size();
  int n = read_some(c.origin.get(), c.down, kBuffer);
  if (n == 1) {
    c.last_ns = now();
    if (c.watch) c.watch->server_says(std::string_view(c.down).substr(before));
    if (c.gate == Gate::FIRST_BYTES) count(c);  // a server that speaks first: the client's bytes are judged all the same
  }
  if (n == 0 || n == -2) c.origin_over = true;
}

void EgressProxy::flush(Connection& c) {
  if (c.state == State::DEAD) return;
  uint64_t sent = 0, received = 0;
  if (!c.up.empty() && c.state == State::RELAY && !write_some(c.origin.get(), c.up, &sent)) {
    c.up.clear();  // the origin takes no more; what it says is still read
    c.in.clear();
    c.head.body = RequestHead::Body::NONE;
    if (c.head.connect) c.client_over = c.told_origin = true;
  }
  if (!c.down.empty() && !write_some(c.client.get(), c.down, &received)) c.state = State::DEAD;
  if (sent || received) c.last_ns = now();
  c.sent += sent;
  if (c.counted) c.received += received;
}

// Whatever can be done now with what is there.
void EgressProxy::advance(Connection& c) {
  if (c.state == State::HEAD && (!c.in.empty() || c.client_over)) {
    HeadRead read = read_head(c.in);
    if (!read.fault.empty()) {
      verdicts_.malformed(read.fault);
      reply(c, read.fault == "too-long" ? 431 : read.fault == "upgrade" ? 403 : 400, "refused: the request cannot be read in one way only: " + std::string(read.fault));
    } else if (read.used) {
      c.in.erase(0, read.used);
      c.head = std::move(read.head);
      c.body_left = c.head.length;
      judge(c);
    } else if (c.client_over) {
      c.state = State::DEAD;
    }
  }
  if (c.state == State::RELAY) {
    pump(c);
    if (c.state == State::RELAY) flush(c);
    if (c.state == State::RELAY && c.in.size() && c.up.empty()) pump(c);
  }
  if (c.state == State::RELAY) {
    bool all_up = c.up.empty() && c.in.empty();
    if (c.head.connect) {
      if (c.client_over && all_up && !c.told_origin) shutdown(c.origin.get(), SHUT_WR), c.told_origin = true;
      if (c.origin_over && c.down.empty() && !c.told_client) shutdown(c.client.get(), SHUT_WR), c.told_client = true;
      if (c.told_origin && c.told_client) c.state = State::DEAD;
      if (c.client_over && c.gate != Gate::OPEN && c.up.empty()) c.state = State::DEAD;  // it will never say what it wants
    } else {
      if (c.client_over && !body_over(c)) c.state = State::DEAD;
      if (c.origin_over && c.down.empty()) c.state = State::REPLY;
    }
  }
  if (c.state == State::REPLY) {
    if (!c.down.empty()) flush(c);
    if (c.state == State::REPLY && c.down.empty()) {
      shutdown(c.client.get(), SHUT_WR);
      c.origin.reset();
      c.state = c.client_over ? State::DEAD : State::LINGER;
      c.until_ns = after(limits_.linger_ms);
    }
  }
}

void EgressProxy::judge(Connection& c) {
  std::vector<size_t> by = matching(rules_, c.to());
  if (by.empty()) return refuse(c, 403, refusal(c.to()));
  c.by.clear();
  for (size_t i : by) c.by.push_back(rules_[i]);
  if (c.to().address) {
    c.addresses = {*c.to().address};
    if (itself(c.addresses[0], c.to().port)) return refuse(c, 403, "itself");
    return dial(c);
  }
  switch (resolver_->ask(c.to().name)) {
    case Resolver::Asked::KNOWN: return resolved(c);
    case Resolver::Asked::FULL: return refuse(c, 503, "too-many-names");
    case Resolver::Asked::WAIT: c.state = State::LOOKUP; c.until_ns = after(limits_.lookup_ms);
  }
}

void EgressProxy::resolved(Connection& c) {
  const std::vector<Address>* found = resolver_->pinned(c.to().name);
  if (!found) return refuse(c, 502, "unresolved");
  std::vector<size_t> by = matching(rules_, c.to());  // they may have changed meanwhile
  if (by.empty()) return refuse(c, 403, refusal(c.to()));
  c.by.clear();
  for (size_t i : by) c.by.push_back(rules_[i]);
  c.addresses = admitted(rules_, by, *found, c.to().port);
  if (c.addresses.empty()) return refuse(c, 403, "address-" + std::string(classify((*found)[0]).name));
  c.addresses.erase(std::remove_if(c.addresses.begin(), c.addresses.end(), [&](const Address& a) { return itself(a, c.to().port); }), c.addresses.end());
  if (c.addresses.empty()) return refuse(c, 403, "itself");
  if (c.addresses.size() > kMaxDialled) c.addresses.resize(kMaxDialled);
  dial(c);
}

bool EgressProxy::itself(const Address& a, uint16_t port) const { return own_address_ && a == *own_address_ && port == own_port_; }

void EgressProxy::dial(Connection& c) {
  while (c.tried < c.addresses.size()) {
    const Address& a = c.addresses[c.tried++];
    c.origin.reset(socket(a.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!c.origin) continue;
    sockaddr_storage to;
    socklen_t size = socket_address(a, c.to().port, &to);
    c.state = State::DIAL;
    c.until_ns = after(limits_.dial_ms / static_cast<int64_t>(c.addresses.size()));
    if (connect(c.origin.get(), reinterpret_cast<sockaddr*>(&to), size) == 0) return connected(c);
    if (errno == EINPROGRESS) return;
  }
  c.origin.reset();
  refuse(c, 502, "unreachable");
}

void EgressProxy::dialled(Connection& c) {
  int err = 0;
  socklen_t size = sizeof err;
  if (getsockopt(c.origin.get(), SOL_SOCKET, SO_ERROR, &err, &size) != 0 || err != 0) return dial(c);
  connected(c);
}

void EgressProxy::connected(Connection& c) {
  int one = 1;
  setsockopt(c.origin.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  c.state = State::RELAY;
  c.last_ns = now();
  const Address& there = c.addresses[c.tried - 1];
  c.by.erase(std::remove_if(c.by.begin(), c.by.end(), [&](const policy::EgressRule& r) { return !policy::admits_address(r, there, c.to().port); }), c.by.end());
  if (!c.head.connect) {
    c.up = c.head.to_origin();
    return count(c);
  }
  c.down = "HTTP/1.1 200 Connection established\r\n\r\n";
  if (c.to().address) return count(c);  // the rule says an address: there is no name to compare
  c.gate = c.to().port == 443 ? Gate::TLS : Gate::FIRST_BYTES;
  c.until_ns = c.gate == Gate::TLS ? after(limits_.hello_ms) : 0;
}

void EgressProxy::count(Connection& c) {
  if (c.counted) return;
  c.counted = true;
  verdicts_.allowed(c.to(), c.by.empty() ? "" : c.by[0].text(), realtime_ns());
}

// The first bytes of a tunnel to a name. True when what follows may pass.
bool EgressProxy::pass_gate(Connection& c) {
  if (c.gate == Gate::OPEN) return true;
  if (c.in.empty()) return false;
  if (c.gate == Gate::FIRST_BYTES) {
    if (c.until_ns == 0) c.until_ns = after(limits_.hello_ms);
    if (c.in[0] == 22) {
      c.gate = Gate::TLS;
    } else {
      First first = first_bytes(c.in);
      if (first == First::MORE) return false;
      if (first == First::HTTP) return cut(c, "plain-http"), false;
      count(c);
      verdicts_.unseen(c.to());
      c.gate = Gate::OPEN;
      return true;
    }
  }
  HelloRead hello = read_client_hello(c.in);
  if (hello.fault.empty() && !hello.used) return false;
  if (!hello.fault.empty()) return cut(c, std::string(hello.fault)), false;
  // One rule for both names; those that do not admit the address that was dialled are gone.
  auto agrees = [&](const policy::EgressRule& r) { return policy::matches_name(r, hello.name, c.to().port); };
  auto rule = std::find_if(c.by.begin(), c.by.end(), agrees);
  if (rule == c.by.end()) return cut(c, "server-name"), false;
  std::rotate(c.by.begin(), rule, rule + 1);
  count(c);
  c.watch.emplace(hello.name);
  c.up += c.in.substr(0, hello.used);
  c.in.erase(0, hello.used);
  c.gate = Gate::OPEN;
  return true;
}

// From what the client said to what the origin gets.
void EgressProxy::pump(Connection& c) {
  if (!pass_gate(c) || c.in.empty() || c.up.size() >= kBuffer) return;
  size_t n = c.in.size();
  if (c.head.connect) {
    std::string_view fault;
    if (c.watch) n = c.watch->take(c.in, &fault);
    if (!fault.empty()) return cut(c, std::string(fault));
  } else {
    if (c.head.body == RequestHead::Body::NONE) n = 0;
    if (c.head.body == RequestHead::Body::LENGTH) c.body_left -= n = static_cast<size_t>(std::min<uint64_t>(n, c.body_left));
    if (c.head.body == RequestHead::Body::CHUNKED) n = c.chunks.take(c.in);
    if (c.chunks.broken()) return cut(c, "coding");
  }
  c.up += std::string_view(c.in).substr(0, n);
  c.in.erase(0, n);
  if (body_over(c) && !c.in.empty()) {
    // What follows the one request of a connection is another, which nobody judged: it goes nowhere.
    verdicts_.malformed("second-request");
    c.in.clear();
  }
}

void EgressProxy::refuse(Connection& c, int status, const std::string& reason) {
  verdicts_.refused(c.to(), reason, realtime_ns());
  reply(c, status, "refused: " + c.to().text() + ": " + reason);
}

void EgressProxy::reply(Connection& c, int status, const std::string& text) {
  c.down = answer(status, text, c.head.method != "HEAD");
  c.origin.reset();
  c.in.clear();
  c.up.clear();
  c.state = State::REPLY;
  c.until_ns = after(limits_.linger_ms);
}

// After an answer was begun there is no other one: a TLS client is told in its own words.
void EgressProxy::cut(Connection& c, const std::string& reason) {
  verdicts_.refused(c.to(), reason, realtime_ns());
  c.origin.reset();
  c.in.clear();
  c.up.clear();
  if (c.gate == Gate::TLS && c.received == 0) c.down += kAlert;
  c.state = c.head.connect ? State::REPLY : State::DEAD;
  c.until_ns = after(limits_.linger_ms);
}

int64_t EgressProxy::deadline(const Connection& c) const {
  if (c.state == State::DEAD) return 0;
  if (c.state != State::RELAY) return c.until_ns;
  if (c.gate != Gate::OPEN && c.until_ns) return c.until_ns;
  bool half = c.client_over != c.origin_over && c.head.connect;
  return c.last_ns + (half ? limits_.half_open_ms : limits_.idle_ms) * 1'000'000;
}

void EgressProxy::late(Connection& c) {
  switch (c.state) {
    case State::HEAD:
      if (c.in.empty()) {
        c.state = State::DEAD;
      } else {
        verdicts_.malformed("slow");
        reply(c, 408, "refused: the head of the request did not come in its time");
      }
      break;
    case State::LOOKUP: refuse(c, 504, "unresolved"); break;
    case State::DIAL:
      if (c.tried < c.addresses.size()) dial(c);
      else refuse(c, 504, "unreachable");
      break;
    case State::RELAY:
      if (c.gate != Gate::OPEN && c.until_ns) cut(c, "slow");
      else c.state = State::DEAD;
      break;
    default: c.state = State::DEAD;
  }
  if (c.state == State::REPLY || c.state == State::RELAY) advance(c);
  if (c.state == State::DEAD) verdicts_.moved(c.to(), c.sent, c.received), c.sent = c.received = 0;
}

void EgressProxy::replace(std::vector<policy::EgressRule> rules) {
  rules_ = std::move(rules);
  for (Connection& c : connections_) {
    if (c.state != State::DIAL && c.state != State::RELAY) continue;
    std::vector<size_t> by = matching(rules_, c.to());
    if (!admitted(rules_, by, {c.addresses[c.tried - 1]}, c.to().port).empty()) continue;
    verdicts_.refused(c.to(), "withdrawn", realtime_ns());
    c.state = State::DEAD;
    c.origin.reset();
    c.client.reset();
    c.client_over = c.origin_over = true;
    c.down.clear();
    c.up.clear();
  }
}

Json EgressProxy::report() {
  for (Connection& c : connections_) {
    verdicts_.moved(c.to(), c.sent, c.received);
    c.sent = c.received = 0;
  }
  return verdicts_.to_json();
}

}  // namespace h5i::broker
