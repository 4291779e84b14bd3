#include "plugins/websec-http/h2/connection.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace h5i::websec {
namespace {

constexpr size_t kFieldOverhead = 32;  // RFC 9113 section 6.5.2
constexpr size_t kSendBound = 4 * 1024 * 1024;  // more than a request of our own limit can become

std::string_view code_name(uint32_t code) { return nghttp2_http2_strerror(code); }

}  // namespace

std::string_view h2_end_name(H2End::Why why) {
  switch (why) {
    case H2End::Why::WHOLE: return "whole";
    case H2End::Why::REFUSED: return "refused";
    case H2End::Why::RESET: return "reset";
    case H2End::Why::UNPROCESSED: return "unprocessed";
    case H2End::Why::CONNECTION: return "connection";
    case H2End::Why::CUT: return "cut";
    case H2End::Why::CANCELLED: return "cancelled";
  }
  return "";
}

// nghttp2 calls these; nothing is thrown through it.
struct H2Connection::Callbacks {
  template <class F>
  static int guarded(void* user, F f) {
    auto& c = *static_cast<H2Connection*>(user);
    try {
      f(c);
    } catch (...) {
      c.broken_ = OddityId::READER_STOPPED;
    }
    return c.broken_ ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame*, const uint8_t* name, size_t name_size, const uint8_t* value, size_t value_size,
                    uint8_t, void* user) {
    return guarded(user, [&](H2Connection& c) {
      c.block_size_ += name_size + value_size + kFieldOverhead;
      if (c.block_size_ > c.limits_.head_bytes) c.broken_ = OddityId::HEAD_TOO_LARGE;
      else if (c.block_.size() == c.limits_.fields) c.broken_ = OddityId::TOO_MANY_HEADERS;
      else c.block_.push_back({std::string(reinterpret_cast<const char*>(name), name_size), std::string(reinterpret_cast<const char*>(value), value_size)});
    });
  }

  static int data(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size, void* user) {
    return guarded(user, [&](H2Connection& c) { c.take_body(stream, {reinterpret_cast<const char*>(bytes), size}); });
  }

  static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return guarded(user, [&](H2Connection& c) {
      int32_t stream = frame->hd.stream_id;
      switch (frame->hd.type) {
        case NGHTTP2_HEADERS: c.block_done(stream, c.block_ends_); break;
        case NGHTTP2_DATA:
          if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) c.stream_ends(stream);
          break;
        case NGHTTP2_RST_STREAM: c.finish(stream, H2End::Why::RESET, frame->rst_stream.error_code); break;
        case NGHTTP2_GOAWAY: {
          const nghttp2_goaway& g = frame->goaway;
          c.goaway_ = true;
          H2Goaway told{static_cast<uint32_t>(g.last_stream_id), g.error_code, code_name(g.error_code), {}};
          if (g.opaque_data_len > 0) told.debug.assign(reinterpret_cast<const char*>(g.opaque_data), std::min(g.opaque_data_len, H2Goaway::kDebug));
          if (c.sink_) c.sink_->goaway(told);
          break;
        }
        default: break;
      }
    });
  }

  // For the streams that nghttp2 itself gives up; of all others we know already.
  static int stream_close(nghttp2_session*, int32_t stream, uint32_t code, void* user) {
    return guarded(user, [&](H2Connection& c) {
      auto at = c.streams_.find(stream);
      if (at == c.streams_.end()) return;
      if (c.goaway_ && code == NGHTTP2_REFUSED_STREAM) return c.finish(stream, H2End::Why::UNPROCESSED, code);
      at->second.oddities.add(OddityId::H2_STREAM_ERROR, c.frame_offset_, code_name(code));
      c.finish(stream, H2End::Why::REFUSED, code);
    });
  }

  static ssize_t request_body(nghttp2_session*, int32_t stream, uint8_t* into, size_t size, uint32_t* flags, nghttp2_data_source*, void* user) {
    auto& c = *static_cast<H2Connection*>(user);
    auto at = c.streams_.find(stream);
    if (at == c.streams_.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    Stream& s = at->second;
    size_t n = std::min(size, s.request.size() - s.request_at);
    if (n > 0) {
      memcpy(into, s.request.data() + s.request_at, n);
      c.idle_ = 0;
    }
    s.request_at += n;
    if (s.request_at == s.request.size() && (!s.end_apart || n == 0)) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      s.request_whole = true;
      s.request = {};
      s.request_at = 0;
    }
    return static_cast<ssize_t>(n);
  }
};

