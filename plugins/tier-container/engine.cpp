#include "engine.hpp"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace h5i::container {
namespace {

constexpr const char* kFolders[] = {"/usr/bin/", "/usr/local/bin/", "/bin/"};
constexpr size_t kMaxSaid = 4096, kMaxTable = 1 << 20;
constexpr unsigned kSeconds = 3;         // a program that says nothing of its version in that time is not used
constexpr uint64_t kFewestIds = 65536;   // an image's files belong to any of them
constexpr int kOldestPodman[] = {4, 3};  // has every option that `command` gives; tried with that of Debian 12
constexpr int kOldestCrun[] = {1, 8};

// One that nobody but root could have put there.
Program find(const char* name) {
  Program out;
  for (const char* folder : kFolders) {
    struct stat st {};
    std::string path = std::string(folder) + name;
    if (stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IXOTH)) continue;
    out.path = path;
    if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH))) out.fault = path + " is not root's alone";
    return out;
  }
  return out;
}

// Runs a program without a shell and with nothing of ours in its environment; what it said, at most kMaxSaid bytes. -1: it did not end well.
// `home`: where podman makes directories, even to say its version. `errors`: what it says on the other stream too.
int run(const std::vector<std::string>& words, std::string* said, const std::string& home = "/nonexistent", bool errors = true) {
  int p[2];
  if (pipe2(p, O_CLOEXEC) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(p[1], 1);
    dup2(errors ? p[1] : null, 2);
    std::vector<char*> argv;
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    const std::string h = "HOME=" + home, x = "XDG_RUNTIME_DIR=" + home;
    const char* env[] = {"PATH=/usr/bin:/bin", h.c_str(), x.c_str(), "CONTAINERS_CONF=/dev/null", nullptr};
    execve(argv[0], argv.data(), const_cast<char**>(env));
    _exit(127);
  }
  close(p[1]);
  char buffer[1024];
  for (ssize_t n; child > 0 && (n = read(p[0], buffer, sizeof buffer)) > 0;)
    if (said->size() < kMaxSaid) said->append(buffer, static_cast<size_t>(n));
  close(p[0]);
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Program ask_version(const char* name) {
  Program out = find(name);
  if (out.path.empty() || !out.fault.empty()) return out;
  std::string said;
  char home[] = "/tmp/h5i-engine-XXXXXX";
  if (!mkdtemp(home)) {
    out.fault = "no place for what " + out.path + " makes to say its version";
    return out;
  }
  int status = run({out.path, "--version"}, &said, home, false);
  nftw(home, [](const char* p, const struct stat*, int, FTW*) { return remove(p); }, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
  if (status != 0) out.fault = out.path + " does not say its version";
  out.version = said.substr(0, said.find('\n'));
  return out;
}

std::string table(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::string out(kMaxTable, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<size_t>(in.gcount()));
  return out;
}

// A child in a user namespace of its own, into which the set-user-id helpers map a range: the only proof that they may.
std::string try_mapping(const EngineFacts& f) {
  int ready[2], go[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return "pipe";
  if (pipe2(go, O_CLOEXEC) != 0) {
    close(ready[0]);
    close(ready[1]);
    return "pipe";
  }
  pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    close(go[1]);
    char byte = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
    (void)!write(ready[1], &byte, 1);
    (void)!read(go[0], &byte, 1);
    _exit(0);
  }
  close(ready[1]);
  close(go[0]);
  std::string fault, said;
  char byte = 'n';
  if (child < 0 || read(ready[0], &byte, 1) != 1 || byte != 'y') fault = "no user namespace for this user";
  const std::string pid = std::to_string(child);
  auto map = [&](const Program& helper, uint32_t own, const Range& r) {
    std::vector<std::string> words{helper.path, pid, "0", std::to_string(own), "1", "1", std::to_string(r.first), std::to_string(r.count)};
    if (fault.empty() && run(words, &said) != 0) fault = helper.path + " refused: " + said.substr(0, said.find('\n'));
  };
  map(f.newuidmap, f.uid, f.uids[0]);
  map(f.newgidmap, getegid(), f.gids[0]);
  close(go[1]);
  close(ready[0]);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return fault;
}

Component program(std::string id, const Program& p, const char* package, const int* oldest) {
  Component c{std::move(id)};
  c.evidence = p.path + (p.version.empty() ? "" : ": " + p.version);
  if (p.path.empty()) c.evidence = std::string("not installed (the package ") + package + ")";
  else if (!p.fault.empty()) c.evidence = p.fault;
  else if (oldest && !at_least(p.version, oldest[0], oldest[1])) c.evidence += ", which is older than " + std::to_string(oldest[0]) + "." + std::to_string(oldest[1]);
  else c.ok = true;
  return c;
}

uint64_t largest(const std::vector<Range>& ranges) {
  uint64_t out = 0;
  for (const Range& r : ranges) out = std::max(out, r.count);
  return out;
}

}  // namespace

std::vector<Range> ranges_of(std::string_view text, std::string_view user, uint32_t uid) {
  std::vector<Range> out;
  const std::string id = std::to_string(uid);
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t a = line.find(':'), b = a == std::string_view::npos ? a : line.find(':', a + 1);
    if (b == std::string_view::npos) continue;
    std::string_view who = line.substr(0, a);
    if (who.empty() || (who != user && who != id)) continue;
    Range r;
    auto number = [](std::string_view s, uint64_t& to) {
      auto [p, e] = std::from_chars(s.data(), s.data() + s.size(), to);
      return e == std::errc() && p == s.data() + s.size();
    };
    // Ids of 32 bits; 0 is never given out.
    if (!number(line.substr(a + 1, b - a - 1), r.first) || !number(line.substr(b + 1), r.count) || r.first == 0 || r.count == 0 || r.first > UINT32_MAX || r.count > UINT32_MAX - r.first) continue;
    out.push_back(r);
  }
  std::stable_sort(out.begin(), out.end(), [](const Range& x, const Range& y) { return x.count > y.count; });
  return out;
}

