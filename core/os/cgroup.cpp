#include "core/os/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"
#include "core/os/fs.hpp"
#include "core/os/service_manager.hpp"

namespace h5i::os {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

// \040 and its like, as mountinfo writes blanks in paths.
std::string unescape(const std::string& s) {
  std::string out;
  for (size_t i = 0; i < s.size(); i++) {
    if (s[i] == '\\' && i + 3 < s.size() && s[i + 1] >= '0' && s[i + 1] <= '3') {
      out += static_cast<char>((s[i + 1] - '0') * 64 + (s[i + 2] - '0') * 8 + (s[i + 3] - '0'));
      i += 3;
    } else {
      out += s[i];
    }
  }
  return out;
}

std::string joined(const std::vector<std::string>& v) {
  std::string out;
  for (const std::string& s : v) out += (out.empty() ? "" : ", ") + s;
  return out;
}

Result<void> write_control(int dir, const std::string& file, std::string_view text) {
  auto fd = H5I_TRY(open_beneath(dir, file, O_WRONLY));
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return sys_error("write " + file + " of a control group");
  return {};
}

// As the spawner does it: a process that is born in the group. It ends at once.
Result<void> born_inside(int group) {
  clone_args args{};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<uint64_t>(group);
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0)
    for (;;) syscall(SYS_exit_group, 0);
  if (pid < 0) return sys_error("clone3 into a control group");
  while (waitpid(static_cast<pid_t>(pid), nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

bool plain_name(const std::string& s) {
  return !s.empty() && s.size() <= 64 && s[0] != '.' && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

// A group gives its children controllers only while it holds no process itself, so those who use it are in a group below.
constexpr const char* kCallers = "h5i-callers";

constexpr size_t kNameDigits = 16;
constexpr int kMakeTries = 8;  // a group that nobody owns yet is cleared by whoever looks at that moment

// A killed process leaves its group a moment after it was reaped.
bool remove_beneath(int base, const std::string& name) {
  for (int i = 0; i < 100; i++) {
    if (unlinkat(base, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
    if (errno != EBUSY) return false;
    usleep(2000);
  }
  return false;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// A group that is this process's as long as it lives: the lock is the mark of that, see clear_dead_groups. Nobody else may open it.
Result<UniqueFd> own_new(int base, const std::string& name) {
  if (mkdirat(base, name.c_str(), 0700) != 0) return sys_error("create control group " + printable(name));
  auto opened = open_beneath(base, name, O_RDONLY | O_DIRECTORY);
  if (!opened) {
    if (opened.error().code != Errc::NOT_FOUND) unlinkat(base, name.c_str(), AT_REMOVEDIR);
    return opened;
  }
  struct stat held{}, named{};
  const bool locked = flock(opened->get(), LOCK_SH | LOCK_NB) == 0;
  if (!locked || fstat(opened->get(), &held) != 0 || fstatat(base, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 || !same_file(held, named))
    return make_error(Errc::NOT_FOUND, "the control group was cleared before it was owned", printable(name));
  return opened;
}

// With a name that has not been there before.
Result<Cgroup> make_owned(const std::string& base, std::string_view kind) {
  auto parent = H5I_TRY(open_dir(base, true));
  for (int i = 0;; i++) {
    unsigned char r[kNameDigits / 2];
    H5I_TRY(random_bytes(r, sizeof r));
    std::string name = std::string(kind) + hex(r, sizeof r);
    auto made = own_new(parent.get(), name);
    if (made) return Cgroup{std::move(*made), base, std::move(name)};
    if (made.error().code != Errc::NOT_FOUND || i + 1 == kMakeTries) return std::move(made).error();
  }
}

// Of a group that nobody owns. False when it is none of ours, when somebody owns it, or when it does not go away.
bool clear_dead(int base, const std::string& name) {
  auto dir = open_beneath(base, name, O_RDONLY | O_DIRECTORY);
  struct statfs fs {};
  struct stat held{}, named{};
  if (!dir || fstatfs(dir->get(), &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC) return false;
  if (fstat(dir->get(), &held) != 0 || held.st_uid != geteuid()) return false;
  if (flock(dir->get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (fstatat(base, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 || !same_file(held, named)) return false;
  Cgroup g{std::move(*dir), "", name};
  (void)kill_cgroup(g);
  return remove_beneath(base, name);
}

// Whoever may write a group need not own its insides: a service manager resets what it did not delegate. Where systemd runs, its mark
// decides; user managers set none on their units, and are asked for a scope instead.
bool delegated(const std::string& path) {
  if (access(path.c_str(), W_OK) != 0 || access((path + "/cgroup.procs").c_str(), W_OK) != 0 ||
      access((path + "/cgroup.subtree_control").c_str(), W_OK) != 0)
    return false;
  char mark = 0;
  for (const char* name : {"user.delegate", "trusted.delegate"})
    if (getxattr(path.c_str(), name, &mark, 1) == 1 && mark == '1') return true;
  return access("/run/systemd/system", F_OK) != 0;
}

struct Base {
  std::string path, via;
};

Result<Base> choose_base(const CgroupView& v, const std::vector<pid_t>& also) {
  const std::string own = v.mount + v.own;
  const size_t slash = own.rfind('/');
  if (own.substr(slash + 1) == kCallers) return Base{own.substr(0, slash), "delegated"};
  if (delegated(own)) return Base{own, "delegated"};
  unsigned char r[8];
  H5I_TRY(random_bytes(r, sizeof r));
  const std::string unit = "h5i-" + hex(r, sizeof r) + ".scope";
  std::vector<pid_t> pids = also;
  pids.push_back(getpid());
  if (auto started = start_scope(unit, pids); !started)
    return make_error(Errc::DENIED, "own group " + printable(own) + " is not delegated, and there is no scope either",
                      started.error().what + ": " + started.error().evidence);
  const std::string self = H5I_TRY(read_file("/proc/self/cgroup", 1 << 20));
  return Base{v.mount + parse_cgroup_view("", self).own, "service-manager"};
}

Result<void> move_callers(int base) {
  if (mkdirat(base, kCallers, 0755) != 0 && errno != EEXIST) return sys_error("make " + std::string(kCallers));
  auto callers = H5I_TRY(open_beneath(base, kCallers, O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 100; i++) {  // what is started meanwhile comes with the next round
    const std::vector<std::string> pids = words(H5I_TRY(read_beneath(base, "cgroup.procs", 1 << 20)));
    if (pids.empty()) return {};
    for (const std::string& pid : pids)
      if (auto moved = write_control(callers.get(), "cgroup.procs", pid); !moved && moved.error().sys_errno != ESRCH) return moved;
  }
  return make_error(Errc::BUSY, "move the callers", "processes are started faster than they move");
}

}  // namespace

CgroupView parse_cgroup_view(const std::string& mountinfo, const std::string& self_cgroup) {
  CgroupView v;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    auto left = words(line.substr(0, dash)), right = words(line.substr(dash + 3));
    if (left.size() < 5 || right.size() < 3) continue;
    if (right[0] == "cgroup2" && left[3] == "/") v.mount = unescape(left[4]);
    if (right[0] == "cgroup") {
      std::string options = right[2];
      std::replace(options.begin(), options.end(), ',', ' ');
      for (const std::string& o : words(options))
        for (const char* c : {"memory", "pids", "cpu", "cpuacct", "cpuset", "blkio", "freezer", "devices", "hugetlb"})
          if (o == c) v.held_by_v1.push_back(o);
    }
  }
  std::istringstream own(self_cgroup);
  for (std::string line; std::getline(own, line);)
    if (line.rfind("0::", 0) == 0) v.own = line.substr(3);
  return v;
}

CgroupBase find_cgroup_base(const std::vector<pid_t>& also) {
  CgroupBase out;
  auto mountinfo = read_file("/proc/self/mountinfo", 4 << 20), self = read_file("/proc/self/cgroup", 1 << 20);
  if (!mountinfo || !self) {
    out.reason = "/proc/self/mountinfo or /proc/self/cgroup cannot be read";
    return out;
  }
  CgroupView v = parse_cgroup_view(*mountinfo, *self);
  if (v.mount.empty()) {
    out.reason = "no unified (v2) hierarchy is mounted";
    return out;
  }
  bool memory_v1 = std::find(v.held_by_v1.begin(), v.held_by_v1.end(), "memory") != v.held_by_v1.end();
  bool pids_v1 = std::find(v.held_by_v1.begin(), v.held_by_v1.end(), "pids") != v.held_by_v1.end();
  if (memory_v1 || pids_v1) {
    out.reason = "controllers held by v1: " + joined(v.held_by_v1);
    return out;
  }
  if (v.own.empty() || v.own == "/") {
    out.reason = "this process is in the root group, and a group there would be the machine's";
    return out;
  }
  auto chosen = choose_base(v, also);
  if (!chosen) {
    out.reason = chosen.error().what + ": " + chosen.error().evidence;
    return out;
  }
  out.base = chosen->path;
  out.via = chosen->via;
  auto refuse = [&](std::string why) {
    out.via.clear();
    out.controllers.clear();
    out.reason = std::move(why);
    return out;
  };
  auto dir = open_dir(out.base);
  if (!dir) return refuse("the group " + printable(out.base) + " cannot be opened: " + dir.error().evidence);
  if (auto moved = move_callers(dir->get()); !moved)
    return refuse("the processes of " + printable(out.base) + " cannot be moved into a group of their own: " + moved.error().what + ": " + moved.error().evidence);
  (void)clear_dead_groups(out.base);
  // The trial itself.
  auto trial = make_owned(out.base, kTrialGroup);
  if (!trial) return refuse("no group can be made in " + printable(out.base) + ": " + trial.error().evidence);
  const std::string& name = trial->name;
  // What the trial switches on it switches off again when it fails: a probe leaves no trace.
  auto enabled = read_beneath(dir->get(), "cgroup.subtree_control", 4096);
  const std::vector<std::string> before = enabled ? words(*enabled) : std::vector<std::string>{};
  std::vector<std::string> added;
  auto leave = [&](std::string why) {
    unlinkat(dir->get(), name.c_str(), AT_REMOVEDIR);
    for (const std::string& c : added) (void)write_control(dir->get(), "cgroup.subtree_control", "-" + c);
    return refuse(std::move(why));
  };
  for (const char* c : {"memory", "pids", "cpu"}) {
    bool there = std::find(before.begin(), before.end(), c) != before.end();
    if (!there && !write_control(dir->get(), "cgroup.subtree_control", std::string("+") + c)) continue;
    if (!there) added.emplace_back(c);
    out.controllers.emplace_back(c);
  }
  if (out.controllers.empty()) return leave("no controller can be enabled beneath " + printable(out.base));
  bool has_pids = std::find(out.controllers.begin(), out.controllers.end(), "pids") != out.controllers.end();
  if (has_pids && !write_control(trial->dir.get(), "pids.max", "64"))
    return leave("a limit cannot be set in the trial group");
  if (auto born = born_inside(trial->dir.get()); !born)
    return leave("no process can be started in the trial group: " + born.error().evidence);
  if (unlinkat(dir->get(), name.c_str(), AT_REMOVEDIR) != 0)
    return refuse("the trial group cannot be removed: " + sys_error("rmdir").evidence);
  out.available = true;
  return out;
}

Result<Cgroup> make_cgroup(const std::string& base, const std::map<std::string, std::string>& limits) {
  (void)clear_dead_groups(base);
  Cgroup g = H5I_TRY(make_owned(base, kBoxGroup));
  for (const auto& [file, text] : limits) {
    auto written = plain_name(file) ? write_control(g.dir.get(), file, text)
                                    : Result<void>(make_error(Errc::INVALID, "not a control file", printable(file)));
    if (!written) {
      (void)remove_cgroup(g);
      return std::move(written).error();
    }
  }
  return g;
}

bool is_group_name(std::string_view name) {
  for (std::string_view kind : {kBoxGroup, kTrialGroup})
    if (name.starts_with(kind) && name.size() == kind.size() + kNameDigits)
      return std::all_of(name.begin() + static_cast<ptrdiff_t>(kind.size()), name.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return false;
}

std::vector<std::string> clear_dead_groups(const std::string& base) {
  std::vector<std::string> names;
  auto dir = base.empty() ? Result<UniqueFd>(make_error(Errc::NOT_FOUND, "nowhere")) : open_dir(base, true);
  if (!dir) return names;
  DIR* entries = fdopendir(fcntl(dir->get(), F_DUPFD_CLOEXEC, 0));
  if (!entries) return names;
  while (const dirent* e = readdir(entries))
    if (is_group_name(e->d_name)) names.emplace_back(e->d_name);
  closedir(entries);
  std::erase_if(names, [&](const std::string& name) { return !clear_dead(dir->get(), name); });
  return names;
}

std::string own_place() {
  auto self = read_file("/proc/self/cgroup", 1 << 20);
  struct statfs fs {};
  if (!self || statfs("/sys/fs/cgroup", &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC) return "";
  std::string own = parse_cgroup_view("", *self).own;
  if (own.size() < 2) return "";
  own = "/sys/fs/cgroup" + own;
  const size_t slash = own.rfind('/');
  if (own.substr(slash + 1) == kCallers) return own.substr(0, slash);
  return delegated(own) ? own : "";
}

Result<void> kill_cgroup(const Cgroup& g) {
  auto done = write_control(g.dir.get(), "cgroup.kill", "1");
  if (done || done.error().sys_errno != ENOENT) return done;
  // Before 5.14: freeze, so that nothing forks meanwhile, then each.
  (void)write_control(g.dir.get(), "cgroup.freeze", "1");
  auto procs = read_beneath(g.dir.get(), "cgroup.procs", 1 << 20);
  if (procs)
    for (const std::string& w : words(*procs)) {
      long pid = strtol(w.c_str(), nullptr, 10);
      if (pid > 1) ::kill(static_cast<pid_t>(pid), SIGKILL);
    }
  (void)write_control(g.dir.get(), "cgroup.freeze", "0");
  return {};
}

Result<void> remove_cgroup(const Cgroup& g) {
  auto parent = H5I_TRY(open_dir(g.base, true));
  if (!remove_beneath(parent.get(), g.name)) return sys_error("remove control group " + printable(g.name));
  return {};
}

uint64_t flat_keyed(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string k, v; lines >> k >> v;)
    if (k == key) return strtoull(v.c_str(), nullptr, 10);
  return 0;
}

CgroupUsage cgroup_usage(const Cgroup& g) {
  CgroupUsage u;
  if (auto cpu = read_beneath(g.dir.get(), "cpu.stat", 1 << 16)) {
    u.user_us = flat_keyed(*cpu, "user_usec");
    u.system_us = flat_keyed(*cpu, "system_usec");
  }
  if (auto events = read_beneath(g.dir.get(), "memory.events", 4096)) u.oom_kills = flat_keyed(*events, "oom_kill");
  if (auto events = read_beneath(g.dir.get(), "pids.events", 4096)) u.tasks_refused = flat_keyed(*events, "max");
  if (auto peak = read_beneath(g.dir.get(), "memory.peak", 64)) u.memory_peak = strtoull(peak->c_str(), nullptr, 10);
  return u;
}

}  // namespace h5i::os
