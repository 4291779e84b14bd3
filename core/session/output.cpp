#include "core/session/output.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

namespace h5i::session {
namespace {

constexpr size_t kChunk = 64u << 10;         // one read
constexpr size_t kMaxPending = 256u << 10;   // shown bytes that wait for a slow reader before the box has to wait too
constexpr size_t kMirror = 64u << 10;        // at most this of one slot
constexpr size_t kBlockingChunk = 4096;      // PIPE_BUF: poll says writable means that a pipe takes this much at once

bool null_device(const struct stat& st) { return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3); }

}  // namespace

// ---- Capture --------------------------------------------------------------------------------------------------------

Result<Capture> Capture::create(const std::string& dir) {
  Capture c;
  c.file_ = UniqueFd(open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!c.file_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    std::string name = dir + "/.capture-XXXXXX";
    c.file_ = UniqueFd(mkostemp(name.data(), O_CLOEXEC));
    if (c.file_) unlink(name.c_str());
  }
  if (!c.file_) return sys_error("create a capture file in " + dir);
  return c;
}

Result<void> Capture::append(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("write captured output");
    bytes.remove_prefix(static_cast<size_t>(n));
    size_ += static_cast<uint64_t>(n);
  }
  return {};
}

Result<evidence::BlobRef> Capture::store(const std::string& blobs_dir) const {
  if (size_ == 0) return evidence::put_blob(blobs_dir, {});
  void* p = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (p == MAP_FAILED) return sys_error("map captured output");
  auto ref = evidence::put_blob(blobs_dir, std::string_view(static_cast<const char*>(p), size_));
  munmap(p, size_);
  return ref;
}

Result<std::string> Capture::digest() const { return sha256_fd_hex(file_.get()); }

// ---- ShowTarget -----------------------------------------------------------------------------------------------------

ShowTarget::ShowTarget(int fd) {
  struct stat st {};
  if (fstat(fd, &st) < 0) return;  // closed by the caller: there is nobody to show anything to
  terminal_ = isatty(fd);
  socket_ = S_ISSOCK(st.st_mode);
  // O_NONBLOCK belongs to the open file description, which we share with the caller's shell: a description of our own
  // is what we may change. Files keep the shared one, for its offset.
  if (terminal_ || S_ISFIFO(st.st_mode)) {
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    fd_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    nonblocking_ = fd_.valid();
  }
  if (!fd_) fd_ = UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

ssize_t ShowTarget::write(std::string_view bytes) {
  if (!fd_) return -1;
  if (!nonblocking_ && !socket_) bytes = bytes.substr(0, kBlockingChunk);
  for (;;) {
    ssize_t n = socket_ ? send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                        : ::write(fd_.get(), bytes.data(), bytes.size());
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    fd_.reset();
    return -1;
  }
}

// ---- OutputStream ---------------------------------------------------------------------------------------------------

OutputStream::OutputStream(UniqueFd source, ShowTarget target, Capture capture, CaptureBudget* budget, bool capture_on, bool raw)
    : source_(std::move(source)),
      target_(std::move(target)),
      capture_(std::move(capture)),
      budget_(budget),
      capture_on_(capture_on),
      raw_(raw) {
  fcntl(source_.get(), F_SETFL, fcntl(source_.get(), F_GETFL) | O_NONBLOCK);  // the read end is ours alone
}

void OutputStream::poll_entries(pollfd* in, pollfd* out) const {
  bool room = pending_.size() < kMaxPending;
  *in = {source_.valid() && room ? source_.get() : -1, POLLIN, 0};
  // Also without anything to write: poll tells by POLLERR that the reader went away.
  *out = {target_.open() ? target_.fd() : -1, static_cast<short>(pending_.empty() ? 0 : POLLOUT), 0};
}

void OutputStream::show() {
  while (!pending_.empty()) {
    ssize_t n = target_.write(pending_);
    if (n == 0) return;
    if (n < 0) {
      pending_.clear();
      discarded_ = true;
      return;
    }
    pending_.erase(0, static_cast<size_t>(n));
  }
}

// `bytes` as the box wrote them; `end`: nothing follows, so nothing is held back any more.
Result<void> OutputStream::take(std::string_view bytes, bool end) {
  bytes_ += bytes.size();
  if (raw_ && target_.open()) pending_ += bytes;
  if (raw_ && !capture_on_) return {};
  std::string clean = redactor_.feed(bytes);
  if (end) clean += redactor_.finish();
  if (capture_on_) {
    uint64_t keep = std::min<uint64_t>(budget_->left, clean.size());
    if (keep < clean.size()) truncated_ = true;
    budget_->left -= keep;
    if (auto kept = capture_.append(std::string_view(clean).substr(0, keep)); !kept) {
      // The box may have filled the disk on purpose: the run goes on and ends in a receipt that says what was lost.
      lost_ = std::move(kept).error();
      capture_on_ = false;
      truncated_ = true;
    }
  }
  if (raw_ || !target_.open()) return {};
  pending_ += target_.terminal() ? filter_.feed(clean) : clean;
  if (end && target_.terminal()) pending_ += filter_.finish();
  return {};
}

Result<bool> OutputStream::read_once() {
  char buf[kChunk];
  ssize_t n = read(source_.get(), buf, sizeof buf);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && errno == EAGAIN) return false;
  if (n <= 0) {  // the end; of a pty by EIO
    source_.reset();
    H5I_TRY(take({}, true));
    return false;
  }
  H5I_TRY(take(std::string_view(buf, static_cast<size_t>(n)), false));
  return true;
}

