// A file that a verb writes for its user: it is there under its name when it is whole, and not before.
#pragma once
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::cli {

class OutputFile {
 public:
  // Mode 0600. `replace`: what has the name is replaced when the file is whole; otherwise EXISTS, now and at the end.
  static Result<OutputFile> create(const std::string& path, bool replace);
  OutputFile(OutputFile&& o) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // a file that was not named goes

  Result<void> write(std::string_view bytes);
  // Flushed, then named.
  Result<void> finish();
  const std::string& path() const { return path_; }  // absolute

 private:
  OutputFile() = default;
  UniqueFd dir_, fd_;
  std::string name_, temporary_, path_;
  bool replace_ = false;
};

}  // namespace h5i::cli
