// What an origin writes: first two bytes the cap. Nothing that moves a cursor or hides comes out, whatever goes in, and JSON stays JSON.
#include <cstdlib>
#include <string>

#include "h5i/json.hpp"
#include "plugins/websec-http/text/fence.hpp"
#include "plugins/websec-http/text/safe_json.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i;
using namespace h5i::websec;
using namespace h5i::test;

namespace {

void harmless(const std::string& s, bool lines) {
  for (size_t i = 0; i < s.size();) {
    int n = json::detail::utf8_len(s, i);
    want(n > 0);
    auto a = static_cast<unsigned char>(s[i]);
    want((a >= 0x20 && a != 0x7f) || (lines && a == '\n'));
    want(!(a == 0xc2 && static_cast<unsigned char>(s[i + 1]) < 0xa0));
    want(!(a >= 0xf3 && a == 0xf3 && static_cast<unsigned char>(s[i + 1]) >= 0xa0) && a != 0xf4);
    auto third = [&] { return static_cast<unsigned char>(s[i + 2]); };
    want(!(a == 0xe2 && static_cast<unsigned char>(s[i + 1]) == 0x80 && third() >= 0xa8 && third() <= 0xae));
    i += static_cast<size_t>(n);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  size_t cap = data[0] | (data[1] & 15) << 8;
  std::string_view s(reinterpret_cast<const char*>(data) + 2, size - 2);
  for (int i = 0; i < 8; i++) {
    ShowRules rules{.lines = (i & 1) != 0, .drop_invisible = (i & 2) != 0, .html = (i & 4) != 0, .cap = cap};
    Shown shown = show(s, rules);
    harmless(shown.text, rules.lines);
    want(shown.text.size() <= cap && shown.used <= s.size() && shown.cut == (shown.used < s.size()));
  }
  harmless(fenced(s, {.origin = s, .key = "k", .for_model = (data[1] & 16) != 0, .cap = cap}), true);
  bool lossy = false;
  std::string quoted = json_quoted(s, &lossy);
  harmless(quoted, false);
  auto back = json::parse(quoted);
  want(back && (lossy || back->string() == s));
  if (auto v = json::parse(s)) {
    auto again = json::parse(safe_json(s));
    want(again && *again == *v);
  }
  return 0;
}
