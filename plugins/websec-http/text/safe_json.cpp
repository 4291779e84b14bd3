#include "plugins/websec-http/text/safe_json.hpp"

#include "plugins/websec-http/text/characters.hpp"
#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

void append_unit(std::string* out, uint32_t unit) {
  static const char kHex[] = "0123456789abcdef";
  *out += "\\u";
  for (int i = 12; i >= 0; i -= 4) *out += kHex[unit >> i & 15];
}

}  // namespace

std::string safe_json(std::string_view document) {
  std::string out;
  out.reserve(document.size());
  for (size_t i = 0; i < document.size();) {
    Character c = character_at(document, i);
    if (!c.valid) {
      append_unit(&out, 0xfffd);
    } else if (!deceptive_character(c.code) || c.code < 0x20) {  // below U+0020 only white space between tokens
      out.append(document.substr(i, c.size));
    } else if (c.code < 0x10000) {
      append_unit(&out, c.code);
    } else {
      append_unit(&out, 0xd800 + ((c.code - 0x10000) >> 10));
      append_unit(&out, 0xdc00 + ((c.code - 0x10000) & 0x3ff));
    }
    i += c.size;
  }
  return out;
}

std::string json_quoted(std::string_view raw, bool* lossy) {
  bool bad = false;
  for (size_t i = 0; i < raw.size() && !bad;) {
    Character c = character_at(raw, i);
    bad = !c.valid;
    i += c.size;
  }
  if (lossy) *lossy = bad;
  std::string quoted;
  json::detail::write_string(quoted, raw);
  return safe_json(quoted);
}

}  // namespace h5i::websec
