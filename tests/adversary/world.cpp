#include "tests/adversary/world.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/msg.h>
#include <sys/quota.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/adversary/bare.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/slower.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::adversary {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPath = "/usr/local/bin:/usr/bin:/bin";

Ran ran(test::Ended e) {
  Ran r;
  r.status = e.status;
  r.out = std::move(e.out);
  r.err = std::move(e.err);
  return r;
}

// One profile a line of reasoning: `attack` is what the cases are tried under, each other one grants or limits one thing.
constexpr const char* kProfiles = R"(profiles:
  attack:
    extends: default
    fs:
      read: [@SYSTEM@, "~/shared"]
      write: [$WORK, "~/open"]
      deny: ["~/open/denied", "~/open/parent/inner/denied", "~/open/late", "~/shared/secret"]
      private: { cache: cache }
  bare: { extends: default }
  plain: { extends: workspace }
  unix: { extends: attack, net: { unix: true } }
  host: { extends: attack, net: { mode: host } }
  sockets: { extends: attack, fs: { read: [@SYSTEM@, "~/shared", "~/run"] } }
  host-unix: { extends: attack, net: { mode: host, unix: true } }
  wide:
    extends: attack
    fs: { write: [$WORK, "~/open", "~/shared"], deny: [] }
  small:
    extends: attack
    resources: { mem: 64M, procs: 24, fsize: 1M, output: 64K }
  short: { extends: attack, resources: { wall: @WALL@, procs: 64 } }
  plain-short: { extends: workspace, resources: { wall: @WALL@ } }
  cpu: { extends: attack, resources: { cpu: 1s } }
  empty: { extends: attack, net: { egress: [] } }
  net: { extends: attack, net: { egress: [api.test, "mirror.test:8443", "198.51.100.0/28:80"] } }
  six: { extends: attack, net: { egress: [six.test] } }
  loopback: { extends: attack, net: { loopback: [@PORT@] } }
)";

std::string one_of(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : between) + w;
  return out;
}

std::string state_of(const std::string& path) {
  struct stat s {};
  if (lstat(path.c_str(), &s) != 0) return "absent";
  std::ostringstream out;
  out << std::oct << s.st_mode << std::dec << " of " << s.st_uid << " links " << s.st_nlink << " size " << s.st_size << " modified "
      << s.st_mtim.tv_sec << "." << s.st_mtim.tv_nsec;
  if (S_ISDIR(s.st_mode)) {
    std::vector<std::string> names;
    std::error_code e;
    for (const auto& entry : fs::directory_iterator(path, e)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return std::to_string(s.st_mode) + " of " + std::to_string(s.st_uid) + " holds " + one_of(names, " ");
  }
  return out.str();
}

}  // namespace

std::vector<pid_t> processes_with(const std::string& mark) {
  // By read(2): a process that ends meanwhile fails the read, and is none.
  auto text_of = [](const std::string& path) {
    std::string out;
    char buf[4096];
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = ::read(fd, buf, sizeof buf)) > 0;) out.append(buf, static_cast<size_t>(n));
    if (fd >= 0) close(fd);
    return out;
  };
  std::vector<pid_t> found;
  std::error_code e;
  for (const auto& entry : fs::directory_iterator("/proc", e)) {
    std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || name == std::to_string(getpid())) continue;
    if (text_of("/proc/" + name + "/cmdline").find(mark) == std::string::npos) continue;
    std::string stat = text_of("/proc/" + name + "/stat");
    size_t at = stat.rfind(')');
    bool zombie = at != std::string::npos && at + 2 < stat.size() && stat[at + 2] == 'Z';
    if (!zombie) found.push_back(std::stoi(name));
  }
  return found;
}

bool World::slow() const { return target_.tier == "supervised" || test::kSlower > 1; }

