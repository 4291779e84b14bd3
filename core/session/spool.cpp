#include "core/session/spool.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "core/base/text.hpp"
#include "core/base/unique_fd.hpp"
#include "core/os/beneath.hpp"

namespace h5i::session {
namespace {

// A directory that the box filled may hold millions of names; reading the list is bounded as well.
constexpr size_t kMaxListed = 10000;

Result<std::vector<std::string>> list(int dir_fd) {
  int copy = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return sys_error("dup of the spool");
  std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(copy), closedir);
  if (!dir) {
    close(copy);
    return sys_error("list the spool");
  }
  rewinddir(dir.get());
  std::vector<std::string> out;
  while (out.size() < kMaxListed) {
    dirent* e = readdir(dir.get());
    if (!e) break;
    std::string name = e->d_name;
    if (name != "." && name != "..") out.push_back(std::move(name));
  }
  std::sort(out.begin(), out.end());
  return out;
}

// However many and however deep; a box's folders may be closed to us, which removing opens.
Result<void> empty(const UniqueFd& dir) {
  for (;;) {
    auto names = H5I_TRY(list(dir.get()));
    for (const std::string& name : names) H5I_TRY(os::remove_tree(dir, name));
    if (names.size() < kMaxListed) return {};
  }
}

bool deeper_than(const Json& v, int depth) {
  if (depth < 0) return true;
  for (const Json& x : v.array())
    if (deeper_than(x, depth - 1)) return true;
  for (const auto& m : v.object())
    if (deeper_than(m.second, depth - 1)) return true;
  return false;
}

// One entry: its text, or why not.
Result<std::string> read_entry(int dir, const std::string& name) {
  auto refuse = [](std::string why) { return make_error(Errc::SPOOL_INVALID, "spool entry refused", std::move(why)); };
  // O_NONBLOCK: opening a fifo that the box left must not wait for a writer.
  UniqueFd fd(openat(dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) return refuse(errno == ELOOP ? "a symbolic link" : "cannot be opened");
  struct stat st {};
  if (fstat(fd.get(), &st) < 0 || !S_ISREG(st.st_mode)) return refuse("no regular file");
  if (st.st_nlink != 1) return refuse("a hard link to something else");
  if (st.st_size > static_cast<off_t>(kSpoolEntryBytes)) return refuse("above 64 KiB");
  std::string out(kSpoolEntryBytes + 1, '\0');
  size_t at = 0;
  while (at < out.size()) {
    ssize_t n = read(fd.get(), out.data() + at, out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refuse("cannot be read");
    if (n == 0) break;
    at += static_cast<size_t>(n);
  }
  if (at > kSpoolEntryBytes) return refuse("above 64 KiB");
  out.resize(at);
  return out;
}

}  // namespace

Result<SpoolTaken> take_spool(const std::string& path) {
  SpoolTaken out;
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir) {
    if (errno == ENOENT) return out;
    return sys_error("open " + path);
  }
  auto names = H5I_TRY(list(dir.get()));
  size_t bytes = 0, looked = 0;
  for (const std::string& name : names) {
    if (looked >= kSpoolEntries || bytes >= kSpoolBytes) {
      out.ignored++;
    } else {
      looked++;
      auto text = read_entry(dir.get(), name);
      if (text) bytes += text->size();
      auto body = text ? parse_json(*text, "spool entry", kSpoolEntryBytes) : Result<Json>(text.error());
      if (body && deeper_than(*body, kSpoolDepth)) body = make_error(Errc::SPOOL_INVALID, "spool entry refused", "nested too deeply");
      if (body && body->is_object() && bytes <= kSpoolBytes)
        out.entries.push_back({name, std::move(*body)});
      else
        out.refused.push_back({name, !body ? body.error().evidence : bytes > kSpoolBytes ? "above 4 MiB in all" : "no JSON object"});
    }
  }
  // Only now: taking one of two hard links away would make the other look innocent.
  if (auto gone = empty(dir); !gone) out.refused.push_back({"", "not removed: " + gone.error().what + ": " + gone.error().evidence});
  return out;
}

Result<void> empty_spool(const std::string& path) {
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir) return errno == ENOENT ? Result<void>() : Result<void>(sys_error("open " + path));
  return empty(dir);
}

}  // namespace h5i::session
