// The record comes first: what will be sent is a line of the session's log before a packet of it leaves, and only what was recorded can be sent.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::websec {

std::string sha256_hex(std::string_view bytes);

// What a send is, as far as it is known before it is made.
struct Intent {
  std::string method, url;
  std::string peer;              // "203.0.113.7:443": the address that will be dialled, no name
  std::string tls_name;          // empty: no TLS
  std::string rule;              // of the scope that lets it through
  std::string head, body;        // the exact bytes
  std::vector<std::string> computed;     // header lines that we added
  std::vector<std::string> cookies, credentials;  // names, never values
  std::vector<std::string> withheld;     // "name: why", cookies of the jar that did not go
  std::vector<std::string> dropped;      // names of headers that an earlier hop had and this one must not
  uint64_t parent = 0;           // the send whose answer led here; 0: none
  uint64_t replay_of = 0;        // the send that this one says again, with its edits; 0: none
  std::string identity;          // whose jar and headers; empty: nobody's
  std::string experiment;        // the plan that it belongs to, and which input of it
  uint64_t input = 0;
  bool raw = false;
};

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

// May be used by several threads.
class Recorder {
 public:
  explicit Recorder(const sdk::Host& host) : host_(host) {}
  // In the log when this returns. The error names the log, and nothing may be sent then.
  sdk::Result<Recorded> intent(Intent intent);
  // How it ended. A session whose outcomes cannot be written sends nothing more: from then on intent() refuses.
  sdk::Status outcome(const Recorded& sent, json::Value facts);
  // What was not sent, and by which rule. Never a send.
  sdk::Result<uint64_t> refusal(json::Value facts);
  // A line that is no send: a plan, a finding, an identity.
  sdk::Result<uint64_t> note(std::string_view kind, const json::Value& facts);

 private:
  const sdk::Host& host_;
  std::mutex one_;
  bool degraded_ = false;
};

}  // namespace h5i::websec