H2Connection::H2Connection(bool strict, const H2Limits& limits) : strict_(strict), limits_(limits), oddities_(strict) {}
H2Connection::~H2Connection() { nghttp2_session_del(session_); }

std::string H2Connection::start() {
  std::string out;
  if (session_ || dead_) return out;
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  bool made = nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0;
  if (made) {
    nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::stream_close);
    // Malformed messages are judged here, with an id each; nghttp2 would only reset their streams.
    nghttp2_option_set_no_http_messaging(option, 1);
    // Without a table a recorded head can be read alone, and what one request said has no effect on the bytes of the next.
    nghttp2_option_set_max_deflate_dynamic_table_size(option, 0);
    nghttp2_option_set_max_send_header_block_length(option, kSendBound);
    nghttp2_option_set_no_closed_streams(option, 1);
    made = nghttp2_session_client_new2(&session_, callbacks, this, option) == 0;
  }
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_.window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(std::min<size_t>(limits_.head_bytes, UINT32_MAX))},
  };
  made = made && nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0 &&
         nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, static_cast<int32_t>(limits_.connection_window)) == 0;
  if (made) drain(&out);
  else dead_ = true;
  return out;
}

std::string_view H2Connection::no_submit() const {
  if (dead_) return "dead";
  if (!session_) return "not-started";
  if (goaway_ || next_stream_ < 0) return "goaway";
  size_t allowed = std::min<size_t>(limits_.streams, nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS));
  return streams_.size() >= allowed ? "busy" : "";
}

Refused H2Connection::submit(const Request& request, const H2SubmitOptions& options, H2Submitted* out) {
  if (std::string_view why = no_submit(); !why.empty()) return Refusal{"h2-no-submit", "this connection takes no request now: " + std::string(why)};
  H2Submitted made;
  if (auto no = h2_request_fields(request, &made.fields)) return no;
  std::vector<nghttp2_nv> lines;
  size_t size = 0;
  for (const H2Field& f : made.fields.fields) {
    size += f.name.size() + f.value.size() + kFieldOverhead;
    lines.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(f.name.data())), reinterpret_cast<uint8_t*>(const_cast<char*>(f.value.data())),
                     f.name.size(), f.value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  if (size > limits_.head_bytes || lines.size() > limits_.fields) return Refusal{"h2-head-too-large", "more headers than a request may have"};
  if (size > nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE)) made.fields.notes.push_back("head-beyond-peer-limit");

  bool with_data = options.end_apart || (request.body && !request.body->empty());
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::request_body;
  int32_t id = nghttp2_submit_request(session_, nullptr, lines.data(), lines.size(), with_data ? &provider : nullptr, nullptr);
  if (id < 0) return Refusal{"h2-no-submit", "this connection takes no request now: " + std::string(nghttp2_strerror(id))};
  Stream& s = streams_.emplace(id, Stream(strict_)).first->second;
  s.no_body = request.method == "HEAD";
  s.end_apart = options.end_apart;
  s.request_whole = !with_data;
  if (with_data && request.body) s.request = *request.body;
  next_stream_ = id > INT32_MAX - 2 ? -1 : id + 2;

  std::string bytes;
  drain(&bytes);
  made.stream = id;
  for (std::string_view rest = bytes; !dead_ && !rest.empty();) {
    H2Frame f = h2_frame(rest);
    std::string_view whole = rest.substr(0, kH2FrameHeader + f.length);
    rest.remove_prefix(whole.size());
    if (static_cast<int32_t>(f.stream) == id && (f.type == kH2Headers || f.type == kH2Continuation) && made.data.empty()) made.head.append(whole);
    else if (static_cast<int32_t>(f.stream) == id && f.type == kH2Data) made.data.append(whole);
    else abandon();
    made.last_frame = whole.size();
  }
  if (dead_ || made.head.empty()) {
    abandon();
    return Refusal{"h2-no-submit", "the request could not be framed; the connection is given up"};
  }
  made.whole = s.request_whole;
  *out = std::move(made);
  return std::nullopt;
}

