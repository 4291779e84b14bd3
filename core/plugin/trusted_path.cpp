#include "core/plugin/trusted_path.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <vector>

namespace h5i::plugin {
namespace {

constexpr int kMaxLinks = 16;  // on the way to one directory; the kernel's own limit is 40

std::string mode_text(mode_t mode) {
  char b[8];
  snprintf(b, sizeof b, "%04o", static_cast<unsigned>(mode & 07777));
  return b;
}

Error refused(const std::string& path, const std::string& why) {
  return make_error(Errc::PLUGIN_OWNER, path + " cannot be trusted", why);
}

std::string owner_text(const struct stat& st) {
  return "it belongs to uid " + std::to_string(st.st_uid) + ", mode " + mode_text(st.st_mode);
}

bool others_may_write(const struct stat& st) { return (st.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

void split(std::string_view path, std::deque<std::string>& front) {
  std::vector<std::string> parts;
  size_t i = 0;
  while (i < path.size()) {
    size_t end = std::min(path.find('/', i), path.size());
    if (end > i) parts.emplace_back(path.substr(i, end - i));
    i = end + 1;
  }
  front.insert(front.begin(), parts.begin(), parts.end());
}

struct Step {
  UniqueFd fd;
  std::string path;  // for messages; "" for the root
  struct stat st {};
};

// A directory that is on the way, or the last one.
Result<void> check_directory(const Step& step, bool last, Believed believed) {
  std::string name = step.path.empty() ? "/" : step.path;
  if (!believed.owner(step.st.st_uid)) return refused(name, owner_text(step.st));
  if (others_may_write(step.st) && (last || !(step.st.st_mode & S_ISVTX)))
    return refused(name, "others may write it, mode " + mode_text(step.st.st_mode));
  return {};
}

}  // namespace

Result<UniqueFd> open_trusted_directory(const std::string& path, Believed believed) {
  if (path.empty() || path[0] != '/') return refused(path, "the path is not absolute");
  std::deque<std::string> todo;
  split(path, todo);
  std::vector<Step> way;
  auto push = [&](UniqueFd fd, std::string name) -> Result<void> {
    Step step{std::move(fd), std::move(name), {}};
    if (fstat(step.fd.get(), &step.st) != 0) return sys_error("fstat " + step.path);
    way.push_back(std::move(step));
    return {};
  };
  UniqueFd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return sys_error("open /");
  H5I_TRY(push(std::move(root), ""));
  int links = 0;
  while (!todo.empty()) {
    std::string name = std::move(todo.front());
    todo.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      if (way.size() > 1) way.pop_back();
      continue;
    }
    const Step& here = way.back();
    H5I_TRY(check_directory(here, false, believed));
    std::string full = here.path + "/" + name;
    UniqueFd fd(openat(here.fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!fd && errno == ENOENT) return make_error(Errc::NOT_FOUND, full + " does not exist");
    if (!fd) return sys_error("open " + full);
    struct stat st {};
    if (fstat(fd.get(), &st) != 0) return sys_error("fstat " + full);
    if (!believed.owner(st.st_uid)) return refused(full, owner_text(st));
    if (S_ISLNK(st.st_mode)) {
      // Its owner is believed and so is everybody who could replace it: following it is following them.
      if (++links > kMaxLinks) return refused(path, "too many symbolic links");
      std::string target(4096, '\0');
      ssize_t n = readlinkat(fd.get(), "", target.data(), target.size());
      if (n <= 0 || static_cast<size_t>(n) >= target.size()) return refused(full, "its link cannot be read");
      target.resize(static_cast<size_t>(n));
      if (target[0] == '/') way.resize(1);
      split(target, todo);
      continue;
    }
    if (!S_ISDIR(st.st_mode)) return refused(full, "it is not a directory");
    H5I_TRY(push(std::move(fd), full));
  }
  H5I_TRY(check_directory(way.back(), true, believed));
  UniqueFd out(openat(way.back().fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out) return sys_error("open " + path);
  return out;
}

Result<UniqueFd> open_trusted_file(const UniqueFd& directory, const std::string& name, const std::string& path,
                                   Believed believed) {
  // O_NONBLOCK: a fifo of that name must not hold us; it is refused below.
  UniqueFd fd(openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return make_error(Errc::NOT_FOUND, path + " does not exist");
  if (!fd && errno == ELOOP) return refused(path, "it is a symbolic link");
  if (!fd) return sys_error("open " + path);
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return sys_error("fstat " + path);
  if (!S_ISREG(st.st_mode)) return refused(path, "it is not a regular file");
  if (!believed.owner(st.st_uid)) return refused(path, owner_text(st));
  if (others_may_write(st)) return refused(path, "others may write it, mode " + mode_text(st.st_mode));
  return fd;
}

Result<std::string> read_all(const UniqueFd& fd, size_t limit, std::string_view what) {
  std::string out;
  struct stat st {};
  if (fstat(fd.get(), &st) == 0 && st.st_size > 0)
    out.reserve(std::min<size_t>(static_cast<size_t>(st.st_size), limit) + 1);
  char buffer[1 << 16];
  for (off_t at = 0;;) {
    ssize_t n = pread(fd.get(), buffer, sizeof buffer, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read " + std::string(what));
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > limit)
      return make_error(Errc::TOO_LARGE, std::string(what) + " is too large",
                        "more than " + std::to_string(limit) + " bytes");
    out.append(buffer, static_cast<size_t>(n));
    at += n;
  }
}

}  // namespace h5i::plugin
