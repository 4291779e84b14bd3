// A box's own network behind packet rules, as h5i-net holds it from outside.
#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <fstream>

#include "core/nft/ruleset.hpp"
#include "core/nft/transaction.hpp"
#include "core/nft/uplink.hpp"
#include "core/spawn/walk.hpp"
#include "tests/spawn/acts.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json network(const char* uplink, const std::string& addresses, const std::string& ports, const std::string& id = "a") {
  Json n;
  n["uplink"] = uplink;
  n["egress"] = *json::parse(R"({"schema":"h5i.egress/1","log_group":5,"allow":[{"id":")" + id + R"(","about":"it","protocol":"tcp","addresses":[)" + addresses + "],\"ports\":[" + ports + "]}]}");
  return n;
}
constexpr const char* kUplinks[] = {"slirp4netns", "pasta"};
const char* kTwo = R"("203.0.113.7","2001:db8:1::7")";

// ThreadSanitizer has a thread of its own in h5i-net, and a process with two may not join a user namespace.
bool two_threads() {
#ifdef __SANITIZE_THREAD__
  printf("SKIP: spawn.two-threads: h5i-net joins no namespace under ThreadSanitizer\n");
  fflush(stdout);
  return true;
#else
  return false;
#endif
}
// An interface of one's own: where the device is root's alone, an ordinary user has none.
bool no_tun(const Checks& k) {
  if (two_threads()) return true;
  UniqueFd tun(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (tun) return false;
  printf("SKIP: spawn.tun: %s may not open /dev/net/tun\n", k.who().name.c_str());
  fflush(stdout);
  return true;
}
// Those of the two that are here; each is held to the same.
std::vector<nft::UplinkProgram> uplinks() {
  std::vector<nft::UplinkProgram> out;
  for (const char* name : kUplinks) {
    if (auto found = nft::UplinkSearch(name).found()) out.push_back(*found);
    else printf("SKIP: spawn.uplink: no %s here\n", name);
  }
  fflush(stdout);
  return out;
}
const char* name_of(const nft::UplinkProgram& p) { return kUplinks[p.pasta ? 1 : 0]; }

uint64_t packets_to(const Json& list, const std::string& to) {
  for (const Json& e : list.array())
    if (e["to"].string() == to) return static_cast<uint64_t>(e["packets"].integer());
  return 0;
}

// On the host's loopback, saying "hello" to each who comes and, with `echo`, what each says; at a port of the kernel's choice.
class Listener {
 public:
  explicit Listener(bool echo = false) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    if (bind(fd_.get(), reinterpret_cast<sockaddr*>(&a), size) != 0 || listen(fd_.get(), 16) != 0 || getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&a), &size) != 0) abort();
    port_ = ntohs(a.sin_port);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      UniqueFd c(accept(fd_.get(), nullptr, nullptr));
      (void)!write(c.get(), "hello\n", 6);
      if (!echo || fork() != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      char b[64];
      for (ssize_t n; (n = read(c.get(), b, sizeof b)) > 0;) (void)!write(c.get(), b, static_cast<size_t>(n));
      _exit(0);
    }
  }
  ~Listener() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::string port() const { return std::to_string(port_); }

 private:
  UniqueFd fd_;
  uint16_t port_ = 0;
  pid_t pid_ = -1;
};

std::string dial(const std::string& address, const std::string& port) {
  return "timeout 5 bash -c 'exec 3<>/dev/tcp/" + address + "/" + port + " && cat <&3' 2>/dev/null || echo refused; ";
}

// Of what this test started: other tests run boxes beside it. What loses its parent comes to us.
int processes_named(const std::string& name) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  int n = 0;
  const auto parents = spawn::process_parents();
  auto ours = [&](pid_t pid) {
    for (auto it = parents.find(pid); it != parents.end(); it = parents.find(it->second))
      if (it->first == getpid()) return true;
    return false;
  };
  for (const auto& [pid, parent] : parents) {
    if (!ours(pid)) continue;
    auto words = os::read_file("/proc/" + std::to_string(pid) + "/cmdline", 4096);  // run by descriptor, it has no name
    if (words && words->substr(0, words->find('\0')) == name) n++;
  }
  return n;
}

int processes_of_networks() { return processes_named("slirp4netns") + processes_named("pasta") + processes_named("h5i-net"); }

pid_t child_named(const std::string& name, pid_t of) {
  for (const auto& [pid, parent] : spawn::process_parents()) {
    if (parent != of) continue;
    auto words = os::read_file("/proc/" + std::to_string(pid) + "/cmdline", 4096);
    if (words && words->substr(0, words->find('\0')) == name) return pid;
  }
  return -1;
}

}  // namespace

