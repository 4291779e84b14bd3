// From a request to the header lines of HTTP/2, and from recorded frames back to what they say.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/h2/head.hpp"
#include "plugins/websec-http/http/request.hpp"

namespace h5i::websec {

struct H2RequestFields {
  H2Fields fields;                     // in the order in which they are encoded: :method, :scheme, :authority, :path, then the headers in theirs
  std::vector<std::string> computed;   // "content-length: 5": lines that we added
  std::vector<std::string> dropped;    // names of headers that HTTP/2 has no place for, as written
  std::vector<std::string_view> notes; // "content-length-differs", "host-as-authority"
};

// Names are lower-cased. The first Host header is :authority, as it would be Host in HTTP/1; without one it is the request's authority. The headers
// of HTTP/1 framing, those that a Connection header names, and TE beside "trailers" are left out. A body, or a method that expects one, gets a
// Content-Length when the headers have none. Refused: CONNECT, and what write_request() refuses in a method, a target or a name.
Refused h2_request_fields(const Request& request, H2RequestFields* out);

// The bytes of HEADERS and CONTINUATION frames that H2Connection wrote: they can be read without those before them, because we keep no table
// of headers. False when they are not such frames.
bool read_h2_request_head(std::string_view frames, H2Fields* out);
// What such frames say as lines of a head, "GET /a HTTP/2" first and the other pseudo headers without their colon: for people, and for what masks lines. A break in a value is
// a space. Nothing when they cannot be read.
std::optional<std::string> h2_request_lines(std::string_view frames);
// The content of DATA frames; false when there are others among them or one is cut.
bool read_h2_request_data(std::string_view frames, std::string* out);

}  // namespace h5i::websec
