// The chunked transfer coding (RFC 9112 section 7.1), fed with any split of bytes.
#pragma once
#include <string>
#include <string_view>

#include "plugins/websec-http/http/head.hpp"
#include "plugins/websec-http/http/sink.hpp"

namespace h5i::websec {

struct ChunkLimits {
  size_t extension_bytes = 16 * 1024;  // all extensions of one body together
  size_t trailer_bytes = 64 * 1024;
  size_t trailer_fields = 100;
};

// Headers that a trailer may not bring (RFC 9110 section 6.5.1): framing, routing, and what would be read as credentials.
bool forbidden_in_trailers(std::string_view name);

class ChunkDecoder {
 public:
  enum class State : uint8_t { SIZE, AFTER_SIZE, EXTENSION, DATA, DATA_END, TRAILERS, DONE, REFUSED };
  explicit ChunkDecoder(const ChunkLimits& limits) : limits_(limits) {}
  // How many bytes of `in` were used; fewer only when it is done or refused. `offset` is that of `in` in the message.
  size_t feed(std::string_view in, uint64_t offset, BodySink& sink, Oddities& oddities);
  State state() const { return state_; }
  const FieldBlock& trailers() const { return trailers_; }
  uint64_t chunks() const { return chunks_; }

 private:
  bool size_done(uint64_t offset, Oddities& oddities);

  ChunkLimits limits_;
  State state_ = State::SIZE;
  uint64_t size_ = 0;        // read so far, then what is left of the chunk
  uint32_t digits_ = 0;
  bool leading_zero_ = false;
  bool cr_ = false;          // the byte before was a CR
  size_t extension_bytes_ = 0;
  uint64_t chunks_ = 0;
  HeadEnd trailer_end_{true};
  std::string trailer_bytes_;
  uint64_t trailer_offset_ = 0;
  FieldBlock trailers_;
};

}  // namespace h5i::websec
