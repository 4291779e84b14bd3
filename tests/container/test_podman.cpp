// Podman by the tier's words, as a user that exists in this test alone.
#include <sys/mman.h>
#include <sys/mount.h>

#include "engine.hpp"
#include "sample_run.hpp"
#include "core/os/socket.hpp"
#include "tests/broker/place.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::container;
using namespace h5i::test;

namespace {

constexpr uint32_t kBoxer = 65500;

void skip(const char* why) {
  printf("SKIP: container-podman: %s\n", why);
  fflush(stdout);
}
bool can() {
  if (geteuid() != 0) return skip("a test that is not root's makes no user"), false;
  for (const char* p : {"/usr/bin/podman", "/usr/bin/crun", "/usr/bin/newuidmap", "/usr/bin/busybox", "/usr/bin/unshare", "/usr/bin/setpriv"})
    if (access(p, X_OK) != 0) return skip((std::string("a machine without ") + p).c_str()), false;
  return true;
}

// A mount namespace in which the user exists, with a range of ids, and a network namespace with origins' addresses: of this process, and the
// only thing that root is needed for.
bool enter(const std::string& dir) {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  auto add = [&](const char* name, const std::string& lines, const char* over) {
    std::ifstream in(over);
    std::string text((std::istreambuf_iterator<char>(in)), {}), path = dir + "/" + name;
    put(path.c_str(), text + lines);
    return mount(path.c_str(), over, nullptr, MS_BIND, nullptr) == 0;
  };
  if (access("/etc/subuid", F_OK) != 0 || access("/etc/subgid", F_OK) != 0) return false;
  const std::string home = dir + "/home";
  for (const char* d : {"/home", "/scratch", "/work", "/root"}) {
    if (mkdir((dir + d).c_str(), 0700) != 0 || chown((dir + d).c_str(), kBoxer, kBoxer) != 0) return false;
  }
  chmod(dir.c_str(), 0755);
  std::string network = "PATH=$PATH:/sbin:/usr/sbin; ip link set lo up";
  for (const char* a : {"93.184.216.34/32", "93.184.216.35/32", "2606:4700::7/128 nodad"}) network += std::string(" && ip addr add ") + a + " dev lo";
  return add("passwd", "h5i-boxer:x:65500:65500::" + home + ":/bin/sh\n", "/etc/passwd") && add("subuid", "h5i-boxer:300000:65536\n", "/etc/subuid") && add("subgid", "h5i-boxer:300000:65536\n", "/etc/subgid") &&
         add("hosts", "93.184.216.34 a.example\n93.184.216.35 b.example\n", "/etc/hosts") && system((network + " >/dev/null 2>&1").c_str()) == 0;
}
// A root directory of busybox.
bool make_root(const std::string& root) {
  std::string all = "cd " + root + " && mkdir bin proc dev tmp etc sys run work && cp /usr/bin/busybox bin/ && for a in $(bin/busybox --list); do [ $a = busybox ] || ln -s busybox bin/$a; done; chown -R 65500:65500 .";
  return system(all.c_str()) == 0;
}
bool as_boxer() { return setgroups(0, nullptr) == 0 && setresgid(kBoxer, kBoxer, kBoxer) == 0 && setresuid(kBoxer, kBoxer, kBoxer) == 0; }

Run run_in(const std::string& dir) {
  Run run = sample_run();
  run.storage = dir + "/home/storage";
  run.scratch = dir + "/scratch";
  run.driver = "vfs";
  run.image = *parse_image(dir + "/root");
  run.binds = {{dir + "/work", "/work", true}};
  run.owner_uid = run.owner_gid = kBoxer;
  return run;
}

// The user namespace with its range of ids and the box's network, made by the machine's own programs as the user; the machine's control groups
// are covered in there; then podman.
class Podman {
 public:
  Podman(const Run& run, const std::string& dir) : Podman(build_command(run), run, dir) {}
  Podman(sdk::Result<Command> command, const Run& run, const std::string& dir) {
    int said[2], go[2], ready[2];
    if (!command.ok() || pipe2(said, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0 || pipe2(ready, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      int memory = memfd_create("environment", MFD_CLOEXEC);
      (void)!write(memory, command->environment_file.data(), command->environment_file.size());
      lseek(memory, 0, SEEK_SET);
      put((run.scratch + "/storage.conf").c_str(), command->storage_conf);
      if (!as_boxer() || chdir((dir + "/home").c_str()) != 0) _exit(1);
      // None of them where another is to be.
      int high[] = {fcntl(go[0], F_DUPFD_CLOEXEC, 20), fcntl(said[1], F_DUPFD_CLOEXEC, 20), fcntl(ready[1], F_DUPFD_CLOEXEC, 20), fcntl(memory, F_DUPFD_CLOEXEC, 20)};
      dup2(high[0], 0);
      dup2(high[1], 1);
      dup2(high[1], 2);
      dup2(high[2], 9);
      dup2(high[3], kEnvironmentFd);
      std::vector<std::string> words{"/usr/bin/unshare", "--user", "--map-root-user", "--map-auto", "--net", "--mount", "/bin/sh", "-c",
                                     "PATH=$PATH:/sbin:/usr/sbin; mount -t tmpfs -o ro none /sys/fs/cgroup || exit 90; ip link set lo up; echo ready >&9; exec 9>&-; read go; exec \"$@\" </dev/null", "sh"};
      words.insert(words.end(), command->argv.begin(), command->argv.end());
      std::vector<char*> argv, env;
      for (std::string& w : words) argv.push_back(w.data());
      argv.push_back(nullptr);
      std::vector<std::string> variables;
      for (const auto& [name, value] : command->env) variables.push_back(name + "=" + value);
      for (std::string& v : variables) env.push_back(v.data());
      env.push_back(nullptr);
      execve(argv[0], argv.data(), env.data());
      _exit(127);
    }
    said_.reset(said[0]);
    go_.reset(go[1]);
    close(said[1]);
    close(go[0]);
    close(ready[1]);
    UniqueFd there(ready[0]);
    pollfd q{there.get(), POLLIN, 0};
    char byte;
    up_ = poll(&q, 1, 10'000) == 1 && read(there.get(), &byte, 1) == 1;
  }
  bool up() const { return up_; }
  // A socket that listens in the box's network.
  UniqueFd listener() {
    auto pair = os::seqpacket_pair();
    if (!pair) return UniqueFd();
    pid_t helper = fork();
    if (helper == 0) {
      UniqueFd net(open(("/proc/" + std::to_string(pid_) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
      if (setns(net.get(), CLONE_NEWNET) != 0) _exit(1);
      UniqueFd fd = listen_at("127.0.0.1", kProxyPort);
      _exit(fd && os::send_packet(pair->b.get(), "x", {fd.get()}) ? 0 : 1);
    }
    int status = 1;
    waitpid(helper, &status, 0);
    auto packet = status == 0 ? os::receive_packet(pair->a.get()) : Result<std::optional<os::Packet>>(std::optional<os::Packet>{});
    return packet && *packet && !(*packet)->fds.empty() ? std::move((*packet)->fds[0]) : UniqueFd();
  }
  std::string finish(int* status) {
    (void)!write(go_.get(), "\n", 1);
    std::string out;
    char buffer[4096];
    for (ssize_t n; (n = read(said_.get(), buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
    int raw = 0;
    waitpid(pid_, &raw, 0);
    pid_ = -1;
    *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
    return out;
  }
  ~Podman() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

 private:
  pid_t pid_ = -1;
  bool up_ = false;
  UniqueFd said_, go_;
};

// Whether the machine's own programs give such a user a range of ids, a network and a cover for the control groups: in a container they may not.
bool gives_ranges() {
  std::string said = run_isolated({"root", 0, 0}, [](Checks& k) {
    KREQUIRE(enter(k.dir()));
    pid_t child = fork();
    if (child == 0) {
      if (as_boxer()) execl("/usr/bin/unshare", "unshare", "--user", "--map-root-user", "--map-auto", "--net", "--mount", "/bin/mount", "-t", "tmpfs", "none", "/sys/fs/cgroup", nullptr);
      _exit(1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    KCHECK(status == 0);
  });
  if (!said.empty()) skip("a machine that gives a user no range of ids");
  return said.empty();
}

void as_root(const std::function<void(Checks&)>& body) {
  static const bool possible = can() && gives_ranges();
  if (!possible) return;
  std::string failures = run_isolated({"root", 0, 0}, body);
  INFO(failures);
  CHECK(failures.empty());
}
// One line "NAME=..." of what the box printed.
std::string line_of(const std::string& out, const std::string& name) {
  size_t at = out.find("\n" + name + "=");
  if (at == std::string::npos) return "(no " + name + ")";
  at += name.size() + 2;
  return out.substr(at, out.find('\n', at) - at);
}

}  // namespace

TEST_CASE("a user with a range of ids has every piece, and without it the piece is named", "[container][podman]") {
  as_root([](Checks& k) {
    KREQUIRE(enter(k.dir()));
    auto look = [&](const char* id) {
      int p[2];
      if (pipe2(p, O_CLOEXEC) != 0) return std::string();
      pid_t child = fork();
      if (child == 0) {
        if (!as_boxer()) _exit(1);
        std::string out;
        for (const Component& c : judge_engine(read_engine()))
          if (!c.ok && c.required) out += c.id + ": " + c.evidence + "\n";
        (void)!write(p[1], out.data(), out.size());
        _exit(0);
      }
      close(p[1]);
      UniqueFd in(p[0]);
      std::string out;
      char buffer[1024];
      for (ssize_t n; (n = read(in.get(), buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
      waitpid(child, nullptr, 0);
      return id[0] == 0 || out.find(id) == 0 ? out : out + " (expected " + id + ")";
    };
    KCHECK_SAYS(look("").empty(), look(""));
    std::string none = k.dir() + "/none";
    put(none.c_str(), "");
    KREQUIRE(mount(none.c_str(), "/etc/subuid", nullptr, MS_BIND, nullptr) == 0);
    KCHECK_SAYS(look("subordinate-ids: ").find("expected") == std::string::npos, look("subordinate-ids: "));
    umount("/etc/subuid");
    // What is there and no more set-user-id is not what it was: only trying it tells.
    put(none.c_str(), "#!/bin/sh\nexit 1\n");
    chmod(none.c_str(), 0755);
    KREQUIRE(mount(none.c_str(), "/usr/bin/newuidmap", nullptr, MS_BIND, nullptr) == 0);
    KCHECK_SAYS(look("id-mapping: ").find("expected") == std::string::npos, look("id-mapping: "));
  });
}

TEST_CASE("podman by these words holds what they ask for, and nothing of its state is left", "[container][podman]") {
  as_root([](Checks& k) {
    KREQUIRE(enter(k.dir()) && make_root(k.dir() + "/root"));
    Run run = run_in(k.dir());
    run.tmp_bytes = 1 << 20;
    run.argv = {"/bin/sh", "-c",
                "echo; for n in CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp; do echo \"$n=$(grep ^$n: /proc/self/status | tr -d ' \\t' | cut -d: -f2)\"; done;"
                "echo \"root=$(touch /x 2>&1)\"; touch /work/made; echo \"work=$?\"; echo \"env=$(env | sort | tr '\\n' ' ')\"; echo \"args=$*\"; echo \"tmp=$(dd if=/dev/zero of=/tmp/f bs=1M count=4 2>&1 | grep -c 'No space')\";"
                "echo \"files=$(ulimit -n)\"; echo \"core=$(ulimit -c)\"; echo \"pids=$(ls /proc | grep -c '^[0-9]')\"; echo \"links=$(ls /sys/class/net | tr '\\n' ' ')\"; echo \"mount=$(mount -t tmpfs x /tmp 2>&1)\"; echo \"raw=$(ping -c1 127.0.0.1 2>&1 | tail -1)\";"
                "echo \"host=$(hostname)\"; echo \"resolv=$(ls /etc/resolv.conf 2>&1)\"",
                "sh", "a b", "$(id)", "--privileged"};
    Podman podman(run, k.dir());
    KREQUIRE(podman.up());
    int status = -1;
    std::string out = podman.finish(&status);
    KCHECK_SAYS(status == 0, out);
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) KCHECK_SAYS(line_of(out, set) == "0000000000000000", out);
    KCHECK(line_of(out, "NoNewPrivs") == "1" && line_of(out, "Seccomp") == "2");
    KCHECK_SAYS(has(line_of(out, "root"), "Read-only file system"), line_of(out, "root"));
    KCHECK(line_of(out, "work") == "0");
    KCHECK_SAYS(has(line_of(out, "env"), "TOKEN=s3cret value") && has(line_of(out, "env"), "CI=1") && !has(line_of(out, "env"), "CONTAINERS_CONF") && !has(line_of(out, "env"), "container="), line_of(out, "env"));
    KCHECK_SAYS(line_of(out, "args") == "a b $(id) --privileged", line_of(out, "args"));
    KCHECK(line_of(out, "tmp") == "1" && line_of(out, "files") == "1024" && line_of(out, "core") == "0");
    KCHECK_SAYS(line_of(out, "links") == "lo ", line_of(out, "links"));
    KCHECK_SAYS(has(line_of(out, "mount"), "ermitted") || has(line_of(out, "mount"), "denied"), line_of(out, "mount"));
    KCHECK_SAYS(has(line_of(out, "raw"), "permission denied"), line_of(out, "raw"));
    KCHECK(line_of(out, "host") == "box" && has(line_of(out, "resolv"), "No such file"));
    // Outside: the file is the user's, the image as it was, and no container, log or mount is left.
    struct stat st {};
    KCHECK(stat((k.dir() + "/work/made").c_str(), &st) == 0 && st.st_uid == kBoxer);
    KCHECK(access((k.dir() + "/root/etc/hostname").c_str(), F_OK) != 0 && access((k.dir() + "/root/run/.containerenv").c_str(), F_OK) != 0);
    KCHECK(system(("grep -rqs s3cret " + k.dir() + "/home").c_str()) != 0);
    KCHECK(system(("grep -rqs s3cret " + k.dir() + "/scratch").c_str()) == 0);  // control: podman does write it down, where it goes with the run
    KCHECK(system(("test -z \"$(find " + k.dir() + "/scratch/state/vfs-containers -mindepth 1 -type d 2>/dev/null)\"").c_str()) == 0);
  });
}

TEST_CASE("an image of local storage is run by its name and never fetched", "[container][podman]") {
  as_root([](Checks& k) {
    KREQUIRE(enter(k.dir()) && make_root(k.dir() + "/root"));
    const std::string tar = k.dir() + "/home/root.tar";
    KREQUIRE(system(("tar -C " + k.dir() + "/root -cf " + tar + " . && chown 65500:65500 " + tar).c_str()) == 0);
    Run run = run_in(k.dir());
    run.argv = {"/bin/sh", "-c", "echo; echo \"there=$(ls /bin/busybox)\""};
    int status = -1;
    {
      // Into the images' own place, as an import would.
      auto command = build_command(run);
      KREQUIRE(command.ok());
      command->argv = {run.podman, "--root=" + run.storage, "--runroot=" + run.scratch + "/import", "--storage-driver=vfs", "import", tar, "localhost/h5i/busybox:1"};
      Podman import(std::move(command), run, k.dir());
      KREQUIRE(import.up());
      std::string out = import.finish(&status);
      KCHECK_SAYS(status == 0, out);
    }
    run.image = *parse_image("localhost/h5i/busybox:1");
    {
      Podman podman(run, k.dir());
      KREQUIRE(podman.up());
      std::string out = podman.finish(&status);
      KCHECK_SAYS(status == 0 && line_of(out, "there") == "/bin/busybox", out);
    }
    run.image = *parse_image("localhost/h5i/other:1");
    run.name = "h5i-02";
    Podman none(run, k.dir());
    KREQUIRE(none.up());
    std::string out = none.finish(&status);
    KCHECK_SAYS(status == 125, out);
  });
}

TEST_CASE("out of a container there is the proxy and nothing else", "[container][podman]") {
  as_root([](Checks& k) {
    KREQUIRE(enter(k.dir()) && make_root(k.dir() + "/root"));
    Origin a(kPublicA, 80, web("from a")), b(kPublicB, 80, web("from b")), six("2606:4700::7", 80, web("from six"));
    KREQUIRE(a.up() && b.up() && six.up());
    KCHECK(dial_to(kPublicA, 80).valid() && dial_to("2606:4700::7", 80).valid());  // control: there is a way, outside
    Run run = run_in(k.dir());
    run.env = {{"http_proxy", "http://127.0.0.1:3128"}};
    run.argv = {"/bin/sh", "-c",
                "echo; echo \"allowed=$(wget -q -O - http://a.example/)\"; echo \"refused=$(wget -q -O - http://b.example/ 2>&1 | tail -1)\"; unset http_proxy;"
                "for to in 93.184.216.34 93.184.216.35 2606:4700::7; do echo \"direct $to=$(echo x | nc -w 2 $to 80 2>&1 | head -1)\"; done;"
                "echo \"dns=$(nslookup a.example 93.184.216.34 2>&1 | tail -1)\"; echo \"quic=$(echo x | nc -u -w 1 93.184.216.34 443 2>&1 | head -1)\"; echo \"ping=$(ping -c 1 -W 1 93.184.216.34 2>&1 | tail -1)\";"
                "echo \"up=$(ip link add dummy0 type dummy 2>&1)\"; echo \"tunnel=$(printf 'CONNECT b.example:80 HTTP/1.1\\r\\nHost: b.example:80\\r\\n\\r\\n' | nc -w 2 127.0.0.1 3128 | head -1)\""};
    Podman podman(run, k.dir());
    KREQUIRE(podman.up());
    UniqueFd listener = podman.listener();
    KREQUIRE(listener.valid());
    auto pair = os::seqpacket_pair();
    KREQUIRE(pair.ok());
    pid_t proxy = fork();
    if (proxy == 0) {
      if (dup2(pair->b.get(), 3) < 0) _exit(1);
      if (pair->b.get() == 3) fcntl(3, F_SETFD, 0);
      execl(H5I_PROXY, "h5i-proxy", nullptr);
      _exit(127);
    }
    pair->b.reset();
    auto ask = [&](const std::string& request, const std::vector<int>& fds) {
      (void)os::send_packet(pair->a.get(), request, fds);
      auto packet = os::receive_packet(pair->a.get());
      auto said = packet && *packet ? json::parse((*packet)->bytes) : json::parse("null");
      return said ? *said : Json();
    };
    KCHECK(ask(R"({"do":"begin","rules":[{"private":false,"to":"a.example:80"}]})", {listener.get()})["begun"].boolean());
    listener.reset();
    int before = b.connections(), status = -1;
    std::string out = podman.finish(&status);
    KCHECK_SAYS(line_of(out, "allowed") == "from a", out);
    KCHECK_SAYS(has(line_of(out, "refused"), "403"), line_of(out, "refused"));
    for (const char* to : {"direct 93.184.216.34", "direct 93.184.216.35", "direct 2606:4700::7", "quic", "dns", "ping", "up"}) KCHECK_SAYS(!has(line_of(out, to), "from ") && !line_of(out, to).empty(), std::string(to) + "=" + line_of(out, to));
    KCHECK_SAYS(has(line_of(out, "direct 93.184.216.34"), "nreachable"), line_of(out, "direct 93.184.216.34"));
    KCHECK_SAYS(has(line_of(out, "tunnel"), "403"), line_of(out, "tunnel"));
    KCHECK(b.connections() == before && a.connections() == 2);
    Json r = ask(R"({"do":"report"})", {});
    KCHECK(allowed(r, "a.example:80") == 1 && refused(r, "b.example:80", "no-rule") == 2);
    pair->a.reset();
    waitpid(proxy, nullptr, 0);
  });
}
