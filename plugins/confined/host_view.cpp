#include "host_view.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace h5i::confined {
namespace {

constexpr size_t kSmallFile = 64u << 10;
constexpr size_t kSocketTable = 4u << 20;

std::string read_up_to(const char* path, size_t limit) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return {};
  std::string out;
  char buffer[16384];
  ssize_t n;
  while (out.size() < limit && (n = read(fd, buffer, std::min(sizeof buffer, limit - out.size()))) > 0)
    out.append(buffer, static_cast<size_t>(n));
  close(fd);
  return out;
}

}  // namespace

Node RealHostView::look(const std::string& path) const {
  struct stat s;
  if (lstat(path.c_str(), &s) != 0) return {};
  NodeKind kind = S_ISDIR(s.st_mode)    ? NodeKind::DIRECTORY
                  : S_ISREG(s.st_mode)  ? NodeKind::FILE
                  : S_ISLNK(s.st_mode)  ? NodeKind::SYMLINK
                  : S_ISSOCK(s.st_mode) ? NodeKind::SOCKET
                  : S_ISFIFO(s.st_mode) ? NodeKind::FIFO
                                        : NodeKind::DEVICE;
  return {kind, s.st_nlink};
}

std::string RealHostView::link_target(const std::string& path) const {
  char buffer[4096];
  ssize_t n = readlink(path.c_str(), buffer, sizeof buffer);
  return n > 0 && n < static_cast<ssize_t>(sizeof buffer) ? std::string(buffer, static_cast<size_t>(n)) : std::string();
}

std::vector<std::string> RealHostView::names(const std::string& directory) const {
  std::vector<std::string> out;
  DIR* d = opendir(directory.c_str());
  if (d == nullptr) return out;
  while (dirent* e = readdir(d))
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) out.emplace_back(e->d_name);
  closedir(d);
  std::sort(out.begin(), out.end());
  return out;
}

std::string RealHostView::small_file(const std::string& path) const { return read_up_to(path.c_str(), kSmallFile); }

std::vector<std::string> RealHostView::listening_sockets() const {
  // Num RefCount Protocol Flags Type St Inode Path; the path is the eighth word and may hold spaces.
  std::vector<std::string> out;
  std::string table = read_up_to("/proc/net/unix", kSocketTable);
  size_t at = 0;
  while (at < table.size()) {
    size_t end = std::min(table.find('\n', at), table.size());
    size_t slash = table.find(" /", at);
    if (slash < end) out.push_back(table.substr(slash + 1, end - slash - 1));
    at = end + 1;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

HostFacts read_facts() {
  HostFacts f;
  constexpr unsigned kVersionFlag = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersionFlag);
  f.landlock_abi = abi > 0 ? static_cast<int>(abi) : 0;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    f.nofile_soft = limit.rlim_cur;
    f.nofile_hard = limit.rlim_max;
  }
  utsname name{};
  if (uname(&name) == 0) sscanf(name.release, "%u.%u", &f.kernel_major, &f.kernel_minor);
  return f;
}

}  // namespace h5i::confined