size_t H2Connection::feed(std::string_view in, H2Sink& sink) {
  if (!session_ || dead_) return 0;
  sink_ = &sink;
  struct Unset {
    H2Sink** at;
    ~Unset() { *at = nullptr; }
  } unset{&sink_};
  size_t used = 0;
  auto advance = [&](size_t n) {
    used += n;
    offset_ += n;
  };
  while (used < in.size() && !dead_) {
    std::string_view rest = in.substr(used);
    if (held_.empty() && rest.size() >= kH2FrameHeader) {
      frame_offset_ = offset_;
      if (!judge_frame(rest)) {
        advance(kH2FrameHeader);
        break;
      }
      std::string_view whole = rest.substr(0, kH2FrameHeader + frame_.length);
      if (whole.size() == kH2FrameHeader + frame_.length) {
        advance(whole.size());
        give(whole);
        continue;
      }
      held_.append(rest);
      advance(rest.size());
      break;
    }
    bool judged = held_.size() >= kH2FrameHeader;
    size_t want = kH2FrameHeader + (judged ? frame_.length : 0);
    rest = rest.substr(0, want - held_.size());
    held_.append(rest);
    advance(rest.size());
    if (held_.size() < want) break;
    if (!judged) {
      frame_offset_ = offset_ - kH2FrameHeader;
      if (!judge_frame(held_) || frame_.length > 0) continue;
    }
    give(std::exchange(held_, {}));
  }
  return used;
}

// Before nghttp2 sees a frame: whether it may be there at all. What is not looked at here (lengths of each type, windows, values) is nghttp2's.
bool H2Connection::judge_frame(std::string_view header) {
  frame_ = h2_frame(header);
  auto fatal = [&](OddityId id, std::string_view detail, uint32_t code) {
    die(id, frame_offset_, detail, code, true);
    return false;
  };
  const H2Frame& f = frame_;
  const std::string type = "type " + std::to_string(f.type);
  bool settings = f.type == kH2Settings && !(f.flags & kH2Ack) && f.stream == 0;
  if (std::exchange(first_frame_, false) && !settings) return fatal(OddityId::H2_NOT, header.substr(0, kH2FrameHeader), NGHTTP2_PROTOCOL_ERROR);
  if (frame_offset_ + kH2FrameHeader + f.length > limits_.bytes) return fatal(OddityId::TOO_MANY_BYTES, "", NGHTTP2_ENHANCE_YOUR_CALM);
  if (f.length > kH2MaxPayload) return fatal(OddityId::H2_FRAME_SIZE, type, NGHTTP2_FRAME_SIZE_ERROR);

  bool continues = f.type == kH2Continuation;
  if (continues != (block_stream_ != 0) || (continues && f.stream != block_stream_)) return fatal(OddityId::H2_BLOCK_BROKEN, type, NGHTTP2_PROTOCOL_ERROR);
  if (continues && ++block_frames_ > limits_.continuations) return fatal(OddityId::H2_CONTINUATIONS, "", NGHTTP2_ENHANCE_YOUR_CALM);
  if (f.type == kH2Push) return fatal(OddityId::H2_PUSH, "", NGHTTP2_PROTOCOL_ERROR);

  bool ours = f.stream % 2 == 1 && (next_stream_ < 0 || f.stream < static_cast<uint32_t>(next_stream_));
  bool placed = true;
  switch (f.type) {
    case kH2Settings:
    case kH2Ping:
    case kH2Goaway: placed = f.stream == 0; break;
    case kH2Data:
    case kH2Headers:
    case kH2Reset:
    case kH2Continuation: placed = ours; break;
    case kH2WindowUpdate: placed = ours || f.stream == 0; break;
    case kH2Priority: placed = f.stream != 0; break;
    default: oddities_.add(OddityId::H2_EXTENSION_FRAME, frame_offset_, type); break;
  }
  if (!placed) return fatal(OddityId::H2_STREAM_ID, type + " on " + std::to_string(f.stream), NGHTTP2_PROTOCOL_ERROR);
  if (++idle_ > limits_.idle_frames) return fatal(OddityId::H2_NO_PROGRESS, type, NGHTTP2_ENHANCE_YOUR_CALM);

  if (f.type == kH2Data || f.type == kH2Headers) {
    auto at = streams_.find(static_cast<int32_t>(f.stream));
    if (at == streams_.end()) oddities_.add(OddityId::H2_AFTER_END, frame_offset_, type);
    else if (f.type == kH2Data && !at->second.has_head) return fatal(OddityId::H2_DATA_BEFORE_HEAD, "", NGHTTP2_PROTOCOL_ERROR);
  }
  if (f.type == kH2Headers) {
    block_offset_ = frame_offset_;
    block_frames_ = 0;
    block_size_ = 0;
    block_.clear();
    block_ends_ = f.flags & kH2EndStream;
    block_stream_ = f.stream;
  }
  if ((f.type == kH2Headers || continues) && f.flags & kH2EndHeaders) block_stream_ = 0;
  return true;
}