World::World(Target target) : target_(std::move(target)), uid_(target_.uid) {
  const char* tmp = getenv("TMPDIR");
  root_ = std::string(tmp ? tmp : "/tmp") + "/h5i-adversary-XXXXXX";
  if (mkdtemp(root_.data()) == nullptr) abort();
  name_ = root_.substr(root_.rfind('-') + 1);
  chmod(root_.c_str(), 0755);
  for (const char* d : {"", "/.cache", "/.local", "/r", "/r/.h5i", "/shared", "/shared/closed", "/open", "/open/parent", "/open/parent/inner", "/run", "/out", "/hidden"})
    fs::create_directories(home() + d);
  fs::copy_file(target_.attack, home() + "/shared/h5i-attack");
  fs::copy_file(target_.h5i, home() + "/shared/h5i");
  fs::copy_file(target_.attack, home() + "/run/other");  // another file, so that a try can tell its own processes apart
  std::vector<std::string> system;
  for (const char* d : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc"})
    if (access(d, F_OK) == 0) system.push_back(d);
  std::string profiles = kProfiles;
  listen_tcp(AF_INET, "port");
  listen_tcp(AF_INET6, "port6");
  for (size_t at; (at = profiles.find("@SYSTEM@")) != std::string::npos;) profiles.replace(at, 8, one_of(system, ", "));
  // A deadline is to end what runs, not what is being started.
  for (size_t at; (at = profiles.find("@WALL@")) != std::string::npos;) profiles.replace(at, 6, slow() ? "9s" : "2s");
  profiles.replace(profiles.find("@PORT@"), 6, names_["port"]);
  write(repo() + "/.h5i/env.yaml", profiles);
  write(repo() + "/README", "read me\n");
  write(home() + "/.gitconfig", "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n");
  char hostname[256] = {};
  gethostname(hostname, sizeof hostname - 1);
  const std::map<std::string, std::string> places = {{"home", home()},
            {"shared", home() + "/shared"},
            {"attack", home() + "/shared/h5i-attack"},
            {"file", home() + "/shared/file"},
            {"secret", home() + "/shared/secret"},
            {"hidden", home() + "/hidden/file"},
            {"open", home() + "/open"},
            {"agent", home() + "/run/agent"},
            {"agent-dgram", home() + "/run/datagrams"},
            {"abstract", "@h5i-adversary-" + name_},
            {"attack-copy", home() + "/open/copy"},
            {"mq", "h5i-adversary-" + name_},
            {"shm", "/dev/shm/h5i-adversary-" + name_},
            {"hostname", hostname},
            {"test", std::to_string(getpid())},
            {"repo", repo()},
            {"root", root_}};
  names_.insert(places.begin(), places.end());
  for (const auto& e : fs::recursive_directory_iterator(root_)) give(e.path());
  give(root_);
  listen();
  start_victim();
  // A descriptor that is left open on purpose: whoever starts a box must not hand it on.
  int loose = open((home() + "/hidden").c_str(), O_RDONLY | O_DIRECTORY);
  if (loose < 0) abort();
  fds_.push_back(loose);
  reset();
  host({"/bin/sh", "-c", "git init -q . && git add . && git commit -qm first"}, repo());
}

World::~World() {
  if (victim_ > 0) {
    kill(victim_, SIGKILL);
    waitpid(victim_, nullptr, 0);
  }
  for (int fd : fds_) close(fd);
  if (shm_ >= 0) shmctl(shm_, IPC_RMID, nullptr);
  if (sem_ >= 0) semctl(sem_, 0, IPC_RMID);
  if (msg_ >= 0) msgctl(msg_, IPC_RMID, nullptr);
  mq_unlink(("/" + names_["mq"]).c_str());
  unlink(names_["shm"].c_str());
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void World::give(const std::string& path) const {
  if (uid_ != 0 && lchown(path.c_str(), uid_, uid_) != 0) abort();
}

void World::write(const std::string& path, const std::string& text, unsigned mode) const {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  chmod(path.c_str(), static_cast<mode_t>(mode));
  give(path);
}

std::string World::read(const std::string& path) const {
  return test::read_file(path);
}

// Listeners have a backlog and nobody accepts: a connection that is made has been made.
void World::listen_tcp(int family, const std::string& name) {
  sockaddr_in6 a6{};
  sockaddr_in a4{};
  a6.sin6_family = AF_INET6;
  a6.sin6_addr = in6addr_loopback;
  a4.sin_family = AF_INET;
  a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* a = family == AF_INET ? reinterpret_cast<sockaddr*>(&a4) : reinterpret_cast<sockaddr*>(&a6);
  socklen_t n = family == AF_INET ? sizeof a4 : sizeof a6;
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, a, n) != 0 || ::listen(fd, 64) != 0 || getsockname(fd, a, &n) != 0) abort();
  names_[name] = std::to_string(ntohs(family == AF_INET ? a4.sin_port : a6.sin6_port));
  fds_.push_back(fd);
}

