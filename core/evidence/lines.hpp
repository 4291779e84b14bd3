// Reads a file line by line in bounded memory, whatever it holds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::evidence {

struct Line {
  std::string_view text;  // without the newline; the first kMaxLine bytes when `too_long`. Valid until the next call
  uint64_t offset = 0;    // of its first byte
  bool complete = true;   // ended by a newline
  bool too_long = false;
};

class LineReader {
 public:
  // A regular file only, never through a link in the last component. The size is taken under a shared lock, so that
  // a writer in the middle of a line is never mistaken for a torn one; what is appended later is not read.
  static Result<LineReader> open(const std::string& path);
  // False at the end.
  Result<bool> next(Line* out);
  uint64_t size() const { return size_; }
  // Continues at this byte, which must begin a line.
  void seek(uint64_t offset);

 private:
  Result<bool> fill();  // false: nothing left

  UniqueFd fd_;
  uint64_t size_ = 0, read_ = 0;  // read_: file offset of the end of buf_
  std::string buf_, long_;
  size_t at_ = 0, piece_ = 0;  // piece_: how much is read next
};

}  // namespace h5i::evidence
