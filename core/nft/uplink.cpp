#include "core/nft/uplink.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/os/fs.hpp"
#include "core/os/landlock.hpp"
#include "core/os/pidfd.hpp"

namespace h5i::nft {
namespace {

constexpr int kStartMs = 5000, kAnswerMs = 4000, kSandboxMs = 500, kLeaveMs = 1000;
constexpr const char* kFolders[] = {"/usr/bin/", "/usr/local/bin/"};
enum { kReady = 3, kAlive = 4, kUser = 5, kNet = 6, kExec = 7, kPlaces = 8 };  // of the program's descriptors, or of its holder's

struct Kind {
  const char* name;
  const char* package;
  bool pasta;
};
constexpr Kind kKinds[] = {{"slirp4netns", "slirp4netns", false}, {"pasta", "passt", true}};
constexpr size_t kNone = std::size(kKinds);

// slirp4netns tells its version, and in its manual since when it has each option: 1.1.0 has all that are given here.
constexpr int kOldest[] = {1, 1, 0};
// pasta of Debian 12 tells no version, so its own list of options is asked. Without the last four it would carry the box's loopback
// to the host's, or take ports of the host's.
constexpr const char* kPastaOptions[] = {"--foreground", "--quiet", "--runas", "--config-net", "--address", "--netmask", "--gateway", "--mtu", "--no-map-gw", "--no-dhcp", "--no-dhcpv6", "--no-ra", "--no-netns-quit",
                                         "--ns-ifname", "--pid", "--userns", "--netns", "--ipv4-only", "--dns", "--search", "--tcp-ports", "--udp-ports", "--tcp-ns", "--udp-ns"};

bool recent(const std::string& version) {
  size_t at = version.find("version ");
  if (at == std::string::npos) return false;
  const char* p = version.c_str() + at + 8;
  for (int oldest : kOldest) {
    char* end = nullptr;
    long n = strtol(p, &end, 10);
    if (end == p || n < oldest) return false;
    if (n > oldest) return true;
    p = *end == '.' ? end + 1 : end;
  }
  return true;
}

// The first that is lacking; "" when all are there.
std::string lacking_option(const std::string& help) {
  for (std::string option : kPastaOptions) {
    bool there = false;
    for (size_t at = 0; !there && (at = help.find(option, at)) != std::string::npos; at += option.size()) {
      char after = at + option.size() < help.size() ? help[at + option.size()] : '\n';
      there = after != '-' && !isalnum(static_cast<unsigned char>(after));
    }
    if (!there) return option;
  }
  return "";
}

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

// What no way out ever does on the host: take a TCP port, speak to an abstract socket, signal a process that is not its own. As far as this
// kernel's Landlock has words for it (ABI 4, 6); to which ports it connects is the packet rules' matter, which may change while it runs.
bool keep_to_itself() {
  using namespace os::landlock;
  const int abi_here = abi();
  if (abi_here < 4) return true;
  RulesetAttr attr{0, kBindTcp, all_scopes(abi_here)};
  UniqueFd rules(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi_here), 0)));
  return rules && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0;
}

struct Start {
  int exec, ready, alive, words, user, net;
  pid_t parent;
};

// The descriptors of a program that is started, at their places; nothing else is left open.
void take_places(const Start& s) {
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
}

[[noreturn]] void execute(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  signal(SIGPIPE, SIG_DFL);  // pasta does not start where it was ignored before
  char path[] = "PATH=/usr/bin:/bin";
  char* env[] = {path, nullptr};
  execveat(kExec, "", argv.data(), env, AT_EMPTY_PATH);
  _exit(127);
}

// A program's own sandbox takes mounts off, in a copy of ours when root runs it. Where the host shares its mounts, as under systemd,
// they would be gone there too.
bool own_mounts() { return geteuid() != 0 || (unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0); }

// After fork, with one thread: ordinary code may run.
[[noreturn]] void become_slirp(const Start& s, const UplinkOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != s.parent || !own_mounts()) _exit(127);
  take_places(s);
  std::vector<std::string> argv = {"slirp4netns", "--configure", "--mtu=65520", "--cidr=192.0.2.0/24", "--disable-dns", "--enable-seccomp",
                                   "--ready-fd=" + std::to_string(kReady), "--exit-fd=" + std::to_string(kAlive), "--netns-type=path",
                                   "--userns-path=/proc/self/fd/" + std::to_string(kUser)};
  if (geteuid() == 0) argv.push_back("--enable-sandbox");
  if (options.ipv6) argv.push_back("--enable-ipv6");
  if (!options.host_loopback) argv.push_back("--disable-host-loopback");
  argv.push_back("/proc/self/fd/" + std::to_string(kNet));
  argv.push_back(kInterface);
  if (chdir("/") != 0 || !keep_to_itself() || (geteuid() != 0 && !confine())) _exit(127);
  execute(argv);
}

