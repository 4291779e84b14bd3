// One send and the hops behind it, in the order that makes the record worth something: the URL, the scope, the addresses, the record, the wire,
// the outcome. Nothing is tried a second time.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/engine/cookies.hpp"
#include "plugins/websec-http/engine/recorder.hpp"
#include "plugins/websec-http/engine/transport.hpp"
#include "plugins/websec-http/http/request.hpp"
#include "plugins/websec-http/http/response.hpp"
#include "plugins/websec-http/scope/scope.hpp"

namespace h5i::websec {

class Box;

struct SendOptions {
  int follow = 0;  // hops
  int64_t timeout_ns = 30'000'000'000;  // of each send
  bool lenient = false;
  uint64_t most_bytes = 64u << 20;    // of one answer on the wire
  uint64_t most_decoded = 64u << 20;  // and taken out of its codings
  int64_t expires_ns = INT64_MAX;  // realtime: nothing is sent from then on
  bool capture = false;  // whole messages become payloads of the session
  std::optional<std::string> raw;  // exact bytes instead of the request
  uint64_t replay_of = 0;          // these four are told in the line of each hop
  std::string identity;
  std::string experiment;
  uint64_t input = 0;
  Transport* transport = nullptr;  // connections of the act; nobody's: this send's own, and TLS trusts the system
  CookieStore* cookies = nullptr;  // of the identity; nobody's: cookies are only what the headers say
  std::optional<Url> proxy;        // an HTTP proxy, whose tunnel is asked for with CONNECT
  HeaderList proxy_headers;        // for it alone
  std::optional<Url> document;     // as the script of this document would ask, CORS and SameSite included; none: as the tester
  bool credentials = false;        // the script asks for cookies to go to other origins too
  bool http2 = false;              // and nothing else: what is in the log is what is said
  std::vector<std::string> messages;  // of a WebSocket
  int64_t listen_ns = 0;           // to what follows a WebSocket's handshake, or to a stream of events; 0: as long as a send may take
  Box* box = nullptr;              // the box that the wire is in; nobody's: this process has it
  std::function<bool()> admit;             // asked before each hop is recorded, and waits its turn; false ends the send
  std::function<void()> before_last_byte;  // of the first hop: all but its last byte is with the peer
};

// A line of the log that a send became: "send" with its outcome, or "refused".
struct Row {
  uint64_t seq = 0;
  bool sent = false;
  json::Value facts;  // of the outcome, or of the refusal, with the URL and the method
};

struct Sends {
  std::vector<Row> rows;
  int code = 0;  // 0 an answer came, 1 it was refused or is no HTTP, 2 nothing could be seen
};

// `url` as it was given; `request` has method, headers and body, the rest is filled from the URL. An error: the log could not be written.
sdk::Result<Sends> send(const sdk::Host& host, Recorder& recorder, const Scope& scope, const std::string& url, Request request, const SendOptions& options);

}  // namespace h5i::websec