bool at_least(std::string_view version, int major, int minor) {
  size_t at = version.find("version ");
  if (at == std::string_view::npos) return false;
  const char *p = version.data() + at + 8, *end = version.data() + version.size();
  int a = 0, b = 0;
  auto first = std::from_chars(p, end, a);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
  if (std::from_chars(first.ptr + 1, end, b).ec != std::errc()) return false;
  return a > major || (a == major && b >= minor);
}

EngineFacts read_engine() {
  EngineFacts f;
  f.uid = geteuid();
  passwd entry{}, *found = nullptr;
  char buffer[16384];
  if (getpwuid_r(f.uid, &entry, buffer, sizeof buffer, &found) == 0 && found) f.user = found->pw_name;
  f.docker = !find("docker").path.empty() || access("/run/docker.sock", F_OK) == 0;
  f.podman = find("podman");
  // Root's podman is not asked anything: it is not used, and it would make its directories.
  if (f.uid == 0) return f;
  f.podman = ask_version("podman");
  f.crun = ask_version("crun");
  f.newuidmap = find("newuidmap");
  f.newgidmap = find("newgidmap");
  f.uids = ranges_of(table("/etc/subuid"), f.user, f.uid);
  f.gids = ranges_of(table("/etc/subgid"), f.user, f.uid);
  f.mapping = f.newuidmap.path.empty() || f.newgidmap.path.empty() || f.uids.empty() || f.gids.empty() ? "not tried" : try_mapping(f);
  return f;
}

std::vector<Component> judge_engine(const EngineFacts& f) {
  std::vector<Component> out;
  Component rootless{"rootless", f.uid != 0, f.uid != 0 ? "podman would run as the user " + std::to_string(f.uid) : "h5i runs as root, and rootful podman is refused: what leaves its container is root on the host"};
  out.push_back(rootless);
  out.push_back(program("podman", f.podman, "podman", f.uid ? kOldestPodman : nullptr));
  if (f.podman.path.empty() && f.docker) out.back().evidence += "; docker is there and refused: its daemon runs as root, and who may speak to it is root on the host";
  if (f.uid == 0) return out;
  out.push_back(program("crun", f.crun, "crun", kOldestCrun));
  out.push_back(program("newuidmap", f.newuidmap, "uidmap", nullptr));
  out.push_back(program("newgidmap", f.newgidmap, "uidmap", nullptr));
  Component ids{"subordinate-ids"};
  uint64_t fewest = std::min(largest(f.uids), largest(f.gids));
  ids.ok = fewest >= kFewestIds;
  ids.evidence = ids.ok ? std::to_string(fewest) + " ids of this user's own" : "/etc/subuid and /etc/subgid give this user " + std::to_string(fewest) + " ids in a row; 65536 are needed";
  out.push_back(ids);
  out.push_back({"id-mapping", f.mapping.empty(), f.mapping.empty() ? "a range was mapped into a user namespace" : f.mapping});
  Component group{"cgroup", f.cgroup["available"].boolean(), {}, false};
  if (group.ok) group.evidence = f.cgroup["base"].string() + " via " + f.cgroup["via"].string();
  else group.evidence = (f.cgroup.is_null() ? std::string("not asked") : f.cgroup["reason"].string()) + ": a limit that the profile names is refused, a built-in one is reported";
  out.push_back(group);
  return out;
}

}  // namespace h5i::container
