// The first byte says which format, the rest is the file: whatever it is, what comes out is within the caps and is what a log may hold.
#include <cstdlib>
#include <set>
#include <string>

#include "h5i/json.hpp"
#include "plugins/websec-http/candidates/candidates.hpp"
#include "plugins/websec-http/url/url.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

bool plain(const std::string& s) {
  for (char c : s)
    if (c < 0x21 || c > 0x7e) return false;
  return !s.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto format = static_cast<CandidateFormat>(data[0] % 3);
  std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  CandidateLimits limits;
  limits.entries = 50;
  Imported i = read_candidates(format, file, limits);
  want(i.error.empty() || i.candidates.empty());
  want(i.candidates.size() <= limits.entries);
  std::set<std::string> seen;
  for (const Candidate& c : i.candidates) {
    want(plain(c.method) && c.method.size() <= limits.method && plain(c.url) && c.url.size() <= limits.url && c.headers.size() <= limits.headers && c.place > 0);
    want(seen.insert(c.method + " " + c.url).second);
    auto again = Url::parse(c.url);
    want(again.ok() && again->href_without_fragment() == c.url && !again->has_credentials() && (again->scheme() == "http" || again->scheme() == "https"));
    for (const std::string& h : c.headers) want(plain(h) && h.size() <= limits.header_name);
  }
  Imported twice = read_candidates(format, file, limits);
  want(twice.candidates.size() == i.candidates.size() && twice.error == i.error);
  return 0;
}
