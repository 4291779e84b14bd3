// One character of UTF-8 at a time.
#pragma once
#include <cstdint>
#include <string_view>

#include "h5i/json.hpp"

namespace h5i::websec {

struct Character {
  uint32_t code = 0;
  size_t size = 1;    // bytes
  bool valid = true;  // false: one byte that is no UTF-8, in `code`
};

inline Character character_at(std::string_view s, size_t i) {
  auto b = [&](size_t k) { return static_cast<uint32_t>(static_cast<unsigned char>(s[i + k])); };
  switch (json::detail::utf8_len(s, i)) {
    case 1: return {b(0), 1, true};
    case 2: return {(b(0) & 31) << 6 | (b(1) & 63), 2, true};
    case 3: return {(b(0) & 15) << 12 | (b(1) & 63) << 6 | (b(2) & 63), 3, true};
    case 4: return {(b(0) & 7) << 18 | (b(1) & 63) << 12 | (b(2) & 63) << 6 | (b(3) & 63), 4, true};
    default: return {b(0), 1, false};
  }
}

}  // namespace h5i::websec
