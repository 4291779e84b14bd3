#include "probe.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace h5i::tier_workspace {
namespace {

bool write_file(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write(fd, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  if (fd >= 0) close(fd);
  return ok;
}

// In a forked child. 0, or the errno of what failed.
int enter() {
  char uid_map[64], gid_map[64];
  snprintf(uid_map, sizeof uid_map, "%u %u 1", getuid(), getuid());
  snprintf(gid_map, sizeof gid_map, "%u %u 1", getgid(), getgid());
  // The host process is not dumpable, which makes /proc/self root's; the maps are written there.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  errno = 0;
  if (unshare(CLONE_NEWUSER) != 0 || !write_file("/proc/self/setgroups", "deny") ||
      !write_file("/proc/self/uid_map", uid_map) || !write_file("/proc/self/gid_map", gid_map) ||
      unshare(CLONE_NEWPID) != 0)
    return errno != 0 ? errno : EPROTO;
  pid_t first = fork();
  if (first < 0) return errno;
  if (first == 0) _exit(getpid() == 1 ? 0 : 1);
  int status = 0;
  waitpid(first, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EPROTO;
}

}  // namespace

Trial try_namespaces() {
  pid_t child = fork();
  if (child < 0) return {false, std::string("fork: ") + strerror(errno)};
  if (child == 0) {
    alarm(2);
    _exit(enter());  // errno values fit an exit status
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {true, "user and pid namespaces entered with the caller's own ids"};
  return {false, std::string("user or pid namespace: ") +
                     (WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "the trial did not end")};
}

json::Value probe_document(const Trial& namespaces) {
  json::Array claims;
  for (const char* claim : {"resources.wall", "resources.output", "env.pass", "env.set", "tools"})
    claims.push_back(claim);
  json::Array components;
  components.push_back(
      json::Object{{"id", kPidNamespace},
                   {"ok", namespaces.ok},
                   {"evidence", namespaces.ok ? namespaces.evidence
                                              : namespaces.evidence + "; descendants are then found by walking"},
                   {"reason", namespaces.ok ? "" : "tier.probe.missing"}});
  return json::Object{{"schema", "h5i.probe/1"},     {"tier", "workspace"},
                      {"available", true},           {"components", std::move(components)},
                      {"claims", std::move(claims)}, {"missing", json::Array{}}};
}

}  // namespace h5i::tier_workspace
