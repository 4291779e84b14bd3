// One connection to one pinned address. wire.cpp is the only file that connects a socket or writes to one, and every such call takes the token
// of a send that is in the log.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/engine/recorder.hpp"

namespace h5i::websec {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string text() const;  // "203.0.113.7:443", "[2001:db8::1]:80"
};

// Why a connection gave nothing more. The id is what the log says.
struct WireError {
  std::string_view id;  // "connect-failed", "timeout", "connection-lost", "cancelled"
  std::string text;
};

class Wire {
 public:
  // `deadline_ns`: monotonic, of everything that is done on it. `cancelled`: asked while it waits.
  Wire(const sdk::Host& host, int64_t deadline_ns) : host_(host), deadline_ns_(deadline_ns) {}
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Dials the address that the token's record names, and no other.
  std::optional<WireError> connect(const Recorded& sent, const Endpoint& to);
  // All of the token's bytes, head and body. How many went is bytes_sent(), also when it failed. `before_last`: called when all but the last byte went.
  std::optional<WireError> write(const Recorded& sent, const std::function<void()>& before_last = nullptr);
  // What came, at most `size` bytes; 0 at the end of the stream.
  std::optional<WireError> read(char* into, size_t size, size_t* got);
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  std::optional<WireError> put(std::string_view head, std::string_view body);
  std::optional<WireError> wait(short what);
  const sdk::Host& host_;
  int64_t deadline_ns_;
  int fd_ = -1;
  uint64_t bytes_sent_ = 0;
};

}  // namespace h5i::websec