void H2Connection::give(std::string_view bytes) {
  ssize_t n = nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (broken_) {
    uint32_t code = *broken_ == OddityId::READER_STOPPED ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_ENHANCE_YOUR_CALM;
    return die(*broken_, frame_offset_, "", code, true);
  }
  if (n < 0) return die(OddityId::H2_PROTOCOL, frame_offset_, nghttp2_strerror(static_cast<int>(n)), NGHTTP2_PROTOCOL_ERROR, true);
  std::string out;
  drain(&out);
  pending_.append(out);
  find_goaway(out);
}

void H2Connection::drain(std::string* out) {
  while (!dead_) {
    const uint8_t* bytes = nullptr;
    ssize_t n = nghttp2_session_mem_send(session_, &bytes);
    if (broken_) return die(*broken_, frame_offset_, "", NGHTTP2_INTERNAL_ERROR, true);
    if (n < 0) return die(OddityId::H2_PROTOCOL, frame_offset_, nghttp2_strerror(static_cast<int>(n)), NGHTTP2_INTERNAL_ERROR, true);
    if (n == 0) return;
    out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
  }
}

// nghttp2 says that it gives the connection up by writing GOAWAY.
void H2Connection::find_goaway(std::string_view frames) {
  while (frames.size() >= kH2FrameHeader && !dead_) {
    H2Frame f = h2_frame(frames);
    std::string_view payload = frames.substr(kH2FrameHeader, f.length);
    frames.remove_prefix(std::min(frames.size(), kH2FrameHeader + f.length));
    if (f.type != kH2Goaway || payload.size() < 8) continue;
    uint32_t code = h2_number(payload.substr(4));
    OddityId id = code == NGHTTP2_COMPRESSION_ERROR ? OddityId::H2_HPACK : OddityId::H2_PROTOCOL;
    std::string detail(code_name(code));
    if (payload.size() > 8) detail.append(": ").append(payload.substr(8));
    die(id, frame_offset_, detail, code, false);
  }
}

void H2Connection::die(OddityId id, uint64_t offset, std::string_view detail, uint32_t code, bool tell) {
  if (dead_) return;
  dead_ = true;
  oddities_.add(id, offset, detail);
  if (tell) {
    append_h2_frame(&pending_, {8, kH2Goaway, 0, 0});
    append_h2_number(&pending_, 0);
    append_h2_number(&pending_, code);
  }
  if (!sink_) return streams_.clear();
  while (!streams_.empty()) finish(streams_.begin()->first, H2End::Why::CONNECTION, code);
}

std::string H2Connection::pending() { return std::exchange(pending_, {}); }

void H2Connection::abandon() {
  dead_ = true;
  streams_.clear();
  pending_.clear();
}

void H2Connection::end(H2Sink& sink) {
  if (dead_) return;
  sink_ = &sink;
  dead_ = true;
  if (offset_ == 0) oddities_.add(OddityId::EMPTY_RESPONSE, 0);
  else if (!held_.empty()) oddities_.add(OddityId::H2_CUT, offset_ - held_.size());
  for (auto& [id, s] : streams_)
    if (s.has_head) s.oddities.add(OddityId::SHORT_BODY, offset_);
  while (!streams_.empty()) finish(streams_.begin()->first, H2End::Why::CUT, 0);
  pending_.clear();
  sink_ = nullptr;
}

void H2Connection::cancel(int32_t stream, H2Sink& sink) {
  if (dead_ || !streams_.contains(stream)) return;
  sink_ = &sink;
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
  finish(stream, H2End::Why::CANCELLED, NGHTTP2_CANCEL);
  std::string out;
  drain(&out);
  pending_.append(out);
  sink_ = nullptr;
}

void H2Connection::finish(int32_t id, H2End::Why why, uint32_t code, H2Fields refused) {
  auto at = streams_.find(id);
  if (at == streams_.end()) return;
  Stream s = std::move(at->second);
  streams_.erase(at);
  if (!sink_) return;
  H2End end;
  end.why = why;
  end.code = code;
  end.code_name = code_name(code);
  end.has_head = s.has_head;
  end.request_whole = s.request_whole;
  end.body_bytes = s.body_bytes;
  end.oddities = std::move(s.oddities);
  end.refused = std::move(refused);
  sink_->ended(id, end);
}

