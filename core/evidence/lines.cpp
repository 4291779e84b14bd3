#include "core/evidence/lines.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "core/base/text.hpp"
#include "core/evidence/record.hpp"

namespace h5i::evidence {
namespace {
constexpr size_t kFirst = 1u << 12, kChunk = 1u << 16;  // of one read: who wants one line has it with the first
}

Result<LineReader> LineReader::open(const std::string& path) {
  LineReader r;
  // O_NONBLOCK: a fifo in the file's place must not hang us before the type is known.
  r.fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!r.fd_) return sys_error("cannot open " + printable(path));
  struct stat st {};
  if (fstat(r.fd_.get(), &st) != 0) return sys_error("cannot examine " + printable(path));
  if (!S_ISREG(st.st_mode)) return make_error(Errc::INVALID, printable(path) + " is not a log", "not a regular file");
  // A file system without locks still has a size.
  bool locked = false;
  while (!(locked = flock(r.fd_.get(), LOCK_SH) == 0) && errno == EINTR) {
  }
  if (fstat(r.fd_.get(), &st) != 0) return sys_error("cannot examine " + printable(path));
  if (locked) flock(r.fd_.get(), LOCK_UN);
  r.size_ = static_cast<uint64_t>(st.st_size);
  return r;
}

void LineReader::seek(uint64_t offset) {
  read_ = offset;
  buf_.clear();
  at_ = piece_ = 0;
}

Result<bool> LineReader::fill() {
  if (read_ >= size_) return false;
  if (at_ > 0) {
    buf_.erase(0, at_);
    at_ = 0;
  }
  piece_ = std::clamp(2 * piece_, kFirst, kChunk);
  size_t old = buf_.size(), want = static_cast<size_t>(std::min<uint64_t>(piece_, size_ - read_));
  buf_.resize(old + want);
  ssize_t n;
  do n = pread(fd_.get(), buf_.data() + old, want, static_cast<off_t>(read_));
  while (n < 0 && errno == EINTR);
  if (n < 0) return sys_error("cannot read the log");
  buf_.resize(old + static_cast<size_t>(n));
  read_ += static_cast<uint64_t>(n);
  if (n == 0) size_ = read_;  // cut while we read
  return n > 0;
}

Result<bool> LineReader::next(Line* out) {
  *out = {};
  size_t seen = 0;  // bytes after at_ that hold no newline
  for (;;) {
    auto* found = static_cast<const char*>(memchr(buf_.data() + at_ + seen, '\n', buf_.size() - at_ - seen));
    if (found || buf_.size() - at_ > kMaxLine) {
      size_t end = found ? static_cast<size_t>(found - buf_.data()) : buf_.size();
      out->offset = read_ - (buf_.size() - at_);
      out->text = std::string_view(buf_).substr(at_, std::min(end - at_, kMaxLine));
      if (end - at_ <= kMaxLine) {
        at_ = end + 1;
        return true;
      }
      break;  // too long
    }
    seen = buf_.size() - at_;
    if (H5I_TRY(fill())) continue;
    if (at_ == buf_.size()) return false;
    out->offset = read_ - (buf_.size() - at_);
    out->text = std::string_view(buf_).substr(at_);
    out->complete = false;
    at_ = buf_.size();
    return true;
  }
  // Keep the beginning, skip the rest without holding it.
  out->too_long = true;
  std::string beginning(out->text);
  for (;;) {
    auto* found = static_cast<const char*>(memchr(buf_.data() + at_, '\n', buf_.size() - at_));
    if (found) {
      at_ = static_cast<size_t>(found - buf_.data()) + 1;
      break;
    }
    at_ = buf_.size();
    if (!H5I_TRY(fill())) {
      out->complete = false;
      break;
    }
  }
  long_ = std::move(beginning);
  out->text = long_;
  return true;
}

}  // namespace h5i::evidence
