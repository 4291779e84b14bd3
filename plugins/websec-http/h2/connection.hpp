// The client's side of one HTTP/2 connection (RFC 9113) as bytes in and bytes out: no socket, no clock. nghttp2 frames and decodes; what is taken and
// what is refused is decided here, so that the same bytes give the same events and facts however the network cut them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/websec-http/h2/frames.hpp"
#include "plugins/websec-http/h2/head.hpp"
#include "plugins/websec-http/h2/request.hpp"
#include "plugins/websec-http/http/oddity.hpp"
#include "plugins/websec-http/http/request.hpp"
#include "plugins/websec-http/http/sink.hpp"

struct nghttp2_session;

namespace h5i::websec {

struct H2Limits {
  uint32_t window = 1024 * 1024;                  // bytes of body that a peer may send on one stream before some were taken ...
  uint32_t connection_window = 16 * 1024 * 1024;  // ... and on all of them
  size_t head_bytes = 256 * 1024;  // of a header block, decoded: names, values and 32 for each, as RFC 9113 counts them; also of a request
  size_t fields = 1000;
  size_t continuations = 8;        // what nghttp2 itself takes
  size_t interim = 16;             // heads of 1xx before the final one
  uint32_t idle_frames = 1000;     // frames in a row that bring neither a head nor a body, in or out: pings, settings, empty data, resets
  size_t streams = 100;            // open at once
  uint64_t body_bytes = UINT64_C(1) << 40;  // of one stream
  uint64_t bytes = UINT64_C(1) << 40;       // of the connection
};

struct H2End {
  enum class Why : uint8_t {
    WHOLE,       // the peer ended it where it should
    REFUSED,     // we did: the oddities say why
    RESET,       // the peer did, with `code`
    UNPROCESSED, // the peer said in GOAWAY that it did nothing with this request
    CONNECTION,  // the connection was refused or given up
    CUT,         // the peer closed the connection
    CANCELLED,   // cancel() was called
  };
  Why why = Why::WHOLE;
  uint32_t code = 0;
  std::string_view code_name;  // "PROTOCOL_ERROR"; "unknown" for a code without a name
  bool has_head = false;
  bool request_whole = true;   // all of our body had gone
  uint64_t body_bytes = 0;
  Oddities oddities{true};     // of this stream
  H2Fields refused;            // of REFUSED: the header block that was not taken, if it was one
};
std::string_view h2_end_name(H2End::Why why);  // "whole", "refused", "reset", ...

struct H2Goaway {
  static constexpr size_t kDebug = 1024;
  uint32_t last_stream = 0, code = 0;
  std::string_view code_name;
  std::string debug;  // at most kDebug raw bytes
};

// Called while feed(), end() or cancel() runs; must not call the connection. For each stream: interim*, head, body*, trailers?, ended, where
// all but the last may be missing. An exception ends the connection.
class H2Sink {
 public:
  virtual ~H2Sink() = default;
  virtual void interim(int32_t stream, const H2Head& head) = 0;
  virtual void head(int32_t stream, const H2Head& head) = 0;
  virtual BodySink& body(int32_t stream) = 0;  // asked for each piece; one that takes no more has the stream reset
  virtual void trailers(int32_t stream, const H2Fields& fields) = 0;
  virtual void ended(int32_t stream, const H2End& end) = 0;  // once
  virtual void goaway(const H2Goaway& goaway) = 0;
};

struct H2Submitted {
  int32_t stream = 0;
  std::string head;      // HEADERS and CONTINUATION frames
  std::string data;      // DATA frames, as far as the peer's windows let them go
  bool whole = true;     // the body lies in `data`; otherwise the rest comes out of pending() as the peer opens its windows
  size_t last_frame = 0; // bytes of the last frame in head + data: hold these back, and the peer has all but the end of the request
  H2RequestFields fields;
};

struct H2SubmitOptions {
  bool end_apart = false;  // the end of the stream in an empty DATA frame of its own, for requests that are to end at the same moment
};

class H2Connection {
 public:
  H2Connection(bool strict, const H2Limits& limits);
  ~H2Connection();
  H2Connection(const H2Connection&) = delete;
  H2Connection& operator=(const H2Connection&) = delete;

  // The preface, SETTINGS and WINDOW_UPDATE: what goes out first, once.
  std::string start();

  // The exact bytes of a request. They are final and depend on the request, the stream's number and the peer's windows alone: we keep no table of
  // headers. They must be sent, in the order of the calls, before anything that pending() gives from then on. When they are not sent the numbers
  // of later streams are wrong for the peer: call abandon(), and the connection is dead.
  Refused submit(const Request& request, const H2SubmitOptions& options, H2Submitted* out);
  // Why no request can follow now; empty when one can: "not-started", "dead", "goaway", "busy" (as many streams are open as we or the peer allow).
  std::string_view no_submit() const;

  // How many bytes were used: all, unless the connection died.
  size_t feed(std::string_view in, H2Sink& sink);
  // Control frames, and bodies that waited for a window: to be written now. Empty when there is nothing.
  std::string pending();
  // The peer closed its side. Of a frame that is not whole nothing was passed on.
  void end(H2Sink& sink);
  // Resets a stream that is open; the reset lies in pending().
  void cancel(int32_t stream, H2Sink& sink);
  // Nothing more is sent or read. Streams that were open get no event.
  void abandon();

  bool dead() const { return dead_; }
  size_t open_streams() const { return streams_.size(); }
  uint64_t wire_bytes() const { return offset_; }
  const Oddities& oddities() const { return oddities_; }  // of the connection

 private:
  struct Stream {
    explicit Stream(bool strict) : oddities(strict) {}
    Oddities oddities;
    bool no_body = false;   // an answer to HEAD, or a status without a body
    bool has_head = false;
    size_t interim = 0;
    std::optional<uint64_t> length;
    uint64_t body_bytes = 0;
    std::string request;    // body, until all of it went
    size_t request_at = 0;
    bool request_whole = false, end_apart = false;
  };
  struct Callbacks;

  bool judge_frame(std::string_view header);
  void give(std::string_view bytes);
  void drain(std::string* out);
  void find_goaway(std::string_view frames);
  void die(OddityId id, uint64_t offset, std::string_view detail, uint32_t code, bool tell);
  void finish(int32_t id, H2End::Why why, uint32_t code, H2Fields refused = {});
  void refuse(int32_t id, uint32_t code, H2Fields refused = {});
  void block_done(int32_t id, bool ends);
  void take_body(int32_t id, std::string_view bytes);
  void stream_ends(int32_t id);

  bool strict_;
  H2Limits limits_;
  Oddities oddities_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Stream> streams_;
  int32_t next_stream_ = 1;
  H2Sink* sink_ = nullptr;
  std::string pending_;
  bool dead_ = false, goaway_ = false;

  std::string held_;  // of a frame that is not whole yet; nghttp2 is given whole frames, so that nothing hangs on how they were cut
  H2Frame frame_;
  uint64_t frame_offset_ = 0, offset_ = 0;
  bool first_frame_ = true;
  uint32_t idle_ = 0;

  uint32_t block_stream_ = 0;  // whose header block is not whole; 0: none
  uint64_t block_offset_ = 0;
  size_t block_frames_ = 0, block_size_ = 0;
  bool block_ends_ = false;
  H2Fields block_;
  std::optional<OddityId> broken_;  // what a callback found, for when nghttp2 has returned
};

}  // namespace h5i::websec
