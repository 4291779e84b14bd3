#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/text.hpp"
#include "core/evidence/files.hpp"
#include "core/evidence/log.hpp"
#include "core/os/beneath.hpp"

namespace h5i::evidence {
namespace {

bool is_digest(const std::string& s) {
  std::string raw;
  return s.size() == 64 && unhex(s, &raw) && hex(raw.data(), raw.size()) == s;
}

Error blob_error(Error cause) {
  return make_error(Errc::LOG_WRITE, "cannot store a payload", cause.what + ": " + cause.evidence);
}

Result<UniqueFd> open_dir(int at, const std::string& name, bool create) {
  if (create && mkdirat(at, name.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("mkdir " + printable(name));
  UniqueFd d(openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!d) return sys_error("open " + printable(name));
  return d;
}

bool present(int dir, const std::string& name, uint64_t size) {
  struct stat st {};
  return fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
         static_cast<uint64_t>(st.st_size) == size;
}

}  // namespace

Result<BlobRef> put_blob(const std::string& blobs_dir, std::string_view bytes) {
  BlobRef ref{sha256_hex(bytes), bytes.size()};
  auto top = open_dir(AT_FDCWD, blobs_dir, true);
  if (!top) return blob_error(top.error());
  auto dir = open_dir(top->get(), ref.sha256.substr(0, 2), true);
  if (!dir) return blob_error(dir.error());
  std::string name = ref.sha256.substr(2);
  if (present(dir->get(), name, ref.size)) return ref;

  auto file = os::open_nameless(*dir, 0600);
  if (file) {
    if (auto written = os::write_all(*file, bytes); !written) return blob_error(written.error());
    // The record that names the blob is flushed later; the blob must not be the part that a power cut loses.
    if (fdatasync(file->get()) != 0) return blob_error(sys_error("fdatasync"));
    if (os::give_name(*file, *dir, name)) return ref;
  }
  // No files without a name here, or another has the name: a writer of the same bytes, or a file that was cut off.
  if (auto put = os::replace_file(*dir, name, bytes, 0600); !put) return blob_error(put.error());
  return ref;
}

Result<std::string> get_blob(const std::string& blobs_dir, const std::string& sha256, uint64_t limit) {
  if (!is_digest(sha256))
    return make_error(Errc::INVALID, "not a payload's digest: " + printable(sha256, {.limit = 80}));
  UniqueFd top = H5I_TRY(open_dir(AT_FDCWD, blobs_dir, false));
  UniqueFd dir = H5I_TRY(open_dir(top.get(), sha256.substr(0, 2), false));
  UniqueFd fd(openat(dir.get(), sha256.substr(2).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return sys_error("cannot open payload " + sha256);
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return sys_error("cannot examine payload " + sha256);
  if (!S_ISREG(st.st_mode)) return make_error(Errc::CORRUPT, "payload " + sha256, "not a regular file");
  auto size = static_cast<uint64_t>(st.st_size);
  if (size > limit)
    return make_error(Errc::TOO_LARGE, "payload " + sha256,
                      std::to_string(size) + " bytes, limit " + std::to_string(limit));
  std::string out(size, '\0');
  size_t got = 0;
  while (got < out.size()) {
    ssize_t n = pread(fd.get(), out.data() + got, out.size() - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("cannot read payload " + sha256);
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  out.resize(got);
  if (sha256_hex(out) != sha256)
    return make_error(Errc::CORRUPT, "payload " + sha256 + " was changed", "its digest differs");
  return out;
}

}  // namespace h5i::evidence
