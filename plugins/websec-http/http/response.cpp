#include "plugins/websec-http/http/response.hpp"

#include <algorithm>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kForeign = 256;  // bytes of a first line that is not HTTP's: enough for a banner
constexpr std::string_view kCodings[] = {"gzip", "x-gzip", "deflate", "compress", "x-compress"};

// Calls each(element, offset) for the list elements of every header of that name.
template <class F>
void each_listed(const FieldBlock& fields, std::string_view name, F each) {
  for (size_t i = 0; i < fields.size(); i++) {
    FieldView f = fields.field(i);
    if (!syntax::same(f.name, name)) continue;
    if (f.value.find_first_of("\r\n") == std::string_view::npos) {
      syntax::each_element(f.value, [&](std::string_view e) { each(e, f.offset); });
    } else {
      std::string value = unfolded(f.value);
      syntax::each_element(value, [&](std::string_view e) { each(e, f.offset); });
    }
  }
}

bool connection_says(const FieldBlock& fields, std::string_view option) {
  bool found = false;
  each_listed(fields, "connection", [&](std::string_view e, uint64_t) { found = found || syntax::same(e, option); });
  return found;
}

}  // namespace

class ResponseParser::Counting : public BodySink {
 public:
  Counting(BodySink& to, uint64_t* count) : to_(to), count_(count) {}
  bool take(std::string_view bytes) override {
    *count_ += bytes.size();
    return to_.take(bytes);
  }

 private:
  BodySink& to_;
  uint64_t* count_;
};

std::optional<uint64_t> ResponseParser::announced() const { return length_; }

size_t ResponseParser::feed(std::string_view in, BodySink& sink) {
  size_t used = 0;
  while (used < in.size()) {
    if (finished()) {
      if (state_ == State::DONE) oddities_.add(OddityId::TRAILING_BYTES, offset_, in.substr(used));
      return used;
    }
    std::string_view rest = in.substr(used);
    uint64_t room = rules_.limits.bytes - offset_;
    bool over = rest.size() > room;
    if (over) rest = rest.substr(0, static_cast<size_t>(room));
    size_t n = 0;
    if (rest.empty()) {
      // at the limit
    } else if (state_ == State::HEAD) {
      n = feed_head(rest);
    } else if (framing_ == Framing::CHUNKED) {
      Counting counted(sink, &body_bytes_);
      n = chunks_.feed(rest, offset_, counted, oddities_);
      if (chunks_.state() == ChunkDecoder::State::DONE) state_ = State::DONE;
      if (chunks_.state() == ChunkDecoder::State::REFUSED) refuse();
    } else {
      n = framing_ == Framing::LENGTH ? static_cast<size_t>(std::min<uint64_t>(left_, rest.size())) : rest.size();
      body_bytes_ += n;
      left_ -= framing_ == Framing::LENGTH ? n : 0;
      if (!sink.take(rest.substr(0, n))) {
        oddities_.add(OddityId::READER_STOPPED, offset_);
        refuse();
      } else if (framing_ == Framing::LENGTH && left_ == 0) {
        state_ = State::DONE;
      }
    }
    used += n;
    offset_ += n;
    if (over && !finished() && offset_ == rules_.limits.bytes) {
      oddities_.add(OddityId::TOO_MANY_BYTES, offset_);
      refuse();
    }
  }
  return used;
}

size_t ResponseParser::feed_head(std::string_view in) {
  if (collected_.empty()) head_offset_ = offset_;
  // One byte more than the limit is looked at, so that a head of exactly the limit passes.
  std::string_view room = in.substr(0, rules_.limits.head_bytes - collected_.size() + 1);
  std::optional<size_t> end = head_end_.find(room);
  std::string_view taken = room.substr(0, end.value_or(room.size()));
  bool over = collected_.size() + taken.size() > rules_.limits.head_bytes;
  if (over) taken = taken.substr(0, rules_.limits.head_bytes - collected_.size());
  size_t before = collected_.size();
  collected_.append(taken);
  if (size_t cut = foreign()) {
    collected_.resize(cut);
    oddities_.add(OddityId::NOT_HTTP, head_offset_, collected_);
    refuse();
    return cut - before;
  }
  if (over) {
    oddities_.add(OddityId::HEAD_TOO_LARGE, head_offset_ + rules_.limits.head_bytes);
    refuse();
  } else if (end) {
    head_complete();
  }
  return taken.size();
}

