// The chunked coding: first byte how the bytes are cut. A body that strict mode takes comes back from what the writer makes of it.
#include <cstdlib>
#include <string>

#include "plugins/websec-http/http/chunked.hpp"
#include "plugins/websec-http/http/request.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

struct Read {
  ChunkDecoder::State state;
  size_t used = 0, trailers = 0;
  std::string body;
  bool operator==(const Read&) const = default;
};
Read read(std::string_view s, bool strict, size_t step) {
  Oddities oddities(strict);
  ChunkDecoder d({.extension_bytes = 64, .trailer_bytes = 64, .trailer_fields = 3});
  StringSink sink;
  Read r{};
  while (r.used < s.size() && d.state() != ChunkDecoder::State::DONE && d.state() != ChunkDecoder::State::REFUSED) {
    size_t n = d.feed(s.substr(r.used, step), r.used, sink, oddities);
    want(n > 0 || d.state() == ChunkDecoder::State::REFUSED);
    r.used += n;
  }
  want((d.state() == ChunkDecoder::State::REFUSED) == oddities.refused());
  want(sink.bytes.size() <= r.used && d.trailers().size() <= 3);
  r.state = d.state();
  r.body = sink.bytes;
  r.trailers = d.trailers().size();
  return r;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  size_t step = 1 + data[0] % 16;
  std::string_view s(reinterpret_cast<const char*>(data) + 1, size - 1);
  Read strict = read(s, true, s.size() + 1), lenient = read(s, false, s.size() + 1);
  want(strict == read(s, true, step));
  want(lenient == read(s, false, step));
  if (strict.state != ChunkDecoder::State::REFUSED) want(strict == lenient);
  if (strict.state != ChunkDecoder::State::DONE) return 0;
  Request r;
  r.authority = "h";
  r.body = strict.body;
  want(!r.headers.add_line("Transfer-Encoding: chunked"));
  Written w;
  want(!write_request(r, &w));
  Read again = read(w.body, true, w.body.size() + 1);
  want(again.state == ChunkDecoder::State::DONE && again.body == strict.body && again.used == w.body.size());
  return 0;
}
