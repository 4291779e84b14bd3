// A JSON value, a strict parser (RFC 8259, duplicate keys and invalid UTF-8 refused, bounded depth) and the canonical
// writer of RFC 8785. Header-only so that plugins and the core read policies, plans and results by one implementation.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace h5i::json {

class Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;

// Members keep their order of insertion; the canonical writer sorts.
class Object {
 public:
  Object() = default;
  Object(std::initializer_list<Member> members);
  Value* find(std::string_view key);
  const Value* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  Value& operator[](std::string_view key);  // inserts null when absent
  bool erase(std::string_view key);
  void append_unchecked(std::string key, Value value);  // the caller knows that the key is new
  size_t size() const;
  bool empty() const;
  std::vector<Member>::iterator begin();
  std::vector<Member>::iterator end();
  std::vector<Member>::const_iterator begin() const;
  std::vector<Member>::const_iterator end() const;
  bool operator==(const Object& o) const;

 private:
  std::vector<Member> m_;
};

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}                                     // NOLINT: implicit on purpose, all of these
  Value(bool b) : v_(b) {}                                     // NOLINT
  Value(int i) : v_(static_cast<int64_t>(i)) {}                // NOLINT
  Value(unsigned i) : v_(static_cast<int64_t>(i)) {}           // NOLINT
  Value(long i) : v_(static_cast<int64_t>(i)) {}               // NOLINT
  Value(long long i) : v_(static_cast<int64_t>(i)) {}          // NOLINT
  Value(unsigned long i) : v_(static_cast<int64_t>(i)) {}      // NOLINT
  Value(unsigned long long i) : v_(static_cast<int64_t>(i)) {} // NOLINT
  Value(double d) : v_(d) {}                                   // NOLINT
  Value(const char* s) : v_(std::string(s)) {}                 // NOLINT
  Value(std::string s) : v_(std::move(s)) {}                   // NOLINT
  Value(std::string_view s) : v_(std::string(s)) {}            // NOLINT
  Value(Array a) : v_(std::move(a)) {}                         // NOLINT
  Value(Object o) : v_(std::move(o)) {}                        // NOLINT

  bool is_null() const { return v_.index() == 0; }
  bool is_bool() const { return std::holds_alternative<bool>(v_); }
  bool is_int() const { return std::holds_alternative<int64_t>(v_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(v_); }
  bool is_string() const { return std::holds_alternative<std::string>(v_); }
  bool is_array() const { return std::holds_alternative<Array>(v_); }
  bool is_object() const { return std::holds_alternative<Object>(v_); }

  // Lenient accessors: the fallback when the type differs. Use the is_ functions to be strict.
  bool boolean(bool fallback = false) const { return is_bool() ? std::get<bool>(v_) : fallback; }
  int64_t integer(int64_t fallback = 0) const { return is_int() ? std::get<int64_t>(v_) : fallback; }
  double number(double fallback = 0) const {
    return is_int() ? static_cast<double>(std::get<int64_t>(v_)) : is_number() ? std::get<double>(v_) : fallback;
  }
  const std::string& string() const {
    static const std::string kEmpty;
    return is_string() ? std::get<std::string>(v_) : kEmpty;
  }
  const Array& array() const {
    static const Array kEmpty;
    return is_array() ? std::get<Array>(v_) : kEmpty;
  }
  const Object& object() const {
    static const Object kEmpty;
    return is_object() ? std::get<Object>(v_) : kEmpty;
  }
  // Mutable forms turn the value into that type when it is another.
  Array& make_array() {
    if (!is_array()) v_ = Array{};
    return std::get<Array>(v_);
  }
  Object& make_object() {
    if (!is_object()) v_ = Object{};
    return std::get<Object>(v_);
  }
  Value& operator[](std::string_view key) { return make_object()[key]; }
  const Value& operator[](std::string_view key) const {
    static const Value kNull;
    const Value* p = object().find(key);
    return p ? *p : kNull;
  }
  void push(Value v) { make_array().push_back(std::move(v)); }
  bool operator==(const Value& o) const { return v_ == o.v_; }

 private:
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> v_ = nullptr;
};

