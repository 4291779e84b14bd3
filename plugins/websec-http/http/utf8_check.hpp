// Whether bytes that come in pieces are UTF-8 (RFC 3629), known at the first byte that cannot be.
#pragma once
#include <cstdint>
#include <string_view>

namespace h5i::websec {

class Utf8Check {
 public:
  bool feed(std::string_view s) {
    for (char c : s) {
      auto b = static_cast<uint8_t>(c);
      if (need_ > 0) {
        if (b < low_ || b > high_) return good_ = false;
        low_ = 0x80;
        high_ = 0xBF;
        need_--;
      } else if (b >= 0x80) {
        if (b < 0xC2 || b > 0xF4) return good_ = false;
        need_ = b < 0xE0 ? 1 : b < 0xF0 ? 2 : 3;
        // No overlong forms, no surrogates, nothing above U+10FFFF: the second byte tells.
        low_ = b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
        high_ = b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
      }
    }
    return good_;
  }
  bool whole() const { return good_ && need_ == 0; }  // no character is cut

 private:
  bool good_ = true;
  int need_ = 0;
  uint8_t low_ = 0x80, high_ = 0xBF;
};

inline bool is_utf8(std::string_view s) {
  Utf8Check c;
  c.feed(s);
  return c.whole();
}

}  // namespace h5i::websec
