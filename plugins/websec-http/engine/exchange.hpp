// One send from its record to its outcome: the connection, the bytes, the answer, what follows it. Nothing is tried a second time.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "plugins/websec-http/engine/answer.hpp"
#include "plugins/websec-http/engine/event_lines.hpp"
#include "plugins/websec-http/engine/send.hpp"
#include "plugins/websec-http/http/websocket_handshake.hpp"

namespace h5i::websec {

// One address to dial, and the name that TLS is to have.
struct Peer {
  Endpoint to;
  std::string tls_name;  // "": no TLS
  bool is_address = false;
};

// How the answer is to be read.
struct Asked {
  std::string method;
  std::optional<WsHandshake> socket;  // of a WebSocket
  int32_t stream = 0;                 // of HTTP/2; 0: HTTP/1.1
};

class Exchange : private H2Sink {
 public:
  // `wire`: dialled already, or not yet.
  Exchange(Recorder& recorder, Transport& transport, const SendOptions& options, const Url& url, Recorded sent, Asked asked, std::unique_ptr<Wire> wire);

  // Everything that is to be in the outcome's line. `first`: the first send of several, which before_last_byte is about. An error: the log could not be written.
  sdk::Result<json::Value> run(const Peer& peer, bool first, int64_t dns_us);
  const Recorded& sent() const { return sent_; }
  const ResponseHead* head() const { return head_; }
  // The answer is whole and has one reading: where it leads may be followed.
  bool one_reading() const { return ended_ == "complete" && !ambiguous_; }
  // Of a CONNECT that was answered with a tunnel: its connection, which is the target's from now on, and what came behind the answer.
  std::unique_ptr<Wire> tunnel();
  const std::string& rest() const { return rest_; }
  const ResponseParser& parser() const { return parser_; }
  int code() const;  // 0 an answer came, 1 it is none, 2 nothing was seen

 private:
  void interim(int32_t stream, const H2Head& head) override;
  void head(int32_t stream, const H2Head& head) override;
  BodySink& body(int32_t stream) override;
  void trailers(int32_t stream, const H2Fields& fields) override;
  void ended(int32_t stream, const H2End& end) override;
  void goaway(const H2Goaway& goaway) override;

  bool connect(const Peer& peer);
  void talk(bool first);
  void talk_h2(bool first);
  sdk::Status converse_on();
  void describe(json::Value& facts);
  sdk::Status keep(json::Value& facts);
  void end(std::string_view id, std::string why = {});
  void listen();
  bool is_event_stream() const;

  Recorder& recorder_;
  Transport& transport_;
  const SendOptions& options_;
  const Url& url_;
  const Recorded sent_;
  Asked asked_;
  std::unique_ptr<Wire> wire_;
  ResponseParser parser_;
  const ResponseHead* head_ = nullptr;
  ResponseHead h2_head_;
  std::unique_ptr<EventLines> events_;
  std::unique_ptr<AnswerBody> body_;

  std::string ended_, why_;  // "complete", or why not
  std::string rest_;         // what came behind the head of a tunnel
  int64_t begun_ = 0, deadline_ = 0, connected_ = 0, secured_ = 0, written_ = 0, first_ = 0, done_ = 0;
  uint64_t wire_bytes_ = 0, wire_before_ = 0, body_bytes_ = 0;
  bool reused_ = false, listening_ = false, ambiguous_ = false;
  std::optional<H2End> h2_end_;
  std::string goaway_;
  json::Value odd_ = json::Array{};
  json::Value frames_;
  int64_t close_code_ = 0;
};

}  // namespace h5i::websec
