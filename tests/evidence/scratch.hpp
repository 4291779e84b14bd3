// A directory of this test, and files in it.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace h5i::test {

class Scratch {
 public:
  Scratch() {
    std::string t = (std::filesystem::temp_directory_path() / "h5i-evidence-XXXXXX").string();
    if (!mkdtemp(t.data())) abort();
    dir_ = t;
  }
  ~Scratch() { std::filesystem::remove_all(dir_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}
inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
inline std::vector<std::string> lines_of(const std::string& bytes) {
  std::vector<std::string> out;
  std::istringstream in(bytes);
  for (std::string l; std::getline(in, l);) out.push_back(l);
  return out;
}
inline std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& l : lines) out += l + "\n";
  return out;
}

}  // namespace h5i::test