inline Object::Object(std::initializer_list<Member> members) : m_(members) {}
inline Value* Object::find(std::string_view key) {
  for (auto& m : m_)
    if (m.first == key) return &m.second;
  return nullptr;
}
inline const Value* Object::find(std::string_view key) const { return const_cast<Object*>(this)->find(key); }
inline Value& Object::operator[](std::string_view key) {
  if (Value* v = find(key)) return *v;
  m_.emplace_back(std::string(key), Value());
  return m_.back().second;
}
inline bool Object::erase(std::string_view key) {
  for (auto it = m_.begin(); it != m_.end(); ++it)
    if (it->first == key) {
      m_.erase(it);
      return true;
    }
  return false;
}
inline void Object::append_unchecked(std::string key, Value value) {
  m_.emplace_back(std::move(key), std::move(value));
}
inline size_t Object::size() const { return m_.size(); }
inline bool Object::empty() const { return m_.empty(); }
inline std::vector<Member>::iterator Object::begin() { return m_.begin(); }
inline std::vector<Member>::iterator Object::end() { return m_.end(); }
inline std::vector<Member>::const_iterator Object::begin() const { return m_.begin(); }
inline std::vector<Member>::const_iterator Object::end() const { return m_.end(); }
inline bool Object::operator==(const Object& o) const {
  if (m_.size() != o.m_.size()) return false;
  for (const auto& m : m_) {
    const Value* v = o.find(m.first);
    if (!v || !(*v == m.second)) return false;
  }
  return true;
}

