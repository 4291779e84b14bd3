// A whole file as text.
#pragma once
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace h5i::test {

// Empty when there is no such file.
inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  try {
    out << in.rdbuf();
    return std::move(out).str();
  } catch (const std::exception&) {  // of a process that ended while its /proc was read: it is none
    return "";
  }
}

}  // namespace h5i::test
