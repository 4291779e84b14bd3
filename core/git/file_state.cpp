#include "core/git/file_state.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/sha256.hpp"
#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

constexpr std::string_view kMagic = "h5i.files/1\n";
constexpr uint64_t kMaxBytes = 1u << 30;
// Twice the coarse clock's tick at 100 Hz: within it a second write may leave the same change time.
constexpr int64_t kRacyNs = 20'000'000;

template <class T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}
template <class T>
bool get(std::string_view& in, T& v) {
  if (in.size() < sizeof v) return false;
  memcpy(&v, in.data(), sizeof v);
  in.remove_prefix(sizeof v);
  return true;
}

}  // namespace

int64_t mtime_ns(const struct stat& st) { return st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec; }
int64_t ctime_ns(const struct stat& st) { return st.st_ctim.tv_sec * 1000000000LL + st.st_ctim.tv_nsec; }

FileState state_of(std::string path, const Oid& oid, uint32_t mode, const struct stat& st) {
  return {std::move(path), oid, mode, static_cast<uint64_t>(st.st_size), st.st_ino, st.st_dev, mtime_ns(st), ctime_ns(st)};
}

bool unchanged(const FileState& known, const struct stat& now) {
  uint32_t mode = plain_mode(now.st_mode);
  return known.ctime_ns != 0 && known.ctime_ns == ctime_ns(now) && known.mtime_ns == mtime_ns(now) && known.inode == now.st_ino &&
         known.device == now.st_dev && known.size == static_cast<uint64_t>(now.st_size) && known.mode == mode;
}

const FileState* find_state(const States& states, std::string_view path) {
  auto it = std::lower_bound(states.begin(), states.end(), path, [](const FileState& s, std::string_view p) { return s.path < p; });
  return it != states.end() && it->path == path ? &*it : nullptr;
}

Result<void> save_states(const UniqueFd& box_dir, const States& states, int64_t now_ns) {
  std::string out(kMagic);
  put(out, static_cast<uint64_t>(states.size()));
  for (const FileState& s : states) {
    put(out, static_cast<uint32_t>(s.path.size()));
    out += s.path;
    out.append(reinterpret_cast<const char*>(s.oid.raw.data()), 20);
    put(out, s.mode);
    put(out, s.size);
    put(out, s.inode);
    put(out, s.device);
    put(out, s.mtime_ns);
    put(out, now_ns - s.ctime_ns < kRacyNs ? int64_t{0} : s.ctime_ns);
  }
  out += sha256_hex(out);
  return os::replace_file(box_dir, kStateFile, out, 0600);
}

Result<States> load_states(const UniqueFd& box_dir) {
  auto text = os::read_file_beneath(box_dir, kStateFile, kMaxBytes);
  if (!text) {
    if (text.error().sys_errno == ENOENT) return States{};
    return std::move(text).error();
  }
  Error corrupt = make_error(Errc::CORRUPT, "the record of the box's files is damaged", kStateFile, "h5i box export saves what can be read; create the box again");
  std::string_view in = *text;
  if (in.size() < kMagic.size() + 64 || in.substr(0, kMagic.size()) != kMagic) return corrupt;
  if (sha256_hex(in.substr(0, in.size() - 64)) != in.substr(in.size() - 64)) return corrupt;
  in = in.substr(kMagic.size(), in.size() - kMagic.size() - 64);
  uint64_t n = 0;
  if (!get(in, n) || n > in.size()) return corrupt;
  States out;
  out.reserve(n);
  for (uint64_t i = 0; i < n; i++) {
    FileState s;
    uint32_t length = 0;
    if (!get(in, length) || in.size() < length + 20u) return corrupt;
    s.path = in.substr(0, length);
    in.remove_prefix(length);
    memcpy(s.oid.raw.data(), in.data(), 20);
    in.remove_prefix(20);
    if (!get(in, s.mode) || !get(in, s.size) || !get(in, s.inode) || !get(in, s.device) || !get(in, s.mtime_ns) || !get(in, s.ctime_ns)) return corrupt;
    out.push_back(std::move(s));
  }
  return out;
}

}  // namespace h5i::git