// Another protocol is told from HTTP by its first line; nobody waits for an empty line that it may never send. How many bytes
// of it are kept, 0 when it is HTTP or too little came to tell.
size_t ResponseParser::foreign() {
  size_t first = collected_.find_first_not_of("\r\n");
  if (first_line_known_ || first == std::string::npos) return 0;
  size_t line = collected_.find('\n', first);
  if (line == std::string::npos && collected_.size() - first < kForeign && !closed_) return 0;
  first_line_known_ = true;
  std::string_view begin = std::string_view(collected_).substr(first, 5);
  if (syntax::same(begin, std::string_view("HTTP/").substr(0, begin.size()))) return 0;
  return std::min({collected_.size(), first + kForeign, line == std::string::npos ? line : line + 1});
}

void ResponseParser::head_complete() {
  ResponseHead head;
  std::string bytes = std::move(collected_);
  collected_.clear();
  head_end_ = HeadEnd(false);
  first_line_known_ = false;
  if (!read_response_head(std::move(bytes), head_offset_, rules_.limits.fields, oddities_, &head)) {
    collected_ = std::move(bytes);  // a head that was not understood was not taken
    return refuse();
  }
  if (head.status >= 100 && head.status < 200 && head.status != 101 && !oddities_.refused()) {
    for (std::string_view name : {"content-length", "transfer-encoding"})
      if (auto f = head.fields.first(name)) oddities_.add(OddityId::LENGTH_WITHOUT_BODY, f->offset, f->name);
    if (interim_.size() == rules_.limits.interim) {
      oddities_.add(OddityId::TOO_MANY_INTERIM, head_offset_);
      collected_ = head.fields.bytes();
      return refuse();
    }
    interim_.push_back(std::move(head));
    return;
  }
  head_ = std::move(head);
  has_head_ = true;
  frame();
  if (oddities_.refused()) refuse();
}

// RFC 9112 section 6.3, in its order.
void ResponseParser::frame() {
  const FieldBlock& fields = head_.fields;
  state_ = State::DONE;
  int s = head_.status;
  if (s == 101) {
    if (!rules_.upgrade) oddities_.add(OddityId::UPGRADE_UNASKED, fields.offset());
    state_ = State::TUNNEL;
    return;
  }
  bool tunnel = rules_.connect && s >= 200 && s < 300;
  if (tunnel || s == 204) {
    for (std::string_view name : {"content-length", "transfer-encoding"})
      if (auto f = fields.first(name))
        oddities_.add(tunnel ? OddityId::LENGTH_ON_CONNECT : OddityId::LENGTH_WITHOUT_BODY, f->offset, f->name);
    if (tunnel) state_ = State::TUNNEL;
    return;
  }
  auto te = fields.first("transfer-encoding"), cl = fields.first("content-length");
  if (te && cl) oddities_.add(OddityId::TE_AND_CL, cl->offset, cl->value);
  if (te && head_.minor == 0) oddities_.add(OddityId::TE_ON_10, te->offset, te->value);
  if (rules_.head || s == 304) {
    if (te || !cl) return;
    // What a GET would have got: a length that nobody can read is odd here too, but stops only who is strict.
    Oddities lengths(rules_.strict);
    std::swap(lengths, oddities_);
    if (!read_lengths()) length_.reset();
    std::swap(lengths, oddities_);
    for (const Oddity& o : lengths.list())
      if (rules_.strict || oddity_weight(o.id) != OddityWeight::FATAL) oddities_.add(o.id, o.offset, o.detail);
    return;
  }
  state_ = State::BODY;
  if (te) {
    framing_ = read_codings() ? Framing::CHUNKED : Framing::CLOSE;
    return;
  }
  if (!cl) {
    framing_ = Framing::CLOSE;
    return;
  }
  framing_ = read_lengths() ? Framing::LENGTH : Framing::CLOSE;
  left_ = length_.value_or(0);
  if (framing_ == Framing::LENGTH && left_ == 0) state_ = State::DONE;
}

