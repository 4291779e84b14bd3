// A whole file as text.
#pragma once
#include <fstream>
#include <iterator>
#include <string>

namespace h5i::test {

// Empty when there is no such file.
inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace h5i::test