void World::listen() {
  sockaddr_in u{};
  u.sin_family = AF_INET;
  u.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t un = sizeof u;
  udp_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(udp_, reinterpret_cast<sockaddr*>(&u), un) != 0 || getsockname(udp_, reinterpret_cast<sockaddr*>(&u), &un) != 0) abort();
  names_["udp"] = std::to_string(ntohs(u.sin_port));
  fds_.push_back(udp_);

  auto local = [&](const std::string& name, int type) {
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    memcpy(a.sun_path, name.data(), std::min(name.size(), sizeof a.sun_path));
    if (a.sun_path[0] == '@') a.sun_path[0] = 0;
    auto n = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (bind(fd, reinterpret_cast<sockaddr*>(&a), n) != 0) abort();
    if (type == SOCK_STREAM && ::listen(fd, 64) != 0) abort();
    if (name[0] == '/') {
      chmod(name.c_str(), 0777);
      give(name);
    }
    fds_.push_back(fd);
  };
  local(names_["agent"], SOCK_STREAM);
  local(names_["agent-dgram"], SOCK_DGRAM);
  local(names_["abstract"], SOCK_STREAM);

  std::ofstream(names_["shm"]) << "x";
  chmod(names_["shm"].c_str(), 0666);
  int key = 0x48350000 + (getpid() & 0xffff);
  shm_ = shmget(key, 4096, IPC_CREAT | 0666);
  sem_ = semget(key, 1, IPC_CREAT | 0666);
  msg_ = msgget(key, IPC_CREAT | 0666);
  names_["key"] = std::to_string(key);
  umask(0);
  mqd_t q = mq_open(("/" + names_["mq"]).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666, nullptr);
  if (q >= 0) mq_close(q);
  umask(022);
}

// A process of the same user that a box must not reach.
void World::start_victim() {
  std::string attack = home() + "/run/other", mark = "victim-" + name_;
  victim_ = fork();
  if (victim_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (uid_ != 0 && (setgroups(0, nullptr) != 0 || setresgid(uid_, uid_, uid_) != 0 || setresuid(uid_, uid_, uid_) != 0)) _exit(1);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(null, i);
    // Without a child in between, so that whoever ends the victim ends all of it.
    execl(attack.c_str(), attack.c_str(), "itself", "sleep", "100000", mark.c_str(), nullptr);
    _exit(1);
  }
  names_["victim"] = std::to_string(victim_);
  for (int i = 0; i < 500 && processes_with(mark).empty(); i++) usleep(2000);
}

bool World::victim_lives() const { return victim_ > 0 && waitpid(victim_, nullptr, WNOHANG) == 0; }

bool World::heard() const {
  char byte;
  for (int i = 0; i < 20; i++) {
    if (recv(udp_, &byte, 1, 0) == 1) return true;
    usleep(5000);
  }
  return false;
}

void World::reset() {
  char byte;
  while (recv(udp_, &byte, 1, 0) == 1) {
  }
  if (!victim_lives()) start_victim();
  std::error_code ignored;
  for (const char* d : {"/open", "/out"}) {
    fs::remove_all(home() + d, ignored);
    fs::create_directories(home() + d);
    give(home() + d);
  }
  std::error_code gone;
  for (const auto& e : fs::directory_iterator(home() + "/shared"))
    if (e.path().filename() != "h5i-attack" && e.path().filename() != "h5i") fs::remove_all(e.path(), gone);
  for (const char* d : {"/shared/closed", "/open/parent", "/open/parent/inner", "/open/made"}) {
    fs::create_directories(home() + d);
    give(home() + d);
  }
  for (const char* f : {"/shared/file", "/shared/secret", "/shared/closed/file", "/hidden/file", "/open/plain", "/open/copy", "/open/denied", "/open/parent/inner/denied"}) {
    unlink((home() + f).c_str());
    write(home() + f, "content\n");
  }
  chmod((home() + "/shared/closed").c_str(), 0700);
  sealed_.clear();
  for (const char* f : {"", "/shared", "/shared/file", "/shared/secret", "/shared/h5i-attack", "/hidden", "/hidden/file", "/open/denied",
                        "/open/parent/inner/denied", "/open/late", "/run", "/run/agent"})
    sealed_[home() + f] = state_of(home() + f);
  sealed_[names_["shm"]] = state_of(names_["shm"]);
}

std::string World::changed() const {
  std::string out;
  for (const auto& [path, was] : sealed_)
    if (std::string now = state_of(path); now != was) out += path + " was " + was + ", is " + now + "; ";
  if (!victim_lives()) out += "the other process of the user was ended; ";
  return out;
}

std::string World::fill(const std::string& text, const Place& place) const {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t open = text.find('{', at), close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) return out + text.substr(at);
    out += text.substr(at, open - at);
    std::string name = text.substr(open + 1, close - open - 1);
    if (name == "work")
      out += place.work;
    else if (name == "box")
      out += box_dir(place.inside() ? place.box : "attack");
    else if (auto it = names_.find(name); it != names_.end())
      out += it->second;
    else
      out += text.substr(open, close - open + 1);
    at = close + 1;
  }
  return out;
}

Ran World::at(Ground ground, const std::vector<std::string>& argv, const std::string& cwd, int timeout_s) const {
  test::Program p{.argv = argv, .env = {{"HOME", home()}, {"LANG", "C.UTF-8"}}, .path = kPath, .cwd = cwd, .uid = uid_, .timeout_s = timeout_s};
  if (ground == Ground::bare) p.before_exec = enter_bare_namespaces;
  if (ground == Ground::root) p.uid = 0;
  return ran(test::run(p));
}
Ran World::host(const std::vector<std::string>& argv, const std::string& cwd, int timeout_s) const { return at(Ground::host, argv, cwd, timeout_s); }
bool World::has(Ground ground) const { return ground != Ground::root || geteuid() == 0; }