// The same network as slirp4netns makes: its addresses, no name server. Neither side's ports are taken on the other.
std::vector<std::string> pasta_words(const UplinkOptions& options, pid_t holder) {
  auto held = [&](int fd) { return "/proc/" + std::to_string(holder) + "/fd/" + std::to_string(fd); };
  std::vector<std::string> argv = {"pasta", "--foreground", "--quiet", "--config-net", "--ns-ifname", kInterface, "--address", "192.0.2.100", "--netmask", "255.255.255.0", "--gateway", kGateway,
                                   "--mtu", "65520", "--dns", "none", "--search", "none", "--no-dhcp", "--no-dhcpv6", "--no-ra", "--no-netns-quit",
                                   "--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none",
                                   "--pid", held(kReady), "--userns", held(kUser), "--netns", held(kNet)};
  auto add = [&](std::initializer_list<const char*> words) { argv.insert(argv.end(), words.begin(), words.end()); };
  if (options.ipv6) add({"--address", "fd00::100", "--gateway", "fd00::2"});
  else add({"--ipv4-only"});
  if (!options.host_loopback) add({"--no-map-gw"});
  // As root it would become nobody, who may not enter what root's spawner made. Its own sandbox takes the rest away.
  if (geteuid() == 0) add({"--runas", "0:0"});
  return argv;
}

// pasta has no descriptor whose end is its own, and newer ones close every descriptor that they inherit. So somebody holds what it
// opens by path, and watches over both ends. It is in the box's outer user namespace, as pasta is when it opens the network.
[[noreturn]] void hold_pasta(const Start& s, const UplinkOptions& options) {
  if (getppid() != s.parent || !own_mounts()) _exit(127);
  take_places(s);
  if (!keep_to_itself()) _exit(127);  // both of them: Landlock lets nobody look at a process outside its own domain
  const pid_t self = getpid();
  int go[2];
  if (chdir("/") != 0 || pipe2(go, O_CLOEXEC) != 0) _exit(127);
  pid_t pasta = fork();
  if (pasta == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    char byte;
    if (getppid() != self || read(go[0], &byte, 1) != 1) _exit(127);
    for (int fd : {static_cast<int>(kReady), static_cast<int>(kAlive), static_cast<int>(kUser), static_cast<int>(kNet)}) close(fd);
    execute(pasta_words(options, self));
  }
  auto ended = os::pidfd_open(pasta);
  if (pasta < 0 || !ended || setns(kUser, CLONE_NEWUSER) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || write(go[1], "g", 1) != 1) _exit(127);
  dup2(0, 1);
  dup2(0, 2);
  pollfd q[2] = {{kAlive, POLLIN, 0}, {ended->get(), POLLIN, 0}};
  while (poll(q, 2, -1) < 0 && errno == EINTR) {
  }
  kill(pasta, SIGKILL);
  while (waitpid(pasta, nullptr, 0) < 0 && errno == EINTR) {
  }
  _exit(0);
}

