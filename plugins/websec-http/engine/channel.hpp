// Between the two halves of an engine whose wire is in a box: messages over the one descriptor that the core gives to both. It leads to no network.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::websec {

// A document, and bytes that a document cannot hold.
struct Message {
  json::Value say;
  std::vector<std::string> bytes;
};

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}  // borrowed
  // By any thread. False when the other end is gone, or the message is too large.
  bool send(const Message& message);
  // By one thread. Nothing at the end; `broken` says what was wrong with what came, when that was the end of it.
  std::optional<Message> receive(std::string* broken);
  // Both ends see the end.
  void end();

 private:
  const int fd_;
  std::mutex writing_;
};

// Asks the half on the host, and waits for its answer.
class Far {
 public:
  virtual ~Far() = default;
  virtual sdk::Result<Message> ask(Message question) = 0;
};

}  // namespace h5i::websec
