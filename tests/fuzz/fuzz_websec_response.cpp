// The parser of responses: first byte what was asked, second byte how the bytes are cut. However they are cut the answer is the
// same; what strict mode takes, lenient mode reads alike; nothing is kept that did not come.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "plugins/websec-http/http/response.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

struct Read {
  ResponseParser::State state;
  ResponseParser::Framing framing;
  size_t used = 0, interim = 0;
  std::string body, raw_head, facts;
  std::string_view reuse;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view s, const ResponseRules& rules, size_t step) {
  ResponseParser p(rules);
  StringSink sink;
  Read r{};
  while (r.used < s.size() && !p.finished()) {
    size_t n = p.feed(s.substr(r.used, step), sink);
    want(n > 0 || p.finished());
    r.used += n;
  }
  if (r.used < s.size() && p.state() == ResponseParser::State::DONE) want(p.feed(s.substr(r.used), sink) == 0);
  r.reuse = p.no_reuse();
  want(r.reuse != "" || (p.state() == ResponseParser::State::DONE && !p.oddities().ambiguous()));
  p.end();
  want(p.finished());
  want((p.state() == ResponseParser::State::REFUSED) == p.oddities().refused());
  want(p.oddities().list().size() <= oddity_kinds());
  want(s.find(p.raw_head()) != std::string_view::npos && p.raw_head().size() <= rules.limits.head_bytes);
  want(sink.bytes.size() == p.body_bytes() && p.body_bytes() <= p.wire_bytes() && p.wire_bytes() == r.used && r.used <= rules.limits.bytes);
  want(p.interim().size() <= rules.limits.interim);
  if (p.has_head()) {
    want(p.head().fields.size() <= rules.limits.fields);
    for (size_t i = 0; i < p.head().fields.size(); i++) {
      FieldView f = p.head().fields.field(i);
      want(!f.name.empty() && s.substr(f.offset, f.name.size()) == f.name);
      unfolded(f.value);
    }
  }
  r.state = p.state();
  r.framing = p.framing();
  r.interim = p.interim().size();
  r.body = sink.bytes;
  r.raw_head = p.raw_head();
  for (const Oddity& o : p.oddities().list())
    if (o.id != OddityId::TRAILING_BYTES && o.id != OddityId::CHUNK_EXTENSION)  // their detail or count is what one call held
      r.facts += std::string(oddity_id(o.id)) + "@" + std::to_string(o.offset) + "*" + std::to_string(o.count) + " ";
  return r;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  ResponseRules rules;
  rules.strict = true;
  rules.head = data[0] & 1;
  rules.connect = data[0] & 2;
  rules.upgrade = data[0] & 4;
  if (data[0] & 8) rules.limits = {.head_bytes = 128, .fields = 4, .interim = 2, .bytes = 400, .chunks = {16, 32, 2}};
  size_t step = 1 + data[1] % 32;
  std::string_view s(reinterpret_cast<const char*>(data) + 2, size - 2);
  Read strict = read(s, rules, s.size() + 1);
  want(strict == read(s, rules, step));
  rules.strict = false;
  Read lenient = read(s, rules, s.size() + 1);
  want(lenient == read(s, rules, step));
  if (strict.state != ResponseParser::State::REFUSED) want(strict == lenient);
  return 0;
}
