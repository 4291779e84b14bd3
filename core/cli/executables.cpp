#include "core/cli/executables.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

extern char** environ;

namespace h5i::cli {
namespace {

Result<std::string> own_path() {
  char buffer[PATH_MAX];
  ssize_t n = ::readlink("/proc/self/exe", buffer, sizeof buffer);
  if (n < 0) return sys_error("read /proc/self/exe");
  return std::string(buffer, static_cast<size_t>(n));
}

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

std::string last_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Result<std::string> install_prefix() {
  std::string folder = parent_of(H5I_TRY(own_path()));
  if (last_of(folder) == "h5i" && last_of(parent_of(folder)) == "libexec") return parent_of(parent_of(folder));
  if (last_of(folder) == "bin") return parent_of(folder);
  return make_error(Errc::NOT_FOUND, "this executable does not lie in bin/ or libexec/h5i/ of an installation", folder,
                    "install it with cmake --install");
}

Result<std::string> executable_path(const std::string& name) {
  std::string prefix = H5I_TRY(install_prefix());
  return prefix + (name == "h5i" ? "/bin/h5i" : "/libexec/h5i/" + name);
}

bool executable_present(const std::string& name) {
  auto path = executable_path(name);
  return path && ::access(path->c_str(), X_OK) == 0;
}

Result<UniqueFd> open_executable(const std::string& name) {
  std::string path = H5I_TRY(executable_path(name));
  UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    if (errno == ENOENT)
      return make_error(Errc::NOT_FOUND, "the executable " + name + " is not installed", path,
                        "install the package that holds it");
    return sys_error("open " + path);
  }
  struct stat st{}, own{};
  if (::fstat(fd.get(), &st) != 0) return sys_error("stat " + path);
  if (::stat("/proc/self/exe", &own) != 0) return sys_error("stat /proc/self/exe");
  if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
    return make_error(Errc::DENIED, "the executable " + name + " is not an executable file", path);
  if ((st.st_uid != 0 && st.st_uid != own.st_uid) || (st.st_mode & 022) != 0)
    return make_error(Errc::DENIED, "somebody else may write the executable " + name, path,
                      "it must belong to root or to the owner of h5i, and not be writable by others");
  return fd;
}

Error exec_executable(const std::string& name, char** argv) {
  auto fd = open_executable(name);
  if (!fd) return std::move(fd).error();
  ::execveat(fd->get(), "", argv, environ, AT_EMPTY_PATH);
  return sys_error("execute " + name);
}

}  // namespace h5i::cli
