#include "probe.hpp"

#include <fcntl.h>
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <mntent.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace h5i::confined {
namespace {

constexpr int kMostMounts = 256;     // that are looked at for one that maps ids
constexpr unsigned kChildSeconds = 2;  // a kernel that hangs in one of these is not used

// What a child says: 0 and how far it came, or the errno of the step that failed.
struct Answer {
  int error = 0;
  char step[40] = "";
};

// The body runs in a forked child, which may destroy its own process state at will. It returns the failed step, or
// null.
template <class Body>
Answer in_child(Body body) {
  int pipe_fds[2];
  Answer answer;
  auto fail = [&](const char* step) {
    answer.error = errno;
    snprintf(answer.step, sizeof answer.step, "%s", step);
    return answer;
  };
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return fail("pipe2");
  pid_t child = fork();
  if (child < 0) {
    answer = fail("fork");
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return answer;
  }
  if (child == 0) {
    alarm(kChildSeconds);
    errno = 0;
    const char* step = body();
    Answer mine;
    if (step != nullptr) {
      mine.error = errno != 0 ? errno : EPROTO;
      snprintf(mine.step, sizeof mine.step, "%s", step);
    }
    (void)!write(pipe_fds[1], &mine, sizeof mine);
    _exit(0);
  }
  close(pipe_fds[1]);
  ssize_t n;
  while ((n = read(pipe_fds[0], &answer, sizeof answer)) < 0 && errno == EINTR) {
  }
  close(pipe_fds[0]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (n != static_cast<ssize_t>(sizeof answer)) {
    answer.error = EPROTO;
    snprintf(answer.step, sizeof answer.step, "the trial did not end");
  }
  return answer;
}

bool write_file(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool ok = write(fd, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  int saved = errno;
  close(fd);
  errno = saved;
  return ok;
}

const char* own_user_namespace() {
  char uid_map[64], gid_map[64];
  snprintf(uid_map, sizeof uid_map, "%u %u 1", getuid(), getuid());
  snprintf(gid_map, sizeof gid_map, "%u %u 1", getgid(), getgid());
  // The host process is not dumpable, which makes /proc/self root's; the maps are written there.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  if (unshare(CLONE_NEWUSER) != 0) return "unshare user";
  if (!write_file("/proc/self/setgroups", "deny")) return "setgroups deny";
  if (!write_file("/proc/self/uid_map", uid_map)) return "uid_map";
  if (!write_file("/proc/self/gid_map", gid_map)) return "gid_map";
  return nullptr;
}

const char* try_user() {
  if (const char* step = own_user_namespace()) return step;
  // The workload lives one level deeper, where what was prepared is locked.
  return unshare(CLONE_NEWUSER) == 0 ? nullptr : "unshare user, second level";
}

const char* try_mount() {
  if (const char* step = own_user_namespace()) return step;
  if (unshare(CLONE_NEWNS) != 0) return "unshare mnt";
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "mount private";
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") != 0) return "mount tmpfs";
  constexpr unsigned kClone = 1;  // OPEN_TREE_CLONE
  return syscall(SYS_open_tree, AT_FDCWD, "/tmp", kClone | O_CLOEXEC) >= 0 ? nullptr : "open_tree";
}

const char* try_pid() {
  if (const char* step = own_user_namespace()) return step;
  if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) != 0)
    return "unshare pid mnt ipc uts cgroup";
  pid_t first = fork();
  if (first < 0) return "fork in pid";
  if (first == 0) {
    if (getpid() != 1) _exit(EPROTO);
    // Refused where parts of the visible /proc are covered, as in many containers.
    _exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 ? 0 : errno);
  }
  int status = 0;
  waitpid(first, &status, 0);
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPROTO;
  return errno == 0 ? nullptr : "first process of pid and its own /proc";
}

const char* try_net() {
  if (const char* step = own_user_namespace()) return step;
  if (unshare(CLONE_NEWNET) != 0) return "unshare net";
  int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  snprintf(request.ifr_name, sizeof request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return s >= 0 && ioctl(s, SIOCSIFFLAGS, &request) == 0 ? nullptr : "loopback up";
}

// A table made and listed by the child's own network namespace, in the words of the kernel's protocol: no library.
const char* try_nftables() {
  if (const char* step = own_user_namespace()) return step;
  if (unshare(CLONE_NEWNET) != 0) return "unshare net";
  int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (s < 0) return "netfilter socket";
  struct Message {
    nlmsghdr header;
    nfgenmsg family;
  };
  constexpr uint16_t kRequest = NLM_F_REQUEST;
  auto message = [](uint16_t type, uint16_t flags, uint8_t family, uint16_t resource) {
    Message m{};
    m.header = {sizeof m, type, flags, 1, 0};
    m.family = {family, NFNETLINK_V0, htons(resource)};
    return m;
  };
  struct {
    Message begin;
    Message table;
    nlattr name;
    char text[8];
    Message end;
  } batch{};
  batch.begin = message(NFNL_MSG_BATCH_BEGIN, kRequest, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
  batch.table = message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, kRequest | NLM_F_CREATE | NLM_F_ACK, NFPROTO_INET, 0);
  batch.name = {sizeof batch.name + sizeof batch.text, NFTA_TABLE_NAME};
  memcpy(batch.text, "h5itry1", sizeof batch.text);
  batch.table.header.nlmsg_len += sizeof batch.name + sizeof batch.text;
  batch.end = message(NFNL_MSG_BATCH_END, kRequest, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
  if (send(s, &batch, sizeof batch, 0) != static_cast<ssize_t>(sizeof batch)) return "nftables transaction";
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[256];
  } answer{};
  ssize_t n = recv(s, &answer, sizeof answer, 0);
  if (n < static_cast<ssize_t>(sizeof answer.header + sizeof answer.error) || answer.header.nlmsg_type != NLMSG_ERROR) return errno = EPROTO, "nftables answer";
  errno = -answer.error.error;
  return errno == 0 ? nullptr : "make a table of the family inet";
}

const char* try_tun() {
  if (const char* step = own_user_namespace()) return step;
  if (unshare(CLONE_NEWNET) != 0) return "unshare net";
  int tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
  if (tun < 0) return "open /dev/net/tun";
  ifreq request{};
  snprintf(request.ifr_name, sizeof request.ifr_name, "h5itry0");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  return ioctl(tun, TUNSETIFF, &request) == 0 ? nullptr : "make an interface";
}

const char* try_no_new_privs() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "PR_SET_NO_NEW_PRIVS";
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? nullptr : "PR_GET_NO_NEW_PRIVS";
}

const char* try_landlock() {
  if (const char* step = try_no_new_privs()) return step;
  uint64_t handled = 1u << 2;  // READ_FILE, and no rule: nothing may be read
  long ruleset = syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
  if (ruleset < 0) return "landlock_create_ruleset";
  if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) return "landlock_restrict_self";
  errno = 0;
  return open("/proc/self/status", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? nullptr : "a forbidden open";
}

// getpriority is called by nothing on the way, so it can stand for any call.
constexpr uint32_t kTrialCall = __NR_getpriority;

long install(uint32_t action, unsigned flags) {
  sock_filter code[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kTrialCall},
      {BPF_RET | BPF_K, 0, 0, action},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

const char* try_seccomp() {
  if (const char* step = try_no_new_privs()) return step;
  if (install(SECCOMP_RET_ERRNO | EXDEV, 0) != 0) return "seccomp";
  errno = 0;
  return getpriority(PRIO_PROCESS, 0) == -1 && errno == EXDEV ? nullptr : "a refused call";
}

const char* try_notification() {
  if (const char* step = try_no_new_privs()) return step;
  seccomp_notif_sizes sizes{};
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return "SECCOMP_GET_NOTIF_SIZES";
  errno = EPROTO;
  if (sizes.seccomp_notif < sizeof(seccomp_notif) || sizes.seccomp_notif_resp < sizeof(seccomp_notif_resp))
    return "notification sizes";
  constexpr unsigned kWaitKillable = 1u << 5;
  long listener = install(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER | kWaitKillable);
  if (listener < 0) return "seccomp NEW_LISTENER WAIT_KILLABLE_RECV";
  pid_t caller = fork();
  if (caller < 0) return "fork";
  if (caller == 0) _exit(getpriority(PRIO_PROCESS, 0) == -1 && errno == EXDEV ? 0 : 1);
  std::vector<char> buffer(std::max<size_t>(sizes.seccomp_notif, sizeof(seccomp_notif)));
  auto* got = reinterpret_cast<seccomp_notif*>(buffer.data());
  if (ioctl(static_cast<int>(listener), SECCOMP_IOCTL_NOTIF_RECV, got) != 0) return "NOTIF_RECV";
  std::vector<char> reply_buffer(std::max<size_t>(sizes.seccomp_notif_resp, sizeof(seccomp_notif_resp)));
  auto* reply = reinterpret_cast<seccomp_notif_resp*>(reply_buffer.data());
  reply->id = got->id;
  reply->error = -EXDEV;
  if (ioctl(static_cast<int>(listener), SECCOMP_IOCTL_NOTIF_SEND, reply) != 0) return "NOTIF_SEND";
  int status = 0;
  waitpid(caller, &status, 0);
  errno = EPROTO;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? nullptr : "an answered call";
}

// Root gives a box an unprivileged id; its files then come through an id-mapped mount.
const char* try_idmap() {
  int sync[2];
  if (pipe2(sync, O_CLOEXEC) != 0) return "pipe2";
  pid_t holder = fork();
  if (holder < 0) return "fork";
  if (holder == 0) {
    char c = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
    (void)!write(sync[1], &c, 1);
    pause();
    _exit(0);
  }
  char c = 0;
  const char* step = read(sync[0], &c, 1) == 1 && c == 'y' ? nullptr : "unshare user";
  char path[64];
  auto in = [&](const char* name) {
    snprintf(path, sizeof path, "/proc/%d/%s", holder, name);
    return path;
  };
  int user = -1;
  if (step == nullptr && (!write_file(in("uid_map"), "0 65534 1") || !write_file(in("gid_map"), "0 65534 1")))
    step = "uid_map";
  if (step == nullptr && (user = open(in("ns/user"), O_RDONLY | O_CLOEXEC)) < 0) step = "user namespace";
  if (step == nullptr) {
    struct {
      uint64_t set, clear, propagation, user;
    } attributes{0x100000 /* MOUNT_ATTR_IDMAP */, 0, 0, static_cast<uint64_t>(user)};
    auto takes = [&](const char* where) {
      long tree = syscall(SYS_open_tree, AT_FDCWD, where, 1u | O_CLOEXEC);
      if (tree < 0) return "open_tree";
      return syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0 ? nullptr : "mount_setattr IDMAP";
    };
    // Any will do: which of them a repository is on is found out when a box of it is made.
    step = takes("/");
    int of_root = errno;
    FILE* mounts = step == nullptr ? nullptr : setmntent("/proc/self/mounts", "re");
    int left = kMostMounts;
    for (mntent* m; mounts != nullptr && step != nullptr && left > 0 && (m = getmntent(mounts)) != nullptr; left--)
      if (takes(m->mnt_dir) == nullptr) step = nullptr;
    errno = of_root;
  }
  int saved = errno;
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  errno = saved;
  return step;
}

Component tried(const char* id, const Answer& answer, std::string evidence) {
  Component c{id, answer.error == 0, std::move(evidence)};
  if (!c.ok) {
    c.evidence = std::string(answer.step) + ": " + strerror(answer.error);
    c.reason = "tier.probe.missing";
  }
  return c;
}

// What a program says of its version, at most one buffer of it; "" when it is not there.
std::string version_of(const std::string& program) {
  int p[2];
  if (access(program.c_str(), X_OK) != 0 || pipe2(p, O_CLOEXEC) != 0) return "";
  pid_t child = fork();
  if (child == 0) {
    alarm(kChildSeconds);
    dup2(p[1], 1);
    dup2(p[1], 2);
    signal(SIGPIPE, SIG_DFL);
    char option[] = "--version";
    char* argv[] = {const_cast<char*>(program.c_str()), option, nullptr};
    char* env[] = {nullptr};
    execve(program.c_str(), argv, env);
    _exit(127);
  }
  close(p[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t n; out.size() < sizeof buffer && (n = read(p[0], buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
  close(p[0]);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return out;
}

// What would carry packets out, as h5i-net chooses it; its own look at what is there is the one that counts. Without one the tier
// still holds a box that may reach nothing.
Component uplink() {
  Component c{"uplink", false, {}, "", false};
  for (const char* name : {"slirp4netns", "pasta"})
    for (const char* folder : {"/usr/bin/", "/usr/local/bin/"}) {
      std::string path = std::string(folder) + name, version = version_of(path);
      version = version.substr(0, version.find('\n'));
      if (version.empty()) continue;
      int major = 0, minor = 0;  // pasta's says nothing of its age
      bool recent = name[0] == 'p' || (sscanf(version.c_str(), "slirp4netns version %d.%d", &major, &minor) == 2 && (major > 1 || (major == 1 && minor >= 1)));
      c.evidence = path + ": " + version + (recent ? "" : ", which is too old");
      c.ok = recent;
      if (recent) return c;
    }
  c.reason = "tier.probe.missing";
  if (c.evidence.empty()) c.evidence = "neither slirp4netns nor pasta (the packages slirp4netns and passt)";
  c.evidence += ": a profile with egress rules is refused";
  return c;
}

Component delegation(const HostFacts& facts) {
  Component c{"cgroup-v2-delegation", facts.cgroup["available"].boolean()};
  std::string lacking;
  for (const char* controller : {"memory", "pids", "cpu"}) {
    const json::Array& list = facts.cgroup["controllers"].array();
    if (std::none_of(list.begin(), list.end(), [&](const json::Value& v) { return v.string() == controller; })) lacking += std::string(lacking.empty() ? "" : ", ") + controller;
  }
  c.ok = c.ok && lacking.empty();
  if (c.ok) {
    c.evidence = facts.cgroup["base"].string() + " via " + facts.cgroup["via"].string();
  } else {
    c.evidence = facts.cgroup.is_null() ? "the host offers no trial" : facts.cgroup["available"].boolean() ? "no controller " + lacking : facts.cgroup["reason"].string();
    c.reason = "tier.probe.missing";
  }
  return c;
}

}  // namespace

std::vector<Component> probe_components(const HostFacts& facts, bool as_root, const TierKind& tier) {
  std::vector<Component> out;
  out.push_back(tried("user-namespace", in_child(try_user), "two levels entered and mapped"));
  out.push_back(tried("mount-namespace", in_child(try_mount), "tmpfs mounted and cloned by descriptor"));
  out.push_back(
      tried("pid-namespace", in_child(try_pid), "entered with ipc, uts and cgroup; the first child is pid 1 and has a /proc of its own"));
  out.push_back(tried("network-namespace", in_child(try_net), "entered, loopback up"));
  out.push_back(tried("landlock", in_child(try_landlock),
                      "ABI " + std::to_string(facts.landlock_abi) + "; a read without a rule was refused"));
  out.push_back(tried("seccomp-filter", in_child(try_seccomp), "a refused call answered as the filter said"));
  out.push_back(tried("seccomp-user-notification", in_child(try_notification), "a call was received and answered"));
  out.push_back(tried("no-new-privs", in_child(try_no_new_privs), "set and read back"));
  if (as_root)
    out.push_back(tried("idmapped-mounts", in_child(try_idmap), "a file system here takes an id-mapped mount"));

  if (tier.network) {
    out.push_back(tried("nftables", in_child(try_nftables), "a table was made in a network namespace of its own"));
    out.push_back(tried("tun", in_child(try_tun), "an interface was made in a network namespace of its own"));
    out.push_back(uplink());
    out.push_back(delegation(facts));
    return out;
  }
  Component group{"cgroup", facts.cgroup["available"].boolean(), {}, "", false};
  if (group.ok) {
    group.evidence = facts.cgroup["base"].string() + " via " + facts.cgroup["via"].string();
  } else {
    group.evidence = facts.cgroup.is_null() ? "the host offers no trial" : facts.cgroup["reason"].string();
    group.evidence += "; memory and cpu are then held for each process by rlimits";
    group.reason = "tier.probe.missing";
  }
  out.push_back(group);
  return out;
}

json::Value probe_document(const std::vector<Component>& components, const TierKind& tier) {
  json::Array rows, missing;
  bool available = true;
  for (const Component& c : components) {
    rows.push_back(json::Object{{"id", c.id}, {"ok", c.ok}, {"evidence", c.evidence}, {"reason", c.reason}});
    if (c.ok || !c.required) continue;
    missing.push_back(c.id);
    available = false;
  }
  json::Array claims;
  if (available)
    for (const char* claim :
         {"fs.read", "fs.write", "fs.deny", "fs.private", "net.mode", "net.unix", "resources.mem", "resources.procs",
          "resources.cpu", "resources.wall", "resources.fsize", "resources.output", "env.pass", "env.set", "tools"})
      claims.push_back(claim);
  if (available && tier.network)
    for (const char* claim : {"net.egress", "net.loopback", "resources.cpus"}) claims.push_back(claim);
  return json::Object{{"schema", "h5i.probe/1"},       {"tier", tier.id},             {"available", available},
                      {"components", std::move(rows)}, {"claims", std::move(claims)}, {"missing", std::move(missing)}};
}

}  // namespace h5i::confined
