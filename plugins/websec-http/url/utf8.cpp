#include "plugins/websec-http/url/utf8.hpp"

#include <algorithm>
#include <cstdint>

namespace h5i::websec {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string to_valid_utf8(std::string_view s) {
  if (is_ascii(s)) return std::string(s);
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    auto lead = static_cast<uint8_t>(s[i]);
    if (lead < 0x80) {
      out += s[i++];
      continue;
    }
    // How many bytes follow, and what the first of them may be: no overlong form, no surrogate, nothing above U+10FFFF.
    int follow = lead >= 0xc2 && lead <= 0xdf ? 1 : lead >= 0xe0 && lead <= 0xef ? 2 : lead >= 0xf0 && lead <= 0xf4 ? 3 : 0;
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    size_t end = i + 1;
    int seen = 0;
    while (seen < follow && end < s.size()) {
      auto b = static_cast<uint8_t>(s[end]);
      if (b < low || b > high) break;
      low = 0x80;
      high = 0xbf;
      seen++;
      end++;
    }
    if (follow && seen == follow) out.append(s.substr(i, end - i));
    else out += "\xef\xbf\xbd";
    i = end;
  }
  return out;
}

}  // namespace h5i::websec
