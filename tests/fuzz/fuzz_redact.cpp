// Any output of a box, cut anywhere: redaction ends, changes nothing by how it is cut, and leaves no known value.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/evidence/redact.hpp"

using namespace h5i::evidence;

namespace {
const std::vector<std::string> kValues = {"hunter22", "s3cr3t/+\\\"x", "line one\nline two of it"};

constexpr size_t kMostCuts = 48;

std::string whole(const std::string& s) {
  Redactor r(kValues);
  std::string out = r.feed(s);
  return out + r.finish();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  // Cut every `step` bytes from `begin` on, not more often than kMostCuts: each piece costs a look at all that waits.
  size_t step = data[0] % 17 + 1, begin = data[1] * 4;
  std::string s(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::string expected = whole(s);
  Redactor r(kValues);
  std::string out;
  begin = std::min(begin, s.size());
  out += r.feed(std::string_view(s).substr(0, begin));
  size_t end = std::min(s.size(), begin + step * kMostCuts);
  for (size_t i = begin; i < end; i += step) out += r.feed(std::string_view(s).substr(i, std::min(step, end - i)));
  out += r.feed(std::string_view(s).substr(end));
  out += r.finish();
  // Beyond what may be held back, how it was cut may show; nothing that short may.
  if (s.size() < Redactor::kHold / 2 && out != expected) abort();
  for (const std::string& v : kValues)
    if (out.find(v) != std::string::npos || expected.find(v) != std::string::npos) abort();
  // Once is enough: what was redacted has nothing left to find by value.
  if (whole(out).size() > out.size() + 64 * 16) abort();
  return 0;
}
