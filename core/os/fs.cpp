#include "core/os/fs.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/text.hpp"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

namespace h5i::os {
namespace {

constexpr uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

// openat2 answers EAGAIN when a rename or mount elsewhere made the walk uncertain; trying again is the documented cure.
int openat2_retry(int dir, const char* path, int flags, mode_t mode, uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0;
  how.resolve = resolve;
  for (int i = 0;; i++) {
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || i == 64) return static_cast<int>(fd);
  }
}

Error open_error(std::string_view path, int err) {
  if (err == ELOOP || err == EXDEV)
    return make_error(Errc::PATH_ESCAPE, "refused to open " + printable(path),
                      err == ELOOP ? "a symbolic link is on the way" : "the path leaves its directory");
  return sys_error("open " + printable(path), err);
}

bool has_nul(std::string_view s) { return s.find('\0') != std::string_view::npos; }

}  // namespace

Result<UniqueFd> open_dir(const std::string& path, bool no_links) {
  int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  int fd = no_links ? openat2_retry(AT_FDCWD, path.c_str(), flags, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
                    : open(path.c_str(), flags);
  if (fd < 0) return open_error(path, errno);
  return UniqueFd(fd);
}

Result<UniqueFd> open_no_links(const std::string& path, int flags, mode_t mode) {
  if (path.empty() || path[0] != '/' || has_nul(path))
    return make_error(Errc::INVALID, "not an absolute path: " + printable(path));
  int fd = openat2_retry(AT_FDCWD, path.c_str(), flags, mode, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (fd < 0) return open_error(path, errno);
  return UniqueFd(fd);
}

Result<UniqueFd> open_beneath(int dir, const std::string& rel, int flags, mode_t mode) {
  if (rel.empty() || has_nul(rel)) return make_error(Errc::INVALID, "not a path: " + printable(rel));
  int fd = openat2_retry(dir, rel.c_str(), flags, mode, kBeneath);
  if (fd < 0) return open_error(rel, errno);
  return UniqueFd(fd);
}

Result<struct stat> stat_fd(int fd) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return sys_error("fstat");
  return st;
}

Result<std::string> read_fd(int fd, size_t limit, std::string_view what) {
  std::string out;
  char buf[16384];
  for (;;) {
    ssize_t n = read(fd, buf, sizeof buf);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read " + printable(what));
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > limit)
      return make_error(Errc::TOO_LARGE, printable(what) + " is too large",
                        "limit " + std::to_string(limit) + " bytes");
    out.append(buf, static_cast<size_t>(n));
  }
}

Result<std::string> read_file(const std::string& path, size_t limit) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return open_error(path, errno);
  return read_fd(fd.get(), limit, path);
}

Result<std::string> read_beneath(int dir, const std::string& rel, size_t limit) {
  // O_NONBLOCK: a fifo that a box left under an expected name must not hold the host; it reads as empty then.
  auto fd = H5I_TRY(open_beneath(dir, rel, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  auto st = H5I_TRY(stat_fd(fd.get()));
  if (!S_ISREG(st.st_mode)) return make_error(Errc::INVALID, printable(rel) + " is not a regular file");
  return read_fd(fd.get(), limit, rel);
}

Result<void> write_all(int fd, std::string_view b) {
  while (!b.empty()) {
    ssize_t n = write(fd, b.data(), b.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("write");
    b.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

namespace {
// Kernels before 6.3 know neither MFD_EXEC nor MFD_NOEXEC_SEAL and answer EINVAL; their memfds are always executable.
int memfd(const char* name, bool executable) {
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = memfd_create(name, flags | (executable ? MFD_EXEC : MFD_NOEXEC_SEAL));
  if (fd < 0 && errno == EINVAL) fd = memfd_create(name, flags);
  return fd;
}

Result<UniqueFd> seal(UniqueFd fd, bool executable) {
  if (fchmod(fd.get(), executable ? 0111 : 0400) != 0) return sys_error("fchmod of a memfd");
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return sys_error("seal a memfd");
  if (lseek(fd.get(), 0, SEEK_SET) < 0) return sys_error("rewind a memfd");
  return fd;
}

Result<UniqueFd> open_memfd(const char* name, bool executable) {
  UniqueFd fd(memfd(name, executable));
  if (fd) return fd;
  if (errno == EACCES)
    return make_error(Errc::UNSUPPORTED, "no executable memfd on this host", "vm.memfd_noexec is 2",
                      "sysctl vm.memfd_noexec=1 or lower");
  return sys_error("memfd_create");
}
}  // namespace

Result<UniqueFd> sealed_memfd(const char* name, std::string_view bytes, bool executable) {
  auto fd = H5I_TRY(open_memfd(name, executable));
  H5I_TRY(write_all(fd.get(), bytes));
  return seal(std::move(fd), executable);
}

Result<UniqueFd> sealed_copy(int from, const char* name, size_t limit, bool executable) {
  auto fd = H5I_TRY(open_memfd(name, executable));
  std::string buf(1 << 16, '\0');
  uint64_t at = 0;
  for (;;) {
    ssize_t n = pread(from, buf.data(), buf.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read the file to copy");
    if (n == 0) break;
    at += static_cast<uint64_t>(n);
    if (at > limit) return make_error(Errc::TOO_LARGE, "file to copy is too large", std::to_string(limit) + " bytes");
    H5I_TRY(write_all(fd.get(), {buf.data(), static_cast<size_t>(n)}));
  }
  return seal(std::move(fd), executable);
}

bool is_sealed(int fd) {
  int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals;
}

}  // namespace h5i::os
