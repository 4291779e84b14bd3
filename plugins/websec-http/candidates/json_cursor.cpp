#include "plugins/websec-http/candidates/json_cursor.hpp"

#include <algorithm>
#include <cctype>

#include "h5i/json.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kMostKey = 200;
constexpr size_t kMostWord = 400;  // of a number

int hex4(std::string_view s, size_t at) {
  int out = 0;
  for (size_t i = at; i < at + 4; i++) {
    if (i >= s.size()) return -1;
    const char c = s[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    out = out * 16 + digit;
  }
  return out;
}

}  // namespace

void JsonCursor::space() {
  while (i_ < s_.size() && (s_[i_] == ' ' || s_[i_] == '\t' || s_[i_] == '\n' || s_[i_] == '\r')) i_++;
}

char JsonCursor::peek() {
  space();
  return failed_ || i_ >= s_.size() ? '\0' : s_[i_];
}

bool JsonCursor::finished() {
  space();
  return !failed_ && i_ == s_.size();
}

bool JsonCursor::object(const std::function<bool(const std::string&)>& member) {
  if (peek() != '{') return skip();
  if (++depth_ > kMaxDepth) return fail();
  i_++;
  for (bool first = true;; first = false) {
    char c = peek();
    if (c == '}') break;
    if (!first) {
      if (c != ',') return fail();
      i_++;
      c = peek();
    }
    if (c != '"') return fail();
    std::string key;
    if (!text(&key, kMostKey, nullptr)) return false;
    if (peek() != ':') return fail();
    i_++;
    if (!member(key) || failed_) return fail();
  }
  i_++;
  depth_--;
  return true;
}

bool JsonCursor::array(const std::function<bool()>& element) {
  if (peek() != '[') return skip();
  if (++depth_ > kMaxDepth) return fail();
  i_++;
  for (bool first = true;; first = false) {
    char c = peek();
    if (c == ']') break;
    if (!first) {
      if (c != ',') return fail();
      i_++;
      if (peek() == ']') return fail();
    }
    if (!element() || failed_) return fail();
  }
  i_++;
  depth_--;
  return true;
}

bool JsonCursor::string(std::string* out, size_t cap, bool* cut) {
  out->clear();
  if (cut) *cut = false;
  return peek() == '"' ? text(out, cap, cut) : skip();
}

bool JsonCursor::skip() {
  switch (peek()) {
    case '\0': return fail();
    case '{': return object([&](const std::string&) { return skip(); });
    case '[': return array([&] { return skip(); });
    case '"': return text(nullptr, 0, nullptr);
    default: return word();
  }
}

bool JsonCursor::word() {
  size_t end = i_;
  while (end < s_.size() && end - i_ <= kMostWord && (std::isalnum(static_cast<unsigned char>(s_[end])) || s_[end] == '+' || s_[end] == '-' || s_[end] == '.')) end++;
  const std::string_view w = s_.substr(i_, end - i_);
  const bool number = !w.empty() && (w[0] == '-' || (w[0] >= '0' && w[0] <= '9')) && w.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
  if ((!number && w != "true" && w != "false" && w != "null") || w.size() > kMostWord) return fail();
  i_ = end;
  return true;
}

bool JsonCursor::text(std::string* out, size_t cap, bool* cut) {
  auto put = [&](std::string_view bytes) {
    if (!out) return;
    if (out->size() + bytes.size() <= cap) out->append(bytes);
    else if (cut) *cut = true;
  };
  i_++;
  for (;;) {
    size_t end = i_;
    while (end < s_.size() && s_[end] != '"' && s_[end] != '\\' && static_cast<unsigned char>(s_[end]) >= 0x20) end++;
    if (out && end > i_) {
      const size_t room = cap - std::min(cap, out->size()), take = std::min(room, end - i_);
      out->append(s_.substr(i_, take));
      if (take < end - i_ && cut) *cut = true;
    }
    i_ = end;
    if (i_ >= s_.size()) return fail();
    if (s_[i_] == '"') {
      i_++;
      return true;
    }
    if (s_[i_] != '\\' || i_ + 1 >= s_.size()) return fail();
    const char c = s_[i_ + 1];
    i_ += 2;
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (size_t at = kNames.find(c); at != std::string_view::npos) {
      put(kMeant.substr(at, 1));
      continue;
    }
    int unit = c == 'u' ? hex4(s_, i_) : -1;
    if (unit < 0) return fail();
    i_ += 4;
    auto code = static_cast<uint32_t>(unit);
    if (unit >= 0xd800 && unit <= 0xdbff && s_.substr(i_, 2) == "\\u") {
      if (int low = hex4(s_, i_ + 2); low >= 0xdc00 && low <= 0xdfff) {
        code = 0x10000 + ((code - 0xd800) << 10) + (static_cast<uint32_t>(low) - 0xdc00);
        i_ += 6;
      }
    }
    if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd;
    std::string character;
    json::detail::append_utf8(character, code);
    put(character);
  }
}

}  // namespace h5i::websec
