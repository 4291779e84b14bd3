// One response, fed with any split of the bytes that came (RFC 9112). The head is kept as it came, also when it is refused;
// the body goes to a sink, so that memory is bounded by the limits below.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/chunked.hpp"
#include "plugins/websec-http/http/head.hpp"
#include "plugins/websec-http/http/oddity.hpp"

namespace h5i::websec {

struct ResponseLimits {
  size_t head_bytes = 256 * 1024;  // of one head; what browsers take
  size_t fields = 1000;
  size_t interim = 16;             // heads with a status of 1xx before the final one
  uint64_t bytes = UINT64_C(1) << 40;  // of the whole message on the wire
  ChunkLimits chunks;
};

// What was asked decides how the answer is framed.
struct ResponseRules {
  bool strict = true;
  bool head = false;     // the request's method was HEAD
  bool connect = false;  // it was CONNECT
  bool upgrade = false;  // it asked for an upgrade
  ResponseLimits limits;
};

class ResponseParser {
 public:
  enum class State : uint8_t {
    HEAD,
    BODY,
    DONE,
    SHORT,    // the connection ended too early; what came is valid as far as it goes
    TUNNEL,   // 101, or 2xx to CONNECT: what follows is not HTTP
    REFUSED,  // oddities().refusal() says by what
  };
  enum class Framing : uint8_t { NONE, LENGTH, CHUNKED, CLOSE };

  explicit ResponseParser(const ResponseRules& rules) : rules_(rules), oddities_(rules.strict), chunks_(rules.limits.chunks) {}

  // How many bytes of `in` belong to this response. Bytes behind its end are a fact, and stay the caller's.
  size_t feed(std::string_view in, BodySink& sink);
  // The peer closed its side.
  void end();

  State state() const { return state_; }
  bool finished() const { return state_ != State::HEAD && state_ != State::BODY; }
  Framing framing() const { return framing_; }
  bool has_head() const { return has_head_; }
  const ResponseHead& head() const { return head_; }  // the final one, when has_head()
  const std::vector<ResponseHead>& interim() const { return interim_; }
  // The bytes of a head that was not understood or not finished.
  const std::string& raw_head() const { return has_head_ ? head_.fields.bytes() : collected_; }
  const FieldBlock& trailers() const { return chunks_.trailers(); }
  const Oddities& oddities() const { return oddities_; }
  std::optional<uint64_t> announced() const;  // the body's length when the head says it
  uint64_t body_bytes() const { return body_bytes_; }  // given to the sink
  uint64_t wire_bytes() const { return offset_; }
  // Transfer codings beside chunked that are still on the body, in the order of the header.
  const std::vector<std::string>& transfer_codings() const { return transfer_codings_; }

  // Empty: another request may follow on this connection. Otherwise why not: "not-complete", "refused", "tunnel", "read-to-close",
  // "trailing-bytes", "ambiguous", "connection-close", "http-1.0", "closed".
  std::string_view no_reuse() const;

 private:
  class Counting;
  size_t feed_head(std::string_view in);
  size_t foreign();
  void head_complete();
  void frame();
  bool read_lengths();
  bool read_codings();
  void refuse() { state_ = State::REFUSED; }

  ResponseRules rules_;
  State state_ = State::HEAD;
  Framing framing_ = Framing::NONE;
  Oddities oddities_;
  ChunkDecoder chunks_;
  HeadEnd head_end_{false};
  std::string collected_;
  bool first_line_known_ = false;
  uint64_t head_offset_ = 0;
  ResponseHead head_;
  bool has_head_ = false;
  bool closed_ = false;
  std::vector<ResponseHead> interim_;
  std::vector<std::string> transfer_codings_;
  uint64_t offset_ = 0;  // bytes of this response so far
  std::optional<uint64_t> length_;
  uint64_t left_ = 0;
  uint64_t body_bytes_ = 0;
};

}  // namespace h5i::websec
