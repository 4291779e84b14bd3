#include "core/os/owned_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <climits>
#include <cstdlib>

#include "core/os/beneath.hpp"

namespace h5i::os {
namespace {

std::string octal(unsigned mode) {
  char buf[16];
  snprintf(buf, sizeof buf, "%04o", mode & 07777);
  return buf;
}

Result<void> check_owner(const UniqueFd& fd, const std::string& name, uint32_t uid, bool directory, Errc refusal) {
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return sys_error("stat " + name);
  if (!directory && !S_ISREG(st.st_mode)) return make_error(refusal, name + " is not a regular file", "mode " + octal(st.st_mode));
  if (st.st_uid != 0 && st.st_uid != uid)
    return make_error(refusal, name + " belongs to somebody else", "owner " + std::to_string(st.st_uid) + ", expected 0 or " + std::to_string(uid));
  if (st.st_mode & 022)
    return make_error(refusal, name + " can be written by others", "mode " + octal(st.st_mode));
  return {};
}

// Whoever may write a directory on the way may put another one in its place. In a sticky one (/tmp) that is only for the
// owner of what lies there, and the next directory's owner is looked at in turn.
Result<void> check_ancestors(const std::string& directory, uint32_t uid, Errc refusal) {
  for (size_t slash = directory.rfind('/'); slash != std::string::npos && directory.size() > 1; slash = slash ? directory.rfind('/', slash - 1) : std::string::npos) {
    std::string above = slash ? directory.substr(0, slash) : "/";
    struct stat st{};
    if (::lstat(above.c_str(), &st) != 0) return sys_error("stat " + above);
    bool writable = (st.st_mode & 022) && !(st.st_mode & S_ISVTX);
    if ((st.st_uid != 0 && st.st_uid != uid) || writable)
      return make_error(refusal, above + ", on the way to " + directory + ", can be written by others",
                        "owner " + std::to_string(st.st_uid) + ", mode " + octal(st.st_mode));
  }
  return {};
}

}  // namespace

Result<std::optional<std::string>> read_owned_file(const std::string& path, uint32_t uid, uint64_t limit, Errc refusal) {
  size_t slash = path.rfind('/');
  std::string parent = slash == 0 ? "/" : path.substr(0, slash), name = path.substr(slash + 1);
  char real[PATH_MAX];  // links above are the owner's own; what they lead to is judged
  if (::realpath(parent.c_str(), real)) parent = real;
  auto dir = open_directory(parent);
  if (!dir) {
    if (dir.error().sys_errno == ENOENT || dir.error().sys_errno == ENOTDIR) return std::optional<std::string>();
    return std::move(dir).error();
  }
  auto fd = open_beneath(*dir, name, O_RDONLY | O_NONBLOCK);
  if (!fd) {
    if (fd.error().sys_errno == ENOENT) return std::optional<std::string>();
    if (fd.error().code == Errc::PATH_ESCAPE) return make_error(refusal, path + " is a symbolic link", "the file itself must lie there");
    return std::move(fd).error();
  }
  H5I_TRY(check_ancestors(parent, uid, refusal));
  H5I_TRY(check_owner(*dir, parent, uid, true, refusal));
  H5I_TRY(check_owner(*fd, path, uid, false, refusal));
  auto bytes = read_all(*fd, limit);
  if (!bytes && bytes.error().code == Errc::TOO_LARGE)
    return make_error(refusal, path + " is too large", "limit " + std::to_string(limit) + " bytes");
  if (!bytes) return std::move(bytes).error();
  return std::optional(std::move(*bytes));
}

Result<void> check_owned_directory(const std::string& path, uint32_t uid, Errc refusal) {
  char real[PATH_MAX];
  if (!::realpath(path.c_str(), real)) return sys_error("resolve " + path);
  UniqueFd dir = H5I_TRY(open_directory(real));
  H5I_TRY(check_ancestors(real, uid, refusal));
  return check_owner(dir, real, uid, true, refusal);
}

}  // namespace h5i::os
