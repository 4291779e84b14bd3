// One connection to one pinned address. wire.cpp is the only file that connects a socket or writes to one, and every such call takes the token
// of a send that is in the log.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/engine/recorder.hpp"
#include "plugins/websec-http/h2/connection.hpp"
#include "plugins/websec-http/tls/session.hpp"

namespace h5i::websec {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string text() const;  // "203.0.113.7:443", "[2001:db8::1]:80"
};

// Why a connection gave nothing more. The id is what the log says.
struct WireError {
  std::string_view id;  // "connect-failed", "timeout", "connection-lost", "cancelled", "tls-untrusted", "tls-failed"
  std::string text;
};

class Wire {
 public:
  explicit Wire(const sdk::Host& host) : host_(host) {}
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Another send begins on it: `deadline_ns` (monotonic) is of everything that is done for it.
  void begin(int64_t deadline_ns, uint64_t already_sent = 0) {
    deadline_ns_ = deadline_ns;
    bytes_sent_ = already_sent;
  }
  // Dials the address that the token's record names, and no other.
  std::optional<WireError> connect(const Recorded& sent, const Endpoint& to);
  // TLS with the name that the record has. `alpn`: what is offered.
  std::optional<WireError> secure(const Recorded& sent, const TlsContext& context, bool is_address, const std::vector<std::string>& alpn);
  // All of the token's bytes, head and body. How many went is bytes_sent(), also when it failed. `before_last`: called when all but the last byte went.
  std::optional<WireError> write(const Recorded& sent, const std::function<void()>& before_last = nullptr);
  // The bytes of a frame that is in the log, on a connection that the token's answer turned over to frames.
  std::optional<WireError> write(const Recorded& sent, const RecordedFrame& frame);
  // What came, at most `size` bytes; 0 at the end of the stream. What TLS itself has to answer goes out under the token.
  std::optional<WireError> read(const Recorded& sent, char* into, size_t size, size_t* got);

  // HTTP/2 on this connection, begun with the first call. What it has to say for its own sake goes out with pump().
  H2Connection& h2(bool strict, const H2Limits& limits);
  H2Connection* h2() { return h2_.get(); }
  std::optional<WireError> pump(const Recorded& sent);

  // The connection is the peer's that the token of a CONNECT names; once, and only of the connection that it was written to.
  bool tunnel(const Recorded& connect);
  // A tunnel in which nothing was said yet.
  bool fresh() const { return fresh_; }

  bool connected() const { return fd_ >= 0; }
  bool idle() const;  // between two sends: the peer has neither closed nor said anything
  uint64_t bytes_sent() const { return bytes_sent_; }  // of the token, before TLS
  const TlsSession* tls() const { return tls_ ? &*tls_ : nullptr; }

 private:
  bool is_of(const Recorded& sent) const { return fd_ >= 0 && sent.intent().peer == peer_ && sent.intent().tls_name == (tls_ ? tls_name_ : ""); }
  std::optional<WireError> put(std::string_view head, std::string_view body);
  std::optional<WireError> flush();  // what TLS has to say
  std::optional<WireError> receive(char* into, size_t size, size_t* got);
  std::optional<WireError> plain(std::string_view head, std::string_view body);
  std::optional<WireError> wait(short what);
  const sdk::Host& host_;
  int64_t deadline_ns_ = 0;
  int fd_ = -1;
  std::string peer_, tls_name_;
  bool fresh_ = false;
  std::optional<TlsSession> tls_;
  std::unique_ptr<H2Connection> h2_;
  std::string opening_;  // of HTTP/2, before the first request
  uint64_t bytes_sent_ = 0;
};

}  // namespace h5i::websec
