#include "core/nft/uplink.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/os/landlock.hpp"
#include "core/os/pidfd.hpp"

namespace h5i::nft {
namespace {

constexpr int kStartMs = 5000;
constexpr const char* kFolders[] = {"/usr/bin/", "/usr/local/bin/"};
constexpr const char* kProgram = "slirp4netns";
enum { kReady = 3, kAlive = 4, kUser = 5, kNet = 6, kExec = 7, kPlaces = 8 };  // of the program's descriptors

// Opened for running; nothing that an ordinary user could have put there.
UniqueFd open_program(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat st {};
  if (!fd || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) || !(st.st_mode & S_IXOTH)) return UniqueFd();
  return fd;
}

// What the program may do with files, for an ordinary user: its own sandbox needs a user of id 0 in the box's namespace, which
// has none. Root's is its own.
bool confine() {
  using namespace os::landlock;
  const int abi_here = abi();
  if (abi_here < 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  RulesetAttr attr{all_fs(abi_here), 0, 0};
  UniqueFd rules(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attr, attr_size(1), 0)));
  constexpr uint64_t kLook = kReadFile | kReadDir, kRun = kLook | kExecute, kDevice = kReadFile | kWriteFile | kIoctlDev;
  const struct {
    const char* path;
    uint64_t access;
  } grants[] = {{"/usr", kRun}, {"/lib", kRun}, {"/lib64", kRun}, {"/etc", kLook}, {"/proc", kLook}, {"/dev/net/tun", kDevice}, {"/dev/null", kDevice}, {"/dev/urandom", kReadFile}};
  for (const auto& g : grants) {
    UniqueFd fd(open(g.path, O_PATH | O_CLOEXEC));
    PathBeneath beneath{g.access & all_fs(abi_here), fd.get()};
    if (fd && syscall(SYS_landlock_add_rule, rules.get(), kRulePathBeneath, &beneath, 0) != 0) return false;
  }
  return syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0;
}

struct Start {
  int exec, ready, alive, words, user, net;
  pid_t parent;
};

// After fork, with one thread: ordinary code may run.
[[noreturn]] void become(const Start& s, const std::vector<std::string>& words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != s.parent) _exit(127);
  // All sources are lifted above the places first.
  int from[] = {s.ready, s.alive, s.user, s.net, s.exec};
  for (int& fd : from) fd = fcntl(fd, F_DUPFD_CLOEXEC, 64);
  int said = fcntl(s.words, F_DUPFD_CLOEXEC, 64), null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(said, 1);
  dup2(said, 2);
  for (int i = 0; i < 5; i++) dup2(from[i], kReady + i);
  syscall(SYS_close_range, kPlaces, ~0u, 0);
  fcntl(kExec, F_SETFD, FD_CLOEXEC);
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  char path[] = "PATH=/usr/bin:/bin";
  char* env[] = {path, nullptr};
  if (chdir("/") != 0 || (geteuid() != 0 && !confine())) _exit(127);
  execveat(kExec, "", argv.data(), env, AT_EMPTY_PATH);
  _exit(127);
}

std::string last_words(int fd) {
  std::string out;
  char buffer[4096];
  for (ssize_t n; out.size() < 65536 && (n = read(fd, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return printable(out.size() > 600 ? out.substr(out.size() - 600) : out, {.limit = 700});
}

}  // namespace

std::optional<std::string> find_uplink() {
  for (const char* folder : kFolders)
    if (open_program(std::string(folder) + kProgram)) return std::string(folder) + kProgram;
  return std::nullopt;
}

Result<void> check_gateway(const Egress& egress, bool host_loopback) {
  if (!host_loopback) return {};
  const Address gateway = *parse_ipv4(kGateway);
  constexpr std::array<uint8_t, 16> kFrom6{0xfd}, kTo6{0xfd, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};  // slirp4netns' own network
  for (const Allow& a : egress.allow) {
    if (a.id == kHostLoopback) continue;
    for (const AddressRange& r : a.addresses) {
      bool covers = r.from.v6 ? r.from.bytes <= kTo6 && kFrom6 <= r.to.bytes : r.from.bytes <= gateway.bytes && gateway.bytes <= r.to.bytes;
      if (covers) return make_error(Errc::INVALID, "destination " + a.id + " covers the address at which the host's loopback answers", to_text(r) + " and net.loopback");
    }
  }
  return {};
}

Uplink::Uplink(Uplink&& other) noexcept
    : path_(std::move(other.path_)), pidfd_(std::move(other.pidfd_)), alive_(std::move(other.alive_)), words_(std::move(other.words_)), pid_(std::exchange(other.pid_, -1)) {}

Uplink::~Uplink() {
  if (pid_ <= 0) return;
  alive_.reset();
  (void)os::pidfd_signal(pidfd_.get(), SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Uplink> Uplink::start(const Namespaces& namespaces, const UplinkOptions& options) {
  auto path = find_uplink();
  if (!path) return make_error(Errc::TIER_PROBE_MISSING, "no program carries packets out of a box here", "missing: slirp4netns (the package of that name)");
  UniqueFd exec = open_program(*path);
  int ready[2], alive[2], words[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return sys_error("pipe");
  UniqueFd ready_in(ready[0]), ready_out(ready[1]);
  if (pipe2(alive, O_CLOEXEC) != 0) return sys_error("pipe");
  UniqueFd alive_in(alive[0]), alive_out(alive[1]);
  if (pipe2(words, O_CLOEXEC | O_NONBLOCK) != 0) return sys_error("pipe");
  UniqueFd words_in(words[0]), words_out(words[1]);

  std::vector<std::string> argv = {kProgram, "--configure", "--mtu=65520", "--cidr=192.0.2.0/24", "--disable-dns", "--enable-seccomp",
                                   "--ready-fd=" + std::to_string(kReady), "--exit-fd=" + std::to_string(kAlive), "--netns-type=path",
                                   "--userns-path=/proc/self/fd/" + std::to_string(kUser)};
  if (geteuid() == 0) argv.push_back("--enable-sandbox");
  if (options.ipv6) argv.push_back("--enable-ipv6");
  if (!options.host_loopback) argv.push_back("--disable-host-loopback");
  argv.push_back("/proc/self/fd/" + std::to_string(kNet));
  argv.push_back(kInterface);

  Uplink up;
  up.path_ = *path;
  pid_t self = getpid();
  up.pid_ = fork();
  if (up.pid_ < 0) return sys_error("fork");
  if (up.pid_ == 0) become({exec.get(), ready_out.get(), alive_in.get(), words_out.get(), namespaces.user, namespaces.net, self}, argv);
  up.pidfd_ = H5I_TRY(os::pidfd_open(up.pid_));
  up.alive_ = std::move(alive_out);
  ready_out.reset();
  words_out.reset();
  // Readiness is one byte; an end of that pipe without it is the program's end.
  pollfd q{ready_in.get(), POLLIN, 0};
  int n;
  do {
    n = poll(&q, 1, kStartMs);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return make_error(Errc::TIMEOUT, "the uplink is not ready after 5 s", last_words(words_in.get()));
  char byte;
  if (read(ready_in.get(), &byte, 1) != 1) {
    (void)os::pidfd_ended(up.pidfd_.get(), 1000);
    return make_error(Errc::TIER_SETUP, *path + " ended before it was ready", last_words(words_in.get()));
  }
  up.words_ = std::move(words_in);
  return up;
}

}  // namespace h5i::nft
