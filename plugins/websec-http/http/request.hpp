// From a request to the exact bytes that go onto the wire. Nothing is sent here: the digests of these bytes are recorded
// first, so they must be final.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/header_list.hpp"

namespace h5i::websec {

enum class TargetForm { ORIGIN, ABSOLUTE, AUTHORITY, ASTERISK };  // RFC 9112 section 3.2

struct Request {
  std::string method = "GET";
  TargetForm form = TargetForm::ORIGIN;
  std::string scheme = "http";     // written in the absolute form only
  std::string authority;           // host, or host:port when the port is not the scheme's; what Host is computed from
  std::string target = "/";        // path and query of the origin and absolute forms
  int minor = 1;                   // HTTP/1.0 or HTTP/1.1
  HeaderList headers;
  std::optional<std::string> body;  // as meant: chunked framing, when the headers ask for it, is put on by the writer
};

// What will be sent. `body` lies in the request or in `framed`, so the request must outlive this.
struct Written {
  std::string head;
  std::string_view body;
  std::string framed;
  std::vector<std::string> computed;        // header lines that we added, as written
  std::vector<std::string_view> notes;      // "content-length-differs", "body-unframed"
};

// Host and Content-Length are computed only where the headers have none; Host then stands first, Content-Length last.
// A Content-Length beside a Transfer-Encoding is refused: only raw bytes may carry both.
Refused write_request(const Request& request, Written* out);

// Exact bytes, split behind the first empty line (CRLF or LF) so that head and body have digests of their own.
struct RawSplit {
  std::string_view head, body;
  std::string_view method;  // up to the first space: what the answer's framing depends on
  bool whole_head = false;  // an empty line was found
};
RawSplit split_raw(std::string_view bytes);

// Every Content-Length in raw bytes set to what stands behind the head, and nothing else changed: only for who asks for it.
Refused fix_content_length(std::string* bytes);

// A recorded request back into a structure, for a replay with edits. Only what the writer could have written itself:
// for everything else the exact bytes are the only true form. `scheme` is the connection's.
Refused read_request(std::string_view head, std::string_view body, std::string_view scheme, Request* out);

}  // namespace h5i::websec
