// The one file under SQLite. Each page ends in a checksum of its bytes and its place, so that what the disk or anybody else changed is an error and
// never an answer. No locks (who has the file has the index's own), no journal (a mark beside it says that somebody was killed while writing),
// no mapping, no other file.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <string>

namespace h5i::websec {

constexpr int kPageBytes = 4096;
constexpr int kChecksumBytes = 8;

class Pages {
 public:
  // `fd`: borrowed, a regular file. `limit`: its largest size.
  Pages(int fd, uint64_t limit);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  // For sqlite3_open_v2, with any file name.
  const char* vfs_name() const { return name_.c_str(); }
  bool registered() const { return registered_; }

 private:
  friend struct PageFile;
  std::string name_;
  sqlite3_vfs vfs_{};
  int fd_;
  uint64_t limit_;
  bool registered_ = false;
};

// Of one page without its last kChecksumBytes; `at`: its offset.
uint64_t page_checksum(const unsigned char* page, uint64_t at);

}  // namespace h5i::websec
