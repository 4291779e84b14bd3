#include "core/nft/inside.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>

#include "core/base/json.hpp"
#include "core/nft/transaction.hpp"
#include "core/os/beneath.hpp"
#include "core/os/fs.hpp"
#include "core/os/mount.hpp"
#include "core/os/socket.hpp"

namespace h5i::nft {
namespace {

// Of documentation's ranges: nobody else has them, and of the box's own only these two.
constexpr uint32_t kOwnAddress = 0xc0000264;  // 192.0.2.100, as slirp4netns gives it
constexpr unsigned char kOwnAddress6[16] = {0x20, 0x01, 0x0d, 0xb8, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
constexpr int kAnswerMs = 5000;
constexpr unsigned kKeepCapabilities = 1u << 2;  // SECBIT_NO_SETUID_FIXUP

// <linux/ipv6.h> has it beside declarations that clash with libc's.
struct In6Ifreq {
  in6_addr address;
  uint32_t prefix;
  int index;
};

// slirp4netns: its network, and its own address there.
constexpr unsigned char kSlirpAddress6[16] = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
constexpr unsigned char kSlirpGateway6[16] = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};

ifreq request() {
  ifreq r{};
  strncpy(r.ifr_name, kInterface, IFNAMSIZ - 1);
  return r;
}
sockaddr_in ipv4(uint32_t address) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(address);
  return a;
}

Result<void> give_address(int index) {
  UniqueFd s(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!s) return sys_error("socket");
  ifreq r = request();
  auto set = [&](unsigned long what, uint32_t address) {
    sockaddr_in a = ipv4(address);
    memcpy(&r.ifr_addr, &a, sizeof a);
    return ioctl(s.get(), what, &r) == 0;
  };
  if (!set(SIOCSIFADDR, kOwnAddress) || !set(SIOCSIFNETMASK, 0xffffff00)) return sys_error("give the interface an address");
  r = request();
  r.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(s.get(), SIOCSIFFLAGS, &r) != 0) return sys_error("bring the interface up");
  rtentry route{};
  sockaddr_in any = ipv4(0);
  memcpy(&route.rt_dst, &any, sizeof any);
  memcpy(&route.rt_genmask, &any, sizeof any);
  char name[] = "h5i0";
  route.rt_dev = name;
  route.rt_flags = RTF_UP;
  if (ioctl(s.get(), SIOCADDRT, &route) != 0) return sys_error("make a default route");

  // A host without IPv6 has no such packets to refuse either.
  UniqueFd s6(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!s6) return {};
  In6Ifreq a6{{}, 64, index};
  memcpy(&a6.address, kOwnAddress6, sizeof kOwnAddress6);
  in6_rtmsg route6{};
  route6.rtmsg_flags = RTF_UP;
  route6.rtmsg_metric = 1;
  route6.rtmsg_ifindex = index;
  if (ioctl(s6.get(), SIOCSIFADDR, &a6) != 0 || ioctl(s6.get(), SIOCADDRT, &route6) != 0) {
    if (errno != EACCES && errno != EPERM && errno != EOPNOTSUPP && errno != ENODEV) return sys_error("give the interface an IPv6 address");
  }
  return {};
}

Result<void> set_interface(const char* key, const char* value) {
  std::string path = std::string("/proc/sys/net/ipv6/conf/") + kInterface + "/" + key;
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || write(fd.get(), value, strlen(value)) < 0) return sys_error("write " + path);
  return {};
}

Result<void> give_ipv6() {
  H5I_TRY(set_interface("accept_ra", "0"));
  H5I_TRY(set_interface("accept_dad", "0"));  // nobody else is there
  UniqueFd s(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  int index = static_cast<int>(if_nametoindex(kInterface));
  In6Ifreq a{{}, 64, index};
  memcpy(&a.address, kSlirpAddress6, sizeof kSlirpAddress6);
  if (!s || ioctl(s.get(), SIOCSIFADDR, &a) != 0) return sys_error("give the interface an IPv6 address");
  in6_rtmsg route{};
  memcpy(&route.rtmsg_gateway, kSlirpGateway6, sizeof kSlirpGateway6);
  route.rtmsg_flags = RTF_UP | RTF_GATEWAY;
  route.rtmsg_metric = 1;
  route.rtmsg_ifindex = index;
  if (ioctl(s.get(), SIOCADDRT, &route) != 0) return sys_error("make an IPv6 default route");
  return {};
}

Result<UniqueFd> make_tun() {
  UniqueFd tun(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tun) return sys_error("open /dev/net/tun");
  ifreq r = request();
  r.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(tun.get(), TUNSETIFF, &r) != 0) return sys_error("make the interface");
  H5I_TRY(give_address(static_cast<int>(if_nametoindex(kInterface))));
  return tun;
}

Result<std::vector<UniqueFd>> open_all(const Namespaces& n, const Wanted& w) {
  if (setns(n.user, CLONE_NEWUSER) != 0 || setns(n.net, CLONE_NEWNET) != 0) return sys_error("join the box's network");
  std::vector<UniqueFd> out;
  for (size_t i = 0; i < w.netfilter; i++) out.push_back(H5I_TRY(open_netfilter_socket()));
  if (w.ipv6) H5I_TRY(give_ipv6());
  if (w.tun) out.push_back(H5I_TRY(make_tun()));
  return out;
}

