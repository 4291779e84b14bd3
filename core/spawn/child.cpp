// The only code that runs between clone and exec. It runs in a copy of the spawner's memory in which any lock may be
// held for ever, so: system calls by instruction, no allocation, no locale, no exceptions, nothing of libc that locks.
// The undefined symbols of this object are on an allow-list (tests/spawn/child_symbols.txt).
//
// Order, and why it is this one:
//  1. ids. Until the spawner wrote the maps nothing can be created. As root the process still has the host's uid 0 then
//     (without any capability in the host's namespace), so it leaves that uid before it touches a file.
//  2. mounts, while the capabilities of the outer user namespace (U1) are there. proc is mounted before the old root is
//     detached: the kernel allows a new procfs only where a fully visible one already is.
//  3. a nested user namespace (U2) with its own mount namespace: a mount namespace copied into a less privileged user
//     namespace has every mount locked, so no mask can be taken off, and nothing in U2 has a capability over U1's
//     network, hostname or mounts.
//  4. all capability sets emptied; no_new_privs, so that no exec brings any back.
//  5. PDEATHSIG, once more. The kernel clears it when credentials change, so it comes after the last change; then a look at the
//     parent's pidfd, because a parent that died before the prctl sends nothing.
//  6. h5i-init takes over pid 1 by descriptor. The workload is its child from here on, and goes no further than its own
//     set-up before that exec has happened: until then pid 1 is a copy of the spawner, with the session's secrets in
//     its memory and the same uid as the workload. It is not dumpable from before the fork, so not even this window is
//     open.
//  7. in the workload: descriptors closed, limits, then Landlock (its rules name paths as the workload will see them),
//     seccomp last (everything before it may use calls that the filter refuses), ready, go, exec.
#include "core/spawn/child.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/os/landlock.hpp"
#include "core/os/mount.hpp"
#include "core/os/raw_syscall.hpp"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

