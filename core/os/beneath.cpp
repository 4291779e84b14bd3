#include "core/os/beneath.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"

namespace h5i::os {
namespace {

// Directories nested deeper than this are moved up before they are removed, so that neither stack nor descriptors run out.
constexpr int kRemoveDepth = 64;

int openat2_beneath(int dir, const char* path, int flags, unsigned mode, bool one_mount) {
  open_how how{};
  // openat2 refuses O_PATH together with flags that mean nothing for it.
  how.flags = static_cast<uint64_t>(static_cast<unsigned>(flags | O_CLOEXEC | O_NOFOLLOW | (flags & O_PATH ? 0 : O_NOCTTY)));
  how.mode = (flags & (O_CREAT | O_TMPFILE)) == O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | (one_mount ? RESOLVE_NO_XDEV : 0);
  for (int attempt = 0;; attempt++) {
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    // EAGAIN: a rename raced with the walk and the kernel could not prove that the path stayed beneath.
    if (fd < 0 && (errno == EINTR || (errno == EAGAIN && attempt < 64))) continue;
    return static_cast<int>(fd);
  }
}

Error beneath_error(const std::string& what, const std::string& path) {
  int err = errno;
  Error e = sys_error(what + " " + printable(path), err);
  if (err == ELOOP || err == EXDEV) e.code = Errc::PATH_ESCAPE;
  return e;
}

struct DirCloser {
  void operator()(DIR* d) const { closedir(d); }
};

}  // namespace

Result<UniqueFd> open_directory(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return sys_error("open directory " + printable(path));
  return fd;
}

Result<UniqueFd> open_beneath(const UniqueFd& dir, const std::string& path, int flags, unsigned mode, bool one_mount) {
  if (path.empty() || path.find('\0') != std::string::npos) return make_error(Errc::PATH_ESCAPE, "path refused", printable(path));
  UniqueFd fd(openat2_beneath(dir.get(), path.c_str(), flags, mode, one_mount));
  if (!fd) return beneath_error("open", path);
  return fd;
}

Result<UniqueFd> open_directory_beneath(const UniqueFd& dir, const std::string& path, bool one_mount) {
  return open_beneath(dir, path.empty() ? "." : path, O_RDONLY | O_DIRECTORY, 0, one_mount);
}

Result<UniqueFd> make_directories_beneath(const UniqueFd& dir, const std::string& path, unsigned mode) {
  UniqueFd at = H5I_TRY(open_directory_beneath(dir, "."));
  size_t i = 0;
  while (i < path.size()) {
    size_t slash = path.find('/', i);
    if (slash == std::string::npos) slash = path.size();
    std::string part = path.substr(i, slash - i);
    i = slash + 1;
    if (part.empty() || part == "." || part == "..") return make_error(Errc::PATH_ESCAPE, "path refused", printable(path));
    if (mkdirat(at.get(), part.c_str(), mode) != 0 && errno != EEXIST) return beneath_error("make directory", path);
    at = H5I_TRY(open_directory_beneath(at, part));
  }
  return at;
}

Result<std::string> read_link_beneath(const UniqueFd& dir, const std::string& path) {
  UniqueFd fd = H5I_TRY(open_beneath(dir, path, O_PATH));
  std::string out(4096, '\0');
  ssize_t n = readlinkat(fd.get(), "", out.data(), out.size());
  if (n < 0) return beneath_error("read link", path);
  if (static_cast<size_t>(n) == out.size()) return make_error(Errc::TOO_LARGE, "symbolic link target too long", printable(path));
  out.resize(static_cast<size_t>(n));
  return out;
}

Result<std::string> read_all(const UniqueFd& fd, uint64_t limit) {
  std::string out;
  struct stat st{};
  if (fstat(fd.get(), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
    if (static_cast<uint64_t>(st.st_size) > limit) return make_error(Errc::TOO_LARGE, "file too large", std::to_string(st.st_size) + " bytes");
    out.reserve(static_cast<size_t>(st.st_size) + 1);
  }
  char buffer[65536];
  for (;;) {
    ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read");
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > limit) return make_error(Errc::TOO_LARGE, "more than " + std::to_string(limit) + " bytes");
    out.append(buffer, static_cast<size_t>(n));
  }
}

namespace {
// What a descriptor stands for, for a message; "" where /proc does not say.
std::string path_behind(const UniqueFd& fd) {
  char path[PATH_MAX];
  ssize_t n = readlink(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), path, sizeof path);
  return n <= 0 ? "" : " " + printable(std::string_view(path, static_cast<size_t>(n)));
}
}  // namespace