Ran World::h5i(std::vector<std::string> words, int timeout_s) const {
  words.insert(words.begin(), target_.h5i);
  return host(words, repo(), timeout_s);
}

Ran World::with(const std::map<std::string, std::string>& variables, const Place& place, const std::vector<std::string>& argv) const {
  std::vector<std::string> words;
  if (place.inside()) words = {target_.h5i, "box", "run", place.box, "--"};
  for (const std::string& w : argv) words.push_back(fill(w, place));
  std::map<std::string, std::string> env = variables;
  env["HOME"] = home();
  env["LANG"] = "C.UTF-8";
  return ran(test::run({.argv = words, .env = env, .path = kPath, .cwd = place.inside() ? repo() : place.work, .uid = uid_}));
}

bool World::delegated(const std::string& controller) const {
  for (const char* base : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    std::istringstream words(read(std::string(base) + "/cgroup.controllers"));
    for (std::string w; words >> w;)
      if (w == controller) return true;
  }
  return false;
}

bool World::has_quota() const {
  int fd = open(repo().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  uint32_t format = 0;
  long r = syscall(SYS_quotactl_fd, fd, QCMD(Q_GETFMT, PRJQUOTA), 0, &format);
  close(fd);
  return r == 0;
}

Place World::outside(Ground ground) { return {this, "", home() + "/out", ground}; }

Place World::box(const std::string& profile, std::string* why) {
  return boxes_.count(profile) ? Place{this, profile, box_dir(profile) + "/work"} : make(profile, profile, why);
}

Place World::fresh(const Place& like) {
  const std::string& profile = boxes_.at(like.box);
  // At supervised a box is dear to make: there is one other, which all scenes share.
  std::string slug = profile + "-" + (target_.tier == "supervised" ? "other" : std::to_string(boxes_.size()));
  return boxes_.count(slug) ? Place{this, slug, box_dir(slug) + "/work"} : make(slug, profile, nullptr);
}

Place World::make(const std::string& slug, const std::string& profile, std::string* why) {
  Ran made = h5i({"box", "create", "--name", slug, "--profile", profile, "--isolation", target_.tier});
  if (made.status != 0) {
    if (why) *why = made.err;
    return {this, "", ""};
  }
  boxes_[slug] = profile;
  return {this, slug, box_dir(slug) + "/work"};
}

Ran World::in_box(const std::string& box, const std::vector<std::string>& argv, int timeout_s) const {
  std::vector<std::string> words{"box", "run", box, "--"};
  words.insert(words.end(), argv.begin(), argv.end());
  std::string log = box_dir(box) + "/log.jsonl";
  std::error_code none;
  auto before = fs::exists(log, none) ? fs::file_size(log, none) : 0;
  Ran r = h5i(words, timeout_s);
  std::ifstream in(log, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(before));
  for (std::string line; std::getline(in, line);)
    if (auto record = json::parse(line); record && (*record)["kind"].string() == "receipt") r.receipt = (*record)["body"];
  return r;
}

// ---- places ----------------------------------------------------------------------------------------------------------

Ran Place::command(const std::vector<std::string>& argv, int timeout_s) const {
  std::vector<std::string> words;
  for (const std::string& w : argv) words.push_back(world->fill(w, *this));
  return inside() ? world->in_box(box, words, timeout_s) : world->at(ground, words, work, timeout_s);
}

Ran Place::tries(const std::vector<std::vector<std::string>>& list, int timeout_s) const {
  std::vector<std::string> argv{"{attack}"};
  std::vector<std::string> heads;  // how each answer begins, as h5i-attack writes it
  for (const auto& words : list) {
    if (argv.size() > 1) argv.push_back(",");
    std::string head;
    for (const std::string& w : words) {
      argv.push_back(w);
      head += (head.empty() ? "" : " ") + world->fill(w, *this).substr(0, 200);
    }
    heads.push_back(head + ": ");
  }
  Ran r = command(argv, timeout_s);
  size_t at = 0;
  for (const std::string& head : heads) {
    std::string answer;
    for (size_t line = at; line < r.out.size();) {
      size_t end = std::min(r.out.find('\n', line), r.out.size());
      if (r.out.compare(line, head.size(), head) == 0) {
        answer = r.out.substr(line + head.size(), end - line - head.size());
        at = end + 1;
        break;
      }
      line = end + 1;
    }
    r.answers.push_back(answer);
  }
  return r;
}

}  // namespace h5i::adversary
