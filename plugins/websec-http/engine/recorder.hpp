// The record comes first: what will be sent is a line of the session's log before a packet of it leaves, and only what was recorded can be sent.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/budget/budget.hpp"
#include "plugins/websec-http/engine/channel.hpp"

namespace h5i::websec {

// What a send is, as far as it is known before it is made.
struct Intent {
  std::string method, url;
  std::string peer;              // "203.0.113.7:443": the address that will be dialled, no name
  std::string tls_name;          // empty: no TLS
  std::string via;               // the proxy whose tunnel leads there; empty: none
  std::string tunnel_to;         // of a CONNECT: the peer that it asks for
  std::string document;          // whose script makes it; empty: the tester
  bool preflight = false;        // and asks first
  std::string rule;              // of the scope that lets it through
  std::string head, body;        // the exact bytes
  std::string protocol;          // "h2": the head is its HEADERS frames, and the body goes as ...
  std::string framed_body;       // ... these DATA frames, and the rest of it as the peer's windows open
  size_t last_piece = 1;         // how much of the end is held back when several requests are to end at one moment
  std::vector<std::string> computed;     // header lines that we added
  std::vector<std::string> cookies, credentials;  // names, never values
  std::vector<std::string> withheld;     // "name: why", cookies of the jar that did not go
  std::vector<std::string> left_out;     // names of headers that the protocol has no place for
  std::vector<std::string> dropped;      // names of headers that an earlier hop had and this one must not
  uint64_t parent = 0;           // the send whose answer led here; 0: none
  uint64_t replay_of = 0;        // the send that this one says again, with its edits; 0: none
  std::string identity;          // whose jar and headers; empty: nobody's
  std::string experiment;        // the plan that it belongs to, and which input of it
  uint64_t input = 0;
  bool raw = false;
};
// What its line says beside the digests and what the session knows by itself; and back, from a half that may say anything.
json::Value value_of(const Intent& intent);
Intent intent_of(const json::Value& facts);

// A send that is in the log. Made by the recorder alone and good for one connection: it holds the bytes, and they are those whose digest was
// written. Without one nothing is dialled and nothing is written; it cannot be copied.
class Recorded {
 public:
  Recorded(Recorded&&) = default;
  Recorded& operator=(Recorded&&) = default;
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  uint64_t seq() const { return seq_; }
  const Intent& intent() const { return intent_; }

 private:
  friend class Recorder;
  Recorded(uint64_t seq, Intent intent) : seq_(seq), intent_(std::move(intent)) {}
  uint64_t seq_;
  Intent intent_;
};

// What goes over a connection that is no HTTP any more, in one direction.
struct Frame {
  bool to_peer = false;
  uint8_t opcode = 0;
  bool final = true;
  std::string_view payload;  // without its mask
  std::string kept;          // digest of the payload that the session keeps; empty: none
};

// A frame that is in the log; as with Recorded, only what the recorder made is written to a peer.
class RecordedFrame {
 public:
  RecordedFrame(RecordedFrame&&) = default;
  RecordedFrame(const RecordedFrame&) = delete;
  RecordedFrame& operator=(const RecordedFrame&) = delete;
  const std::string& bytes() const { return bytes_; }

 private:
  friend class Recorder;
  explicit RecordedFrame(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes_;
};

// May be used by several threads.
class Recorder {
 public:
  // `placement`: where the wire is, in every line of a send.
  explicit Recorder(const sdk::Host& host, std::string placement = "not contained") : host_(host), placement_(std::move(placement)) {}
  // In a box: what is to be recorded goes to the half on the host, with its bytes, and the token is made when that one has it in the log.
  Recorder(const sdk::Host& host, Far& far) : host_(host), far_(&far) {}
  // Before the first send: from then on none goes beyond it.
  void hold_to(Budget budget) { budget_ = std::move(budget); }
  // Before the first send: what is sent is not only in the log before, but on the disk. Sends that wait for it at once wait for one flush.
  void make_durable() { durable_ = true; }
  // Before the first send: what puts names where values that are nobody's business stand, in every line of a send, its outcome and its events. A line
  // that it changed says so ("hidden").
  void hide(std::function<json::Value(json::Value)> names) { names_ = std::move(names); }
  // In the log when this returns. The error names the log, and nothing may be sent then; H5I_E_WEB_BUDGET when the session has used up its budget.
  sdk::Result<Recorded> intent(Intent intent);
  // A frame that is to be sent on the connection of `sent`, with its bytes as they will be on the wire; and one that came.
  sdk::Result<RecordedFrame> frame(const Recorded& sent, const Frame& frame, std::string bytes);
  sdk::Status received(const Recorded& sent, const Frame& frame);
  // How it ended. A session whose outcomes cannot be written sends nothing more: from then on intent() refuses.
  sdk::Status outcome(const Recorded& sent, json::Value facts);
  // What was not sent, and by which rule. Never a send.
  sdk::Result<uint64_t> refusal(json::Value facts);
  // A line that is no send: a plan, a finding, an identity.
  sdk::Result<uint64_t> note(std::string_view kind, const json::Value& facts);
  // A payload that the session keeps; its digest.
  sdk::Result<std::string> keep(std::string_view payload);
  // How many bytes the budget leaves to the next answer, on the wire and decoded; of sends at one moment each is told the same.
  struct Left {
    uint64_t wire = UINT64_MAX, decoded = UINT64_MAX;
  };
  Left left() const;
  // The budget and what of it is used up; nothing where there is none.
  std::optional<Budget> budget() const;

 private:
  sdk::Result<uint64_t> ask(json::Value question, std::vector<std::string> bytes = {});
  sdk::Result<uint64_t> line_of_frame(const Recorded& sent, const Frame& frame);
  json::Value without_values(json::Value body) const;
  sdk::Status on_disk(uint64_t seq);
  static sdk::Failure degraded();
  const sdk::Host& host_;
  const std::string placement_;
  Far* const far_ = nullptr;
  std::atomic<bool> degraded_ = false;
  mutable std::mutex one_;  // of the budget
  std::optional<Budget> budget_;
  std::function<json::Value(json::Value)> names_;
  bool durable_ = false;
  std::mutex disk_;
  std::condition_variable flushed_;
  uint64_t written_ = 0, safe_ = 0;  // lines before these numbers are in the log, on the disk
  bool flushing_ = false;
};

}  // namespace h5i::websec
