#include "plugins/websec-http/url/percent.hpp"

#include <array>

namespace h5i::websec {
namespace {

using Table = std::array<bool, 256>;

constexpr Table with(Table base, std::string_view more) {
  for (char c : more) base[static_cast<unsigned char>(c)] = true;
  return base;
}
constexpr Table c0_control() {
  Table t{};
  for (size_t i = 0; i < t.size(); i++) t[i] = i < 0x20 || i > 0x7e;
  return t;
}
// In the order of EncodeSet.
constexpr Table kC0 = c0_control();
constexpr Table kFragment = with(kC0, " \"<>`");
constexpr Table kQuery = with(kC0, " \"#<>");
constexpr Table kSpecialQuery = with(kQuery, "'");
constexpr Table kPath = with(kQuery, "?^`{}");
constexpr Table kUserinfo = with(kPath, "/:;=@[\\]|");
constexpr Table kComponent = with(kUserinfo, "$%&+,");
constexpr const Table* kTables[] = {&kC0, &kFragment, &kQuery, &kSpecialQuery, &kPath, &kUserinfo, &kComponent};

}  // namespace

bool is_encoded_in(EncodeSet set, unsigned char byte) { return (*kTables[static_cast<size_t>(set)])[byte]; }

void percent_encode(std::string_view bytes, EncodeSet set, std::string& out) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const Table& table = *kTables[static_cast<size_t>(set)];
  for (char c : bytes) {
    auto b = static_cast<unsigned char>(c);
    if (!table[b]) {
      out += c;
      continue;
    }
    out += '%';
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
}

std::string percent_encode(std::string_view bytes, EncodeSet set) {
  std::string out;
  out.reserve(bytes.size());
  percent_encode(bytes, set, out);
  return out;
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

int hex_value(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

std::string percent_decode(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); i++) {
    if (s[i] == '%' && i + 2 < s.size() && is_hex(s[i + 1]) && is_hex(s[i + 2])) {
      out += static_cast<char>(hex_value(s[i + 1]) * 16 + hex_value(s[i + 2]));
      i += 2;
    } else {
      out += s[i];
    }
  }
  return out;
}

}  // namespace h5i::websec
