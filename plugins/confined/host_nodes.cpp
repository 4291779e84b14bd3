#include "host_nodes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "path.hpp"

namespace h5i::confined {
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
  for (size_t i = 0; i + 1 < names.size() && at.get() >= 0; i++)
    at = Fd(openat(at.get(), names[i].c_str(), kDirectory));
  last = names.empty() ? "" : names.back();
  return at;
}

// A box can nest directories deeper than there are descriptors.
constexpr int kMaxDepth = 256;

int remove_at(int directory, const char* name, int depth) {
  if (unlinkat(directory, name, 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  if (depth == 0) return ELOOP;
  // The box may have taken its own permissions away; the owner gives them back.
  int self = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (self < 0 && errno == EACCES && fchmodat(directory, name, 0700, 0) == 0)
    self = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (self < 0) return errno;
  fchmod(self, 0700);
  DIR* list = fdopendir(self);
  if (list == nullptr) {
    int saved = errno;
    close(self);
    return saved;
  }
  int failed = 0;
  while (dirent* e = readdir(list)) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (int r = remove_at(dirfd(list), e->d_name, depth - 1); r != 0 && failed == 0) failed = r;
  }
  closedir(list);
  if (unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  return failed != 0 ? failed : errno;
}

}  // namespace

int remove_tree(const std::string& path) { return remove_at(AT_FDCWD, path.c_str(), kMaxDepth); }

sdk::Status prepare_private_dirs(const Request& request) {
  if (request.private_dirs.empty()) return {};
  for (const std::string& path :
       {request.private_root, join(request.private_root, "cache"), join(request.private_root, "scratch")})
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return sdk::system_failure("mkdir " + path);
  for (const PrivateDir& directory : request.private_dirs) {
    std::string path = private_source(request, directory);
    if (directory.scratch) {
      if (int failed = remove_tree(path); failed != 0)
        return sdk::failure(H5I_E_SYSTEM, "fs.private: emptying " + path + ": " + strerror(failed), failed);
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
    int r = p.directory
                ? mkdirat(parent.get(), last.c_str(), 0755)
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

}  // namespace h5i::confined
