#include "core/policy/owned_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/os/beneath.hpp"

namespace h5i::policy {
namespace {

std::string octal(unsigned mode) {
  char buf[16];
  snprintf(buf, sizeof buf, "%04o", mode & 07777);
  return buf;
}

Result<void> check_owner(const UniqueFd& fd, const std::string& name, uint32_t uid, bool directory) {
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return sys_error("stat " + name);
  if (!directory && !S_ISREG(st.st_mode)) return make_error(Errc::POLICY_HOST_FILE, name + " is not a regular file", "mode " + octal(st.st_mode));
  if (st.st_uid != 0 && st.st_uid != uid)
    return make_error(Errc::POLICY_HOST_FILE, name + " belongs to somebody else", "owner " + std::to_string(st.st_uid) + ", expected 0 or " + std::to_string(uid));
  if (st.st_mode & 022)
    return make_error(Errc::POLICY_HOST_FILE, name + " can be written by others", "mode " + octal(st.st_mode));
  return {};
}

}  // namespace

Result<std::optional<std::string>> read_owned_file(const std::string& path, uint32_t uid, uint64_t limit) {
  size_t slash = path.rfind('/');
  std::string parent = slash == 0 ? "/" : path.substr(0, slash), name = path.substr(slash + 1);
  auto dir = os::open_directory(parent);
  if (!dir) {
    if (dir.error().sys_errno == ENOENT || dir.error().sys_errno == ENOTDIR) return std::optional<std::string>();
    return std::move(dir).error();
  }
  auto fd = os::open_beneath(*dir, name, O_RDONLY | O_NONBLOCK);
  if (!fd) {
    if (fd.error().sys_errno == ENOENT) return std::optional<std::string>();
    if (fd.error().code == Errc::PATH_ESCAPE) return make_error(Errc::POLICY_HOST_FILE, path + " is a symbolic link", "the file itself must lie there");
    return std::move(fd).error();
  }
  H5I_TRY(check_owner(*dir, parent, uid, true));
  H5I_TRY(check_owner(*fd, path, uid, false));
  auto bytes = os::read_all(*fd, limit);
  if (!bytes && bytes.error().code == Errc::TOO_LARGE)
    return make_error(Errc::POLICY_HOST_FILE, path + " is too large", "limit " + std::to_string(limit) + " bytes");
  if (!bytes) return std::move(bytes).error();
  return std::optional(std::move(*bytes));
}

}  // namespace h5i::policy
