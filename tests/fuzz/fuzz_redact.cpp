// Any output of a box, cut anywhere: redaction ends, changes nothing by how it is cut, and leaves no known value.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/evidence/redact.hpp"

using namespace h5i::evidence;

namespace {
const std::vector<std::string> kValues = {"hunter22", "s3cr3t/+\\\"x", "line one\nline two of it"};

std::string whole(const std::string& s) {
  Redactor r(kValues);
  std::string out = r.feed(s);
  return out + r.finish();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  size_t step = data[0] % 17 + 1;
  std::string s(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string expected = whole(s);
  Redactor r(kValues);
  std::string out;
  for (size_t i = 0; i < s.size(); i += step) out += r.feed(std::string_view(s).substr(i, step));
  out += r.finish();
  // Beyond what may be held back, how it was cut may show; nothing that short may.
  if (s.size() < Redactor::kHold / 2 && out != expected) abort();
  for (const std::string& v : kValues)
    if (out.find(v) != std::string::npos || expected.find(v) != std::string::npos) abort();
  // Once is enough: what was redacted has nothing left to find by value.
  if (whole(out).size() > out.size() + 64 * 16) abort();
  return 0;
}
