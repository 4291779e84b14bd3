#include "plugins/websec-http/http/chunked.hpp"

#include <algorithm>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr uint64_t kMaxSize = INT64_MAX;
// A size that fits has sixteen digits; more zeros in front than this are no size but a way to feed an endless line.
constexpr uint32_t kMaxDigits = 64;
constexpr std::string_view kNotInTrailers[] = {"content-length", "transfer-encoding", "host", "content-encoding", "content-type",
                                               "content-range",  "trailer",           "connection", "set-cookie"};

}  // namespace

bool forbidden_in_trailers(std::string_view name) {
  for (std::string_view no : kNotInTrailers)
    if (syntax::same(name, no)) return true;
  return false;
}

// The line with the size ended.
bool ChunkDecoder::size_done(uint64_t offset, Oddities& oddities) {
  bool on = true;
  if (leading_zero_ && digits_ > 1) on = oddities.add(OddityId::CHUNK_SIZE_ZEROS, offset);
  if (size_ == 0) {
    state_ = State::TRAILERS;
    trailer_offset_ = offset + 1;
  } else {
    state_ = State::DATA;
    chunks_++;
  }
  digits_ = 0;
  leading_zero_ = cr_ = false;
  return on;
}

size_t ChunkDecoder::feed(std::string_view in, uint64_t offset, BodySink& sink, Oddities& oddities) {
  size_t at = 0;
  auto add = [&](OddityId id, size_t where, std::string_view detail = {}) { return oddities.add(id, offset + where, detail); };
  auto refuse = [&] {
    state_ = State::REFUSED;
    return at;
  };
  while (at < in.size() && state_ != State::DONE && state_ != State::REFUSED) {
    char c = in[at];
    switch (state_) {
      case State::SIZE:
        if (int d = syntax::hex_digit(c); d >= 0) {
          if (digits_ == 0) {
            size_ = 0;
            leading_zero_ = d == 0;
          }
          if (size_ > (kMaxSize >> 4) || ++digits_ > kMaxDigits) {
            add(OddityId::CHUNK_SIZE_TOO_LARGE, at);
            return refuse();
          }
          size_ = size_ << 4 | static_cast<unsigned>(d);
        } else if (digits_ == 0 && syntax::is(c, syntax::kSpace) && extension_bytes_ < limits_.extension_bytes) {
          extension_bytes_++;  // or else an endless line of spaces
          if (!add(OddityId::CHUNK_SIZE_SPACE, at)) return refuse();
        } else if (digits_ == 0) {
          add(OddityId::CHUNK_SIZE_INVALID, at, in.substr(at, 16));
          return refuse();
        } else {
          state_ = State::AFTER_SIZE;
          continue;
        }
        at++;
        break;
      case State::AFTER_SIZE:
        if (c == '\n') {
          if (!cr_ && !add(OddityId::BARE_LF, at)) return refuse();
          if (!size_done(offset + at, oddities)) return refuse();
        } else if (cr_) {  // CR and then no LF: where the line ends is anybody's guess
          add(OddityId::CHUNK_SIZE_INVALID, at, in.substr(at, 16));
          return refuse();
        } else if (c == '\r') {
          cr_ = true;
        } else if (c == ';') {
          state_ = State::EXTENSION;
          if (!add(OddityId::CHUNK_EXTENSION, at, in.substr(at, Oddities::kDetail))) return refuse();
        } else if (syntax::is(c, syntax::kSpace)) {
          if (++extension_bytes_ > limits_.extension_bytes) {
            add(OddityId::CHUNK_EXTENSIONS_TOO_LONG, at);
            return refuse();
          }
          if (!add(OddityId::CHUNK_SIZE_SPACE, at)) return refuse();
        } else {
          add(OddityId::CHUNK_SIZE_INVALID, at, in.substr(at, 16));
          return refuse();
        }
        at++;
        break;
      case State::EXTENSION:
        if (c == '\n') {
          if (!cr_ && !add(OddityId::BARE_LF, at)) return refuse();
          if (!size_done(offset + at, oddities)) return refuse();
        } else {
          if (cr_ && !add(OddityId::BARE_CR, at)) return refuse();
          cr_ = c == '\r';
          if (c == '\0' && !add(OddityId::NUL_BYTE, at)) return refuse();
          if (++extension_bytes_ > limits_.extension_bytes) {
            add(OddityId::CHUNK_EXTENSIONS_TOO_LONG, at);
            return refuse();
          }
        }
        at++;
        break;
      case State::DATA: {
        size_t n = static_cast<size_t>(std::min<uint64_t>(size_, in.size() - at));
        if (!sink.take(in.substr(at, n))) {
          add(OddityId::READER_STOPPED, at);
          return refuse();
        }
        at += n;
        size_ -= n;
        if (size_ == 0) state_ = State::DATA_END;
        break;
      }
      case State::DATA_END:
        if (c == '\n') {
          if (!cr_ && !add(OddityId::BARE_LF, at)) return refuse();
          cr_ = false;
          state_ = State::SIZE;
        } else if (c == '\r' && !cr_) {
          cr_ = true;
        } else {
          add(OddityId::CHUNK_OVERRUN, at, in.substr(at, 16));
          return refuse();
        }
        at++;
        break;
      case State::TRAILERS: {
        // One byte more than the limit is looked at, so that trailers of exactly the limit pass.
        std::string_view room = in.substr(at, limits_.trailer_bytes - trailer_bytes_.size() + 1);
        std::optional<size_t> end = trailer_end_.find(room);
        std::string_view taken = room.substr(0, end.value_or(room.size()));
        if (trailer_bytes_.size() + taken.size() > limits_.trailer_bytes) {
          at += limits_.trailer_bytes - trailer_bytes_.size();
          add(OddityId::TRAILERS_TOO_LARGE, at);
          return refuse();
        }
        trailer_bytes_.append(taken);
        at += taken.size();
        if (!end) break;
        trailers_.read(std::move(trailer_bytes_), 0, trailer_offset_, limits_.trailer_fields, oddities);
        trailer_bytes_.clear();
        if (!trailers_.empty()) oddities.add(OddityId::TRAILERS, trailer_offset_);
        for (size_t i = 0; i < trailers_.size(); i++)
          if (FieldView f = trailers_.field(i); forbidden_in_trailers(f.name)) oddities.add(OddityId::TRAILER_FRAMING, f.offset, f.name);
        if (oddities.refused()) return refuse();
        state_ = State::DONE;
        break;
      }
      case State::DONE:
      case State::REFUSED: break;
    }
  }
  return at;
}

}  // namespace h5i::websec
