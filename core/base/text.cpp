#include "core/base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "h5i/json.hpp"

namespace h5i {
namespace {

uint32_t decode(std::string_view s, size_t i, int n) {
  auto b = [&](size_t k) { return static_cast<uint32_t>(static_cast<unsigned char>(s[i + k])); };
  switch (n) {
    case 1: return b(0);
    case 2: return (b(0) & 31) << 6 | (b(1) & 63);
    case 3: return (b(0) & 15) << 12 | (b(1) & 63) << 6 | (b(2) & 63);
    default: return (b(0) & 7) << 18 | (b(1) & 63) << 12 | (b(2) & 63) << 6 | (b(3) & 63);
  }
}

// Characters that reorder, hide or join text: CVE-2021-42574 and its relatives. From U+E0000 on are tags, the selectors that carry bytes
// nobody sees, and private planes.
bool deceptive(uint32_t c) {
  return (c >= 0x80 && c <= 0x9f) || c == 0xad || c == 0x34f || c == 0x61c || c == 0x115f || c == 0x1160 || c == 0x17b4 || c == 0x17b5 ||
         (c >= 0x180b && c <= 0x180f) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
         c == 0x3164 || c == 0xfeff || c == 0xffa0 || (c >= 0xfff0 && c <= 0xfffb) || (c >= 0x1bca0 && c <= 0x1bca3) ||
         (c >= 0x1d173 && c <= 0x1d17a) || c >= 0xe0000;
}

// Length of the SGR sequence at s[i], 0 when it is something else, -1 when the text ends inside a possible one.
int sgr(std::string_view s, size_t i) {
  size_t k = i + 1;
  if (k >= s.size()) return -1;
  if (s[k] != '[') return 0;
  for (k++; k < s.size() && k - i < 32; k++) {
    if (s[k] == 'm') return static_cast<int>(k - i + 1);
    if (!((s[k] >= '0' && s[k] <= '9') || s[k] == ';' || s[k] == ':')) return 0;
  }
  return k >= s.size() && k - i < 32 ? -1 : 0;
}

// Whether an SGR sequence asks for "conceal" (8), which would hide whatever is printed next, ours too, or is malformed so
// that terminals may differ about it. The numbers of a colour (38;5;N, 38;2;R;G;B) are no requests.
bool hides(std::string_view sequence) {
  std::vector<int> asked;
  for (std::string_view rest = sequence.substr(2, sequence.size() - 3);;) {
    size_t end = std::min(rest.find(';'), rest.size());
    // Of "38:2:..." the whole colour is one parameter; what stands before the first colon names it.
    std::string one(rest.substr(0, end));
    asked.push_back(atoi(one.c_str()));
    bool colour = one.find(':') == std::string::npos && (asked.back() == 38 || asked.back() == 48 || asked.back() == 58);
    if (end == rest.size()) {
      if (colour) return true;
      break;
    }
    rest.remove_prefix(end + 1);
    if (colour) {
      size_t numbers = rest.starts_with("5;") ? 2 : rest.starts_with("2;") ? 4 : 0;
      if (numbers == 0) return true;
      for (; numbers > 0 && !rest.empty(); numbers--) rest.remove_prefix(std::min(std::min(rest.find(';'), rest.size()) + 1, rest.size()));
      if (numbers > 0) return true;
      if (rest.empty()) break;
    }
  }
  return std::find(asked.begin(), asked.end(), 8) != asked.end();
}

// How many bytes a cut character at the end may still need; 0 when the tail is complete or malformed anyway.
size_t cut_tail(std::string_view s) {
  for (size_t back = 1; back <= 3 && back <= s.size(); back++) {
    auto c = static_cast<unsigned char>(s[s.size() - back]);
    if ((c & 0xC0) == 0x80) continue;
    size_t need = c >= 0xF0 && c <= 0xF4 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 && c <= 0xDF ? 2 : 1;
    return c >= 0xC2 && c <= 0xF4 && need > back ? back : 0;
  }
  return 0;
}

size_t render(std::string& out, std::string_view s, const TextRules& r, bool final) {
  char buf[16];
  size_t i = 0;
  while (i < s.size()) {
    auto c = static_cast<unsigned char>(s[i]);
    if (c >= 0x20 && c < 0x7f) {
      out += s[i++];
      continue;
    }
    if (c == '\n' || c == '\t') {
      if (r.newlines) out += s[i];
      else out += c == '\n' ? "\\n" : "\\t";
      i++;
      continue;
    }
    if (c == 0x1b && r.colour) {
      int n = sgr(s, i);
      if (n < 0 && !final) return i;
      if (n > 0) {
        std::string_view sequence = s.substr(i, static_cast<size_t>(n));
        if (!hides(sequence)) out.append(sequence);
        i += static_cast<size_t>(n);
        continue;
      }
    }
    if (c == '\r' && r.newlines && i + 1 < s.size() && s[i + 1] == '\n') {
      i++;
      continue;
    }
    if (c == '\r' && r.newlines && i + 1 == s.size() && !final) return i;
    int n = json::detail::utf8_len(s, i);
    if (n == 0 && !final && s.size() - i <= 3 && cut_tail(s) == s.size() - i) return i;
    if (n <= 1) {
      snprintf(buf, sizeof buf, "\\x%02x", c);
      out += buf;
      i++;
      continue;
    }
    uint32_t u = decode(s, i, n);
    if (deceptive(u)) {
      snprintf(buf, sizeof buf, "\\u{%x}", u);
      out += buf;
    } else {
      out.append(s.substr(i, static_cast<size_t>(n)));
    }
    i += static_cast<size_t>(n);
  }
  return i;
}

}  // namespace

std::string printable(std::string_view raw, const TextRules& rules) {
  std::string out;
  bool cut = rules.limit && raw.size() > rules.limit;
  if (cut) raw = raw.substr(0, rules.limit);
  render(out, raw, rules, true);
  if (cut) out += "…";
  return out;
}

std::string TextFilter::feed(std::string_view chunk) {
  held_.append(chunk);
  std::string out;
  size_t used = render(out, held_, rules_, false);
  held_.erase(0, used);
  coloured_ = coloured_ || (rules_.colour && out.find('\x1b') != std::string::npos);
  return out;
}

std::string TextFilter::finish() {
  std::string out;
  render(out, held_, rules_, true);
  held_.clear();
  if (coloured_ || (rules_.colour && out.find('\x1b') != std::string::npos)) out += "\x1b[0m";
  coloured_ = false;
  return out;
}

bool valid_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    int n = json::detail::utf8_len(s, i);
    if (n == 0) return false;
    i += static_cast<size_t>(n);
  }
  return true;
}

