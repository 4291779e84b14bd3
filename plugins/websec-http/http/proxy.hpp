// A tunnel through an HTTP/1.1 proxy (RFC 9110 section 9.3.6): the request that asks for it, and whether the answer opens it. A CONNECT is a send like
// any other: it is recorded before its first byte leaves.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/header_list.hpp"
#include "plugins/websec-http/http/oddity.hpp"
#include "plugins/websec-http/http/response.hpp"

namespace h5i::websec {

struct ProxyAsk {
  std::string head;                      // the exact bytes; there is no body
  std::vector<std::string> computed;     // header lines that we added
  std::vector<std::string> credentials;  // names of headers that carry some, never their values
};
// `authority`: "203.0.113.7:443". `headers`: those for the proxy alone. Refused: what belongs to the request inside the tunnel (Authorization, Cookie), since
// the proxy would read it, a body's headers, a Host that is not the authority.
Refused write_connect(std::string_view authority, const HeaderList& headers, ProxyAsk* out);

struct ProxyAnswer {
  static constexpr size_t kSchemes = 8;
  bool tunnel = false;  // what follows on the connection is the target's
  int status = 0;
  std::vector<std::string> schemes;  // of 407: "Basic", "Digest", each once, as written and with the characters of a token only
  Oddities oddities{true};           // those of the tunnel; the head's own are the parser's
};
// `parser` was made with rules.connect and has the final head. `behind`: bytes that came after it before we said anything in the tunnel.
ProxyAnswer judge_proxy(const ResponseParser& parser, std::string_view behind, bool strict);

}  // namespace h5i::websec