KERNEL_TEST("what a box's rules name passes them and nothing else does, in both families, seen from outside", "[spawn][network]") {
  if (no_tun(k)) return;
  Json p = confined_plan(k);
  p["network"] = network("observed", kTwo, "\"443\"");
  auto a = act(p, {{"connect", "tcp", "203.0.113.7", "443"},
                   {"connect", "tcp", "203.0.113.7", "444"},
                   {"connect", "tcp", "203.0.113.8", "443"},
                   {"connect", "udp", "203.0.113.7", "443"},
                   {"connect", "tcp", "2001:db8:1::7", "443"},
                   {"connect", "tcp", "2001:db8:1::8", "443"},
                   {"connect", "tcp", "169.254.169.254", "80"},
                   {"listen", "4000"}});
  KCHECK_SAYS(a.outcome.ok(), a.outcome.text());
  KCHECK(a[7] == "ok");  // its own loopback is its own
  KREQUIRE(a.lines.size() == 9 && a.lines[8]["act"].string() == "network");
  const Json& report = a.lines[8]["value"];
  const Json &arrived = report["arrived"], &refused = report["refused"];
  std::string text = json::canonical(report);
  KCHECK_SAYS(packets_to(arrived, "tcp 203.0.113.7:443") == 1 && packets_to(arrived, "tcp [2001:db8:1::7]:443") == 1, text);
  for (const Json& e : arrived.array()) {
    std::string to = e["to"].string();
    KCHECK_SAYS(to == "tcp 203.0.113.7:443" || to == "tcp [2001:db8:1::7]:443" || to.rfind("icmpv6 ff02::", 0) == 0, to);
  }
  for (const char* to : {"tcp 203.0.113.7:444", "tcp 203.0.113.8:443", "udp 203.0.113.7:443", "tcp [2001:db8:1::8]:443", "tcp 169.254.169.254:80"})
    KCHECK_SAYS(packets_to(refused, to) >= 1, to + (" " + text));
  for (size_t i : {1, 2, 5, 6}) KCHECK_SAYS(a[i] == "ECONNREFUSED", a[i]);
  KCHECK_SAYS(report["allowed"].array()[0]["packets"].integer() == 2 && !report["changed"].boolean() && !report["truncated"].boolean(), text);
}

KERNEL_TEST("refused destinations are counted, sixty-four by name and the others as one number", "[spawn][network]") {
  if (no_tun(k)) return;
  Json p = confined_plan(k);
  p["network"] = network("observed", kTwo, "\"443\"");
  ActList acts;
  for (int i = 1; i <= 80; i++) acts.push_back({"connect", "udp", "198.51.100." + std::to_string(i), "53"});
  auto a = act(p, acts);
  KREQUIRE(a.lines.size() == 81);
  const Json& report = a.lines[80]["value"];
  std::string text = json::canonical(report);
  KCHECK_SAYS(report["refused"].array().size() == 64 && report["truncated"].boolean(), text);
  uint64_t named = 0;
  for (const Json& e : report["refused"].array()) named += static_cast<uint64_t>(e["packets"].integer());
  KCHECK_SAYS(named + static_cast<uint64_t>(report["refused_others"].integer()) == static_cast<uint64_t>(report["refused_packets"].integer()), text);
}

KERNEL_TEST("the way out carries what the rules name and is gone with the box, whichever program it is", "[spawn][network]") {
  if (no_tun(k)) return;
  for (const nft::UplinkProgram& way : uplinks()) {
    const char* name = name_of(way);
    Listener host, other;
    Json p = confined_plan(k);
    p["network"] = network(name, "\"192.0.2.2\"", "\"" + host.port() + "\"", "host-loopback");
    p["network"]["host_loopback"] = true;
    // The box's own loopback is not the host's, though nothing refuses it: nobody listens there.
    set_shell(p, dial("192.0.2.2", host.port()) + dial("192.0.2.2", other.port()) + dial("192.0.2.3", "53") + dial("127.0.0.1", host.port()) + dial("::1", host.port()) + dial("2001:db8:1::7", "443"));
    int before = processes_of_networks(), named = processes_named(name);
    Session s;
    Outcome o = s.run(p, [&](Session&, pid_t) {
      KCHECK(processes_named(name) == named + 1 && processes_of_networks() == before + (way.pasta ? 3 : 2));
    });
    KCHECK_SAYS(o.ok() && o.output == "hello\nrefused\nrefused\nrefused\nrefused\nrefused\n", name + (": " + o.text()));
    auto report = json::parse(o.result.network);
    KREQUIRE(report);
    std::string text = o.result.network;
    KCHECK_SAYS((*report)["allowed"].array()[0]["packets"].integer() >= 3, text);
    KCHECK_SAYS(packets_to((*report)["refused"], "tcp 192.0.2.2:" + other.port()) >= 1 && packets_to((*report)["refused"], "tcp 192.0.2.3:53") >= 1, text);
    // By the other family too, which no rule names.
    KCHECK_SAYS(packets_to((*report)["refused"], "tcp [2001:db8:1::7]:443") >= 1, text);
    const Json& told = (*report)["uplink"];
    KCHECK_SAYS(told["path"].string() == way.path && told["version"].string() == way.version && !way.version.empty() && !told["ended"].boolean(), text);
    KCHECK(processes_of_networks() == before);
    // No other rule may cover where the host's loopback answers, however wide it is meant.
    Json wide = p;
    wide["network"] = network(name, "\"192.0.0.0-192.255.255.255\"", "\"" + other.port() + "\"");
    wide["network"]["host_loopback"] = true;
    Outcome refused = Session().run(wide);
    KCHECK_SAYS(refused.refused.find("host's loopback answers") != std::string::npos && refused.output.empty(), refused.text());
    // The control: without host_loopback the gateway is closed whatever the rules name.
    p["network"]["host_loopback"] = false;
    set_shell(p, dial("192.0.2.2", host.port()));
    Outcome closed = Session().run(p);
    KCHECK_SAYS(closed.ok() && closed.output == "refused\n", closed.text());
  }
}

