#include "core/git/shape.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

constexpr int kMaxDepth = 64;

Result<void> check_kind(const std::string& path, unsigned mode, bool directory_fits) {
  if (S_ISREG(mode) || (directory_fits && S_ISDIR(mode))) return {};
  if (S_ISLNK(mode)) return make_error(Errc::GIT_REDIRECTED, "a symbolic link lies where git writes none", printable(path), "replace the link by what it leads to");
  return make_error(Errc::GIT_UNSUPPORTED, "a file of the repository is not what it should be", printable(path) + (S_ISDIR(mode) ? " is a directory" : " is neither a file nor a directory"));
}

Result<void> check_folder(const UniqueFd& dir, const std::string& path, int depth) {
  if (depth > kMaxDepth) return make_error(Errc::GIT_UNSUPPORTED, "folders of the repository are nested too deeply", printable(path, {.limit = 300}));
  for (const os::DirectoryEntry& e : H5I_TRY(os::list_directory(dir))) {
    std::string below = path + "/" + e.name;
    unsigned char type = e.type;
    if (type == DT_REG) continue;
    struct stat st{};
    if (type != DT_DIR) {
      if (fstatat(dir.get(), e.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;  // went meanwhile
      H5I_TRY(check_kind(below, st.st_mode, true));
      if (!S_ISDIR(st.st_mode)) continue;
    }
    auto inner = os::open_directory_beneath(dir, e.name);
    if (!inner && inner.error().sys_errno == ENOENT) continue;
    if (!inner) return std::move(inner).error();
    H5I_TRY(check_folder(*inner, below, depth + 1));
  }
  return {};
}

}  // namespace

Result<void> check_shape(const std::string& common_dir, const std::vector<std::string>& object_dirs) {
  UniqueFd dir = H5I_TRY(os::open_directory(common_dir));
  for (const char* name : {"HEAD", "config", "packed-refs", "shallow", "commondir"}) {
    struct stat st{};
    if (fstatat(dir.get(), name, &st, AT_SYMLINK_NOFOLLOW) == 0) H5I_TRY(check_kind(common_dir + "/" + name, st.st_mode, false));
  }
  if (faccessat(dir.get(), "commondir", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
    return make_error(Errc::GIT_REDIRECTED, "the repository names another one for its objects and refs", printable(common_dir) + "/commondir", "remove the file, or use the other repository itself");
  struct stat st{};
  if (fstatat(dir.get(), "refs", &st, AT_SYMLINK_NOFOLLOW) == 0) {
    H5I_TRY(check_kind(common_dir + "/refs", st.st_mode, true));
    UniqueFd refs = H5I_TRY(os::open_directory_beneath(dir, "refs"));
    H5I_TRY(check_folder(refs, common_dir + "/refs", 0));
  }
  for (const std::string& objects : object_dirs) {
    UniqueFd fd = H5I_TRY(os::open_directory(objects));
    H5I_TRY(check_folder(fd, objects, 0));
  }
  return {};
}

std::vector<std::string> borrowed(const std::string& common_dir, const std::vector<std::string>& object_dirs) {
  std::vector<std::string> out;
  for (const std::string& d : object_dirs)
    if (d != common_dir + "/objects") out.push_back(d);
  return out;
}

}  // namespace h5i::git