Result<void> OutputStream::handle(const pollfd& in, const pollfd& out) {
  if (in.fd >= 0 && in.revents) H5I_TRY(read_once());
  bool gone = out.fd >= 0 && (out.revents & (POLLERR | POLLNVAL));
  if (gone) {
    target_.close();
    pending_.clear();
    discarded_ = true;
  }
  show();
  // As in any pipeline: a writer whose reader went away is told so by its next write.
  if (discarded_ && source_.valid()) {
    source_.reset();
    H5I_TRY(take({}, true));
  }
  return {};
}

Result<void> OutputStream::drain() {
  while (source_.valid()) {
    if (!H5I_TRY(read_once()) && source_.valid()) {
      source_.reset();
      H5I_TRY(take({}, true));
    }
  }
  show();
  return {};
}

// ---- InputPump ------------------------------------------------------------------------------------------------------

Result<InputPump> InputPump::create(int fd) {
  InputPump p;
  struct stat st {};
  bool unreadable = fstat(fd, &st) < 0 || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
  if (unreadable || null_device(st)) {
    p.box_end_ = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!p.box_end_) return sys_error("open /dev/null");
    return p;
  }
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) < 0) return sys_error("pipe2");
  p.box_end_ = UniqueFd(pipe_fds[0]);
  p.to_ = UniqueFd(pipe_fds[1]);
  fcntl(p.to_.get(), F_SETFL, O_NONBLOCK);
  p.from_ = fd;
  p.terminal_ = isatty(fd);
  if (S_ISFIFO(st.st_mode)) {
    p.null_ = UniqueFd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    // One slot: poll says that there is room exactly when the box has read everything.
    p.mirror_ = p.null_.valid() && fcntl(p.to_.get(), F_SETPIPE_SZ, static_cast<int>(sysconf(_SC_PAGESIZE))) > 0 && !p.widened();
  }
  return p;
}

bool InputPump::widened() const { return fcntl(to_.get(), F_GETPIPE_SZ) != static_cast<int>(sysconf(_SC_PAGESIZE)); }

void InputPump::settle() {
  int unread = 0;
  if (held_ == 0 || ioctl(to_.get(), FIONREAD, &unread) != 0 || unread < 0) return;
  // A box can write into its own pipe and make this too small; that way it only leaves the caller more.
  size_t left = std::min(held_, static_cast<size_t>(unread)), taken = held_ - left;
  held_ = left;
  while (taken > 0) {
    ssize_t n = splice(from_, nullptr, null_.get(), nullptr, taken, SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // somebody else read it meanwhile
    taken -= static_cast<size_t>(n);
  }
}

void InputPump::mirror() {
  ssize_t n;
  do n = tee(from_, to_.get(), kMirror, SPLICE_F_NONBLOCK);
  while (n < 0 && errno == EINTR);
  full_ = n < 0 && errno == EAGAIN;  // of what the box wrote itself: it is waited for, not asked again and again
  if (n > 0) held_ = static_cast<size_t>(n);
  else if (!full_) close();
}

Result<InputPump> InputPump::to_pty(int fd, const UniqueFd& master) {
  InputPump p;
  p.pty_ = true;
  if (fcntl(fd, F_GETFL) < 0) return p;
  p.to_ = UniqueFd(fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
  if (!p.to_) return sys_error("dup of a pty");
  p.from_ = fd;
  p.terminal_ = isatty(fd);
  return p;
}

void InputPump::close() {
  if (mirror_) settle();
  to_.reset();
  from_ = -1;
  pending_.clear();
}

void InputPump::poll_entries(pollfd* in, pollfd* out) const {
  if (mirror_ && to_.valid()) {
    bool empty = held_ == 0 && !full_;
    *in = {empty ? from_ : -1, POLLIN, 0};
    *out = {to_.get(), static_cast<short>(empty ? 0 : POLLOUT), 0};
    return;
  }
  // Reading a terminal from the background would stop us with SIGTTIN, whether or not the box wants input.
  bool may_read = to_.valid() && pending_.empty() && !at_end_ && (!terminal_ || tcgetpgrp(from_) == getpgrp());
  *in = {may_read ? from_ : -1, POLLIN, 0};
  *out = {to_.valid() ? to_.get() : -1, static_cast<short>(pending_.empty() ? 0 : POLLOUT), 0};
}

void InputPump::handle(const pollfd& in, const pollfd& out) {
  if (out.fd >= 0 && (out.revents & (POLLERR | POLLNVAL))) return close();  // nobody in the box reads any more
  if (mirror_) {
    if (out.fd >= 0 && (out.revents & POLLOUT)) full_ = false;
    if (held_ > 0 && out.fd >= 0 && (out.revents & POLLOUT)) settle();
    if (held_ == 0 && in.fd >= 0 && in.revents) mirror();
    // A pipe that the box made larger says "room" all the time: from here on it is filled ahead, as from a file.
    if (held_ > 0 && widened()) {
      for (ssize_t n; held_ > 0 && (n = splice(from_, nullptr, null_.get(), nullptr, held_, SPLICE_F_NONBLOCK)) > 0;) held_ -= static_cast<size_t>(n);
      mirror_ = false;
      held_ = 0;
    }
    return;
  }
  if (in.fd >= 0 && in.revents) {
    char buf[4096];
    ssize_t n = read(from_, buf, sizeof buf);
    bool end = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
    if (end && !pty_) return close();
    if (end) {
      at_end_ = true;  // the master stays open: its closing would hang up the shell
      pending_ = "\x04";
    }
    if (n > 0) pending_.assign(buf, static_cast<size_t>(n));
  }
  while (!pending_.empty()) {
    ssize_t n = write(to_.get(), pending_.data(), pending_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return close();
    pending_.erase(0, static_cast<size_t>(n));
  }
}

}  // namespace h5i::session
