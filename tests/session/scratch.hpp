// A folder that a test may fill, gone afterwards, and a box in it.
#pragma once
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/session/box.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::test {

class Scratch {
 public:
  Scratch() {
    std::string pattern = std::filesystem::temp_directory_path().string() + "/h5i-session-XXXXXX";
    if (!mkdtemp(pattern.data())) abort();
    char resolved[4096];
    path_ = realpath(pattern.c_str(), resolved);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& below) const { return path_ + "/" + below; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
// What find_repository takes for a git directory.
inline void make_git_directory(const std::string& path) {
  std::filesystem::create_directories(path + "/objects");
  std::filesystem::create_directories(path + "/refs");
  write_file(path + "/HEAD", "ref: refs/heads/main\n");
}

inline session::Manifest some_manifest(const std::string& agent, const std::string& slug) {
  session::Manifest m;
  m.name = {agent, slug};
  m.created = "2026-01-02T03:04:05.678Z";
  m.repo_git_dir = "/r/.git";
  m.base_commit = std::string(40, 'a');
  m.source = json::Object{{"kind", "revision"}};
  m.profile = "default";
  m.tier = "process";
  m.tier_from = "auto";
  m.policy_digest = PolicyDigest(std::string(64, '0'));
  m.object_dirs = {"/r/.git/objects"};
  m.placeholders = {"a/.env"};
  return m;
}

inline session::BoxPaths make_box(const std::string& boxes, session::Manifest m) {
  session::BoxPaths paths{boxes + "/" + m.name.agent + "/" + m.name.slug};
  std::filesystem::create_directories(paths.dir);
  chmod(paths.dir.c_str(), 0700);
  auto saved = session::save_manifest(paths, m);
  if (!saved) abort();
  return paths;
}

}  // namespace h5i::test
