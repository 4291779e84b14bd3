#include "plugins/websec-http/cookie/set_cookie.hpp"

#include <algorithm>
#include <limits>

#include "plugins/websec-http/cookie/cookie_date.hpp"

namespace h5i::websec {
namespace {

constexpr int64_t kEarliest = std::numeric_limits<int64_t>::min();

std::string_view trimmed(std::string_view s) {
  auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// The end that Max-Age gives; nothing when it is no number.
std::optional<int64_t> end_by_max_age(std::string_view s, int64_t now) {
  bool negative = s.starts_with('-');
  if (negative) s.remove_prefix(1);
  if (s.empty()) return {};
  int64_t n = 0;
  for (char c : s) {
    if (c < '0' || c > '9') return {};
    n = std::min(kMaxLifetime, n * 10 + (c - '0'));
  }
  return negative || n == 0 ? kEarliest : now + n;
}

}  // namespace

std::optional<SetCookie> parse_set_cookie(std::string_view line, int64_t now, const char** why) {
  auto refuse = [&](const char* reason) -> std::optional<SetCookie> {
    if (why) *why = reason;
    return {};
  };
  for (char c : line)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return refuse("a control character in the line");
  SetCookie out;
  size_t end = std::min(line.find(';'), line.size());
  std::string_view pair = line.substr(0, end), attributes = line.substr(end);
  size_t equals = pair.find('=');
  std::string_view name = equals == std::string_view::npos ? std::string_view() : trimmed(pair.substr(0, equals));
  std::string_view value = trimmed(equals == std::string_view::npos ? pair : pair.substr(equals + 1));
  if (name.size() + value.size() > kMaxNameAndValue) return refuse("name and value longer than 4096 octets");
  out.name = name;
  out.value = value;

  std::optional<int64_t> max_age, expires;
  while (!attributes.empty()) {
    attributes.remove_prefix(1);  // the semicolon
    end = std::min(attributes.find(';'), attributes.size());
    std::string_view attribute = attributes.substr(0, end);
    attributes.remove_prefix(end);
    equals = std::min(attribute.find('='), attribute.size());
    std::string key = lower(trimmed(attribute.substr(0, equals)));
    std::string_view text = trimmed(attribute.substr(std::min(equals + 1, attribute.size())));
    if (text.size() > kMaxAttributeValue) continue;
    if (key == "expires") {
      if (auto date = parse_cookie_date(text)) expires = std::min(*date, now + kMaxLifetime);
    } else if (key == "max-age") {
      if (auto date = end_by_max_age(text, now)) max_age = date;
    } else if (key == "domain") {
      if (text.starts_with('.')) text.remove_prefix(1);
      out.domain = lower(text);
    } else if (key == "path") {
      out.path = text.starts_with('/') ? std::optional(std::string(text)) : std::nullopt;
    } else if (key == "secure") {
      out.secure = true;
    } else if (key == "httponly") {
      out.http_only = true;
    } else if (key == "samesite") {
      std::string mode = lower(text);
      out.same_site = mode == "none" ? SameSite::NONE : mode == "lax" ? SameSite::LAX : mode == "strict" ? SameSite::STRICT : SameSite::DEFAULT;
    }
  }
  out.expires = max_age ? max_age : expires;
  return out;
}

}  // namespace h5i::websec
