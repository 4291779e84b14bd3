#include "core/cli/output_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

Error is_there(const std::string& path) { return make_error(Errc::EXISTS, "the output is there already", printable(path), "another name, or --force replaces it"); }

}  // namespace

OutputFile::OutputFile(OutputFile&& o) noexcept
    : dir_(std::move(o.dir_)), fd_(std::move(o.fd_)), name_(std::move(o.name_)), temporary_(std::exchange(o.temporary_, "")), path_(std::move(o.path_)), replace_(o.replace_) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) (void)::unlinkat(dir_.get(), temporary_.c_str(), 0);
}

Result<OutputFile> OutputFile::create(const std::string& path, bool replace) {
  OutputFile out;
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  out.name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  if (out.name_.empty() || out.name_ == "." || out.name_ == "..") return make_error(Errc::USAGE, "the output is not a file's name: " + printable(path), "it ends in a directory");
  char real[PATH_MAX];
  if (!::realpath(parent.c_str(), real)) return sys_error("find " + printable(parent));
  out.dir_ = H5I_TRY(os::open_directory(real));
  out.path_ = (std::string(real) == "/" ? "" : std::string(real)) + "/" + out.name_;
  out.replace_ = replace;
  struct stat st {};
  if (::fstatat(out.dir_.get(), out.name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!replace) return is_there(out.path_);
    if (!S_ISREG(st.st_mode)) return make_error(Errc::EXISTS, "the output is there and no file", printable(out.path_));
  }
  // Without a name nothing is left of it when this process is killed; not every file system has that.
  if (auto nameless = os::open_nameless(out.dir_, 0600)) {
    out.fd_ = std::move(*nameless);
    return out;
  }
  out.temporary_ = "." + out.name_.substr(0, 200) + "." + H5I_TRY(new_session_id()).value;
  auto named = os::open_beneath(out.dir_, out.temporary_, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!named) {
    out.temporary_.clear();
    return std::move(named).error();
  }
  out.fd_ = std::move(*named);
  return out;
}

Result<void> OutputFile::write(std::string_view bytes) { return os::write_all(fd_, bytes); }

Result<void> OutputFile::finish() {
  if (::fchmod(fd_.get(), 0600) != 0) return sys_error("set the mode of " + printable(path_));
  if (::fsync(fd_.get()) != 0) return sys_error("flush " + printable(path_));
  if (temporary_.empty()) {
    if (!replace_) {
      auto named = os::give_name(fd_, dir_, name_);
      if (!named && named.error().sys_errno == EEXIST) return is_there(path_);
      return named;
    }
    std::string beside = "." + name_.substr(0, 200) + "." + H5I_TRY(new_session_id()).value;
    H5I_TRY(os::give_name(fd_, dir_, beside));
    temporary_ = beside;
  }
  if (::renameat2(dir_.get(), temporary_.c_str(), dir_.get(), name_.c_str(), replace_ ? 0 : RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return is_there(path_);
    return sys_error("name " + printable(path_));
  }
  temporary_.clear();
  return {};
}

}  // namespace h5i::cli