Result<void> write_all(const UniqueFd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int error = errno;
      return sys_error("write" + path_behind(fd), error);
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<std::string> read_file_beneath(const UniqueFd& dir, const std::string& path, uint64_t limit) {
  UniqueFd fd = H5I_TRY(open_beneath(dir, path, O_RDONLY | O_NONBLOCK));
  struct stat st{};
  if (fstat(fd.get(), &st) != 0) return sys_error("stat " + printable(path));
  if (!S_ISREG(st.st_mode)) return make_error(Errc::INVALID, "not a regular file", printable(path));
  return read_all(fd, limit);
}

Result<UniqueFd> open_nameless(const UniqueFd& dir, unsigned mode) {
  UniqueFd fd(openat(dir.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (!fd) return sys_error("open a file without a name");
  return fd;
}

Result<void> give_name(const UniqueFd& file, const UniqueFd& dir, const std::string& name) {
  // By descriptor where the kernel lets us (6.10, or CAP_DAC_READ_SEARCH), else through /proc.
  if (linkat(file.get(), "", dir.get(), name.c_str(), AT_EMPTY_PATH) == 0) return {};
  std::string path = "/proc/self/fd/" + std::to_string(file.get());
  if (errno != EEXIST && linkat(AT_FDCWD, path.c_str(), dir.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
  return sys_error("name " + printable(name));
}

namespace {

constexpr size_t kIdLength = 26;

Result<void> fill(const UniqueFd& fd, std::string_view bytes, unsigned mode, const std::string& name) {
  H5I_TRY(write_all(fd, bytes));
  if (fchmod(fd.get(), mode) != 0) return sys_error("set the mode of " + printable(name));
  if (fsync(fd.get()) != 0) return sys_error("flush " + printable(name));
  return {};
}

// A file by the name `temporary`, locked from before it had that name: who can lock it knows that its writer is dead.
Result<UniqueFd> make_temporary(const UniqueFd& dir, const std::string& temporary, std::string_view bytes, unsigned mode, const std::string& name) {
  if (auto fd = open_nameless(dir, mode)) {
    (void)flock(fd->get(), LOCK_EX | LOCK_NB);
    H5I_TRY(fill(*fd, bytes, mode, name));
    if (give_name(*fd, dir, temporary)) return fd;
  }
  // No files without a name on this file system, or /proc is covered.
  UniqueFd fd = H5I_TRY(open_beneath(dir, temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
  (void)flock(fd.get(), LOCK_EX | LOCK_NB);
  auto filled = fill(fd, bytes, mode, name);
  if (filled) return fd;
  unlinkat(dir.get(), temporary.c_str(), 0);
  return std::move(filled).error();
}

bool is_temporary(const std::string& name) {
  size_t dot = name.rfind('.');
  return name[0] == '.' && dot > 1 && dot != std::string::npos && name.size() == dot + 1 + kIdLength &&
         name.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz", dot + 1) == std::string::npos;
}

}  // namespace

std::vector<std::string> remove_dead_files(const UniqueFd& dir) {
  std::vector<std::string> removed;
  auto entries = list_directory(dir);
  if (!entries) return removed;
  for (const DirectoryEntry& e : *entries) {
    if (!is_temporary(e.name)) continue;
    auto fd = open_beneath(dir, e.name, O_RDONLY | O_NONBLOCK);
    struct stat st{};
    // An empty one may have been made this moment, by its name and without its lock yet.
    if (!fd || fstat(fd->get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) continue;
    if (flock(fd->get(), LOCK_EX | LOCK_NB) == 0 && unlinkat(dir.get(), e.name.c_str(), 0) == 0) removed.push_back(e.name);
  }
  return removed;
}

Result<void> replace_file(const UniqueFd& dir, const std::string& name, std::string_view bytes, unsigned mode) {
  std::string temporary = "." + name + "." + H5I_TRY(new_session_id()).value;
  UniqueFd held = H5I_TRY(make_temporary(dir, temporary, bytes, mode, name));
  if (renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) != 0) {
    Error e = sys_error("rename to " + printable(name));
    unlinkat(dir.get(), temporary.c_str(), 0);
    return e;
  }
  if (fsync(dir.get()) != 0) return sys_error("flush directory of " + printable(name));
  return {};
}

Result<std::vector<DirectoryEntry>> list_directory(const UniqueFd& dir) {
  UniqueFd again(openat(dir.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again) return sys_error("open directory");
  std::unique_ptr<DIR, DirCloser> d(fdopendir(again.get()));
  if (!d) return sys_error("list directory");
  again.release();
  std::vector<DirectoryEntry> out;
  for (;;) {
    errno = 0;
    dirent* e = readdir(d.get());
    if (!e) {
      if (errno) return sys_error("list directory");
      return out;
    }
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    out.push_back({e->d_name, e->d_type});
  }
}

namespace {

struct Remover {
  const UniqueFd& top;   // deep directories are moved here
  dev_t device;
  uint64_t moved = 0;
  std::vector<std::string> later;

  Result<void> directory(const UniqueFd& parent, const std::string& name, int depth) {
    struct stat st{};
    if (fstatat(parent.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? Result<void>{} : sys_error("stat");
    if (st.st_dev != device) return make_error(Errc::BUSY, "another file system is mounted below what was to be removed", printable(name));
    if (!S_ISDIR(st.st_mode)) {
      if (unlinkat(parent.get(), name.c_str(), 0) != 0 && errno != ENOENT) return sys_error("remove " + printable(name));
      return {};
    }
    UniqueFd self(openat(parent.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!self) return sys_error("open " + printable(name));
    if ((st.st_mode & 0700) != 0700) {
      // fchmod does not take an O_PATH descriptor; the name in /proc is that descriptor and nothing else.
      std::string proc = "/proc/self/fd/" + std::to_string(self.get());
      chmod(proc.c_str(), 0700);
    }
    if (depth > kRemoveDepth) {
      std::string aside = ".removing." + std::to_string(getpid()) + "." + std::to_string(moved++);
      if (renameat(parent.get(), name.c_str(), top.get(), aside.c_str()) != 0) return sys_error("move " + printable(name));
      later.push_back(aside);
      return {};
    }
    UniqueFd fd(openat(self.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return sys_error("open " + printable(name));
    for (const DirectoryEntry& e : H5I_TRY(list_directory(fd))) {
      if (e.type != DT_DIR && e.type != DT_UNKNOWN) {
        if (unlinkat(fd.get(), e.name.c_str(), 0) != 0 && errno != ENOENT) return sys_error("remove " + printable(e.name));
      } else {
        H5I_TRY(directory(fd, e.name, depth + 1));
      }
    }
    if (unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return sys_error("remove " + printable(name));
    return {};
  }
};

}  // namespace

Result<void> remove_tree(const UniqueFd& dir, const std::string& name) {
  struct stat st{};
  if (fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? Result<void>{} : sys_error("stat " + printable(name));
  Remover r{dir, st.st_dev, 0, {}};
  H5I_TRY(r.directory(dir, name, 0));
  while (!r.later.empty()) {
    std::string next = std::move(r.later.back());
    r.later.pop_back();
    H5I_TRY(r.directory(dir, next, 0));
  }
  return {};
}

}  // namespace h5i::os
