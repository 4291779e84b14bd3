// The head of one HTTP/1.1 request as a proxy reads it (RFC 9110, RFC 9112): read strictly, because what two readers take for
// different things is how a request reaches a host that nobody judged. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/broker/target.hpp"

namespace h5i::broker {

constexpr size_t kMaxHead = 16 * 1024;  // what common servers take of a whole head
constexpr size_t kMaxFields = 128;

struct RequestHead {
  std::string method;
  bool connect = false;
  Target target;
  std::string path;  // of a request that is no CONNECT: origin-form
  bool http10 = false;
  enum class Body { NONE, LENGTH, CHUNKED } body = Body::NONE;
  uint64_t length = 0;
  struct Field {
    std::string name, value;
  };
  std::vector<Field> fields;  // what may travel on: without Host, framing of the connection and what is meant for a proxy

  // As the origin gets it. Asks for one answer and the end of the connection.
  std::string to_origin() const;
};

// What is wrong with a head: "bare-line-end", "request-line", "version", "method", "target", "field", "host", "length", "coding",
// "upgrade", "too-long", "too-many-fields". `fault` empty and `used` 0: more bytes are needed.
struct HeadRead {
  std::string_view fault;
  size_t used = 0;  // bytes of the head, its empty line included
  RequestHead head;
};
HeadRead read_head(std::string_view bytes);

// Follows a chunked body (RFC 9112 section 7.1) without extensions or trailer fields, so that its end is where the origin sees it.
class ChunkWatch {
 public:
  // How many of these bytes belong to the body and may travel on. Less than all: it has ended, or what follows is no chunk.
  size_t take(std::string_view bytes);
  bool ended() const { return state_ == State::END; }
  bool broken() const { return state_ == State::BROKEN; }

 private:
  enum class State { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF, END, BROKEN } state_ = State::SIZE;
  uint64_t left_ = 0;
  int digits_ = 0;
};

}  // namespace h5i::broker
