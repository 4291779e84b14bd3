#include "plugins/websec-http/index/pages.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace h5i::websec {

// As SQLite lays a file out; the first member is its own.
struct PageFile {
  sqlite3_file base;
  Pages* pages;

  static int fd(sqlite3_file* f) { return reinterpret_cast<PageFile*>(f)->pages->fd_; }
  static uint64_t limit(sqlite3_file* f) { return reinterpret_cast<PageFile*>(f)->pages->limit_; }
  static void bind(sqlite3_vfs* vfs, sqlite3_file* f, const sqlite3_io_methods* methods) {
    f->pMethods = methods;
    reinterpret_cast<PageFile*>(f)->pages = static_cast<Pages*>(vfs->pAppData);
  }
};

namespace {

// Bytes read, -1 with errno.
ssize_t read_at(int fd, unsigned char* into, size_t size, uint64_t at) {
  size_t got = 0;
  while (got < size) {
    const ssize_t n = pread(fd, into + got, size - got, static_cast<off_t>(at + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

int close_file(sqlite3_file*) { return SQLITE_OK; }

int read_file(sqlite3_file* f, void* into, int size, sqlite3_int64 at) {
  // A part of a page, such as the file's header, is read with all of it.
  const auto begin = static_cast<uint64_t>(at) / kPageBytes * kPageBytes, skip = static_cast<uint64_t>(at) - begin;
  if (at < 0 || size < 0 || skip + static_cast<uint64_t>(size) > kPageBytes) return SQLITE_IOERR_READ;
  unsigned char page[kPageBytes];
  const ssize_t got = read_at(PageFile::fd(f), page, sizeof page, begin);
  if (got < 0) return SQLITE_IOERR_READ;
  if (got == 0) {
    memset(into, 0, static_cast<size_t>(size));
    return SQLITE_IOERR_SHORT_READ;
  }
  uint64_t checksum = 0;
  memcpy(&checksum, page + kPageBytes - kChecksumBytes, sizeof checksum);
  if (got != kPageBytes || checksum != page_checksum(page, begin)) return SQLITE_IOERR_DATA;
  memcpy(into, page + skip, static_cast<size_t>(size));
  return SQLITE_OK;
}

int write_file(sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
  if (size != kPageBytes || at < 0 || at % kPageBytes != 0) return SQLITE_IOERR_WRITE;
  const auto place = static_cast<uint64_t>(at);
  if (place + kPageBytes > PageFile::limit(f)) return SQLITE_FULL;
  unsigned char page[kPageBytes];
  memcpy(page, from, sizeof page);
  const uint64_t checksum = page_checksum(page, place);
  memcpy(page + kPageBytes - kChecksumBytes, &checksum, sizeof checksum);
  size_t done = 0;
  while (done < sizeof page) {
    const ssize_t n = pwrite(PageFile::fd(f), page + done, sizeof page - done, static_cast<off_t>(place + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 || errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    done += static_cast<size_t>(n);
  }
  return SQLITE_OK;
}

int truncate_file(sqlite3_file* f, sqlite3_int64 size) { return size >= 0 && ftruncate(PageFile::fd(f), size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE; }
int sync_file(sqlite3_file* f, int) { return fdatasync(PageFile::fd(f)) == 0 ? SQLITE_OK : SQLITE_IOERR_FSYNC; }

int size_of_file(sqlite3_file* f, sqlite3_int64* size) {
  struct stat st {};
  if (fstat(PageFile::fd(f), &st) != 0) return SQLITE_IOERR_FSTAT;
  *size = st.st_size;
  return SQLITE_OK;
}

int lock_file(sqlite3_file*, int) { return SQLITE_OK; }
int reserved_lock(sqlite3_file*, int* taken) {
  *taken = 0;
  return SQLITE_OK;
}
int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector(sqlite3_file*) { return kPageBytes; }
int device(sqlite3_file*) { return 0; }

constexpr sqlite3_io_methods kMethods = {1, close_file, read_file, write_file, truncate_file, sync_file, size_of_file, lock_file, lock_file, reserved_lock, control, sector, device,
                                         nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};

int open_file(sqlite3_vfs* vfs, const char*, sqlite3_file* f, int flags, int* out) {
  f->pMethods = nullptr;
  if (!(flags & SQLITE_OPEN_MAIN_DB)) return SQLITE_CANTOPEN;
  PageFile::bind(vfs, f, &kMethods);
  if (out) *out = flags;
  return SQLITE_OK;
}
int remove_file(sqlite3_vfs*, const char*, int) { return SQLITE_OK; }
int there_is(sqlite3_vfs*, const char*, int, int* found) {
  *found = 0;  // neither a journal nor a log of SQLite's
  return SQLITE_OK;
}
int full_name(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}
int randomness(sqlite3_vfs*, int size, char* out) {
  memset(out, 0, static_cast<size_t>(size));
  return size;
}
int nap(sqlite3_vfs*, int us) { return us; }
int current_time(sqlite3_vfs*, double* days) {
  *days = 2440587.5 + static_cast<double>(::time(nullptr)) / 86400;
  return SQLITE_OK;
}
int last_error(sqlite3_vfs*, int, char*) { return errno; }

}  // namespace

uint64_t page_checksum(const unsigned char* page, uint64_t at) {
  // Each step is one to one in the word that it takes, so one changed word is always seen. Four at a time do not wait for each other.
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t h[4] = {at ^ kOdd, at + kOdd, ~at, at * kOdd + 1};
  constexpr size_t kWords = (kPageBytes - kChecksumBytes) / sizeof(uint64_t);
  for (size_t i = 0; i < kWords; i++) {
    uint64_t word = 0;
    memcpy(&word, page + i * sizeof word, sizeof word);
    h[i & 3] = std::rotl((h[i & 3] ^ word) * kOdd, 29);
  }
  return h[0] ^ std::rotl(h[1], 16) ^ std::rotl(h[2], 32) ^ std::rotl(h[3], 48);
}

Pages::Pages(int fd, uint64_t limit) : name_("h5i-pages-" + std::to_string(reinterpret_cast<uintptr_t>(this))), fd_(fd), limit_(limit) {
  rlimit own{};
  if (getrlimit(RLIMIT_FSIZE, &own) == 0 && own.rlim_cur != RLIM_INFINITY) limit_ = std::min<uint64_t>(limit_, own.rlim_cur);  // beyond it the kernel sends a signal
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(PageFile);
  vfs_.mxPathname = 64;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = open_file;
  vfs_.xDelete = remove_file;
  vfs_.xAccess = there_is;
  vfs_.xFullPathname = full_name;
  vfs_.xRandomness = randomness;
  vfs_.xSleep = nap;
  vfs_.xCurrentTime = current_time;
  vfs_.xGetLastError = last_error;
  registered_ = sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK;
}

Pages::~Pages() {
  if (registered_) (void)sqlite3_vfs_unregister(&vfs_);
}

}  // namespace h5i::websec