namespace detail {

// The length of the well-formed UTF-8 character at s[i] (RFC 3629: no surrogates, no overlong forms), 0 when malformed.
inline int utf8_len(std::string_view s, size_t i) {
  auto b = [&](size_t k) { return k < s.size() ? static_cast<unsigned char>(s[k]) : 0u; };
  unsigned c = b(i);
  auto cont = [&](size_t k) { return (b(k) & 0xC0) == 0x80; };
  if (c < 0x80) return 1;
  if (c >= 0xC2 && c <= 0xDF) return cont(i + 1) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF) {
    if (!cont(i + 1) || !cont(i + 2)) return 0;
    if (c == 0xE0 && b(i + 1) < 0xA0) return 0;
    if (c == 0xED && b(i + 1) > 0x9F) return 0;
    return 3;
  }
  if (c >= 0xF0 && c <= 0xF4) {
    if (!cont(i + 1) || !cont(i + 2) || !cont(i + 3)) return 0;
    if (c == 0xF0 && b(i + 1) < 0x90) return 0;
    if (c == 0xF4 && b(i + 1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

inline void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 63));
    out += static_cast<char>(0x80 | ((c >> 6) & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

// Key order of RFC 8785 section 3.2.3: by UTF-16 code units. For UTF-8 this differs from byte order only between
// characters above U+FFFF and those in U+E000..U+FFFF.
inline bool utf16_less(std::string_view a, std::string_view b) {
  size_t n = std::min(a.size(), b.size()), i = 0;
  while (i < n && a[i] == b[i]) i++;
  if (i == n) return a.size() < b.size();
  unsigned x = static_cast<unsigned char>(a[i]), y = static_cast<unsigned char>(b[i]);
  bool xs = x >= 0xF0, ys = y >= 0xF0;  // lead bytes of supplementary characters become surrogates
  if (xs != ys) {
    unsigned other = xs ? y : x;
    if (other >= 0xEE) return xs;  // U+E000..U+FFFF sorts after surrogates
  }
  return x < y;
}

inline void write_string(std::string& out, std::string_view s) {
  static const char kHex[] = "0123456789abcdef";
  out += '"';
  size_t plain = 0;  // from here on nothing needed an escape yet
  for (size_t i = 0; i < s.size(); i++) {
    auto c = static_cast<unsigned char>(s[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(s.substr(plain, i - plain));
    plain = i + 1;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
    }
  }
  out.append(s.substr(plain));
  out += '"';
}

// Number::toString of ECMA-262, which RFC 8785 section 3.2.2.3 prescribes.
inline void write_double(std::string& out, double d) {
  if (d == 0 || !std::isfinite(d)) {
    out += '0';
    return;
  }
  char buf[40];
  auto r = std::to_chars(buf, buf + sizeof buf, d, std::chars_format::scientific);
  std::string_view s(buf, static_cast<size_t>(r.ptr - buf));
  if (s[0] == '-') {
    out += '-';
    s.remove_prefix(1);
  }
  size_t e = s.find('e');
  std::string digits;
  for (char c : s.substr(0, e))
    if (c != '.') digits += c;
  int exp = 0;
  std::string_view es = s.substr(e + 1);
  if (es[0] == '+') es.remove_prefix(1);
  std::from_chars(es.data(), es.data() + es.size(), exp);
  int k = static_cast<int>(digits.size()), n = exp + 1;
  if (k <= n && n <= 21) {
    out += digits;
    out.append(static_cast<size_t>(n - k), '0');
  } else if (0 < n && n <= 21) {
    out += digits.substr(0, static_cast<size_t>(n)) + "." + digits.substr(static_cast<size_t>(n));
  } else if (-6 < n && n <= 0) {
    out += "0." + std::string(static_cast<size_t>(-n), '0') + digits;
  } else {
    out += digits[0];
    if (k > 1) out += "." + digits.substr(1);
    out += 'e';
    out += n - 1 < 0 ? '-' : '+';
    out += std::to_string(n - 1 < 0 ? 1 - n : n - 1);
  }
}

}  // namespace detail

// Canonical JSON (RFC 8785): sorted keys, no space, ECMAScript numbers. Strings are expected to be valid UTF-8.
inline void write(std::string& out, const Value& v, int indent = -1, int depth = 0) {
  auto newline = [&](int d) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent * d), ' ');
  };
  if (v.is_null()) {
    out += "null";
  } else if (v.is_bool()) {
    out += v.boolean() ? "true" : "false";
  } else if (v.is_int()) {
    out += std::to_string(v.integer());
  } else if (v.is_number()) {
    detail::write_double(out, v.number());
  } else if (v.is_string()) {
    detail::write_string(out, v.string());
  } else if (v.is_array()) {
    out += '[';
    bool first = true;
    for (const Value& x : v.array()) {
      if (!first) out += ',';
      first = false;
      newline(depth + 1);
      write(out, x, indent, depth + 1);
    }
    if (!first) newline(depth);
    out += ']';
  } else {
    std::vector<const Member*> order;
    order.reserve(v.object().size());
    for (const Member& m : v.object()) order.push_back(&m);
    auto before = [](const Member* a, const Member* b) { return detail::utf16_less(a->first, b->first); };
    if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
    out += '{';
    bool first = true;
    for (const Member* m : order) {
      if (!first) out += ',';
      first = false;
      newline(depth + 1);
      detail::write_string(out, m->first);
      out += indent < 0 ? ":" : ": ";
      write(out, m->second, indent, depth + 1);
    }
    if (!first) newline(depth);
    out += '}';
  }
}

inline std::string canonical(const Value& v) {
  std::string out;
  write(out, v);
  return out;
}
inline std::string pretty(const Value& v) {
  std::string out;
  write(out, v, 2);
  return out;
}

struct ParseError {
  size_t offset = 0;
  std::string message;
};

class Parser {
 public:
  static constexpr int kMaxDepth = 64;

  explicit Parser(std::string_view text) : s_(text) {}
  std::optional<Value> parse(ParseError* error) {
    Value v;
    if (!value(v, 0) || (skip(), i_ != s_.size() && fail("text after the value"))) {
      if (error) *error = {err_at_, err_};
      return std::nullopt;
    }
    return v;
  }