// The first id that a map of this process's user namespace names: the only one there is.
Result<unsigned> first_id(const char* map) {
  std::string text = H5I_TRY(os::read_file(map, 4096));
  unsigned id = 0;
  if (sscanf(text.c_str(), "%u", &id) != 1) return make_error(Errc::TIER_SETUP, "the box's user namespace has no ids", map);
  return id;
}

// A file of ours on a file system of ours, laid over the one that the box sees: whoever opens the name finds the new one, whole.
Result<std::vector<UniqueFd>> lay_hosts(const Namespaces& n, const std::string& content) {
  if (setns(n.user, CLONE_NEWUSER) != 0) return sys_error("join the box's users");
  // An id that the namespace does not know owns no file in it; the capabilities stay. The box's own /proc knows nothing of us.
  unsigned uid = H5I_TRY(first_id("/proc/self/uid_map")), gid = H5I_TRY(first_id("/proc/self/gid_map"));
  if (prctl(PR_SET_SECUREBITS, kKeepCapabilities, 0, 0, 0) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0) return sys_error("take an id of the box");
  if (setns(n.mnt, CLONE_NEWNS) != 0) return sys_error("join the box's mounts");
  UniqueFd fs(static_cast<int>(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC)));
  auto set = [&](const char* key, const char* value) { return syscall(SYS_fsconfig, fs.get(), FSCONFIG_SET_STRING, key, value, 0) == 0; };
  if (!fs || !set("size", "2097152") || !set("nr_inodes", "4") || !set("mode", "0755") || syscall(SYS_fsconfig, fs.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return sys_error("make a file system in the box");
  UniqueFd root(static_cast<int>(syscall(SYS_fsmount, fs.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)));
  UniqueFd file(root ? openat(root.get(), "hosts", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1);
  if (!file) return sys_error("make a file in the box");
  H5I_TRY(os::write_all(file, content));
  if (fchmod(file.get(), 0444) != 0) return sys_error("fchmod");
  file.reset();
  UniqueFd top(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  UniqueFd there(H5I_TRY(os::open_beneath(top, "etc/hosts", O_PATH)));
  // A copy is made of what is mounted only. On top of "/" nobody sees it: whoever runs here has a root already, below it.
  if (syscall(SYS_move_mount, root.get(), "", top.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) return sys_error("mount a file system in the box");
  UniqueFd tree(static_cast<int>(syscall(SYS_open_tree, root.get(), "hosts", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  int err = errno;
  if (fchdir(root.get()) != 0 || umount2(".", MNT_DETACH) != 0) return sys_error("unmount a file system in the box");
  os::MountAttr sealed;
  sealed.set = MOUNT_ATTR_RDONLY;
  if (!tree) return sys_error("copy a file of the box", err);
  if (syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &sealed, sizeof sealed) != 0) return sys_error("seal a file of the box");
  if (syscall(SYS_move_mount, tree.get(), "", there.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) return sys_error("lay a file over the box's own");
  return std::vector<UniqueFd>();
}

using Work = std::function<Result<std::vector<UniqueFd>>()>;

[[noreturn]] void inside(const Work& work, int channel, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(1);
  auto opened = work();
  if (!opened) {
    const Error& e = opened.error();
    Json said = json::Object{{"code", static_cast<int64_t>(e.code)}, {"what", e.what}, {"evidence", e.evidence}, {"errno", e.sys_errno}};
    (void)os::send_packet(channel, json::canonical(said));
    _exit(1);
  }
  std::vector<int> raw;
  for (const UniqueFd& fd : *opened) raw.push_back(fd.get());
  (void)os::send_packet(channel, "{}", raw);
  _exit(0);
}

Result<std::vector<UniqueFd>> in_child(const Work& work) {
  auto pair = H5I_TRY(os::seqpacket_pair());
  pid_t self = getpid(), pid = fork();
  if (pid < 0) return sys_error("fork");
  if (pid == 0) inside(work, pair.b.get(), self);
  pair.b.reset();
  auto ready = os::wait_readable(pair.a.get(), kAnswerMs);
  if (!ready || !*ready) kill(pid, SIGKILL);
  auto packet = os::receive_packet(pair.a.get(), true);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!packet || !*packet) return make_error(Errc::TIER_SETUP, "nobody could enter the box", "no answer from within");
  Json said = H5I_TRY(parse_json((*packet)->bytes, "answer from within the box", 4096));
  if (said["code"].is_int()) {
    int err = static_cast<int>(said["errno"].integer());
    if (err != 0) return sys_error(said["what"].string(), err);
    return make_error(static_cast<Errc>(said["code"].integer()), said["what"].string(), said["evidence"].string());
  }
  return std::move((*packet)->fds);
}

}  // namespace

Result<Opened> open_inside(const Namespaces& namespaces, const Wanted& wanted) {
  Opened out;
  out.netfilter = H5I_TRY(in_child([&] { return open_all(namespaces, wanted); }));
  if (out.netfilter.size() != wanted.netfilter + (wanted.tun ? 1 : 0)) return make_error(Errc::TIER_SETUP, "nobody could enter the box's network", "descriptors are missing");
  if (wanted.tun) {
    out.tun = std::move(out.netfilter.back());
    out.netfilter.pop_back();
  }
  return out;
}

Result<void> replace_hosts(const Namespaces& namespaces, const std::string& content) {
  H5I_TRY(in_child([&] { return lay_hosts(namespaces, content); }));
  return {};
}

}  // namespace h5i::nft