void H2Connection::refuse(int32_t id, uint32_t code, H2Fields refused) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
  finish(id, H2End::Why::REFUSED, code, std::move(refused));
}

// The header block of a stream is whole: an interim head, the head or trailers.
void H2Connection::block_done(int32_t id, bool ends) {
  H2Fields fields = std::exchange(block_, {});
  auto at = streams_.find(id);
  if (at == streams_.end()) return;
  Stream& s = at->second;
  idle_ = 0;
  auto no = [&] { refuse(id, NGHTTP2_PROTOCOL_ERROR, std::move(fields)); };
  if (s.has_head) {
    judge_h2_trailers(fields, block_offset_, s.oddities);
    if (!ends) s.oddities.add(OddityId::H2_TRAILERS_OPEN, block_offset_);
    if (s.oddities.refused()) return no();
    sink_->trailers(id, fields);
    return stream_ends(id);
  }
  std::optional<int> status = judge_h2_head(fields, block_offset_, s.oddities);
  bool interim = status && *status < 200;
  if (interim && *status == 101) s.oddities.add(OddityId::H2_STATUS_101, block_offset_);
  if (interim && ends) s.oddities.add(OddityId::H2_INTERIM_END, block_offset_);
  if (interim && ++s.interim > limits_.interim) s.oddities.add(OddityId::TOO_MANY_INTERIM, block_offset_);
  if (!interim) s.length = judge_h2_length(fields, block_offset_, s.oddities);
  if (s.oddities.refused()) return no();
  H2Head head{*status, std::move(fields), block_offset_};
  if (interim) return sink_->interim(id, head);
  s.has_head = true;
  s.no_body = s.no_body || *status == 204 || *status == 304;
  if (s.no_body && s.length && *status == 204) s.oddities.add(OddityId::LENGTH_WITHOUT_BODY, block_offset_);
  sink_->head(id, head);
  if (ends) stream_ends(id);
}

void H2Connection::take_body(int32_t id, std::string_view bytes) {
  auto at = streams_.find(id);
  if (at == streams_.end() || bytes.empty()) return;
  Stream& s = at->second;
  idle_ = 0;
  // What is within the bounds is passed on before a piece is refused for the rest, so that it does not matter how the pieces were cut.
  auto pass = [&](std::string_view piece) {
    s.body_bytes += piece.size();
    if (piece.empty() || sink_->body(id).take(piece)) return true;
    s.oddities.add(OddityId::READER_STOPPED, frame_offset_);
    refuse(id, NGHTTP2_CANCEL);
    return false;
  };
  OddityId beyond = s.no_body ? OddityId::H2_BODY_UNEXPECTED : OddityId::H2_LENGTH_DIFFERS;
  std::optional<uint64_t> expected = s.no_body ? std::optional<uint64_t>(0) : s.length;
  if (expected && !s.oddities.has(beyond) && bytes.size() > *expected - s.body_bytes) {
    auto within = static_cast<size_t>(*expected - s.body_bytes);
    if (!pass(bytes.substr(0, within))) return;
    bytes.remove_prefix(within);
    if (!s.oddities.add(beyond, frame_offset_, "more than " + std::to_string(*expected))) return refuse(id, NGHTTP2_PROTOCOL_ERROR);
  }
  auto room = static_cast<size_t>(std::min<uint64_t>(bytes.size(), limits_.body_bytes - s.body_bytes));
  if (!pass(bytes.substr(0, room)) || room == bytes.size()) return;
  s.oddities.add(OddityId::TOO_MANY_BYTES, frame_offset_);
  refuse(id, NGHTTP2_CANCEL);
}

// The peer ended the stream.
void H2Connection::stream_ends(int32_t id) {
  auto at = streams_.find(id);
  if (at == streams_.end()) return;
  Stream& s = at->second;
  if (!s.no_body && s.length && s.body_bytes < *s.length &&
      !s.oddities.add(OddityId::H2_LENGTH_DIFFERS, frame_offset_, std::to_string(s.body_bytes) + " of " + std::to_string(*s.length)))
    return refuse(id, NGHTTP2_PROTOCOL_ERROR);
  // An answer that does not wait for the rest of the request: nobody reads it any more.
  if (!s.request_whole) nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  finish(id, H2End::Why::WHOLE, 0);
}

}  // namespace h5i::websec
