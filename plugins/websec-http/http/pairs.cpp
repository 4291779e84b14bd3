#include "plugins/websec-http/http/pairs.hpp"

#include <algorithm>
#include <vector>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

std::string encoded(std::string_view data, PairStyle style) {
  static const char kHex[] = "0123456789ABCDEF";
  if (style == PairStyle::COOKIE) return std::string(data);
  std::string out;
  for (char c : data) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = byte < 128 && (syntax::is(c, syntax::kDigit) || (syntax::lower(c) >= 'a' && syntax::lower(c) <= 'z') ||
                                std::string_view("-._~").find(c) != std::string_view::npos);
    if (plain) {
      out += c;
    } else if (c == ' ' && style == PairStyle::FORM) {
      out += '+';
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string decoded(std::string_view s, PairStyle style) {
  if (style == PairStyle::COOKIE) return std::string(syntax::trimmed(s));
  std::string out;
  for (size_t i = 0; i < s.size(); i++) {
    int high = s[i] == '%' && i + 2 < s.size() ? syntax::hex_digit(s[i + 1]) : -1;
    int low = high >= 0 ? syntax::hex_digit(s[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high << 4 | low);
      i += 2;
    } else {
      out += s[i] == '+' ? ' ' : s[i];
    }
  }
  return out;
}

std::string_view name_of(std::string_view pair) { return pair.substr(0, pair.find('=')); }

std::vector<std::string_view> split(std::string_view list, char separator) {
  std::vector<std::string_view> out;
  if (list.empty()) return out;
  for (size_t at = 0;;) {
    size_t end = std::min(list.find(separator, at), list.size());
    out.push_back(list.substr(at, end - at));
    if (end == list.size()) return out;
    at = end + 1;
  }
}

}  // namespace

bool has_pair(std::string_view list, PairStyle style, std::string_view name) {
  for (std::string_view pair : split(list, style == PairStyle::COOKIE ? ';' : '&'))
    if (decoded(name_of(pair), style) == name) return true;
  return false;
}

Refused edit_pairs(std::string* list, PairStyle style, EditAct act, std::string_view name, std::string_view value) {
  bool cookie = style == PairStyle::COOKIE;
  if (cookie) {
    auto ends = [](char c) { return c == ';' || syntax::is(c, syntax::kControl); };
    if (!syntax::token(name) || std::any_of(value.begin(), value.end(), ends))
      return Refusal{"cookie-bytes", "a cookie's name is a token, and its value holds no semicolon and no control character"};
  }
  char separator = cookie ? ';' : '&';
  std::string written = encoded(name, style) + "=" + encoded(value, style), out;
  bool placed = act != EditAct::SET, any = false, first = true;
  auto put = [&](std::string_view pair) {
    if (!first) out += separator;
    first = false;
    out += pair;
  };
  for (std::string_view pair : split(*list, separator)) {
    bool match = act != EditAct::ADD && decoded(name_of(pair), style) == name;
    any = any || match;
    if (!match) {
      put(pair);
    } else if (!placed) {
      // The name keeps its spelling, and a cookie the space before it.
      put(std::string(name_of(pair)) + "=" + encoded(value, style));
      placed = true;
    }
  }
  if (act == EditAct::REMOVE && !any) return Refusal{"nothing-to-remove", "there is none of that name"};
  if (act == EditAct::ADD || !placed) put((cookie && !first ? " " : "") + written);
  if (cookie && out.starts_with(' ')) out.erase(0, 1);
  *list = std::move(out);
  return std::nullopt;
}

}  // namespace h5i::websec
