#include "private_dirs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "path.hpp"
#include "view.hpp"

namespace h5i::tier_process {

sdk::Status prepare_private_dirs(const Request& request) {
  if (request.private_dirs.empty()) return {};
  for (const std::string& path : {request.private_root, join(request.private_root, "cache"), join(request.private_root, "scratch")})
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return sdk::system_failure("mkdir " + path);
  for (const PrivateDir& directory : request.private_dirs) {
    std::string path = private_source(request, directory);
    if (directory.scratch) {
      // The box wrote its contents. remove_all opens beneath descriptors and takes a link for a name, never for a way.
      std::error_code failed;
      std::filesystem::remove_all(path, failed);
      if (failed) return sdk::failure(H5I_E_SYSTEM, "fs.private: emptying " + path + ": " + failed.message(), failed.value());
    }
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return sdk::system_failure("mkdir " + path);
  }
  return {};
}

std::vector<std::string> absent_now(const std::vector<std::string>& candidates) {
  std::vector<std::string> out;
  for (const std::string& path : candidates) {
    std::string name = path.back() == '/' ? path.substr(0, path.size() - 1) : path;
    struct stat s;
    if (lstat(name.c_str(), &s) != 0 && errno == ENOENT) out.push_back(name);
  }
  return out;
}

void remove_placeholders(const std::vector<std::string>& made) {
  std::vector<std::string> paths = made;
  std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  for (const std::string& path : paths) {
    struct stat s;
    if (lstat(path.c_str(), &s) != 0) continue;
    if (S_ISDIR(s.st_mode))
      rmdir(path.c_str());
    else if (S_ISREG(s.st_mode) && s.st_size == 0 && s.st_nlink == 1)
      unlink(path.c_str());
  }
}

}  // namespace h5i::tier_process
