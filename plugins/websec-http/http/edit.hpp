// Edits of a request, as somebody writes them on a command line: "query.id=2", "+header.X-A=1", "-cookie.sid".
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/pairs.hpp"
#include "plugins/websec-http/http/request.hpp"

namespace h5i::websec {

struct Edit {
  enum class Kind { PATH, QUERY, HEADER, COOKIE, JSON, FORM, MULTIPART, BODY };
  Kind kind = Kind::PATH;
  EditAct act = EditAct::SET;
  std::string key;    // what stands behind the dot
  std::string value;
  std::string file;   // "body=@file", "multipart.F=@file": whoever calls reads it into `value`
};

// Nothing in front sets: one of that name remains. "+" adds one more, "-" takes all of that name out and has no value.
Refused parse_edit(std::string_view text, Edit* out);

// In order, all of them or none. The framing is computed anew: a Content-Length follows the body, and goes when a Transfer-Encoding came, unless
// an edit names it. `at` is the edit that was refused.
Refused apply_edits(Request* request, const std::vector<Edit>& edits, size_t* at);

}  // namespace h5i::websec
