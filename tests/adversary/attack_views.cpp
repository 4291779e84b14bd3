// Tries of h5i-attack: what the view shows, and whether it can be left.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "attack.hpp"

namespace attack {
namespace {

// Whether what is at PATH is the kernel's own file: read, and not covered by a mount of somebody else's.
long do_kernel_file(const Words& w) {
  struct statfs f {};
  if (statfs(w[0], &f) != 0) return -1;
  constexpr long kProc = 0x9fa0;
  return static_cast<long>(f.f_type) == kProc ? 0 : refused(EACCES);
}
// Whether the mount at PATH may be written to, whatever the permissions of the file say.
long do_writable_mount(const Words& w) {
  struct statvfs f {};
  if (statvfs(w[0], &f) != 0) return -1;
  return f.f_flag & ST_RDONLY ? refused(EROFS) : 0;
}
// A mount that honours set-user-id bits, or device nodes elsewhere than on a single node.
long do_loose_mount(const Words&) {
  FILE* f = fopen("/proc/self/mountinfo", "re");
  if (!f) return -1;
  char line[8192];
  long found = 0;
  while (fgets(line, sizeof line, f)) {
    char target[4096], options[1024];
    if (sscanf(line, "%*s %*s %*s %*s %4095s %1023s", target, options) != 2) continue;
    bool device = strncmp(target, "/dev/", 5) == 0;
    if (!strstr(options, "nosuid") || (!device && !strstr(options, "nodev"))) {
      say("%s %s", target, options);
      found++;
    }
  }
  fclose(f);
  return found ? 0 : refused(EROFS);
}
// Variables besides those named.
long do_environment(const Words& w) {
  long found = 0;
  for (char** e = environ; *e; e++) {
    bool known = false;
    for (int i = 0; i < w.count; i++) {
      size_t n = strlen(w[i]);
      known |= strncmp(*e, w[i], n) == 0 && (*e)[n] == '=';
    }
    if (known) continue;
    say("%s", *e);
    found++;
  }
  return found ? 0 : refused(ENOENT);
}
// Whether this machine is called NAME.
long do_hostname(const Words& w) {
  utsname u{};
  if (uname(&u) != 0) return -1;
  return is(u.nodename, w[0]) ? 0 : refused(ENOENT);
}
// Whether the control group shows a place in the host's tree.
long do_cgroup_path(const Words&) {
  char text[4096] = {};
  int fd = open("/proc/self/cgroup", O_RDONLY);
  if (fd < 0) return -1;
  (void)!read(fd, text, sizeof text - 1);
  for (char* line = text; line && *line;) {
    char* end = strchr(line, '\n');
    if (end) *end = 0;
    const char* path = strrchr(line, ':');
    if (path && !is(path, ":/")) {
      say("%s", line);
      return 0;
    }
    line = end ? end + 1 : nullptr;
  }
  return refused(ENOENT);
}
// The ids a program here has: did when it is the machine's root, or can become another.
long do_become(const Words& w) {
  auto id = static_cast<uid_t>(number(w[0]));
  if (geteuid() == id) return 0;
  return setresuid(id, id, id);
}
long do_chdir_up(const Words&) {
  int fd = open("/", O_RDONLY | O_DIRECTORY);
  if (fd < 0 || chroot("/tmp") != 0) return -1;
  return fchdir(fd);
}

}  // namespace

std::span<const Try> view_tries() {
  static constexpr Try kTries[] = {
      {"kernel-file", do_kernel_file},
      {"writable-mount", do_writable_mount},
      {"loose-mount", do_loose_mount},
      {"environment", do_environment},
      {"hostname", do_hostname},
      {"cgroup-path", do_cgroup_path},
      {"become", do_become},
      {"chroot", do_chdir_up},
  };
  return kTries;
}

}  // namespace attack
