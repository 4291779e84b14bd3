// Secrets that look real and are not: made when the test runs, so that no scanner trips over this repository.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace h5i::test {

class Dice {
 public:
  explicit Dice(uint64_t seed) : s_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t roll(uint64_t n) {
    s_ ^= s_ << 13;
    s_ ^= s_ >> 7;
    s_ ^= s_ << 17;
    return (s_ >> 11) % n;
  }
  std::string pick(const std::string& alphabet, size_t n) {
    std::string out;
    while (n-- > 0) out += alphabet[roll(alphabet.size())];
    return out;
  }

 private:
  uint64_t s_;
};

inline const std::string kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", kLower = "abcdefghijklmnopqrstuvwxyz",
                         kDigits = "0123456789";
inline const std::string kAlnumChars = kUpper + kLower + kDigits, kUrlChars = kAlnumChars + "_-";

struct Planted {
  std::string rule;    // that must be counted
  std::string text;    // a line or block as a program prints it
  std::string secret;  // no part of it of eight bytes or more may be left
};

// Every rule in every manner of printing it that we know of.
std::vector<Planted> planted_secrets(uint64_t seed);

}  // namespace h5i::test
