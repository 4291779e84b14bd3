// A box's own network behind packet rules, as h5i-net holds it from outside.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

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
const char* kTwo = R"("203.0.113.7","2001:db8:1::7")";

// An interface of one's own: where the device is root's alone, an ordinary user has none.
bool no_tun(const Checks& k) {
  UniqueFd tun(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (tun) return false;
  printf("SKIP: spawn.tun: %s may not open /dev/net/tun\n", k.who().name.c_str());
  fflush(stdout);
  return true;
}
bool no_uplink() {
  if (nft::find_uplink()) return false;
  printf("SKIP: spawn.uplink: no slirp4netns here\n");
  fflush(stdout);
  return true;
}

uint64_t packets_to(const Json& list, const std::string& to) {
  for (const Json& e : list.array())
    if (e["to"].string() == to) return static_cast<uint64_t>(e["packets"].integer());
  return 0;
}

// On the host's loopback, saying "hello" to each who comes; at a port of the kernel's choice.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
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

int processes_named(const std::string& name) {
  int n = 0;
  for (const auto& [pid, parent] : spawn::process_parents()) {
    auto words = os::read_file("/proc/" + std::to_string(pid) + "/cmdline", 4096);  // run by descriptor, it has no name
    if (words && words->substr(0, words->find('\0')) == name) n++;
  }
  return n;
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

KERNEL_TEST("the way out carries what the rules name and is gone with the box", "[spawn][network]") {
  if (no_tun(k) || no_uplink()) return;
  Listener host, other;
  Json p = confined_plan(k);
  p["network"] = network("slirp4netns", "\"192.0.2.2\"", "\"" + host.port() + "\"", "host-loopback");
  p["network"]["host_loopback"] = true;
  int before = processes_named("slirp4netns") + processes_named("h5i-net");
  set_shell(p, dial("192.0.2.2", host.port()) + dial("192.0.2.2", other.port()) + dial("192.0.2.3", "53"));
  Session s;
  Outcome o = s.run(p, [&](Session&, pid_t) { KCHECK(processes_named("slirp4netns") + processes_named("h5i-net") == before + 2); });
  KCHECK_SAYS(o.ok() && o.output == "hello\nrefused\nrefused\n", o.text());
  auto report = json::parse(o.result.network);
  KREQUIRE(report);
  std::string text = o.result.network;
  KCHECK_SAYS((*report)["allowed"].array()[0]["packets"].integer() >= 3, text);
  KCHECK_SAYS(packets_to((*report)["refused"], "tcp 192.0.2.2:" + other.port()) >= 1 && packets_to((*report)["refused"], "tcp 192.0.2.3:53") >= 1, text);
  KCHECK_SAYS((*report)["uplink"]["path"].string() == *nft::find_uplink() && !(*report)["uplink"]["ended"].boolean(), text);
  KCHECK(processes_named("slirp4netns") + processes_named("h5i-net") == before);
  // No other rule may cover where the host's loopback answers, however wide it is meant.
  Json wide = p;
  wide["network"] = network("slirp4netns", "\"192.0.0.0-192.255.255.255\"", "\"" + other.port() + "\"");
  wide["network"]["host_loopback"] = true;
  Outcome refused = Session().run(wide);
  KCHECK_SAYS(refused.refused.find("host's loopback answers") != std::string::npos && refused.output.empty(), refused.text());
  // The control: without host_loopback the gateway is closed whatever the rules name.
  p["network"]["host_loopback"] = false;
  set_shell(p, dial("192.0.2.2", host.port()));
  Outcome closed = Session().run(p);
  KCHECK_SAYS(closed.ok() && closed.output == "refused\n", closed.text());
}

KERNEL_TEST("a network that cannot be had is no box", "[spawn][network]") {
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
  canary["network"] = network("slirp4netns", kTwo, "\"443\"");
  set_acts(canary, {{"ids"}});
  KCHECK(Session().canary(canary).refused.find("network.uplink") != std::string::npos);
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
  if (no_tun(k) || no_uplink()) return;
  Json p = confined_plan(k);
  p["network"] = network("slirp4netns", kTwo, "\"443\"");
  set_shell(p, "sleep 60");
  int before = processes_named("slirp4netns") + processes_named("h5i-net");
  Session s;
  Outcome o;
  auto waiting = s.start(p, o);
  KCHECK_SAYS(waiting.has_value(), o.text());
  KREQUIRE(waiting);
  KCHECK(processes_named("slirp4netns") + processes_named("h5i-net") == before + 2);
  kill(s.pid, SIGKILL);
  waitpid(s.pid, nullptr, 0);
  s.pid = 0;
  int left = 1;
  for (int i = 0; i < 300 && left > 0; i++, usleep(10000)) left = processes_named("slirp4netns") + processes_named("h5i-net") - before;
  KCHECK(left == 0);
}