KERNEL_TEST("no port of a box's answers on the host, whichever program is its way out", "[spawn][network]") {
  if (no_tun(k)) return;
  for (const nft::UplinkProgram& way : uplinks()) {
    Json p = confined_plan(k);
    p["network"] = network(name_of(way), kTwo, "\"443\"");
    // The box listens at a port that is free on the host and none of those that the kernel gives out, says which, and waits while
    // the host tries it.
    set_command(p, {"/usr/bin/python3", "-c",
                    "import socket,sys\ns=socket.socket(); s.bind(('0.0.0.0'," + std::to_string(20000 + getpid() % 5000) + ")); s.listen(4); s.settimeout(3)\n"
                    "c=socket.create_connection(('127.0.0.1',s.getsockname()[1])); a=s.accept()[0]\n"  // its own does reach it
                    "print(s.getsockname()[1]); sys.stdout.flush()\n"
                    "try: s.accept(); print('reached')\nexcept TimeoutError: print('nobody came')"});
    Session s;
    Outcome o;
    auto waiting = s.start(p, o);
    KREQUIRE(waiting && waiting->gate.wait_ready(10000) && waiting->gate.go());
    std::string line;
    for (char c; read(waiting->output.get(), &c, 1) == 1 && c != '\n';) line += c;
    int errors = 0;
    for (int i = 0; i < 20; i++, usleep(100'000)) {  // twice as long as pasta takes between two looks for new ports
      UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in a{};
      a.sin_family = AF_INET;
      a.sin_port = htons(static_cast<uint16_t>(atoi(line.c_str())));
      a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      errors += connect(fd.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 && errno == ECONNREFUSED;
    }
    s.collect(o, waiting->handle, waiting->output.get());
    KCHECK_SAYS(errors == 20 && o.ok() && o.output == "nobody came\n", name_of(way) + (" port " + line + ", refused " + std::to_string(errors) + ": " + o.text()));
  }
}

KERNEL_TEST("the way out ends with h5i-net, and with whoever holds it", "[spawn][network]") {
  if (no_tun(k)) return;
  for (const nft::UplinkProgram& way : uplinks())
    for (bool all : {false, true}) {
      Json p = confined_plan(k);
      p["network"] = network(name_of(way), kTwo, "\"443\"");
      set_shell(p, "sleep 2");
      int before = processes_of_networks();
      Session s;
      Outcome o;
      auto waiting = s.start(p, o);
      KREQUIRE(waiting && waiting->gate.wait_ready(10000) && waiting->gate.go());
      // h5i-net is the spawner's child; for pasta there is a child of it between the two.
      pid_t net = child_named("h5i-net", s.pid), holder = way.pasta ? child_named("h5i-net", net) : child_named(name_of(way), net);
      KREQUIRE(net > 0 && holder > 0);
      kill(all ? net : holder, SIGKILL);
      int left = -1, expected = all ? 0 : 1;
      for (int i = 0; i < 100 && left != expected; i++, usleep(10'000)) left = processes_of_networks() - before;
      KCHECK_SAYS(left == expected, name_of(way) + (": " + std::to_string(left)));
      s.collect(o, waiting->handle, waiting->output.get());
      auto report = json::parse(o.result.network);
      KCHECK_SAYS(all ? o.result.network.empty() : report && (*report)["uplink"]["ended"].boolean(), o.result.network);
    }
}

namespace {

// In a mount namespace of one's own: another program stands at the path, or with "" none.
bool stand_in(const Checks& k, const char* path, const std::string& text) {
  if (text.empty()) return mount("/dev/null", path, nullptr, MS_BIND, nullptr) == 0;  // no regular file
  std::string file = k.dir() + "/" + std::to_string(text.size());
  auto program = os::read_file(build_dir() + "/tests/spawn/stand_in", 64 << 20);
  if (!program) return false;
  *program += "SAYS:" + text;
  UniqueFd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755));
  if (write(fd.get(), program->data(), program->size()) != static_cast<ssize_t>(program->size())) return false;
  fd.reset();
  return mount(file.c_str(), path, nullptr, MS_BIND, nullptr) == 0;
}

}  // namespace

KERNEL_TEST("a way out takes no port of the host's, speaks to no abstract socket and signals nobody, as far as this kernel's Landlock goes", "[spawn][network]") {
  if (!k.root() || no_tun(k) || uplinks().size() < 2) return;
  KREQUIRE(unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un own{};
  own.sun_family = AF_UNIX;
  const std::string name = "h5i-test-" + std::to_string(getpid());
  name.copy(own.sun_path + 1, sizeof own.sun_path - 2);
  KREQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&own), static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) == 0 && listen(listener.get(), 8) == 0);
  const std::string tries = "tries " + name + " " + std::to_string(getpid()) + " ";
  KREQUIRE(stand_in(k, "/usr/bin/slirp4netns", "slirp4netns version 9.0.0 " + tries));
  // The list of options that pasta is asked for is in its own help.
  std::string help = tries;
  for (const char* option : {"--foreground", "--quiet", "--runas", "--config-net", "--address", "--netmask", "--gateway", "--mtu", "--no-map-gw", "--no-dhcp", "--no-dhcpv6", "--no-ra", "--no-netns-quit", "--ns-ifname",
                             "--pid", "--userns", "--netns", "--ipv4-only", "--dns", "--search", "--tcp-ports", "--udp-ports", "--tcp-ns", "--udp-ns"})
    help += std::string(" ") + option;
  KREQUIRE(stand_in(k, "/usr/bin/passt", help + " "));
  // The control: run by itself it does all of it.
  FILE* alone = popen("/usr/bin/slirp4netns x", "r");
  char line[256] = "";
  KREQUIRE(alone && fgets(line, sizeof line, alone));
  pclose(alone);
  KCHECK_SAYS(std::string(line) == "bind done abstract done signal done\n", line);
  const int abi = os::landlock::abi();
  const std::string expected = std::string("bind ") + (abi >= 4 ? "EACCES" : "done") + " abstract " + (abi >= 6 ? "EPERM" : "done") + " signal " + (abi >= 6 ? "EPERM" : "done");
  for (const char* way : {"slirp4netns", "pasta"}) {
    Json p = confined_plan(k);
    p["network"] = network(way, kTwo, "\"443\"");
    set_shell(p, "echo ran");
    Outcome o = Session().run(p);
    KCHECK_SAYS(o.refused.find(expected) != std::string::npos && o.output.empty(), way + (": " + o.text() + ", not " + expected));
  }
}

