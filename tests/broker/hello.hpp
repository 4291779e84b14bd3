// The first message of a TLS client, written by hand: whatever a test wants in it.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace h5i::test {

inline std::string sized(int width, std::string_view of) {
  std::string out;
  for (int i = width - 1; i >= 0; i--) out += static_cast<char>(of.size() >> (8 * i));
  return out + std::string(of);
}
using Extensions = std::vector<std::pair<int, std::string>>;

inline std::string name_extension(std::string_view name) { return sized(2, std::string(1, '\0') + sized(2, name)); }

inline std::string hello_message(const Extensions& extensions) {
  std::string body = "\x03\x03" + std::string(32, 'r') + sized(1, std::string(32, 's')) + sized(2, std::string("\x13\x01\x13\x02", 4)) + sized(1, std::string(1, '\0'));
  std::string all;
  for (const auto& [id, value] : extensions) all += std::string{static_cast<char>(id >> 8), static_cast<char>(id)} + sized(2, value);
  return std::string(1, '\1') + sized(3, body + sized(2, all));
}
inline std::string record(std::string_view message, char type = 22) { return std::string{type, 3, 1} + sized(2, message); }

inline std::string hello_for(std::string_view name) { return record(hello_message({{0, name_extension(name)}, {43, std::string("\x02\x03\x04", 3)}})); }

// A ServerHello, or one that asks for another hello.
inline std::string server_hello(bool retry) {
  std::string random = retry ? std::string("\xCF\x21\xAD\x74\xE5\x9A\x61\x11\xBE\x1D\x8C\x02\x1E\x65\xB8\x91\xC2\xA2\x11\x16\x7A\xBB\x8C\x5E\x07\x9E\x09\xE2\xC8\xA8\x33\x9C", 32) : std::string(32, 'x');
  return record(std::string(1, '\2') + sized(3, "\x03\x03" + random + sized(1, "") + std::string("\x13\x01\x00", 3)));
}

}  // namespace h5i::test
