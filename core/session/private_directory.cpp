// Directories of h5i's own: made 0700 from the top, never taken over from somebody else.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"
#include "core/session/box.hpp"

namespace h5i::session {

Result<UniqueFd> make_private_directory(const std::string& path) {
  if (path.empty() || path[0] != '/') return make_error(Errc::INVALID, "not an absolute path", printable(path));
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("make directory " + printable(part));
    if (slash == std::string::npos) break;
  }
  UniqueFd fd = H5I_TRY(os::open_directory(path));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return sys_error("stat " + printable(path));
  if (st.st_uid != ::geteuid())
    return make_error(Errc::DENIED, "the directory belongs to somebody else: " + printable(path),
                      "owner " + std::to_string(st.st_uid) + ", you are " + std::to_string(::geteuid()));
  if ((st.st_mode & 077) != 0 && ::fchmod(fd.get(), st.st_mode & 0700) != 0) return sys_error("set the mode of " + printable(path));
  return fd;
}

}  // namespace h5i::session