// Several lengths are one when they are spelled alike, as browsers read them; a value that is no number is as good as none.
bool ResponseParser::read_lengths() {
  std::string first;
  size_t elements = 0, lines = head_.fields.count("content-length");
  uint64_t where = 0;  // the first, or the first that repeats it
  bool differ = false;
  each_listed(head_.fields, "content-length", [&](std::string_view e, uint64_t offset) {
    if (elements++ == 0) {
      first = e;
      where = offset;
    } else {
      if (elements == 2) where = offset;
      differ = differ || e != first;
    }
  });
  std::string_view kept = first;
  if (lines > 1) oddities_.add(OddityId::CL_REPEATED, where, kept);
  if (elements > lines) oddities_.add(OddityId::CL_LIST, where, kept);
  if (differ) {
    oddities_.add(OddityId::CL_CONFLICT, where, kept);
    return false;
  }
  if (kept.empty() || !syntax::all(kept, syntax::kDigit)) {
    oddities_.add(OddityId::CL_INVALID, where, kept);
    return false;
  }
  if (kept.size() > 1 && kept[0] == '0') oddities_.add(OddityId::CL_NOT_CANONICAL, where, kept);
  uint64_t n = 0;
  for (char c : kept) {
    auto digit = static_cast<uint64_t>(c - '0');
    if (n > (static_cast<uint64_t>(INT64_MAX) - digit) / 10) {
      oddities_.add(OddityId::CL_TOO_LARGE, where, kept);
      return false;
    }
    n = n * 10 + digit;
  }
  length_ = n;
  return true;
}

// Whether the last coding is chunked.
bool ResponseParser::read_codings() {
  size_t times = 0;
  bool chunked = false;
  uint64_t where = 0;
  each_listed(head_.fields, "transfer-encoding", [&](std::string_view e, uint64_t offset) {
    where = offset;
    if (e.empty()) {
      oddities_.add(OddityId::TE_MALFORMED, offset);
      return;
    }
    chunked = syntax::same(e, "chunked");
    if (chunked) {
      if (++times == 2) oddities_.add(OddityId::TE_CHUNKED_TWICE, offset);
      return;
    }
    bool known = std::any_of(std::begin(kCodings), std::end(kCodings), [&](std::string_view k) { return syntax::same(k, e); });
    oddities_.add(known ? OddityId::TE_CODING : OddityId::TE_UNKNOWN, offset, e);
    if (transfer_codings_.size() < 16) transfer_codings_.emplace_back(e.substr(0, Oddities::kDetail));
  });
  if (!chunked) oddities_.add(OddityId::TE_NOT_CHUNKED_LAST, where);
  return chunked;
}

void ResponseParser::end() {
  closed_ = true;
  if (state_ == State::HEAD) {
    bool other = foreign() > 0;
    oddities_.add(offset_ == 0 ? OddityId::EMPTY_RESPONSE : other ? OddityId::NOT_HTTP : OddityId::HEAD_CUT, other ? head_offset_ : offset_);
    return refuse();
  }
  if (state_ != State::BODY) return;
  if (framing_ == Framing::CLOSE) {
    state_ = State::DONE;
    return;
  }
  oddities_.add(OddityId::SHORT_BODY, offset_);
  state_ = State::SHORT;
}

std::string_view ResponseParser::no_reuse() const {
  if (state_ == State::REFUSED) return "refused";
  if (state_ == State::TUNNEL) return "tunnel";
  if (state_ != State::DONE) return "not-complete";
  if (framing_ == Framing::CLOSE) return "read-to-close";
  if (oddities_.has(OddityId::TRAILING_BYTES)) return "trailing-bytes";
  if (oddities_.ambiguous()) return "ambiguous";
  if (connection_says(head_.fields, "close")) return "connection-close";
  if (head_.minor == 0 && !connection_says(head_.fields, "keep-alive")) return "http-1.0";
  if (closed_) return "closed";
  return {};
}

}  // namespace h5i::websec