std::string hex(const void* data, size_t n) {
  static const char kHex[] = "0123456789abcdef";
  auto* p = static_cast<const unsigned char*>(data);
  std::string out(n * 2, '0');
  for (size_t i = 0; i < n; i++) {
    out[2 * i] = kHex[p[i] >> 4];
    out[2 * i + 1] = kHex[p[i] & 15];
  }
  return out;
}

bool unhex(std::string_view t, std::string* out) {
  if (t.size() % 2) return false;
  out->clear();
  for (size_t i = 0; i < t.size(); i += 2) {
    int v = 0;
    for (size_t k = i; k < i + 2; k++) {
      char c = t[k];
      int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (d < 0) return false;
      v = v * 16 + d;
    }
    *out += static_cast<char>(v);
  }
  return true;
}

std::string base64(std::string_view raw) {
  static const char k[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((raw.size() + 2) / 3 * 4);
  for (size_t i = 0; i < raw.size(); i += 3) {
    uint32_t v = 0;
    size_t n = raw.size() - i < 3 ? raw.size() - i : 3;
    for (size_t j = 0; j < 3; j++) v = v << 8 | (j < n ? static_cast<unsigned char>(raw[i + j]) : 0u);
    out += k[v >> 18 & 63];
    out += k[v >> 12 & 63];
    out += n > 1 ? k[v >> 6 & 63] : '=';
    out += n > 2 ? k[v & 63] : '=';
  }
  return out;
}

bool unbase64(std::string_view t, std::string* out) {
  out->clear();
  if (t.size() % 4) return false;
  auto val = [](char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
  };
  for (size_t i = 0; i < t.size(); i += 4) {
    bool last = i + 4 == t.size();
    int pad = last && t[i + 3] == '=' ? (t[i + 2] == '=' ? 2 : 1) : 0;
    uint32_t v = 0;
    for (int j = 0; j < 4; j++) {
      int d = j >= 4 - pad ? 0 : val(t[i + static_cast<size_t>(j)]);
      if (d < 0) return false;
      v = v << 6 | static_cast<uint32_t>(d);
    }
    if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff))) return false;
    *out += static_cast<char>(v >> 16);
    if (pad < 2) *out += static_cast<char>(v >> 8);
    if (pad < 1) *out += static_cast<char>(v);
  }
  return true;
}

std::string markdown_escape(std::string_view raw) {
  std::string out;
  for (char c : printable(raw)) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '|': out += "&#124;"; break;
      case '`': out += "&#96;"; break;
      case '\\': case '*': case '_': case '[': case ']': case '#': case '!': case '~':
        out += '\\';
        [[fallthrough]];
      default: out += c;
    }
  }
  return out;
}

}  // namespace h5i
