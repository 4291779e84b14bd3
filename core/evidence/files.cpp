#include "core/evidence/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::evidence {
namespace {

Result<void> flush_directory(const std::string& dir) {
  UniqueFd d(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!d) return sys_error("cannot open " + printable(dir));
  if (fsync(d.get()) != 0) return sys_error("cannot flush " + printable(dir));
  return {};
}

}  // namespace

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return sys_error("write", n < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<std::string> read_small_file(const std::string& path, size_t limit, FileFacts* facts) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return sys_error("cannot open " + printable(path));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return sys_error("cannot examine " + printable(path));
  if (!S_ISREG(st.st_mode)) return make_error(Errc::INVALID, printable(path) + " is not a regular file");
  if (facts) *facts = {st.st_mode, st.st_uid};
  std::string out;
  char buf[4096];
  for (;;) {
    ssize_t n = read(fd.get(), buf, sizeof buf);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("cannot read " + printable(path));
    if (n == 0) return out;
    out.append(buf, static_cast<size_t>(n));
    if (out.size() > limit)
      return make_error(Errc::TOO_LARGE, printable(path) + " is too large",
                        "limit " + std::to_string(limit) + " bytes");
  }
}

Result<void> replace_file(const std::string& path, std::string_view bytes, mode_t mode) {
  UniqueFd dir = H5I_TRY(os::open_directory(parent_directory(path)));
  return os::replace_file(dir, path.substr(path.rfind('/') + 1), bytes, mode);
}

Result<void> create_file(const std::string& path, std::string_view bytes, mode_t mode) {
  UniqueFd dir = H5I_TRY(os::open_directory(parent_directory(path)));
  std::string name = path.substr(path.rfind('/') + 1);
  auto file = os::open_nameless(dir, mode);
  if (file) {
    H5I_TRY(write_all(file->get(), bytes));
    if (fsync(file->get()) != 0) return sys_error("cannot flush " + printable(path));
    auto named = os::give_name(*file, dir, name);
    if (named) return flush_directory(parent_directory(path));
    if (named.error().code == Errc::EXISTS) return named;
  }
  // This file system has no files without a name, or /proc is covered. link(2), unlike rename(2), refuses an existing name.
  std::string temporary = "." + name + "." + H5I_TRY(new_session_id()).value;
  H5I_TRY(os::replace_file(dir, temporary, bytes, mode));
  int r = linkat(dir.get(), temporary.c_str(), dir.get(), name.c_str(), 0);
  Error e = sys_error("cannot create " + printable(path));
  unlinkat(dir.get(), temporary.c_str(), 0);
  if (r != 0) return e;
  return flush_directory(parent_directory(path));
}

Result<void> make_directories(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("cannot create " + printable(part));
    if (at == std::string::npos) return {};
  }
}

std::string parent_directory(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace h5i::evidence
