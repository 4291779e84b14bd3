// The first message of a TLS client, read for the one thing that is in the open: which server it asks for (RFC 8446 section 4.1.2,
// RFC 6066 section 3). Nothing is decrypted. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace h5i::broker {

constexpr size_t kMaxHello = 16 * 1024;  // records included; with post-quantum keys they are about 2 KiB

// What is wrong: "not-tls", "hello" (its form), "no-server-name", "server-name" (not one host name), "encrypted-hello" (the name that
// counts is inside, where nobody can compare it), "too-long". `fault` empty and `used` 0: more bytes are needed.
struct HelloRead {
  std::string_view fault;
  size_t used = 0;   // bytes of the records that carry it
  std::string name;  // canonical
};
HelloRead read_client_hello(std::string_view bytes);

// Follows a handshake after the hello. A server that asks for other parameters (HelloRetryRequest) takes a second hello, and the name in
// that one counts: it must be the same. Until the server has answered, no further message of the handshake may pass.
class HelloWatch {
 public:
  explicit HelloWatch(std::string name) : name_(std::move(name)) {}
  // What the server sent, in order; all of it may travel on.
  void server_says(std::string_view bytes);
  // How many of the client's bytes may travel on; the rest is to be given again later. `fault`: when there is one.
  size_t take(std::string_view bytes, std::string_view* fault);

 private:
  enum class Answer { UNKNOWN, RETRY, OTHER } answer_ = Answer::UNKNOWN;
  std::string name_;
  std::string heard_;    // of the server's messages, until the answer is known
  std::string partial_;  // the head of a record of the server's, as far as it came
  uint8_t type_ = 0;     // of that record
  size_t server_left_ = 0, client_left_ = 0;
  bool done_ = false;
};

}  // namespace h5i::broker
