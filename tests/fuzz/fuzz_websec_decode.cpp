// Content codings: first byte which, second byte how the bytes are cut. No more comes out than the cap, and however they are cut the
// same comes out.
#include <cstdlib>
#include <string>

#include "plugins/websec-http/decode/decode.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

constexpr uint64_t kCap = 200000;

std::string decode(std::string_view s, const std::vector<std::string>& codings, size_t step, bool* stopped) {
  StringSink sink;
  BodyDecoder d(codings, {.output = kCap, .ratio = UINT64_MAX, .ratio_from = kCap}, sink);
  for (size_t at = 0; at < s.size() && d.take(s.substr(at, step)); at += step) {
  }
  d.finish();
  *stopped = d.stopped();
  want(sink.bytes.size() <= kCap && d.facts().size() < 40);
  return sink.bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const std::vector<std::string> kLists[] = {{"gzip"}, {"deflate"}, {"br"}, {"zstd"},
                                                    {"gzip", "gzip"}, {"deflate", "br"}, {"zstd", "gzip"}, {"x", "gzip"}};
  const auto& codings = kLists[data[0] % std::size(kLists)];
  std::string_view s(reinterpret_cast<const char*>(data) + 2, size - 2);
  bool whole_stopped = false, cut_stopped = false;
  std::string whole = decode(s, codings, s.size() + 1, &whole_stopped), cut = decode(s, codings, 1 + data[1] % 64, &cut_stopped);
  want(whole_stopped == cut_stopped);
  // A decoder may find an error before or behind the bytes that stand before it.
  want(whole == cut || (whole_stopped && (whole.starts_with(cut) || cut.starts_with(whole))));
  return 0;
}
