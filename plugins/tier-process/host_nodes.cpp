#include "host_nodes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "path.hpp"

namespace h5i::tier_process {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Fd& operator=(Fd&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// The directory that holds the last component; -1 with errno. O_NOFOLLOW on every step.
Fd parent_directory(const Placeholder& p, std::string& last) {
  constexpr int kDirectory = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  std::vector<std::string> names = components(p.relative);
  Fd at(open(p.root.c_str(), kDirectory));
  for (size_t i = 0; i + 1 < names.size() && at.get() >= 0; i++) at = Fd(openat(at.get(), names[i].c_str(), kDirectory));
  last = names.empty() ? "" : names.back();
  return at;
}

}  // namespace

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

sdk::Result<Placeholders> Placeholders::make(const std::vector<Placeholder>& wanted) {
  Placeholders out;
  for (const Placeholder& p : wanted) {
    std::string last;
    Fd parent = parent_directory(p, last);
    if (parent.get() < 0) return sdk::system_failure("placeholder " + join(p.root, p.relative));
    int r = p.directory ? mkdirat(parent.get(), last.c_str(), 0755)
                        : openat(parent.get(), last.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r < 0 && errno == EEXIST) continue;  // it was made for another name, or came in between
    if (r < 0) return sdk::system_failure("placeholder " + join(p.root, p.relative));
    if (!p.directory) close(r);
    out.made_.push_back(p);
  }
  return out;
}

Placeholders::~Placeholders() {
  for (auto p = made_.rbegin(); p != made_.rend(); ++p) {
    std::string last;
    Fd parent = parent_directory(*p, last);
    struct stat s;
    if (parent.get() < 0 || fstatat(parent.get(), last.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(s.st_mode))
      unlinkat(parent.get(), last.c_str(), AT_REMOVEDIR);  // only when empty
    else if (S_ISREG(s.st_mode) && s.st_size == 0 && s.st_nlink == 1)
      unlinkat(parent.get(), last.c_str(), 0);
  }
}

}  // namespace h5i::tier_process
