// A private directory for one test, and the fixtures copied into it.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/plugin/registry.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::test {

namespace fs = std::filesystem;

inline void write_file(const fs::path& p, const std::string& bytes) { std::ofstream(p, std::ios::binary) << bytes; }

class Scratch {
 public:
  Scratch() {
    std::string pattern = fs::temp_directory_path() / "h5i-plugin-XXXXXX";
    path_ = mkdtemp(pattern.data());
    fs::create_directories(plugins());
    fs::create_directories(state());
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string plugins() const { return path_ + "/lib/h5i/plugins/1"; }
  std::string state() const { return path_ + "/state/plugins"; }
  std::string lock() const { return path_ + "/state/plugins.lock.json"; }

  plugin::Settings settings() const {
    plugin::Settings s;
    s.euid = geteuid();
    s.directories = {{plugins(), plugin::Trust::SYSTEM}, {state(), plugin::Trust::PINNED}};
    s.lock_file = lock();
    s.state_directory = state();
    return s;
  }

  static fs::path fixture(const std::string& name) {
    return fs::path(getenv("H5I_BUILD_DIR")) / "fixtures/plugins" / name / ("fixture-" + name);
  }
  // Copies library and manifest of a fixture; returns the path without its endings.
  std::string add(const std::string& name, const std::string& into = {}) const {
    std::string to = (into.empty() ? plugins() : into) + "/fixture-" + name;
    for (const char* end : {".so", ".plugin.yaml"}) {
      fs::copy_file(fixture(name).string() + end, to + end);
      chmod((to + end).c_str(), 0644);
    }
    return to;
  }

 private:
  std::string path_;
};

}  // namespace h5i::test