std::string last_words(int fd) {
  std::string out;
  char buffer[4096];
  for (ssize_t n; out.size() < 65536 && (n = read(fd, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return printable(out.size() > 600 ? out.substr(out.size() - 600) : out, {.limit = 700});
}

// Whether the program has taken from itself what it does not need. pasta says that it is ready shortly before.
bool filtered(pid_t pid) {
  for (int ms = 0; ms < kSandboxMs; ms++) {
    auto status = os::read_file("/proc/" + std::to_string(pid) + "/status", 65536);
    if (status && status->find("\nNoNewPrivs:\t1\n") != std::string::npos && status->find("\nSeccomp:\t2\n") != std::string::npos) return true;
    usleep(1000);
  }
  return false;
}

}  // namespace

UplinkSearch::UplinkSearch(std::string_view wanted) : wanted_(wanted) { ask(0); }

UplinkSearch::~UplinkSearch() {
  (void)answer(version_);
  (void)answer(help_);
}

// Starts with `which` of the list.
void UplinkSearch::ask(size_t which) {
  for (asked_ = which; asked_ < kNone; asked_++) {
    const Kind& kind = kKinds[asked_];
    if (wanted_ != "any" && wanted_ != kind.name) continue;
    for (const char* folder : kFolders) {
      path_ = std::string(folder) + kind.name;
      UniqueFd program = open_program(path_);
      if (!program) continue;
      version_ = put(program, kind.name, "--version");
      if (kind.pasta) help_ = put(program, kind.name, "--help");
      return;
    }
    lacking_ += (lacking_.empty() ? "" : ", ") + std::string(kind.name) + " (the package " + kind.package + ")";
  }
}

Result<UplinkProgram> UplinkSearch::found() {
  for (; asked_ < kNone; ask(asked_ + 1)) {
    const Kind& kind = kKinds[asked_];
    std::string version = answer(version_), help = answer(help_);
    version = printable(version.substr(0, version.find('\n')), {.limit = 100});
    std::string old;
    if (kind.pasta) {
      if (std::string option = lacking_option(help); !option.empty()) old = "it has no " + option;
    } else if (!recent(version)) {
      old = "1.1.0 is needed";
    }
    if (old.empty()) return UplinkProgram{kind.pasta, path_, version};
    lacking_ += (lacking_.empty() ? "" : ", ") + std::string(kind.name) + " (" + path_ + " says '" + version + "': " + old + ")";
  }
  return make_error(Errc::TIER_PROBE_MISSING, "no program carries packets out of a box here", "missing: " + lacking_);
}

UplinkSearch::Question UplinkSearch::put(const UniqueFd& program, const char* name, const char* option) {
  Question q;
  int says[2];
  if (pipe2(says, O_CLOEXEC) != 0) return q;
  q.says.reset(says[0]);
  UniqueFd out(says[1]);
  pid_t self = getpid();
  q.pid = fork();
  if (q.pid != 0) return q;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != self || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(127);
  take_places({program.get(), out.get(), out.get(), out.get(), out.get(), out.get(), self});
  for (int fd = kReady; fd < kExec; fd++) close(fd);
  execute({name, option});
}

std::string UplinkSearch::answer(Question& q) {
  std::string out;
  if (q.pid <= 0) return out;
  char buffer[4096];
  for (pollfd p{q.says.get(), POLLIN, 0}; out.size() < 65536 && poll(&p, 1, kAnswerMs) == 1;) {
    ssize_t n = read(q.says.get(), buffer, sizeof buffer);
    if (n <= 0) break;
    out.append(buffer, static_cast<size_t>(n));
  }
  kill(q.pid, SIGKILL);  // it has said what it says, or takes too long
  while (waitpid(q.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  q = Question();
  return out;
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
    : program_(std::move(other.program_)),
      pidfd_(std::move(other.pidfd_)),
      carrier_(std::move(other.carrier_)),
      alive_(std::move(other.alive_)),
      words_(std::move(other.words_)),
      pid_(std::exchange(other.pid_, -1)) {}

Uplink::~Uplink() { end(); }

void Uplink::end() {
  if (pid_ <= 0) return;
  alive_.reset();
  left();
  if (carrier_) (void)os::pidfd_ended(pidfd_.get(), kLeaveMs);  // its holder reaps it
  (void)os::pidfd_signal(pidfd_.get(), SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void Uplink::left() {
  if (carrier_) (void)os::pidfd_signal(carrier_.get(), SIGKILL);
}

Result<Uplink> Uplink::start(const UplinkProgram& program, const Namespaces& namespaces, const UplinkOptions& options) {
  UniqueFd exec = open_program(program.path);
  if (!exec) return make_error(Errc::TIER_PROBE_MISSING, "no program carries packets out of a box here", "missing: " + program.path);
  int ready[2], alive[2], words[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return sys_error("pipe");
  UniqueFd ready_in(ready[0]), ready_out(ready[1]);
  if (pipe2(alive, O_CLOEXEC) != 0) return sys_error("pipe");
  UniqueFd alive_in(alive[0]), alive_out(alive[1]);
  if (pipe2(words, O_CLOEXEC | O_NONBLOCK) != 0) return sys_error("pipe");
  UniqueFd words_in(words[0]), words_out(words[1]);

  Uplink up;
  up.program_ = program;
  const Start start{exec.get(), ready_out.get(), alive_in.get(), words_out.get(), namespaces.user, namespaces.net, getpid()};
  up.pid_ = fork();
  if (up.pid_ < 0) return sys_error("fork");
  if (up.pid_ == 0 && program.pasta) hold_pasta(start, options);
  if (up.pid_ == 0) become_slirp(start, options);
  up.pidfd_ = H5I_TRY(os::pidfd_open(up.pid_));
  up.alive_ = std::move(alive_out);
  ready_out.reset();
  words_out.reset();
  // Ready is a byte, or the number of the process in a line; an end of that pipe without it is the program's end.
  pollfd q{ready_in.get(), POLLIN, 0};
  int n;
  do {
    n = poll(&q, 1, kStartMs);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return make_error(Errc::TIMEOUT, "the uplink is not ready after 5 s", last_words(words_in.get()));
  char said[32] = "";
  if (read(ready_in.get(), said, sizeof said - 1) < 1) {
    (void)os::pidfd_ended(up.pidfd_.get(), 1000);
    return make_error(Errc::TIER_SETUP, program.path + " ended before it was ready", last_words(words_in.get()));
  }
  pid_t carrier = program.pasta ? static_cast<pid_t>(strtol(said, nullptr, 10)) : up.pid_;
  if (program.pasta) up.carrier_ = H5I_TRY(os::pidfd_open(carrier));
  if (!filtered(carrier)) return make_error(Errc::TIER_SETUP, program.path + " runs without a system-call filter of its own", last_words(words_in.get()));
  up.words_ = std::move(words_in);
  return up;
}

}  // namespace h5i::nft
