#include "core/git/packed_refs.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

constexpr const char* kFile = "packed-refs";
constexpr const char* kLock = "packed-refs.lock";
constexpr std::string_view kMark = "h5i refs\n";
constexpr uint64_t kMaxPacked = 256u << 20;
constexpr int kTries = 100;  // 10 ms apart: git waits a second for this lock as well

// `text` without the line "HEX ref" and the peeled value that may follow it; false when there is none.
bool without(const std::string& text, const std::string& ref, std::string* out) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    size_t space = line.find(' ');
    size_t next = std::min(end + 1, text.size());
    if (!line.starts_with('#') && space != std::string_view::npos && line.substr(space + 1) == ref) {
      if (next < text.size() && text[next] == '^') next = std::min(text.find('\n', next), text.size() - 1) + 1;
      *out = text.substr(0, at) + text.substr(next);
      return true;
    }
    at = next;
  }
  return false;
}

// Ours is locked from before it has its name: who can lock it knows that its owner is dead.
void clear_dead(const UniqueFd& dir) {
  auto fd = os::open_beneath(dir, kLock, O_RDONLY | O_NONBLOCK);
  if (!fd) return;
  auto text = os::read_all(*fd, kMark.size());
  if (!text || *text != kMark || flock(fd->get(), LOCK_EX | LOCK_NB) != 0) return;
  struct stat held{}, named{};
  if (fstat(fd->get(), &held) != 0 || fstatat(dir.get(), kLock, &named, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (held.st_dev != named.st_dev || held.st_ino != named.st_ino) return;  // that one is gone already
  os::remove_dead_files(dir);
  unlinkat(dir.get(), kLock, 0);
}

class Lock {
 public:
  static Result<Lock> take(const UniqueFd& dir, const std::string& where) {
    for (int i = 0; i < kTries; i++) {
      clear_dead(dir);
      Result<UniqueFd> fd = os::open_nameless(dir, 0644);
      bool nameless = fd.ok();
      if (!fd) fd = UniqueFd(openat(dir.get(), kLock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
      if (!*fd && errno != EEXIST) return sys_error("lock the packed refs");
      if (*fd) {
        (void)flock(fd->get(), LOCK_EX | LOCK_NB);
        Lock lock(dir, std::move(*fd), !nameless);
        H5I_TRY(os::write_all(lock.fd_, kMark));
        Result<void> named = nameless ? os::give_name(lock.fd_, dir, kLock) : Result<void>{};
        lock.named_ = lock.named_ || named.ok();
        if (named) return lock;
        if (named.error().sys_errno != EEXIST) return std::move(named).error();
      }
      timespec pause{0, 10'000'000};
      nanosleep(&pause, nullptr);
    }
    return make_error(Errc::BUSY, "the packed refs are locked by another git program", printable(where) + "/" + kLock, "wait for it; remove the file when none runs");
  }
  Lock(Lock&& o) noexcept : dir_(o.dir_), fd_(std::move(o.fd_)), named_(std::exchange(o.named_, false)) {}
  ~Lock() {
    if (named_) unlinkat(dir_.get(), kLock, 0);
  }

 private:
  Lock(const UniqueFd& dir, UniqueFd fd, bool named) : dir_(dir), fd_(std::move(fd)), named_(named) {}
  const UniqueFd& dir_;
  UniqueFd fd_;
  bool named_;
};

}  // namespace

Result<void> remove_packed_ref(const std::string& common_dir, const std::string& ref) {
  UniqueFd dir = H5I_TRY(os::open_directory(common_dir));
  auto text = os::read_file_beneath(dir, kFile, kMaxPacked);
  std::string rest;
  if (!text) return text.error().sys_errno == ENOENT ? Result<void>{} : Result<void>(std::move(text).error());
  if (!without(*text, ref, &rest)) return {};
  Lock lock = H5I_TRY(Lock::take(dir, common_dir));
  struct stat st{};
  if (fstatat(dir.get(), kFile, &st, AT_SYMLINK_NOFOLLOW) != 0) return sys_error("look at the packed refs");
  if (!without(H5I_TRY(os::read_file_beneath(dir, kFile, kMaxPacked)), ref, &rest)) return {};
  return os::replace_file(dir, kFile, rest, st.st_mode & 0777);
}

void clear_dead_packed_lock(const std::string& common_dir) {
  if (auto dir = os::open_directory(common_dir)) clear_dead(*dir);
}

}  // namespace h5i::git