 private:
  bool fail(const char* m) {
    if (err_.empty()) {
      err_ = m;
      err_at_ = i_;
    }
    return true;  // lets callers write `return !fail(...)`
  }
  void skip() {
    while (i_ < s_.size() && (s_[i_] == ' ' || s_[i_] == '\t' || s_[i_] == '\n' || s_[i_] == '\r')) i_++;
  }
  bool lit(std::string_view w) {
    if (s_.substr(i_, w.size()) != w) return !fail("unknown literal");
    i_ += w.size();
    return true;
  }
  bool value(Value& v, int depth) {
    if (depth > kMaxDepth) return !fail("nested too deeply");
    skip();
    if (i_ >= s_.size()) return !fail("value expected");
    switch (s_[i_]) {
      case '{': return object(v, depth);
      case '[': return array(v, depth);
      case '"': {
        std::string t;
        if (!string(t)) return false;
        v = Value(std::move(t));
        return true;
      }
      case 't': v = Value(true); return lit("true");
      case 'f': v = Value(false); return lit("false");
      case 'n': v = Value(); return lit("null");
      default: return number(v);
    }
  }
  bool object(Value& v, int depth) {
    i_++;
    Object o;
    std::vector<std::string> keys;
    skip();
    if (i_ < s_.size() && s_[i_] == '}') {
      i_++;
      v = Value(std::move(o));
      return true;
    }
    for (;;) {
      skip();
      if (i_ >= s_.size() || s_[i_] != '"') return !fail("key expected");
      std::string k;
      if (!string(k)) return false;
      skip();
      if (i_ >= s_.size() || s_[i_] != ':') return !fail("':' expected");
      i_++;
      Value x;
      if (!value(x, depth + 1)) return false;
      // Duplicate check: linear while small, sorted keys beyond that, so a hostile document stays cheap.
      if (o.size() < 32) {
        if (o.contains(k)) return !fail("duplicate key");
        o.append_unchecked(std::move(k), std::move(x));
      } else {
        if (keys.empty())
          for (auto& m : o) keys.insert(std::lower_bound(keys.begin(), keys.end(), m.first), m.first);
        auto at = std::lower_bound(keys.begin(), keys.end(), k);
        if (at != keys.end() && *at == k) return !fail("duplicate key");
        if (keys.size() >= kMaxMembers) return !fail("too many members");
        keys.insert(at, k);
        o.append_unchecked(std::move(k), std::move(x));
      }
      skip();
      if (i_ < s_.size() && s_[i_] == ',') {
        i_++;
        continue;
      }
      if (i_ < s_.size() && s_[i_] == '}') {
        i_++;
        v = Value(std::move(o));
        return true;
      }
      return !fail("',' or '}' expected");
    }
  }
  bool array(Value& v, int depth) {
    i_++;
    Array a;
    skip();
    if (i_ < s_.size() && s_[i_] == ']') {
      i_++;
      v = Value(std::move(a));
      return true;
    }
    for (;;) {
      Value x;
      if (!value(x, depth + 1)) return false;
      a.push_back(std::move(x));
      skip();
      if (i_ < s_.size() && s_[i_] == ',') {
        i_++;
        continue;
      }
      if (i_ < s_.size() && s_[i_] == ']') {
        i_++;
        v = Value(std::move(a));
        return true;
      }
      return !fail("',' or ']' expected");
    }
  }
  bool hex4(uint32_t& out) {
    if (i_ + 4 > s_.size()) return !fail("four hexadecimal digits expected");
    out = 0;
    for (int k = 0; k < 4; k++) {
      char c = s_[i_++];
      out <<= 4;
      if (c >= '0' && c <= '9') out |= static_cast<uint32_t>(c - '0');
      else if (c >= 'a' && c <= 'f') out |= static_cast<uint32_t>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F') out |= static_cast<uint32_t>(c - 'A' + 10);
      else return !fail("four hexadecimal digits expected");
    }
    return true;
  }
  bool string(std::string& out) {
    i_++;
    while (i_ < s_.size()) {
      char c = s_[i_];
      if (c == '"') {
        i_++;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return !fail("control character in a string");
      if (c != '\\') {
        size_t end = i_;
        while (end < s_.size() && static_cast<unsigned char>(s_[end]) - 0x20u < 0x60u && s_[end] != '"' && s_[end] != '\\') end++;
        if (end > i_) {
          out.append(s_.substr(i_, end - i_));
          i_ = end;
          continue;
        }
        int n = detail::utf8_len(s_, i_);
        if (n == 0) return !fail("invalid UTF-8");
        out.append(s_.substr(i_, static_cast<size_t>(n)));
        i_ += static_cast<size_t>(n);
        continue;
      }
      if (++i_ >= s_.size()) break;
      char e = s_[i_++];
      switch (e) {
        case '"': out += '"'; break;
        case '\\': out += '\\'; break;
        case '/': out += '/'; break;
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'n': out += '\n'; break;
        case 'r': out += '\r'; break;
        case 't': out += '\t'; break;
        case 'u': {
          uint32_t u = 0;
          if (!hex4(u)) return false;
          if (u >= 0xD800 && u <= 0xDBFF) {
            uint32_t lo = 0;
            if (s_.substr(i_, 2) != "\\u") return !fail("lone surrogate");
            i_ += 2;
            if (!hex4(lo)) return false;
            if (lo < 0xDC00 || lo > 0xDFFF) return !fail("lone surrogate");
            u = 0x10000 + ((u - 0xD800) << 10) + (lo - 0xDC00);
          } else if (u >= 0xDC00 && u <= 0xDFFF) {
            return !fail("lone surrogate");
          }
          detail::append_utf8(out, u);
          break;
        }
        default: return !fail("unknown escape");
      }
    }
    return !fail("string without an end");
  }
  bool number(Value& v) {
    size_t b = i_;
    if (i_ < s_.size() && s_[i_] == '-') i_++;
    if (i_ >= s_.size() || s_[i_] < '0' || s_[i_] > '9') return !fail("value expected");
    if (s_[i_] == '0' && i_ + 1 < s_.size() && s_[i_ + 1] >= '0' && s_[i_ + 1] <= '9') return !fail("leading zero");
    bool integral = true;
    auto digits = [&] {
      size_t d = i_;
      while (i_ < s_.size() && s_[i_] >= '0' && s_[i_] <= '9') i_++;
      return i_ > d;
    };
    digits();
    if (i_ < s_.size() && s_[i_] == '.') {
      integral = false;
      i_++;
      if (!digits()) return !fail("digits expected");
    }
    if (i_ < s_.size() && (s_[i_] == 'e' || s_[i_] == 'E')) {
      integral = false;
      i_++;
      if (i_ < s_.size() && (s_[i_] == '+' || s_[i_] == '-')) i_++;
      if (!digits()) return !fail("digits expected");
    }
    std::string_view t = s_.substr(b, i_ - b);
    if (integral) {
      int64_t n = 0;
      auto r = std::from_chars(t.data(), t.data() + t.size(), n);
      if (r.ec == std::errc() && r.ptr == t.data() + t.size()) {
        v = Value(static_cast<long long>(n));
        return true;
      }
      return !fail("integer out of range");
    }
    double d = 0;
    auto r = std::from_chars(t.data(), t.data() + t.size(), d);
    if (r.ec != std::errc() || !std::isfinite(d)) return !fail("number out of range");
    v = Value(d);
    return true;
  }

  static constexpr size_t kMaxMembers = 100000;
  std::string_view s_;
  size_t i_ = 0, err_at_ = 0;
  std::string err_;
};

inline std::optional<Value> parse(std::string_view text, ParseError* error = nullptr) {
  return Parser(text).parse(error);
}

}  // namespace h5i::json