// In a mount namespace of one's own, where other programs stand at the two paths.
KERNEL_TEST("a way out that is not there, is old, or does not confine itself is none, and each is named", "[spawn][network]") {
  if (!k.root() || no_tun(k) || uplinks().size() < 2) return;
  KREQUIRE(unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  auto run = [&](const char* uplink) {
    Json p = confined_plan(k);
    p["network"] = network(uplink, kTwo, "\"443\"");
    set_shell(p, "echo ran");
    return Session().run(p);
  };
  auto path_of = [](const Outcome& o) {
    auto report = json::parse(o.result.network);
    return report ? (*report)["uplink"]["path"].string() : o.text();
  };
  const std::string old = "slirp4netns version 1.0.99", deaf = "pasta unknown version, without --tcp-ns and --udp-ns";
  const char *slirp = "/usr/bin/slirp4netns", *pasta = "/usr/bin/passt";  // what /usr/bin/pasta is a link to
  // The control: the first of the two.
  KCHECK_SAYS(path_of(run("any")) == slirp, path_of(run("any")));
  KREQUIRE(stand_in(k, slirp, old));
  Outcome o = run("slirp4netns");
  KCHECK_SAYS(o.refused.find("slirp4netns (/usr/bin/slirp4netns says 'slirp4netns version 1.0.99': 1.1.0 is needed)") != std::string::npos && o.output.empty(), o.text());
  KCHECK_SAYS(path_of(run("any")) == "/usr/bin/pasta", path_of(run("any")));
  KREQUIRE(stand_in(k, pasta, deaf));
  o = run("any");
  KCHECK_SAYS(o.refused.find("1.0.99") != std::string::npos && o.refused.find("pasta (/usr/bin/pasta says") != std::string::npos && o.refused.find("it has no --") != std::string::npos && o.output.empty(), o.text());
  KREQUIRE(stand_in(k, slirp, "") && stand_in(k, pasta, ""));
  o = run("any");
  KCHECK_SAYS(o.refused.find("missing: slirp4netns (the package slirp4netns), pasta (the package passt)") != std::string::npos && o.output.empty(), o.text());
  // New enough and ready at once, but as free as it was started.
  KREQUIRE(umount2(slirp, MNT_DETACH) == 0 && stand_in(k, slirp, "slirp4netns version 9.0.0"));
  o = run("slirp4netns");
  KCHECK_SAYS(o.refused.find("without a system-call filter of its own") != std::string::npos && o.output.empty(), o.text());
}

KERNEL_TEST("no way out takes a mount of the host's off, also where the host shares its mounts", "[spawn][network]") {
  if (!k.root() || no_tun(k)) return;  // an ordinary user's way out has no mounts of the host's to take off
  KREQUIRE(unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) == 0);
  auto mounts = [] {
    std::ifstream in("/proc/self/mountinfo");
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string before = mounts();
  for (const nft::UplinkProgram& way : uplinks()) {
    Json p = confined_plan(k);
    p["network"] = network(name_of(way), kTwo, "\"443\"");
    set_shell(p, "echo ran");
    std::string during;
    Outcome o = Session().run(p, [&](Session&, pid_t) { during = mounts(); });
    KCHECK_SAYS(o.ok() && o.output == "ran\n", o.text());
    KCHECK_SAYS(during == before && mounts() == before, name_of(way) + ("\n" + during));
  }
}

KERNEL_TEST("a network that cannot be had is no box", "[spawn][network]") {
  if (two_threads()) return;
  Json p = confined_plan(k);
  set_shell(p, "echo ran");
  int before = processes_named("h5i-net");
  // Not a document of destinations.
  p["network"] = network("none", "\"203.0.113.7\"", "\"0\"");
  Outcome o = Session().run(p);
  KCHECK_SAYS(o.refused.find("the box's network") != std::string::npos && o.output.empty(), o.text());
  // A workload with nobody at the far end, a canary with the world there, and a box that could undo its rules.
  p["network"] = network("observed", kTwo, "\"443\"");
  KCHECK(Session().run(p).refused.find("network.uplink") != std::string::npos);
  Json canary = confined_plan(k);
  for (const char* uplink : {"slirp4netns", "pasta", "any"}) {
    canary["network"] = network(uplink, kTwo, "\"443\"");
    set_acts(canary, {{"ids"}});
    KCHECK(Session().canary(canary).refused.find("network.uplink") != std::string::npos);
  }
  p["network"] = network("none", kTwo, "\"443\"");
  p["nested_user"] = false;
  KCHECK(Session().run(p).refused.find("nested_user") != std::string::npos);
  KCHECK(processes_named("h5i-net") == before);
  // The control.
  p["nested_user"] = true;
  Outcome fine = Session().run(p);
  KCHECK_SAYS(fine.ok() && fine.output == "ran\n" && !fine.result.network.empty(), fine.text());
}

KERNEL_TEST("nothing of a box's network outlives a spawner that was killed", "[spawn][network]") {
  if (no_tun(k)) return;
  for (const nft::UplinkProgram& way : uplinks()) {
    Json p = confined_plan(k);
    p["network"] = network(name_of(way), kTwo, "\"443\"");
    set_shell(p, "sleep 60");
    int before = processes_of_networks();
    Session s;
    Outcome o;
    auto waiting = s.start(p, o);
    KCHECK_SAYS(waiting.has_value(), o.text());
    KREQUIRE(waiting);
    KCHECK(processes_of_networks() == before + (way.pasta ? 3 : 2));
    kill(s.pid, SIGKILL);
    waitpid(s.pid, nullptr, 0);
    s.pid = 0;
    int left = 1;
    for (int i = 0; i < 300 && left > 0; i++, usleep(10000)) left = processes_of_networks() - before;
    KCHECK(left == 0);
  }
  while (waitpid(-1, nullptr, WNOHANG) > 0) {  // what came to us when its parent died
  }
}

namespace {

// A box behind an uplink that may reach `port` of the host's loopback, and what changes while it runs.
Json alive(const Checks& k, const char* uplink, const std::string& port, const std::string& script, bool bound = false) {
  Json p = confined_plan(k);
  p["network"] = network(uplink, "\"192.0.2.2\"", "\"" + port + "\"", "host-loopback");
  p["network"]["host_loopback"] = true;
  if (bound) {  // as the tiers do: a file over one of the host's
    Json& etc = add_mount(p, "bind", "/etc");
    etc["source"] = "/etc";
    etc["recursive"] = true;
    for (const char* f : {"nosuid", "nodev", "ro"}) etc["flags"].push(f);
  }
  Json& hosts = add_mount(p, "file", "/etc/hosts");
  hosts["content"] = "192.0.2.2 before\n";
  hosts["mode"] = 0444;
  set_command(p, {"/usr/bin/bash", "-c", script});
  return p;
}

struct Namespaces {
  UniqueFd user, mnt;
  explicit Namespaces(pid_t pid) {
    std::string ns = "/proc/" + std::to_string(pid) + "/ns/";
    user.reset(open((ns + "user").c_str(), O_RDONLY | O_CLOEXEC));
    mnt.reset(open((ns + "mnt").c_str(), O_RDONLY | O_CLOEXEC));
  }
};

std::string read_until(int fd, const std::string& word) {
  std::string out;
  char b[256];
  for (ssize_t n; out.find(word) == std::string::npos && (n = read(fd, b, sizeof b)) > 0;) out.append(b, static_cast<size_t>(n));
  return out;
}

// Starts the box, lets it go, waits until it says READY, sends `request` and gives the answer; `o` has all of the output.
enum class Mounts { OWN, NONE, HOSTS };
std::optional<spawn::SpawnWatch::Event> changed(const Json& plan, const Json& request, Mounts mounts, Outcome& o) {
  Session s;
  auto waiting = s.start(plan, o);
  if (!waiting) return {};
  auto peer = waiting->gate.wait_ready(10000);
  if (!peer || !*peer) return {};
  Namespaces box((*peer)->pid);
  (void)waiting->gate.go();
  std::string first = read_until(waiting->output.get(), "READY\n");
  if (mounts == Mounts::HOSTS) box.mnt.reset(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  if (auto sent = s.watch->change_network(request, mounts == Mounts::NONE ? -1 : box.user.get(), box.mnt.get()); !sent) return {};
  auto said = s.watch->next(10000);
  if (!said) return {};
  s.collect(o, waiting->handle, waiting->output.get());
  o.output = first + o.output;
  return std::move(*said);
}

constexpr const char* kFlow = "read -t 5 -u 3 l 2>/dev/null && echo \"flow $l\" || echo flow cut; ";

}  // namespace

KERNEL_TEST("rules of a box that runs are replaced: what is new passes, what is gone is cut, and names follow", "[spawn][network]") {
  if (no_tun(k)) return;
  Listener first(true), second;
  std::string both = "\"" + first.port() + "\",\"" + second.port() + "\"";
  std::string script = "exec 3<>/dev/tcp/192.0.2.2/" + first.port() + "; read -t 5 -u 3 l && echo \"first $l\"; echo ping >&3; " + kFlow +
                       dial("192.0.2.2", second.port()) + "echo READY; for i in {1..200}; do grep -q later /etc/hosts && break; sleep 0.05; done; " + dial("later", second.port()) +
                       "(exec 4<>/dev/tcp/192.0.2.2/" + first.port() + " && read -t 5 -u 4 l && echo $l) 2>/dev/null || echo refused; { echo ping >&3; } 2>/dev/null; " + kFlow + "{ echo x >/etc/hosts; } 2>/dev/null || echo read-only";
  Json request = json::Object{{"egress", network("", "\"192.0.2.2\"", "\"" + second.port() + "\"", "host-loopback")["egress"]}, {"hosts", "192.0.2.2 before\n192.0.2.2 later\n"}};
  const Json only_second = request["egress"], with_first = network("", "\"192.0.2.2\"", both, "host-loopback")["egress"];
  for (const nft::UplinkProgram& way : uplinks()) {
    request["egress"] = only_second;
    Outcome o;
    auto said = changed(alive(k, name_of(way), first.port(), script, true), request, Mounts::OWN, o);
    KREQUIRE(said);
    KCHECK_SAYS(said->what == spawn::SpawnWatch::Event::What::network_said && said->certain && said->said["replaced"].boolean(), json::canonical(said->said));
    KCHECK_SAYS(said->said["before"].string().size() == 64 && said->said["rules"].string().size() == 64 && said->said["before"] != said->said["rules"], json::canonical(said->said));
    KCHECK_SAYS(o.ok() && o.output == "first hello\nflow ping\nrefused\nREADY\nhello\nrefused\nflow cut\nread-only\n", o.text());
    auto report = json::parse(o.result.network);
    KREQUIRE(report);
    // What was counted before the change is counted.
    KCHECK_SAYS((*report)["allowed"].array()[0]["packets"].integer() >= 8 && !(*report)["changed"].boolean() && (*report)["rules"] == said->said["rules"], o.result.network);
    // The control: with the first rule kept, its flow goes on.
    request["egress"] = with_first;
    Outcome kept;
    said = changed(alive(k, name_of(way), first.port(), script), request, Mounts::OWN, kept);
    KCHECK_SAYS(said && said->certain && kept.output.find("READY\nhello\nhello\nflow ping\n") != std::string::npos, kept.text());
  }
}

KERNEL_TEST("a change that cannot be made leaves the rules as they were", "[spawn][network]") {
  if (no_tun(k)) return;
  Listener host, other;
  std::string script = dial("192.0.2.2", host.port()) + "echo READY; sleep 1; " + dial("192.0.2.2", host.port()) + dial("192.0.2.2", other.port()) + "cat /etc/hosts";
  Json good = json::Object{{"egress", network("", "\"192.0.2.2\"", "\"" + other.port() + "\"", "host-loopback")["egress"]}, {"hosts", "192.0.2.2 later\n"}};
  struct {
    const char* what;
    std::function<void(Json&)> f;
    Mounts mounts = Mounts::OWN;
  } rows[] = {{"not a document", [](Json& r) { r["egress"] = Json(); }},
              {"another log group", [](Json& r) { r["egress"]["log_group"] = 6; }},
              {"the gateway by another rule", [](Json& r) { r["egress"]["allow"].make_array()[0]["id"] = "wide"; }},
              {"IPv6 in a box without it", [](Json& r) { r["egress"]["allow"].make_array()[0]["addresses"].push("2001:db8:1::7"); }},
              {"a hosts file and no mounts", [](Json&) {}, Mounts::NONE},
              {"mounts and no hosts file", [](Json& r) { r.make_object().erase("hosts"); }},
              // The rules are there by then; those before are put back.
              {"a hosts file for mounts that are not the box's", [](Json&) {}, Mounts::HOSTS}};
  auto ways = uplinks();
  for (const auto& row : rows) {
    if (ways.empty()) return;
    Json request = good;
    row.f(request);
    Outcome o;
    auto said = changed(alive(k, name_of(ways[0]), host.port(), script), request, row.mounts, o);
    KCHECK_SAYS(said && said->certain && said->said["error"].is_string(), std::string(row.what) + ": " + (said ? json::canonical(said->said) : o.text()));
    KCHECK_SAYS(o.ok() && o.output == "hello\nREADY\nhello\nrefused\n192.0.2.2 before\n", row.what + (": " + o.text()));
  }
}

namespace {

// The first change of rules in a network is followed by a table of somebody else's, put there as soon as the kernel tells of the change.
class Spoiler {
 public:
  explicit Spoiler(pid_t box) : ready_(*os::seqpacket_pair()), pid_(fork()) {
    if (pid_ == 0) spoil(box);
    ready_.b.reset();
    (void)os::receive_packet(ready_.a.get());
  }
  // Whether the table was put there.
  bool done() {
    auto said = os::wait_readable(ready_.a.get(), 2000);
    auto word = said && *said ? os::receive_packet(ready_.a.get()) : Result<std::optional<os::Packet>>(std::optional<os::Packet>());
    return word && *word && (*word)->bytes == "spoilt";
  }
  ~Spoiler() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  [[noreturn]] void spoil(pid_t box) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    UniqueFd net(open(("/proc/" + std::to_string(box) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC)), user(ioctl(net.get(), NS_GET_USERNS));
    if (setns(user.get(), CLONE_NEWUSER) != 0 || setns(net.get(), CLONE_NEWNET) != 0) _exit(1);
    UniqueFd told(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    sockaddr_nl group{};
    group.nl_family = AF_NETLINK;
    group.nl_groups = 1u << (NFNLGRP_NFTABLES - 1);
    auto own = nft::open_netfilter_socket();
    if (!own || bind(told.get(), reinterpret_cast<sockaddr*>(&group), sizeof group) != 0) _exit(2);
    (void)os::send_packet(ready_.b.get(), "ready");
    char b[65536];
    if (recv(told.get(), b, sizeof b, 0) <= 0) _exit(3);
    nft::Ruleset mine = nft::ruleset_of({.allow = {}, .log_group = 7});
    mine.table = "spoilt";
    (void)os::send_packet(ready_.b.get(), nft::apply(*own, mine, nft::Change::CREATE) ? "spoilt" : "failed");
    for (;;) pause();
  }
  os::SocketPair ready_;
  pid_t pid_;
};

// What is said of a change, whatever else is told meanwhile.
std::optional<spawn::SpawnWatch::Event> said_of(Session& s, int64_t timeout_ms = 10000) {
  for (;;) {
    auto e = s.watch->next(timeout_ms);
    if (!e || (e->what != spawn::SpawnWatch::Event::What::denial && e->what != spawn::SpawnWatch::Event::What::network_said)) return {};
    if (e->what == spawn::SpawnWatch::Event::What::network_said) return std::move(*e);
  }
}

// The way out that h5i-net started, or for pasta who holds it; 0 when there is none.
pid_t way_out(pid_t net, const nft::UplinkProgram& way) { return std::max<pid_t>(child_named(way.pasta ? "h5i-net" : name_of(way), net), 0); }

// A box that is refused something ten times a second, for twenty.
constexpr const char* kTicks = "echo READY; for ((i = 0; i < 200; i++)); do chroot / true 2>/dev/null; echo tick; sleep 0.1; done";

}  // namespace

KERNEL_TEST("a box whose rules nobody knows ends: h5i-net reads what it did not give", "[spawn][network]") {
  if (no_tun(k) || uplinks().empty()) return;
  Listener host;
  Json request = json::Object{{"egress", network("", "\"192.0.2.2\"", "\"" + host.port() + "\",\"9\"", "host-loopback")["egress"]}};
  bool seen = false;
  for (int i = 0; i < 20 && !seen; i++) {  // it may have read what it gave before the other table came
    Session s;
    Outcome o;
    auto waiting = s.start(alive(k, name_of(uplinks()[0]), host.port(), kTicks), o);
    KREQUIRE(waiting);
    auto peer = waiting->gate.wait_ready(10000);
    KREQUIRE(peer && *peer && waiting->gate.go());
    (void)read_until(waiting->output.get(), "READY\n");
    Spoiler spoiler((*peer)->pid);
    KREQUIRE(s.watch->change_network(request, -1, -1));
    auto said = said_of(s);
    KREQUIRE(said && spoiler.done());
    if (said->certain) {
      KCHECK_SAYS(said->said["replaced"].boolean(), json::canonical(said->said));
      continue;
    }
    seen = true;
    KCHECK_SAYS(said->said["evidence"].string().find("spoilt") != std::string::npos, json::canonical(said->said));
    s.collect(o, waiting->handle, waiting->output.get());
    KCHECK_SAYS(o.result.status == H5I_OUTCOME_VIOLATION, o.text());
  }
  KCHECK(seen);
}

KERNEL_TEST("a box whose rules nobody knows ends: the rules before a change that failed cannot be put back", "[spawn][network]") {
  if (no_tun(k) || uplinks().empty()) return;
  Listener host;
  struct {
    const char* port;
    bool certain;
    const char* evidence;
  } rows[] = {{"9101", false, "No buffer space"}, {"9102", false, "spoilt"}, {"9100", true, "from the test"}};  // the last is the control: they can
  for (const nft::UplinkProgram& way : uplinks())
    for (const auto& row : rows) {
      Json p = alive(k, name_of(way), host.port(), row.certain ? "echo READY; sleep 1; " + dial("192.0.2.2", host.port()) + "cat /etc/hosts" : kTicks);
      Json request = json::Object{{"egress", network("", "\"192.0.2.2\"", "\"" + host.port() + "\",\"" + row.port + "\"", "host-loopback")["egress"]}, {"hosts", "192.0.2.2 later\n"}};
      Session s(H5I_TEST_FAULTY_NET);
      Outcome o;
      auto waiting = s.start(p, o);
      KREQUIRE(waiting);
      auto peer = waiting->gate.wait_ready(10000);
      KREQUIRE(peer && *peer && waiting->gate.go());
      Namespaces box((*peer)->pid);
      (void)read_until(waiting->output.get(), "READY\n");
      pid_t net = child_named("h5i-net", s.pid);
      KREQUIRE(way_out(net, way) > 0);
      KREQUIRE(s.watch->change_network(request, box.user.get(), box.mnt.get()));
      auto said = said_of(s);
      KREQUIRE(said);
      KCHECK_SAYS(said->certain == row.certain && said->said["evidence"].string().find(row.evidence) != std::string::npos, row.port + (": " + json::canonical(said->said)));
      // Closed before anybody was told, whatever becomes of the box.
      KCHECK_SAYS((way_out(net, way) > 0) == row.certain, row.port);
      s.collect(o, waiting->handle, waiting->output.get());
      KCHECK_SAYS(o.result.status == (row.certain ? H5I_OUTCOME_EXITED : H5I_OUTCOME_VIOLATION), row.port + (": " + o.text()));
      if (row.certain) KCHECK_SAYS(o.output.ends_with("hello\n192.0.2.2 before\n"), o.text());
    }
}

KERNEL_TEST("a box whose rules nobody knows ends: h5i-net says nothing; what else the spawner does goes on meanwhile", "[spawn][network]") {
  if (no_tun(k) || uplinks().empty()) return;
  Listener host;
  Json request = json::Object{{"egress", network("", "\"192.0.2.2\"", "\"" + host.port() + "\",\"9\"", "host-loopback")["egress"]}};
  enum { ANSWERS, STOPPED, KILLED };  // 0 is the control
  for (int how : {STOPPED, KILLED, ANSWERS}) {
    Json p = alive(k, name_of(uplinks()[0]), host.port(), how == ANSWERS ? "echo READY; sleep 1" : kTicks);
    Session s;
    Outcome o;
    auto waiting = s.start(p, o);
    KREQUIRE(waiting && waiting->gate.wait_ready(10000) && waiting->gate.go());
    (void)read_until(waiting->output.get(), "READY\n");
    pid_t net = child_named("h5i-net", s.pid);
    KREQUIRE(net > 0 && (how == ANSWERS || kill(net, SIGSTOP) == 0));
    KREQUIRE(s.watch->change_network(request, -1, -1));
    if (how != ANSWERS) {
      // Another change is told so, at once.
      KREQUIRE(s.watch->change_network(request, -1, -1));
      auto busy = said_of(s, 2000);
      KCHECK_SAYS(busy && busy->certain && busy->said["error"].string() == "busy", busy ? json::canonical(busy->said) : "nothing");
    }
    if (how == KILLED) kill(net, SIGKILL);
    auto said = said_of(s);
    KREQUIRE(said);
    KCHECK_SAYS(said->certain == (how == ANSWERS), json::canonical(said->said));
    KCHECK_SAYS(said->said["error"].string() == (how == ANSWERS ? "" : how == STOPPED ? "timeout" : "tier.setup-failed"), json::canonical(said->said));
    kill(net, SIGCONT);
    s.collect(o, waiting->handle, waiting->output.get());
    KCHECK_SAYS(o.result.status == (how == ANSWERS ? H5I_OUTCOME_EXITED : H5I_OUTCOME_VIOLATION), o.text());
    // Five seconds of waiting for h5i-net, in which the box's refused calls were answered.
    KCHECK_SAYS(how != STOPPED || o.output.size() > 20 * strlen("tick\n"), o.text());
  }
}
