// The box's lock: flock(2), which the kernel releases when its holder dies, however it dies.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"
#include "core/session/box.hpp"

namespace h5i::session {
namespace {

constexpr uint64_t kHolderLimit = 4096;

std::string name_of(const BoxPaths& paths) {
  size_t slug = paths.dir.rfind('/');
  size_t agent = slug == std::string::npos || slug == 0 ? std::string::npos : paths.dir.rfind('/', slug - 1);
  return agent == std::string::npos ? paths.dir : paths.dir.substr(agent + 1);
}

std::string holder_of(const UniqueFd& dir) {
  // The holder writes its line right after it took the lock; a second look covers that moment.
  for (int attempt = 0; attempt < 2; attempt++) {
    auto text = os::read_file_beneath(dir, "lock", kHolderLimit);
    auto holder = text ? json::parse(*text) : std::nullopt;
    if (holder && (*holder)["pid"].is_int())
      return "process " + std::to_string((*holder)["pid"].integer()) + " (h5i " + printable((*holder)["verb"].string(), {.limit = 80}) +
             ") has it since " + printable((*holder)["since"].string(), {.limit = 40});
    timespec pause{0, 20'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return "another process has its lock";
}

}  // namespace

Result<BoxLock> BoxLock::acquire(const BoxPaths& paths, std::string_view verb) {
  auto dir = os::open_directory(paths.dir);
  if (!dir) {
    if (dir.error().code == Errc::NOT_FOUND)
      return make_error(Errc::BOX_NOT_FOUND, "there is no box " + printable(name_of(paths)), printable(paths.dir));
    return std::move(dir).error();
  }
  BoxLock lock;
  lock.fd_ = H5I_TRY(os::open_beneath(*dir, "lock", O_RDWR | O_CREAT, 0600));
  while (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return sys_error("lock " + printable(paths.lock()));
    return make_error(Errc::BOX_BUSY, "the box " + printable(name_of(paths)) + " is in use", holder_of(*dir));
  }
  // Between open and flock the box may have been removed; a lock on a file that has no name holds nothing.
  struct stat st{};
  if (::fstat(lock.fd_.get(), &st) != 0 || st.st_nlink == 0)
    return make_error(Errc::BOX_NOT_FOUND, "the box " + printable(name_of(paths)) + " was removed meanwhile", printable(paths.dir));
  std::string holder = json::canonical(json::Object{
      {"pid", static_cast<int64_t>(::getpid())}, {"verb", verb}, {"since", rfc3339(realtime_ns())}});
  if (::ftruncate(lock.fd_.get(), 0) == 0) H5I_TRY(os::write_all(lock.fd_, holder));
  return lock;
}

BoxLock::~BoxLock() {
  if (fd_) ::flock(fd_.get(), LOCK_UN);
}

}  // namespace h5i::session