namespace h5i::spawn {
namespace {

using os::raw_arg;

template <class... Args>
long sys(long nr, Args... args) {
  return os::raw_syscall(nr, static_cast<long>(args)...);
}
int fd_of(long result) { return static_cast<int>(result); }

constexpr long kFsconfigSetString = 1, kFsconfigCreate = 6;
constexpr long kMoveFromEmpty = 0x04, kMoveToEmpty = 0x40;
constexpr long kEmptyPath = 0x1000;  // AT_EMPTY_PATH
constexpr uint64_t kNoLinks = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
constexpr int kReport = 3, kGate = 4, kExec = 5, kInitExec = 6;  // where the workload keeps them

[[noreturn]] void leave(int status) {
  for (;;) sys(__NR_exit_group, status);
}

void report(int fd, uint32_t what, uint16_t stage, uint16_t index, long err) {
  ChildReport r{what, stage, index, static_cast<int32_t>(-err)};
  sys(__NR_write, fd, raw_arg(&r), sizeof r);
}

// A failed step ends everything: the spawner hears which, nothing runs half confined.
struct Steps {
  int report_fd;
  uint16_t stage = kStageNone;
  uint16_t index = 0;
  void enter(Stage s, size_t i = 0) {
    stage = s;
    index = static_cast<uint16_t>(i);
  }
  [[noreturn]] void fail(long err) const {
    report(report_fd, ChildReport::kSetupFailed, stage, index, err);
    leave(kExitSetupFailed);
  }
  long need(long result) const {
    if (result < 0) fail(result);
    return result;
  }
};

void close_fd(int fd) {
  if (fd >= 0) sys(__NR_close, fd);
}

bool equal(const char* a, const char* b) {
  while (*a && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

long openat2_at(int dir, const char* path, uint64_t flags, uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve;
  long fd;
  int tries = 0;
  do {  // EAGAIN: a rename elsewhere made the walk uncertain
    fd = sys(__NR_openat2, dir, raw_arg(path), raw_arg(&how), sizeof how);
  } while ((fd == -EAGAIN || fd == -EINTR) && ++tries < 64);
  return fd;
}

long stat_of(int fd, struct stat* st) {
#ifdef __NR_newfstatat
  return sys(__NR_newfstatat, fd, raw_arg(""), raw_arg(st), kEmptyPath);
#else
  return sys(__NR_fstatat, fd, raw_arg(""), raw_arg(st), kEmptyPath);
#endif
}

// The new root, and the file systems that are ours to create names in. A name is never created on anything else: a
// missing mount point beneath a bind would be litter in the host's tree.
class Root {
 public:
  explicit Root(Steps& steps) : s_(steps) {}

  int fd() const { return root_; }

  void make(const ChildProgram& p) {
    lasting_files_ = p.lasting_files;
    root_ = filesystem("tmpfs", p.root_size, p.root_inodes, "0755", os::kMountNoSuid | os::kMountNoDev);
    own(root_);
    // On top of "/" of the copied view: paths of this process still begin at the mount beneath, so sources resolve as
    // on the host, and no directory of the host has to serve as a mount point.
    s_.need(sys(__NR_move_mount, root_, raw_arg(""), AT_FDCWD, raw_arg("/"), kMoveFromEmpty));
  }

  void mount(const ChildMount& m) {
    switch (m.kind) {
      case ChildMount::kBind:
        return bind(m);
      case ChildMount::kTmpfs: {
        int fs = filesystem("tmpfs", m.size, m.inodes, m.mode_text, m.attr);
        place(fs, m.target, true);
        own(fs);
        return close_fd(fs);
      }
      case ChildMount::kProc: {
        int fs = filesystem("proc", nullptr, nullptr, nullptr, os::kMountNoSuid | os::kMountNoDev | os::kMountNoExec);
        place(fs, m.target, true);
        return close_fd(fs);
      }
      case ChildMount::kDevpts: {
        int fs = filesystem("devpts", nullptr, nullptr, "0620", os::kMountNoSuid | os::kMountNoExec);
        place(fs, m.target, true);
        return close_fd(fs);
      }
      case ChildMount::kMask:
        return mask(m);
      case ChildMount::kDir:
        return directory(m);
      case ChildMount::kFile:
        return file(m);
      case ChildMount::kSymlink:
        return symlink(m);
    }
  }

 private:
  static constexpr size_t kMaxOwn = 64;
  static constexpr const char* kScratch = ".h5i-scratch";

  // fsopen, fsconfig, fsmount: nothing passes through a path or a mount option string.
  int filesystem(const char* type, const char* size, const char* inodes, const char* mode, uint64_t attr) {
    int fs = fd_of(s_.need(sys(__NR_fsopen, raw_arg(type), 1 /* FSOPEN_CLOEXEC */)));
    auto set = [&](const char* key, const char* value) {
      if (value) s_.need(sys(__NR_fsconfig, fs, kFsconfigSetString, raw_arg(key), raw_arg(value), 0));
    };
    set("size", size);
    set("nr_inodes", inodes);
    set("mode", mode);
    if (equal(type, "devpts")) set("ptmxmode", "0666");
    s_.need(sys(__NR_fsconfig, fs, kFsconfigCreate, 0, 0, 0));
    int m = fd_of(s_.need(sys(__NR_fsmount, fs, 1 /* FSMOUNT_CLOEXEC */, attr)));
    close_fd(fs);
    return m;
  }

  void own(int fd) {
    struct stat st;
    s_.need(stat_of(fd, &st));
    if (own_count_ == kMaxOwn) s_.fail(-E2BIG);
    own_[own_count_++] = st.st_dev;
  }

  bool is_own(int fd) const {
    struct stat st;
    if (stat_of(fd, &st) < 0) return false;
    for (size_t i = 0; i < own_count_; i++)
      if (own_[i] == st.st_dev) return true;
    return false;
  }
  bool on_root(int fd) const {
    struct stat st;
    return stat_of(fd, &st) == 0 && st.st_dev == own_[0];
  }

  enum class Create { no, directory, file };

  // Walks to `target` component by component from the new root, through what is mounted so far and through no symbolic
  // link. With `parent`, stops at the directory of the last component and hands its name back. Negative errno on
  // failure.
  long walk(const char* target, Create create, unsigned mode, bool parent, char* last) {
    int at = root_;
    for (;;) {
      size_t n = 0;
      while (target[n] && target[n] != '/' && n < 255) {
        last[n] = target[n];
        n++;
      }
      last[n] = 0;
      bool final = target[n] == 0;
      if (final && parent) return at == root_ ? sys(__NR_fcntl, root_, F_DUPFD_CLOEXEC, 10) : at;
      target += n + (final ? 0 : 1);
      long next = openat2_at(at, last, O_PATH, RESOLVE_BENEATH | kNoLinks);
      if (next == -ENOENT && (create != Create::no || (parent && !final))) {
        next = is_own(at) ? make(at, last, final && create == Create::file, final ? mode : 0755) : -EROFS;
        if (next >= 0) next = openat2_at(at, last, O_PATH, RESOLVE_BENEATH | kNoLinks);
      }
      if (at != root_) close_fd(at);
      if (next < 0 || final) return next;
      at = fd_of(next);
    }
  }

  long make(int dir, const char* name, bool file, unsigned mode) {
    if (!file) {
      long r = sys(__NR_mkdirat, dir, raw_arg(name), mode);
      return r < 0 ? r : sys(__NR_fchmodat, dir, raw_arg(name), mode);
    }
    long fd = sys(__NR_openat, dir, raw_arg(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) return fd;
    close_fd(fd_of(fd));
    return 0;
  }

  void place(int tree, const char* target, bool is_directory) {
    char last[256];
    int at = fd_of(s_.need(
        walk(target, is_directory ? Create::directory : Create::file, is_directory ? 0755 : 0644, false, last)));
    s_.need(sys(__NR_move_mount, tree, raw_arg(""), at, raw_arg(""), kMoveFromEmpty | kMoveToEmpty));
    close_fd(at);
  }

  void set_flags(int tree, uint64_t attr, bool recursive) {
    if (!attr) return;
    os::MountAttr a;
    a.set = attr;
    s_.need(sys(__NR_mount_setattr, tree, raw_arg(""), kEmptyPath | (recursive ? os::kAtRecursive : 0u), raw_arg(&a),
                sizeof a));
  }

  int clone_tree(int at, const char* path, bool recursive) {
    long flags = os::kOpenTreeClone | O_CLOEXEC | (recursive ? static_cast<long>(os::kAtRecursive) : 0) |
                 (path[0] ? AT_SYMLINK_NOFOLLOW : kEmptyPath);
    return fd_of(s_.need(sys(__NR_open_tree, at, raw_arg(path), flags)));
  }

  void bind(const ChildMount& m) {
    int tree = m.tree;
    if (tree < 0) {
      // The source is opened once, without links, and what was opened is what gets mounted: no second walk by path.
      int source = fd_of(s_.need(openat2_at(AT_FDCWD, m.source, O_PATH, kNoLinks)));
      tree = clone_tree(source, "", m.recursive);
      close_fd(source);
      set_flags(tree, m.attr, m.recursive);
    }
    struct stat st;
    s_.need(stat_of(tree, &st));
    if (S_ISLNK(st.st_mode)) s_.fail(-ELOOP);
    place(tree, m.target, S_ISDIR(st.st_mode));
    close_fd(tree);
  }

  // An empty node without permissions on a read-only mount of its own: a directory is a tmpfs, a file is a file of
  // ours. Neither is a bind of /dev/null, which a second process could swap for something else (CVE-2025-31133).
  void mask(const ChildMount& m) {
    char last[256];
    long found = walk(m.target, Create::no, 0, false, last);
    if (found == -ENOENT && m.optional) return;
    bool is_directory = false;
    if (found >= 0) {
      struct stat st;
      s_.need(stat_of(fd_of(found), &st));
      is_directory = S_ISDIR(st.st_mode);
      close_fd(fd_of(found));
    } else if (found != -ENOENT) {
      s_.fail(found);
    }
    constexpr uint64_t kSealed = os::kMountReadOnly | os::kMountNoSuid | os::kMountNoDev | os::kMountNoExec;
    int tree = -1;
    if (is_directory) {
      tree = filesystem("tmpfs", "4096", "2", "0000", kSealed);
    } else {
      scratch("", 0, 0);
      tree = clone_tree(root_, kScratch, false);
      set_flags(tree, kSealed, false);
    }
    place(tree, m.target, is_directory);
    close_fd(tree);
    if (!is_directory) drop_scratch();
  }

  void directory(const ChildMount& m) {
    char last[256];
    int at = fd_of(s_.need(walk(m.target, Create::directory, m.mode, false, last)));
    struct stat st;
    s_.need(stat_of(at, &st));
    if (!S_ISDIR(st.st_mode)) s_.fail(-ENOTDIR);
    close_fd(at);
  }

  void scratch(const char* content, size_t len, unsigned mode) { write_file(root_, kScratch, content, len, mode); }

  // Only after it was mounted: a tree whose root has no name cannot be attached. The mount then outlives the name.
  void drop_scratch() { s_.need(sys(__NR_unlinkat, root_, raw_arg(kScratch), 0)); }

  void write_file(int dir, const char* name, const char* content, size_t len, unsigned mode) {
    int fd = fd_of(
        s_.need(sys(__NR_openat, dir, raw_arg(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)));
    for (size_t done = 0; done < len;)
      done += static_cast<size_t>(s_.need(sys(__NR_write, fd, raw_arg(content + done), len - done)));
    s_.need(sys(__NR_fchmod, fd, mode));
    close_fd(fd);
  }

  // On the root's own tmpfs it is a file there, read-only with the root. Anywhere else it is mounted over the name.
  void file(const ChildMount& m) {
    char last[256];
    int dir = fd_of(s_.need(walk(m.target, Create::no, 0, true, last)));
    bool here = on_root(dir) && openat2_at(dir, last, O_PATH, RESOLVE_BENEATH | kNoLinks) == -ENOENT;
    if (here) write_file(dir, last, m.content, m.content_len, m.mode);
    close_fd(dir);
    if (here) return;
    if (lasting_files_) return lasting_file(m);
    scratch(m.content, m.content_len, m.mode);
    int tree = clone_tree(root_, kScratch, false);
    set_flags(tree, os::kMountReadOnly | os::kMountNoSuid | os::kMountNoDev, false);
    place(tree, m.target, false);
    close_fd(tree);
    drop_scratch();
  }

  // Nothing can be mounted over a file that has no name any more. This one keeps its own, on a file system that is seen nowhere
  // else: kernels before 6.15 copy mounted trees only, so it is mounted for that moment.
  void lasting_file(const ChildMount& m) {
    s_.need(sys(__NR_mkdirat, root_, raw_arg(kScratch), 0700));
    int at = fd_of(s_.need(openat2_at(root_, kScratch, O_PATH, RESOLVE_BENEATH | kNoLinks)));
    int fs = filesystem("tmpfs", "2097152", "4", "0755", os::kMountNoSuid | os::kMountNoDev);
    s_.need(sys(__NR_move_mount, fs, raw_arg(""), at, raw_arg(""), kMoveFromEmpty | kMoveToEmpty));
    write_file(fs, "file", m.content, m.content_len, m.mode);
    int tree = clone_tree(fs, "file", false);
    set_flags(tree, os::kMountReadOnly | os::kMountNoSuid | os::kMountNoDev, false);
    place(tree, m.target, false);
    close_fd(tree);
    s_.need(sys(__NR_fchdir, fs));  // to name what is unmounted; the next directory is the new root
    s_.need(sys(__NR_umount2, raw_arg("."), MNT_DETACH));
    close_fd(fs);
    close_fd(at);
    s_.need(sys(__NR_unlinkat, root_, raw_arg(kScratch), AT_REMOVEDIR));
  }

  void symlink(const ChildMount& m) {
    char last[256];
    int dir = fd_of(s_.need(walk(m.target, Create::no, 0, true, last)));
    if (!is_own(dir)) s_.fail(-EROFS);
    s_.need(sys(__NR_symlinkat, raw_arg(m.to), dir, raw_arg(last)));
    close_fd(dir);
  }

  Steps& s_;
  int root_ = -1;
  bool lasting_files_ = false;
  dev_t own_[kMaxOwn];
  size_t own_count_ = 0;
};

void enter_ids(const ChildProgram& p, Steps& s) {
  s.enter(kStageIds);
  if (p.wait_for_maps) {
    char c;
    if (sys(__NR_read, p.report, raw_arg(&c), 1) != 1) leave(kExitSetupFailed);  // the spawner knows why
  }
  if (p.set_ids) {
    s.need(sys(__NR_setresgid, p.gid, p.gid, p.gid));
    s.need(sys(__NR_setresuid, p.uid, p.uid, p.uid));
  }
  // A change of ids made the process undumpable, and with that /proc/self root's: the nested map could not be written.
  s.need(sys(__NR_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0));
}

void enter_root(const ChildProgram& p, Steps& s) {
  s.enter(kStageRoot);
  // Nothing that is mounted here may reach the host, and pivot_root refuses shared mounts.
  s.need(sys(__NR_mount, 0, raw_arg("/"), 0, MS_REC | MS_PRIVATE, 0));
  Root root(s);
  root.make(p);
  for (size_t i = 0; i < p.mount_count; i++) {
    s.enter(kStageMount, i);
    root.mount(p.mounts[i]);
  }
  // pivot_root(".", "."): the old root lands on top of the new one and is detached from there, so that no directory for
  // it has to exist (pivot_root(2), NOTES).
  s.enter(kStagePivot);
  s.need(sys(__NR_fchdir, root.fd()));
  s.need(sys(__NR_pivot_root, raw_arg("."), raw_arg(".")));
  s.need(sys(__NR_umount2, raw_arg("."), MNT_DETACH));
  s.need(sys(__NR_chdir, raw_arg("/")));
  os::MountAttr read_only;
  read_only.set = os::kMountReadOnly;
  s.need(sys(__NR_mount_setattr, root.fd(), raw_arg(""), kEmptyPath, raw_arg(&read_only), sizeof read_only));
  close_fd(root.fd());
}

void raise_loopback(Steps& s) {
  s.enter(kStageLoopback);
  int fd = fd_of(s.need(sys(__NR_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  ifreq r{};
  r.ifr_name[0] = 'l';
  r.ifr_name[1] = 'o';
  s.need(sys(__NR_ioctl, fd, SIOCGIFFLAGS, raw_arg(&r)));
  r.ifr_flags = static_cast<short>(r.ifr_flags | IFF_UP);
  s.need(sys(__NR_ioctl, fd, SIOCSIFFLAGS, raw_arg(&r)));
  close_fd(fd);
}

void write_at(int dir, const char* name, const char* text, Steps& s) {
  int fd = fd_of(s.need(sys(__NR_openat, dir, raw_arg(name), O_WRONLY | O_CLOEXEC)));
  long n = 0;
  while (text[n]) n++;
  if (s.need(sys(__NR_write, fd, raw_arg(text), n)) != n) s.fail(-EIO);
  close_fd(fd);
}

// `self` is a descriptor of this process's own directory in the host's procfs, opened before any mount: the maps are
// written where no mount of the plan can stand in between (CVE-2025-52881).
void enter_nested(const ChildProgram& p, int self, Steps& s) {
  s.enter(kStageNested);
  s.need(sys(__NR_unshare, CLONE_NEWUSER | CLONE_NEWNS));
  // setgroups stays denied: the nested namespace inherited that.
  write_at(self, "uid_map", p.nested_uid_map, s);
  write_at(self, "gid_map", p.nested_gid_map, s);
}

void drop_capabilities(Steps& s) {
  s.enter(kStageCapabilities);
  s.need(sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
  // The bounding set first: it takes CAP_SETPCAP. EINVAL ends the list at the newest capability of this kernel.
  for (long cap = 0; cap < 64; cap++) {
    long r = sys(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (r == -EINVAL) break;
    s.need(r);
  }
  s.need(sys(__NR_prctl, PR_SET_SECUREBITS,
             SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                 SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
             0, 0, 0));
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  s.need(sys(__NR_capset, raw_arg(&header), raw_arg(data)));
}

bool has_ended(int pidfd) {
  pollfd q{pidfd, POLLIN, 0};
  timespec now{0, 0};
  return sys(__NR_ppoll, raw_arg(&q), 1, raw_arg(&now), 0, 0) != 0;
}

void die_with_parent(const ChildProgram& p, Steps& s) {
  s.enter(kStageParent);
  constexpr long kSigKill = 9;
  s.need(sys(__NR_prctl, PR_SET_PDEATHSIG, kSigKill, 0, 0, 0));
  if (has_ended(p.spawner_pidfd)) leave(kExitSetupFailed);
}

// `init_exec`: see await_init().
void set_stdio(const ChildProgram& p, int init_exec, Steps& s) {
  s.enter(kStageStdio);
  // The sources are above 9, the places below: no duplicate overwrites a source.
  for (int i = 0; i < 3; i++) s.need(sys(__NR_dup3, p.stdio[i], i, 0));
  s.need(sys(__NR_dup3, p.report, kReport, O_CLOEXEC));
  if (p.gate >= 0)
    s.need(sys(__NR_dup3, p.gate, kGate, O_CLOEXEC));
  else
    sys(__NR_close, kGate);
  if (p.exec_fd >= 0)
    s.need(sys(__NR_dup3, p.exec_fd, kExec, O_CLOEXEC));
  else
    sys(__NR_close, kExec);
  if (init_exec >= 0)
    s.need(sys(__NR_dup3, init_exec, kInitExec, O_CLOEXEC));
  else
    sys(__NR_close, kInitExec);
  s.report_fd = kReport;
  s.need(sys(__NR_close_range, kInitExec + 1, ~0u, 0));
}

void lower_limits(const ChildProgram& p, Steps& s) {
  struct Limit {
    uint64_t soft, hard;
  };
  for (size_t i = 0; i < p.rlimit_count; i++) {
    s.enter(kStageRlimit, i);
    const ChildRlimit& want = p.rlimits[i];
    Limit now{}, next{};
    s.need(sys(__NR_prlimit64, 0, want.resource, 0, raw_arg(&now)));
    next.hard = want.hard < now.hard ? want.hard : now.hard;
    next.soft = want.soft < now.soft ? want.soft : now.soft;
    if (next.soft > next.hard) next.soft = next.hard;
    s.need(sys(__NR_prlimit64, 0, want.resource, raw_arg(&next), 0));
  }
}

void enter_landlock(const ChildProgram& p, Steps& s) {
  s.enter(kStageLandlock);
  int rules = fd_of(s.need(sys(__NR_landlock_create_ruleset, raw_arg(p.landlock_attr), p.landlock_attr_size, 0)));
  for (size_t i = 0; i < p.landlock_rule_count; i++) {
    s.enter(kStageLandlockRule, i);
    const ChildLandlockRule& r = p.landlock_rules[i];
    if (!r.path) {
      os::landlock::NetPort port{r.access, r.port};
      s.need(sys(__NR_landlock_add_rule, rules, os::landlock::kRuleNetPort, raw_arg(&port), 0));
      continue;
    }
    int fd = fd_of(s.need(openat2_at(AT_FDCWD, r.path, O_PATH, kNoLinks)));
    struct stat st;
    s.need(stat_of(fd, &st));
    // Rights that only mean something for directories are refused on a file, and would grant nothing there.
    uint64_t access = S_ISDIR(st.st_mode) ? r.access : r.access & os::landlock::kFileRights;
    os::landlock::PathBeneath beneath{access, fd};
    if (access) s.need(sys(__NR_landlock_add_rule, rules, os::landlock::kRulePathBeneath, raw_arg(&beneath), 0));
    close_fd(fd);
  }
  s.enter(kStageLandlock);
  s.need(sys(__NR_landlock_restrict_self, rules, 0));
  close_fd(rules);
}

void send_listener(int listener) {
  ChildReport r{ChildReport::kListener, 0, 0, 0};
  iovec v{&r, sizeof r};
  // One SCM_RIGHTS block for one descriptor; the macros used here only compute.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  auto* header = reinterpret_cast<cmsghdr*>(control);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  *reinterpret_cast<int*>(control + CMSG_LEN(0)) = listener;
  msghdr m{};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  if (sys(__NR_sendmsg, kReport, raw_arg(&m), MSG_NOSIGNAL) < 0) leave(kExitSetupFailed);
}

// From here on every call must be one that the filter lets through: decode_plan() has evaluated it for exactly sendmsg,
// write, read, execve or execveat, and exit_group.
void enter_seccomp(const ChildProgram& p, Steps& s) {
  s.enter(kStageSeccomp);
  if (!p.seccomp_notify) {
    s.need(sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, raw_arg(p.seccomp)));
    return;
  }
  // WAIT_KILLABLE_RECV (5.19): a call that the supervisor took is not broken off by a mere signal.
  constexpr long kListener = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  long fd = sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, kListener | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                raw_arg(p.seccomp));
  if (fd == -EINVAL) fd = sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, kListener, raw_arg(p.seccomp));
  s.need(fd);
  s.enter(kStageListener);
  send_listener(fd_of(fd));
}

void wait_for_go(const ChildProgram& p, Steps& s) {
  if (p.gate < 0) return;
  s.enter(kStageReady);
  // A plain write: the receiver's SO_PASSCRED makes the kernel attach pid, uid and gid.
  const char ready[] = {'r', 'e', 'a', 'd', 'y'};
  s.need(sys(__NR_write, kGate, raw_arg(ready), sizeof ready));
  char go[8];
  long n = sys(__NR_read, kGate, raw_arg(go), sizeof go);
  if (n != 2 || go[0] != 'g' || go[1] != 'o') leave(kExitSetupFailed);
}

// The other end of this pipe is pid 1's and close-on-exec: its end says that the exec has happened (or that pid 1 is
// gone, and then so are we). The kernel closes such descriptors when the new memory is in place already.
void await_init(Steps& s) {
  s.enter(kStageInit);
  char none;
  long n;
  do {
    n = sys(__NR_read, kInitExec, raw_arg(&none), 1);
  } while (n == -EINTR);
  if (n != 0) s.fail(n < 0 ? n : -EPROTO);
  close_fd(kInitExec);
}

[[noreturn]] void workload(const ChildProgram& p, int init_exec, Steps& s) {
  s.enter(kStageSession);
  s.need(sys(__NR_setsid));
  if (p.pty) s.need(sys(__NR_ioctl, p.stdio[0], TIOCSCTTY, 0));
  set_stdio(p, init_exec, s);
  lower_limits(p, s);
  s.enter(kStageCwd);
  sys(__NR_umask, p.umask);
  s.need(sys(__NR_chdir, raw_arg(p.cwd)));
  // Keys of the login that started us would be possessed by the box; a session keyring of its own is empty. Where that
  // is impossible (no keys in this kernel, quota), a filter that refuses keyctl is what remains.
  if (p.nested_user) sys(__NR_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, 0);
  if (p.landlock) enter_landlock(p, s);
  if (init_exec >= 0) await_init(s);
  // The core looks at this process through /proc before it lets it go. Nothing of the box runs yet that could look too,
  // and the exec decides anew.
  s.enter(kStageReady);
  s.need(sys(__NR_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0));
  if (p.seccomp) enter_seccomp(p, s);
  wait_for_go(p, s);

  long err = -ENOENT;
  if (p.exec_fd >= 0) {
    err = sys(__NR_execveat, kExec, raw_arg(""), raw_arg(p.argv), raw_arg(p.envp), kEmptyPath);
  } else {
    // The candidates are paths that the core made. A folder of theirs that may not be entered hides no program of a later
    // one, but its error is the one that is told when there is none.
    long denied = 0;
    for (size_t i = 0; p.exec[i]; i++) {
      err = sys(__NR_execve, raw_arg(p.exec[i]), raw_arg(p.argv), raw_arg(p.envp));
      if (err == -EACCES) denied = err;
      if (err != -ENOENT && err != -ENOTDIR && err != -EACCES) break;
    }
    if (denied != 0 && (err == -ENOENT || err == -ENOTDIR)) err = denied;
  }
  report(kReport, ChildReport::kExecFailed, 0, 0, err);
  char code = static_cast<char>(-err);  // every errno of exec is below 256
  if (p.gate >= 0) sys(__NR_write, kGate, raw_arg(&code), 1);
  leave(err == -ENOENT || err == -ENOTDIR ? kExitNotFound : kExitNotExecutable);
}

const char* decimal(long n, char* end) {
  *--end = 0;
  do {
    *--end = static_cast<char>('0' + n % 10);
    n /= 10;
  } while (n);
  return end;
}

// pid 1 becomes h5i-init: no argument but numbers, an empty environment, and of all descriptors only its control socket
// and the host's pidfd stay open.
[[noreturn]] void become_init(const ChildProgram& p, long workload_pid, Steps& s) {
  s.enter(kStageInit);
  s.need(sys(__NR_fcntl, p.control, F_SETFD, 0));
  s.need(sys(__NR_fcntl, p.host_pidfd, F_SETFD, 0));
  char pid[24], control[24], host[24];
  const char* argv[] = {"h5i-init", decimal(workload_pid, pid + sizeof pid),
                        decimal(p.control, control + sizeof control), decimal(p.host_pidfd, host + sizeof host),
                        nullptr};
  const char* envp[] = {nullptr};
  s.fail(sys(__NR_execveat, p.init_exe, raw_arg(""), raw_arg(argv), raw_arg(envp), kEmptyPath));
}

}  // namespace

[[noreturn]] void child_main(const ChildProgram* program) {
  const ChildProgram& p = *program;
  Steps s{p.report};
  uint64_t no_signals = 0;  // the spawner blocks what it reads from a signalfd
  sys(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, raw_arg(&no_signals), 0, sizeof no_signals);
  sys(__NR_umask, 022);

  // First, too: this copy of the spawner holds the spawner's ends of everything, so nobody who waits for the spawner, and
  // least this process, would see that it died while the maps are waited for. Later changes of ids take it away again.
  die_with_parent(p, s);
  enter_ids(p, s);
  int self = -1;
  if (p.nested_user) {
    s.enter(kStageNested);
    self = fd_of(s.need(sys(__NR_openat, AT_FDCWD, raw_arg("/proc/self"), O_PATH | O_DIRECTORY | O_CLOEXEC)));
  }
  if (p.has_root) enter_root(p, s);
  if (p.hostname) {
    s.enter(kStageHostname);
    s.need(sys(__NR_sethostname, raw_arg(p.hostname), p.hostname_len));
  }
  if (p.loopback) raise_loopback(s);
  if (p.nested_user) enter_nested(p, self, s);
  close_fd(self);
  if (p.drop_capabilities) drop_capabilities(s);
  if (p.no_new_privs) {
    s.enter(kStageNoNewPrivs);
    s.need(sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  }
  die_with_parent(p, s);
  if (!p.init) workload(p, -1, s);

  s.enter(kStageFork);
  s.need(sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
  int exec_pipe[2];
  s.need(sys(__NR_pipe2, raw_arg(exec_pipe), O_CLOEXEC));
  long pid = s.need(sys(__NR_clone, 17 /* SIGCHLD */, 0, 0, 0, 0));
  if (pid == 0) {
    close_fd(exec_pipe[1]);
    workload(p, exec_pipe[0], s);
  }
  close_fd(exec_pipe[0]);
  become_init(p, pid, s);
}

}  // namespace h5i::spawn
