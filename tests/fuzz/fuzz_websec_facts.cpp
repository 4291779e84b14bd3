// Passive facts: first byte the scheme, then a request's head, a response's head and a body, each up to an empty line. Every fact lies inside
// what it points at, and their number is bounded.
#include <cstdlib>
#include <string>

#include "plugins/websec-http/facts/facts.hpp"
#include "plugins/websec-http/http/request.hpp"
#include "plugins/websec-http/http/response.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view s(reinterpret_cast<const char*>(data) + 1, size - 1);
  RawSplit request = split_raw(s);
  ResponseRules rules;
  rules.strict = false;
  rules.head = true;
  ResponseParser p(rules);
  StringSink none;
  size_t used = p.feed(request.body, none);
  if (!p.has_head()) return 0;
  bool secure = data[0] & 1;
  std::string_view body = request.body.substr(used);
  PassiveFacts f = passive_facts({secure, secure ? "https://a.test" : "http://a.test", request.head, &p.head(), body});
  want(f.list().size() <= passive_kinds() * PassiveFacts::kOfAKind);
  for (const PassiveFact& one : f.list()) {
    want(one.detail.size() <= PassiveFacts::kDetail && f.count(one.id) > 0);
    size_t end = one.place == FactPlace::BODY ? body.size() : one.place == FactPlace::REQUEST_HEAD ? request.head.size() : p.wire_bytes();
    want(one.offset <= end);
  }
  return 0;
}
