#include "core/git/alternates.hpp"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

constexpr int kMaxDepth = 5;               // git's own limit
constexpr uint64_t kMaxFile = 1u << 20;    // of info/alternates

Result<std::string> real_path(const std::string& path) {
  char buffer[PATH_MAX];
  if (!realpath(path.c_str(), buffer)) return sys_error("resolve the object directory " + printable(path));
  return std::string(buffer);
}

Result<void> collect(const std::string& directory, int depth, std::vector<std::string>& out) {
  std::string real = H5I_TRY(real_path(directory));
  if (std::find(out.begin(), out.end(), real) != out.end()) return {};
  if (depth > kMaxDepth)
    return make_error(Errc::GIT_UNSUPPORTED, "the chain of alternate object directories is too long", printable(real),
                      "git repack -a -d takes the objects over");
  out.push_back(real);
  UniqueFd dir = H5I_TRY(os::open_directory(real));
  auto text = os::read_file_beneath(dir, "info/alternates", kMaxFile);
  if (!text) {
    if (text.error().sys_errno == ENOENT) return {};
    return make_error(Errc::GIT_UNSUPPORTED, "info/alternates cannot be read in " + printable(real), text.error().evidence);
  }
  size_t i = 0;
  while (i < text->size()) {
    size_t end = text->find('\n', i);
    if (end == std::string::npos) end = text->size();
    std::string line = text->substr(i, end - i);
    i = end + 1;
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '"')
      return make_error(Errc::GIT_UNSUPPORTED, "info/alternates holds a quoted path", printable(line), "write it without quotes");
    H5I_TRY(collect(line[0] == '/' ? line : real + "/" + line, depth + 1, out));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> object_directories(const std::string& objects_dir) {
  std::vector<std::string> out;
  H5I_TRY(collect(objects_dir, 0, out));
  return out;
}

}  // namespace h5i::git
