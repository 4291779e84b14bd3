#include "core/evidence/log.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/evidence/files.hpp"
#include "core/evidence/record.hpp"

namespace h5i::evidence {
namespace {

constexpr int64_t kLockWaitNs = 30'000'000'000;  // a holder that is stopped must not hang every command for ever

Error write_error(const std::string& path, Error cause) {
  Error e = make_error(Errc::LOG_WRITE, "cannot write the log " + printable(path), cause.what + ": " + cause.evidence);
  e.sys_errno = cause.sys_errno;
  return e;
}

class FileLock {
 public:
  static Result<FileLock> take(int fd) {
    int64_t deadline = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return sys_error("flock");
      int64_t now = monotonic_ns();
      if (deadline == 0) deadline = now + kLockWaitNs;
      if (now >= deadline) return sys_error("flock: another process holds the lock", ETIMEDOUT);
      timespec nap{0, 200'000};
      nanosleep(&nap, nullptr);
    }
    return FileLock(fd);
  }
  FileLock(FileLock&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  ~FileLock() {
    if (fd_ >= 0) flock(fd_, LOCK_UN);
  }

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

Result<std::string> read_range(int fd, uint64_t from, uint64_t to) {
  std::string out(static_cast<size_t>(to - from), '\0');
  size_t got = 0;
  while (got < out.size()) {
    ssize_t n = pread(fd, out.data() + got, out.size() - got, static_cast<off_t>(from + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read");
    if (n == 0) return sys_error("read: the file became shorter", EIO);
    got += static_cast<size_t>(n);
  }
  return out;
}

// Offset just after the last newline before `end`; 0 when there is none.
Result<uint64_t> line_start(int fd, uint64_t end) {
  while (end > 0) {
    uint64_t from = end > 4096 ? end - 4096 : 0;
    std::string part = H5I_TRY(read_range(fd, from, end));
    size_t at = part.rfind('\n');
    if (at != std::string::npos) return from + at + 1;
    end = from;
  }
  return uint64_t{0};
}

Result<std::string> digest_range(int fd, uint64_t from, uint64_t to) {
  Sha256 h;
  while (from < to) {
    uint64_t stop = std::min<uint64_t>(to, from + (1u << 16));
    h.update(H5I_TRY(read_range(fd, from, stop)));
    from = stop;
  }
  Digest d = h.finish();
  return hex(d.data(), d.size());
}

// The head from the last complete line, which ends (with its newline) at `end`.
Result<Head> head_at(int fd, uint64_t end) {
  uint64_t start = H5I_TRY(line_start(fd, end - 1));
  if (end - start > kMaxLine + 1)
    return make_error(Errc::CORRUPT, "the log's last line is no record", "longer than a record can be");
  std::string line = H5I_TRY(read_range(fd, start, end - 1));
  Json v = H5I_TRY(parse_json(line, "the log's last line", kMaxLine));
  RecordLink link = H5I_TRY(record_link(v));
  return Head{link.log_id, link.seq + 1, sha256_hex(line)};
}

Result<void> sync_parent(const std::string& path) {
  std::string dir = parent_directory(path);
  UniqueFd d(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!d) return sys_error("open the log's directory");
  if (fsync(d.get()) != 0) return sys_error("fsync of the log's directory");
  return {};
}

Result<uint64_t> size_of(int fd) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return sys_error("fstat");
  if (!S_ISREG(st.st_mode)) return sys_error("not a regular file", EINVAL);
  if (st.st_nlink == 0) return sys_error("the log was removed", ENOENT);
  return static_cast<uint64_t>(st.st_size);
}

}  // namespace

Result<Log> Log::open(const std::string& path) {
  Log log;
  log.path_ = path;
  int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  log.fd_.reset(::open(path.c_str(), flags));
  if (!log.fd_ && errno == ENOENT) {
    log.fd_.reset(::open(path.c_str(), flags | O_CREAT, 0600));
    if (log.fd_)
      if (auto r = sync_parent(path); !r) return write_error(path, r.error());
  }
  if (!log.fd_) return write_error(path, sys_error("open"));
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) log.size_limit_ = limit.rlim_cur;

  auto lock = FileLock::take(log.fd_.get());
  if (!lock) return write_error(path, lock.error());
  if (auto r = log.refresh(); !r) return std::move(r).error();
  return log;
}

// Caller holds the lock. Takes over what other processes wrote, and cuts what a crash left half-written.
Result<void> Log::refresh() {
  auto size = size_of(fd_.get());
  if (!size) return write_error(path_, size.error());
  if (*size == end_ && !head_.log_id.empty()) return {};
  if (*size < end_)
    return make_error(Errc::LOG_TRUNCATED, "the log " + printable(path_) + " became shorter",
                      std::to_string(*size) + " bytes, " + std::to_string(end_) + " before");

  auto end = line_start(fd_.get(), *size);
  if (!end) return write_error(path_, end.error());
  uint64_t torn = *size - *end;
  std::string torn_digest;
  if (torn > 0) {
    auto d = digest_range(fd_.get(), *end, *size);
    if (!d) return write_error(path_, d.error());
    torn_digest = std::move(*d);
  }

  Head now;
  if (*end > 0) {
    auto h = head_at(fd_.get(), *end);
    if (!h)
      return make_error(Errc::CORRUPT, "the log " + printable(path_) + " cannot be continued",
                        h.error().what + ": " + h.error().evidence);
    now = std::move(*h);
    if (head_.count > 0 && now.log_id != head_.log_id)
      return make_error(Errc::LOG_FOREIGN, "the log " + printable(path_) + " now ends in a record of another log",
                        now.log_id);
  } else {
    // Nobody has written yet: whoever writes first decides the id.
    unsigned char id[16];
    H5I_TRY(random_bytes(id, sizeof id));
    now.log_id = hex(id, sizeof id);
    now.digest = first_prev(now.log_id);
  }
  head_ = std::move(now);
  end_ = *end;
  if (torn == 0) return {};
  if (ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0)
    return write_error(path_, sys_error("ftruncate of a torn line"));
  Record r;
  r.kind = "torn";
  r.body = json::Object{{"bytes", torn}, {"sha256", torn_digest}};
  return write_record(r);
}

// Caller holds the lock and has refreshed.
Result<void> Log::write_record(const Record& r) {
  std::string line = H5I_TRY(record_line(r, head_, realtime_ns()));
  Head next{head_.log_id, head_.count + 1, sha256_hex(line)};
  line += '\n';
  // Beyond the limit the kernel would send SIGXFSZ, which ends a process that has not asked to see the error.
  if (line.size() > size_limit_ || end_ > size_limit_ - line.size())
    return write_error(path_, sys_error("write: the file size limit of this process", EFBIG));
  size_t done = 0;
  while (done < line.size()) {
    ssize_t n = write(fd_.get(), line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      Error e = sys_error("write", n < 0 ? errno : EIO);
      // If this fails as well, the next one that opens the log finds a torn line and cuts it.
      if (done > 0 && ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0)
        e.evidence += ", and cutting the torn line failed";
      return write_error(path_, std::move(e));
    }
    done += static_cast<size_t>(n);
  }
  end_ += line.size();
  head_ = std::move(next);
  return {};
}

Result<Head> Log::append(const Record& r) {
  auto lock = FileLock::take(fd_.get());
  if (!lock) return write_error(path_, lock.error());
  H5I_TRY(refresh());
  H5I_TRY(write_record(r));
  return head_;
}

Result<Head> read_head(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return sys_error("cannot open " + printable(path));
  uint64_t size = H5I_TRY(size_of(fd.get()));
  uint64_t end = H5I_TRY(line_start(fd.get(), size));
  if (end == 0) return Head{};
  return head_at(fd.get(), end);
}

Result<void> Log::reserve(uint64_t bytes) {
  if (end_ + bytes <= reserved_) return {};
  const uint64_t more = bytes + (64u << 10);  // so that not every record asks
  int r;
  do r = fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(end_), static_cast<off_t>(more));
  while (r != 0 && errno == EINTR);
  if (r != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return write_error(path_, sys_error("set room aside for the log"));
  reserved_ = end_ + more;
  return {};
}

Result<void> Log::flush() {
  if (fdatasync(fd_.get()) != 0) return write_error(path_, sys_error("fdatasync"));
  return {};
}

}  // namespace h5i::evidence
