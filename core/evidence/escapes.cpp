#include "core/evidence/escapes.hpp"

#include <cstdint>
#include <string>

#include "h5i/json.hpp"

namespace h5i::evidence {
namespace {

constexpr size_t kMaxSequence = 32;

int digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

Escape incomplete() {
  Escape e;
  e.incomplete = true;
  return e;
}

Escape one(size_t length, int value) {
  Escape e;
  e.length = length;
  e.bytes[0] = static_cast<char>(value);
  e.size = 1;
  return e;
}

// Hexadecimal digits t[i, i+n): their value, -1 when they are something else, -2 when the text ends first.
int hex_value(std::string_view t, size_t i, size_t n) {
  int v = 0;
  for (size_t k = i; k < i + n; k++) {
    if (k >= t.size()) return -2;
    int d = digit(t[k]);
    if (d < 0) return -1;
    v = v * 16 + d;
  }
  return v;
}

Escape unicode(std::string_view t, size_t i) {
  int u = hex_value(t, i + 2, 4);
  if (u == -2) return incomplete();
  if (u < 0) return {};
  size_t length = 6;
  auto c = static_cast<uint32_t>(u);
  if (c >= 0xD800 && c <= 0xDBFF) {
    if (t.size() < i + 8 && (t.size() < i + 7 || t[i + 6] == '\\')) return incomplete();
    if (t.substr(i + 6, 2) != "\\u") return {};
    int lo = hex_value(t, i + 8, 4);
    if (lo == -2) return incomplete();
    if (lo < 0xDC00 || lo > 0xDFFF) return {};
    c = 0x10000 + ((c - 0xD800) << 10) + (static_cast<uint32_t>(lo) - 0xDC00);
    length = 12;
  }
  std::string utf8;
  json::detail::append_utf8(utf8, c);
  Escape e;
  e.length = length;
  e.size = utf8.copy(e.bytes, sizeof e.bytes);
  return e;
}

}  // namespace

Escape percent_escape(std::string_view t, size_t i) {
  if (t[i] != '%') return {};
  int v = hex_value(t, i + 1, 2);
  if (v == -2) return incomplete();
  return v < 0 ? Escape{} : one(3, v);
}

Escape backslash_escape(std::string_view t, size_t i) {
  if (t[i] != '\\') return {};
  if (i + 1 >= t.size()) return incomplete();
  switch (t[i + 1]) {
    case '"':
    case '\\':
    case '/':
    case '\'':
      return one(2, t[i + 1]);
    case 'n':
      return one(2, '\n');
    case 'r':
      return one(2, '\r');
    case 't':
      return one(2, '\t');
    case 'b':
      return one(2, '\b');
    case 'f':
      return one(2, '\f');
    case 'x': {
      int v = hex_value(t, i + 2, 2);
      if (v == -2) return incomplete();
      return v < 0 ? Escape{} : one(4, v);
    }
    case 'u':
      return unicode(t, i);
    default:
      return {};
  }
}

Escape terminal_sequence(std::string_view t, size_t i) {
  if (t[i] != '\x1b') return {};
  if (i + 1 >= t.size()) return incomplete();
  if (t[i + 1] != '[') return {};
  for (size_t k = i + 2; k < i + kMaxSequence; k++) {
    if (k >= t.size()) return incomplete();
    auto c = static_cast<unsigned char>(t[k]);
    if (c >= 0x40 && c <= 0x7e) {
      Escape e;
      e.length = k - i + 1;
      return e;
    }
    if (c < 0x20 || c > 0x3f) return {};
  }
  return {};
}

Escape colour_sequence(std::string_view t, size_t i) {
  Escape e = terminal_sequence(t, i);
  if (e.length == 0) return e;
  char last = t[i + e.length - 1];
  return last == 'm' || last == 'K' || last == 'J' ? e : Escape{};
}

bool between_ascii(std::string_view t, size_t i) {
  auto printable_or_edge = [&](size_t k) {
    return k >= t.size() || (t[k] >= 0x20 && t[k] < 0x7f) || t[k] == '\n' || t[k] == '\r';
  };
  return printable_or_edge(i - 1) && printable_or_edge(i + 1);
}

}  // namespace h5i::evidence
