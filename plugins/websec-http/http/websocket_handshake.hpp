// The opening handshake of a WebSocket (RFC 6455 section 4): what is asked, and whether the answer grants it. Randomness is given by the caller.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/head.hpp"
#include "plugins/websec-http/http/header_list.hpp"
#include "plugins/websec-http/http/oddity.hpp"
#include "plugins/websec-http/http/request.hpp"

namespace h5i::websec {

std::string websocket_key(const std::array<uint8_t, 16>& random);  // Sec-WebSocket-Key
std::string websocket_accept(std::string_view key);                // what a server answers to it

struct WsHandshake {
  std::string key;                     // as it will be sent
  std::vector<std::string> protocols;  // that were asked for, in order
  std::vector<std::string> computed;   // header lines that we added
  std::vector<std::string_view> notes; // "method", "version", "upgrade", "connection", "key": what the author wrote against the standard
};

// Adds the headers that `request` lacks; the rest of it is as for any other request, its scheme http or https. What its author wrote stays and
// is noted where a server should turn it down. `protocols`: for Sec-WebSocket-Protocol, when the headers have none.
// Refused, with `request` as it was: a body, HTTP/1.0, more than one key, a protocol that is no token or stands twice, and any extension, because frames
// of an extension could not be read.
Refused open_websocket(Request* request, const std::array<uint8_t, 16>& random, const std::vector<std::string>& protocols, WsHandshake* out);

struct WsAnswer {
  bool open = false;           // frames follow the head
  std::string protocol;        // raw; empty: none was chosen
  Oddities oddities{true};
};
// The final head that came. Another status than 101 is an answer like any other. In strict mode each departure leaves the socket shut, in lenient
// mode those that do not change how frames are read are told and passed over.
WsAnswer judge_websocket(const ResponseHead& head, const WsHandshake& asked, bool strict);

}  // namespace h5i::websec
