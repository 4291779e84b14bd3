// A directory of this test, and files in it.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/lines.hpp"
#include "tests/support/text_file.hpp"

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

inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace h5i::test
