// Edits, one a line, then an empty line and a recorded request. Whatever they do, what is written is one request with one framing, and it
// reads back as itself.
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/websec-http/http/edit.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

size_t count(std::string_view s, std::string_view what) {
  size_t n = 0;
  for (size_t at = s.find(what); at != std::string_view::npos; at = s.find(what, at + what.size())) n++;
  return n;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view s(reinterpret_cast<const char*>(data), size);
  std::vector<Edit> edits;
  while (true) {
    size_t end = s.find('\n');
    if (end == std::string_view::npos || edits.size() > 16) return 0;
    std::string_view line = s.substr(0, end);
    s.remove_prefix(end + 1);
    if (line.empty()) break;
    Edit e;
    if (parse_edit(line, &e)) continue;
    if (!e.file.empty()) e.value = std::string("\0\r\n--", 5) + e.file;
    edits.push_back(e);
  }
  RawSplit split = split_raw(s);
  want(split.head.size() + split.body.size() == s.size());
  Request r;
  if (read_request(split.head, split.body, "http", &r)) return 0;
  size_t at = 0;
  if (apply_edits(&r, edits, &at)) {
    want(at < edits.size());
    return 0;
  }
  Written w;
  if (write_request(r, &w)) return 0;
  want(w.head.ends_with("\r\n\r\n") && count(w.head, "\r\n") == 2 + r.headers.lines().size() + w.computed.size());
  want(count(w.head, "\n") == count(w.head, "\r\n") && count(w.head, "\r") == count(w.head, "\r\n") && w.head.find('\0') == std::string::npos);
  want(!(r.headers.find("transfer-encoding") && r.headers.find("content-length")));
  want(split_raw(w.head + std::string(w.body)).body == w.body);
  Request back;
  Written again;
  want(!read_request(w.head, w.body, "http", &back));
  want(!write_request(back, &again) && again.head == w.head && again.body == w.body);
  return 0;
}
