// Character classes of RFC 9110 section 5.6 and small views over bytes.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace h5i::websec::syntax {

enum : uint8_t { kToken = 1, kControl = 2, kEight = 4, kSpace = 8, kDigit = 16, kHex = 32 };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> t{};
  for (unsigned c = 0; c < 256; c++) {
    bool digit = c >= '0' && c <= '9', alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (digit || alpha || (c < 128 && std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos)) t[c] |= kToken;
    if ((c < 32 && c != '\t') || c == 127) t[c] |= kControl;
    if (c >= 128) t[c] |= kEight;
    if (c == ' ' || c == '\t') t[c] |= kSpace;
    if (digit) t[c] |= kDigit;
    if (digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) t[c] |= kHex;
  }
  return t;
}
inline constexpr std::array<uint8_t, 256> kClasses = make_classes();

constexpr bool is(char c, uint8_t of) { return (kClasses[static_cast<unsigned char>(c)] & of) != 0; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
constexpr int hex_digit(char c) { return is(c, kDigit) ? c - '0' : is(c, kHex) ? lower(c) - 'a' + 10 : -1; }

// ASCII letters without regard to case; every other byte as it is.
constexpr bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}
constexpr bool all(std::string_view s, uint8_t of) {
  for (char c : s)
    if (!is(c, of)) return false;
  return true;
}
constexpr bool token(std::string_view s) { return !s.empty() && all(s, kToken); }

constexpr std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is(s.front(), kSpace)) s.remove_prefix(1);
  while (!s.empty() && is(s.back(), kSpace)) s.remove_suffix(1);
  return s;
}

// Calls each(element) for the elements of a comma separated list, trimmed, empty ones too.
template <class F>
constexpr void each_element(std::string_view list, F each) {
  for (size_t at = 0;;) {
    size_t comma = list.find(',', at);
    each(trimmed(list.substr(at, comma == std::string_view::npos ? comma : comma - at)));
    if (comma == std::string_view::npos) return;
    at = comma + 1;
  }
}

}  // namespace h5i::websec::syntax
