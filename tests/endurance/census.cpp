#include "tests/endurance/census.hpp"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "tests/support/text_file.hpp"

namespace h5i::test {
namespace fs = std::filesystem;
namespace {

std::vector<pid_t> all_processes() {
  std::vector<pid_t> out;
  DIR* d = opendir("/proc");
  while (dirent* e = d ? readdir(d) : nullptr)
    if (int pid = atoi(e->d_name); pid > 0) out.push_back(pid);
  if (d) closedir(d);
  return out;
}

std::string proc(pid_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

Seen look_at(pid_t pid) {
  Seen s{pid, '?', read_file(proc(pid, "cmdline"))};
  std::string stat = read_file(proc(pid, "stat"));
  size_t name = stat.find('('), end = stat.rfind(')');
  if (end != std::string::npos && end + 2 < stat.size()) s.state = stat[end + 2];
  if (s.words.empty() && name != std::string::npos) s.words = "[" + stat.substr(name + 1, end - name - 1) + "]";
  std::replace(s.words.begin(), s.words.end(), '\0', ' ');
  return s;
}

void reap_orphans(pid_t not_mine) {
  for (pid_t child : children_of(getpid()))
    if (child != not_mine && look_at(child).state == 'Z') waitpid(child, nullptr, WNOHANG);
}

}  // namespace

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::vector<pid_t> children_of(pid_t pid) {
  std::istringstream in(read_file(proc(pid, "task/") + std::to_string(pid) + "/children"));
  std::vector<pid_t> out;
  for (pid_t child; in >> child;) out.push_back(child);
  return out;
}

std::vector<Seen> descendants(pid_t not_mine) {
  reap_orphans(not_mine);
  std::vector<pid_t> found = children_of(getpid());
  for (size_t i = 0; i < found.size(); i++)
    for (pid_t child : children_of(found[i])) found.push_back(child);
  std::vector<Seen> out;
  for (pid_t pid : found) {
    Seen s = look_at(pid);
    if (s.state != '?' && pid != not_mine) out.push_back(std::move(s));
  }
  return out;
}

std::vector<Seen> marked(const std::string& folder) {
  std::vector<Seen> out;
  for (pid_t pid : all_processes()) {
    if (pid == getpid()) continue;
    if (read_file(proc(pid, "cmdline")).find(folder) == std::string::npos && read_file(proc(pid, "environ")).find(folder) == std::string::npos) continue;
    Seen s = look_at(pid);
    if (s.state != '?' && s.state != 'Z' && s.state != 'X') out.push_back(std::move(s));
  }
  return out;
}

std::string text_of(const std::vector<Seen>& list) {
  std::string out;
  for (const Seen& s : list) out += std::to_string(s.pid) + " " + s.state + " " + s.words + "\n";
  return out;
}

std::vector<std::string> holds_on(const std::string& folder) {
  std::vector<std::string> out;
  std::set<ino_t> seen;
  auto lines_with = [&](const std::string& path, const std::string& what, const char* kind) {
    std::istringstream in(read_file(path));
    for (std::string line; std::getline(in, line);)
      if (line.find(what) != std::string::npos) out.push_back(std::string(kind) + " " + path + ": " + line);
  };
  for (pid_t pid : all_processes()) {
    struct stat st {};
    if (stat(proc(pid, "ns/mnt").c_str(), &st) != 0 || !seen.insert(st.st_ino).second) continue;
    lines_with(proc(pid, "mountinfo"), folder, "mount");
  }
  lines_with("/proc/net/unix", folder, "socket");
  // /proc/locks names files by device and inode.
  std::error_code none;
  for (const auto& e : fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, none)) {
    std::string name = e.path().filename();
    struct stat st {};
    if (name.find("lock") == std::string::npos || lstat(e.path().c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    lines_with("/proc/locks", ":" + std::to_string(st.st_ino) + " 0 EOF", ("lock on " + e.path().string()).c_str());
  }
  return out;
}

std::vector<std::string> listing(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code none;
  for (auto it = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, none); it != fs::end(it); it.increment(none)) {
    struct stat st {};
    if (lstat(it->path().c_str(), &st) != 0) continue;
    char mode[16];
    snprintf(mode, sizeof mode, "%06o ", static_cast<unsigned>(st.st_mode));
    out.push_back(mode + it->path().string().substr(folder.size()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> difference(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  std::vector<std::string> more, less;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(more));
  std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(less));
  for (std::string& line : more) line = "+ " + line;
  for (const std::string& line : less) more.push_back("- " + line);
  return more;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::vector<std::string> groups_of_ours() {
  std::vector<std::string> out;
  std::error_code none;
  const std::string own = read_file("/proc/self/cgroup");  // in a service that is delegated, the callers' group that h5i moves all of it into
  for (auto it = fs::recursive_directory_iterator("/sys/fs/cgroup", fs::directory_options::skip_permission_denied, none); it != fs::end(it); it.increment(none))
    if (it->path().filename().string().rfind("h5i-", 0) == 0 && own.find("0::" + it->path().string().substr(strlen("/sys/fs/cgroup")) + "\n") == std::string::npos)
      out.push_back(it->path());
  std::sort(out.begin(), out.end());
  return out;
}

size_t namespaces_of(const std::vector<Seen>& processes) {
  std::set<std::string> found;
  auto look = [&](pid_t pid) {
    for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"}) {
      char to[64];
      ssize_t n = readlink(proc(pid, ("ns/" + std::string(kind)).c_str()).c_str(), to, sizeof to);
      if (n > 0) found.insert(std::string(to, static_cast<size_t>(n)));
    }
  };
  look(getpid());
  for (const Seen& s : processes) look(s.pid);
  return found.size();
}

size_t descriptors_of(pid_t pid) {
  size_t n = 0;
  std::error_code none;
  for ([[maybe_unused]] const auto& e : fs::directory_iterator(proc(pid, "fd"), none)) n++;
  return n;
}

long resident_kib(pid_t pid) {
  std::istringstream in(read_file(proc(pid, "status")));
  for (std::string line; std::getline(in, line);)
    if (line.rfind("VmRSS:", 0) == 0) return atol(line.c_str() + 6);
  return 0;
}

}  // namespace h5i::test
