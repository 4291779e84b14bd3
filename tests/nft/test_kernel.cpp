#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "core/base/ids.hpp"
#include "core/nft/packet_log.hpp"
#include "core/nft/transaction.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_test.hpp"

using namespace h5i;
using namespace h5i::nft;
using namespace h5i::test;

namespace {

constexpr uint16_t kGroup = 77;

void put(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
}

// A program of the machine, as the namespace's root; what it printed on both streams.
struct Ran {
  int status = -1;
  std::string out;
};
Ran program(const std::string& command) {
  Ran r;
  FILE* p = popen((command + " 2>&1").c_str(), "r");
  if (!p) return r;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, p)) > 0;) r.out.append(buffer, n);
  r.status = pclose(p);
  return r;
}
void skip(const char* id, const char* why) {
  printf("SKIP: %s: %s\n", id, why);
  fflush(stdout);
}
bool has(const char* name) {
  for (const char* dir : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"})
    if (access((std::string(dir) + name).c_str(), X_OK) == 0) return true;
  return false;
}

// Root of a user namespace with a network of its own, in which nothing is up.
bool enter_network() {
  unsigned uid = geteuid(), gid = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  put("/proc/self/setgroups", "deny");
  put("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
  put("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
  return geteuid() == 0;
}
// One interface on which everything that is accepted vanishes: it asks nobody for addresses.
bool add_sink() {
  return program("PATH=$PATH:/sbin:/usr/sbin; ip link set lo up && ip link add sink type veth peer name other && ip link set sink arp off && ip addr add 10.9.0.1/16 dev sink && ip addr add 2001:db8::1/64 nodad dev sink && "
                 "ip link set other up && ip link set sink up && ip route add default dev sink && ip -6 route add default dev sink")
             .status == 0;
}

Egress egress(const std::string& allow) {
  auto d = json::parse(R"({"schema":"h5i.egress/1","log_group":77,"allow":[)" + allow + "]}");
  auto e = d ? Egress::from_json(*d) : Result<Egress>(make_error(Errc::JSON, "the test's document"));
  if (!e) {
    fprintf(stderr, "%s: %s\n", e.error().what.c_str(), e.error().evidence.c_str());
    abort();
  }
  return *e;
}
const char* kAllow = R"({"id":"web","about":"","protocol":"tcp","addresses":["10.9.5.10-10.9.5.20","2001:db8::10-2001:db8::20"],"ports":["443","8000-8010"]},
                        {"id":"names","about":"","protocol":"udp","addresses":["10.9.6.0/24"],"ports":["53"]})";

Result<void> give(const Ruleset& r, Change change = Change::CREATE) {
  UniqueFd socket = H5I_TRY(open_netfilter_socket());
  return apply(socket, r, change);
}
Result<State> held(const Ruleset& r) {
  UniqueFd socket = H5I_TRY(open_netfilter_socket());
  return confirm(socket, r);
}
std::string said(const Result<void>& r) { return r ? "ok" : std::string(r.error().id()) + " " + r.error().what + " " + r.error().evidence; }
std::string said(const Result<State>& r) { return r ? "ok" : std::string(r.error().id()) + " " + r.error().evidence; }

// enter_network(), and a kernel that has packet rules for such a namespace.
bool enter(Checks& k) {
  if (!k.check(enter_network(), "a network namespace", __FILE__, __LINE__)) return false;
  auto tried = give(ruleset_of(egress("")));
  if (!tried && (tried.error().code == Errc::UNSUPPORTED || tried.error().code == Errc::NOT_FOUND)) {
    skip("nft-kernel", "this kernel has no packet rules for a namespace of the user's own");
    return false;
  }
  return k.check(tried.ok() && unshare(CLONE_NEWNET) == 0, "packet rules: " + said(tried), __FILE__, __LINE__);
}
uint64_t count(const std::string& rule) {
  auto socket = open_netfilter_socket();
  auto state = read_state(*socket);
  if (!state) return UINT64_MAX;
  uint64_t n = 0;
  for (const Count& c : state->counts)
    if (c.rule == rule) n += c.packets;
  return n;
}

// One packet to there: the start of a connection, or a datagram.
void send_to(const char* address, uint16_t port, bool tcp) {
  sockaddr_storage to{};
  socklen_t size;
  bool v6 = strchr(address, ':') != nullptr;
  if (v6) {
    auto* a = reinterpret_cast<sockaddr_in6*>(&to);
    a->sin6_family = AF_INET6, a->sin6_port = htons(port), size = sizeof *a;
    inet_pton(AF_INET6, address, &a->sin6_addr);
  } else {
    auto* a = reinterpret_cast<sockaddr_in*>(&to);
    a->sin_family = AF_INET, a->sin_port = htons(port), size = sizeof *a;
    inet_pton(AF_INET, address, &a->sin_addr);
  }
  UniqueFd fd(socket(v6 ? AF_INET6 : AF_INET, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (tcp) (void)connect(fd.get(), reinterpret_cast<sockaddr*>(&to), size);
  else (void)sendto(fd.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), size);
}

}  // namespace

KERNEL_TEST("the kernel holds what it was given, and that is what nft reads of our text", "[nft]") {
  if (!enter(k)) return;
  Ruleset r = ruleset_of(egress(kAllow));
  auto given = give(r);
  KCHECK_SAYS(given, said(given));
  auto state = held(r);
  KCHECK_SAYS(state, said(state));
  if (!has("nft")) return skip("nft-oracle", "there is no nft program");
  Ran listed = program("PATH=$PATH:/sbin:/usr/sbin; nft -s list ruleset");
  // On a machine without /etc/protocols nft shows the number.
  if (size_t at = listed.out.find("meta l4proto 6 "); at != std::string::npos) listed.out.replace(at, 14, "meta l4proto tcp");
  KCHECK_SAYS(listed.out == r.to_text(), "\n" + listed.out + "\ninstead of\n" + r.to_text());
  // And the other way: another compiler of the same text makes the same rules.
  KREQUIRE(unshare(CLONE_NEWNET) == 0);
  put(k.dir() + "/text", r.to_text());
  Ran loaded = program("PATH=$PATH:/sbin:/usr/sbin; nft -f " + k.dir() + "/text");
  KCHECK_SAYS(loaded.status == 0, loaded.out);
  auto theirs = held(r);
  KCHECK_SAYS(theirs, said(theirs));
}

KERNEL_TEST("whatever is changed behind our back is found and named", "[nft]") {
  if (!has("nft")) return skip("nft-oracle", "there is no nft program");
  Ruleset r = ruleset_of(egress(kAllow));
  struct {
    const char *command, *named;
  } changes[] = {
      {"insert rule inet h5i output accept", "unexpected: rule inet h5i output 0000"},
      {"add rule inet h5i output accept", "unexpected: rule inet h5i output 0010"},
      {"flush chain inet h5i output", "missing: rule inet h5i output"},
      {"add element inet h5i to-web-v4 { 10.9.5.21 . 443 }", "unexpected: element inet h5i to-web-v4"},
      {"delete element inet h5i to-names-v4 { 10.9.6.0/24 . 53 }", "missing: element inet h5i to-names-v4"},
      {"add chain inet h5i output { policy accept \\; }", "unexpected: chain inet h5i output type filter hook 3 priority 0 policy 1"},
      {"add table inet other", "unexpected: table inet other"},
      {"add table inet h5i { flags dormant \\; }", "unexpected: table inet h5i flags 1"},
      {"add chain inet h5i more", "unexpected: chain inet h5i more"},
      {"add chain inet h5i first { type filter hook output priority -300 \\; }", "unexpected: chain inet h5i first type filter hook 3 priority -300"},
      {"add set inet h5i more { type ipv4_addr \\; }", "unexpected: set inet h5i more"},
      {"add counter inet h5i more", "unexpected: object inet h5i more"},
      {"add flowtable inet h5i fast { hook ingress priority 0 \\; devices = { lo } \\; }", "unexpected: flowtable inet h5i fast"},
      {"add table ip nat", "unexpected: table ip nat"},
  };
  if (!enter(k)) return;
  for (const auto& c : changes) {
    KREQUIRE(unshare(CLONE_NEWNET) == 0);
    KREQUIRE(give(r));
    KREQUIRE(held(r));
    Ran done = program(std::string("PATH=$PATH:/sbin:/usr/sbin; nft ") + c.command);
    if (done.status != 0 && std::string(c.command).find("flowtable") != std::string::npos) continue;  // a kernel without them
    KCHECK_SAYS(done.status == 0, std::string(c.command) + ": " + done.out);
    auto state = held(r);
    KCHECK_SAYS(!state && state.error().code == Errc::TIER_SETUP && state.error().evidence.find(c.named) != std::string::npos, std::string(c.command) + ": " + said(state));
  }
}

KERNEL_TEST("a table is made once, changed whole, and nothing stays of a transaction that failed", "[nft]") {
  if (!enter(k)) return;
  Ruleset r = ruleset_of(egress(kAllow)), less = ruleset_of(egress(""));
  auto none = give(r, Change::REPLACE);
  KCHECK_SAYS(!none && none.error().code == Errc::NOT_FOUND, said(none));
  KCHECK_SAYS(give(r), "the first");
  auto twice = give(less);
  KCHECK_SAYS(!twice && twice.error().code == Errc::EXISTS, said(twice));
  KCHECK_SAYS(held(r), "after a refused transaction");
  KCHECK_SAYS(give(less, Change::REPLACE), "replace");
  KCHECK_SAYS(held(less), "after a whole change");
  // Overlapping elements are refused by the kernel in the middle of the batch.
  Ruleset broken = r;
  broken.sets[0].elements.push_back(broken.sets[0].elements[0]);
  KCHECK(!give(broken, Change::REPLACE));
  KCHECK_SAYS(held(less), said(held(less)));
  Ruleset lookup = r;
  lookup.chains[2].rules[4].matches[0].name = "to-nobody-v4";
  KCHECK(!give(lookup, Change::REPLACE));
  KCHECK_SAYS(held(less), said(held(less)));
}

KERNEL_TEST("as many destinations as a document may have fit into one transaction", "[nft]") {
  if (!enter(k)) return;
  std::string list;
  for (size_t i = 0; i < kMaxDestinations; i++) list += (i ? ",\"2001:db8:" : "\"2001:db8:") + std::to_string(i / 1000 + 1) + ":" + std::to_string(i % 1000 + 1) + "::7\"";
  Ruleset r = ruleset_of(egress(R"({"id":"many","about":"","protocol":"tcp","addresses":[)" + list + R"(],"ports":["443"]})"));
  KREQUIRE(r.sets.size() == 1 && r.sets[0].elements.size() == kMaxDestinations);
  KCHECK_SAYS(give(r), "many");
  KCHECK_SAYS(held(r), said(held(r)));
}

KERNEL_TEST("who may not administer a network is told so", "[nft]") {
  if (k.root()) return;
  auto refused = give(ruleset_of(egress(kAllow)));
  KCHECK_SAYS(!refused && refused.error().code == Errc::DENIED, said(refused));
}

KERNEL_TEST("each range holds at both of its ends, for both families; all else is counted, logged and refused", "[nft]") {
  if (!has("ip")) return skip("nft-packets", "there is no ip program");
  if (!enter(k)) return;
  KREQUIRE(add_sink());
  struct {
    const char* address;
    uint16_t port;
    bool tcp;
    const char* rule;  // nullptr: refused
  } tries[] = {
      {"10.9.5.9", 443, true, nullptr},   {"10.9.5.10", 443, true, "allow web v4"},  {"10.9.5.20", 443, true, "allow web v4"},   {"10.9.5.21", 443, true, nullptr},
      {"10.9.5.15", 442, true, nullptr},  {"10.9.5.15", 444, true, nullptr},         {"10.9.5.15", 7999, true, nullptr},         {"10.9.5.15", 8000, true, "allow web v4"},
      {"10.9.5.20", 8010, true, "allow web v4"}, {"10.9.5.15", 8011, true, nullptr}, {"10.9.5.15", 443, false, nullptr},         {"10.9.6.0", 53, false, "allow names v4"},
      {"10.9.6.255", 53, false, "allow names v4"}, {"10.9.7.0", 53, false, nullptr}, {"10.9.6.9", 53, true, nullptr},            {"10.9.5.255", 53, false, nullptr},
      {"2001:db8::f", 443, true, nullptr}, {"2001:db8::10", 443, true, "allow web v6"}, {"2001:db8::20", 8010, true, "allow web v6"}, {"2001:db8::21", 443, true, nullptr},
      {"2001:db8::15", 443, false, nullptr}, {"::ffff:10.9.5.15", 443, true, "allow web v4"}, {"::ffff:10.9.5.21", 443, true, nullptr}, {"169.254.169.254", 80, true, nullptr},
      {"8.8.8.8", 53, false, nullptr},
  };
  // The control: without rules every one of these packets leaves.
  auto sent = [] { return atol(program("sed 's/:/ /' /proc/net/dev | awk '$1 == \"sink\" {print $11}'").out.c_str()); };
  long before = sent();
  for (const auto& t : tries) send_to(t.address, t.port, t.tcp);
  KCHECK(sent() - before >= static_cast<long>(std::size(tries)));

  Ruleset r = ruleset_of(egress(kAllow));
  KREQUIRE(give(r));
  auto socket = open_netfilter_socket();
  KREQUIRE(socket);
  auto log = PacketLog::listen(std::move(*socket), kGroup);
  KREQUIRE(log);
  for (const auto& t : tries) {
    std::string what = std::string(t.address) + " " + std::to_string(t.port) + (t.tcp ? " tcp" : " udp"), address = t.address;
    if (address.starts_with("::ffff:")) address = address.substr(7);
    std::string name = std::string(t.tcp ? "tcp " : "udp ") + (address.find(':') != std::string::npos ? "[" + address + "]" : address) + ":" + std::to_string(t.port);
    uint64_t refused = count(kRefusedRule), allowed = t.rule ? count(t.rule) : 0;
    before = sent();
    send_to(t.address, t.port, t.tcp);
    uint64_t more = count(kRefusedRule) - refused;
    auto told = log->read();
    KREQUIRE(told);
    // The kernel speaks of its own as well (multicast listeners): what counts is the packet of the try.
    size_t named = 0;
    for (const Refused& p : told->packets) named += to_text(p) == name;
    if (t.rule) {
      KCHECK_SAYS(count(t.rule) == allowed + 1 && named == 0, what + ": " + std::to_string(count(t.rule) - allowed) + " accepted, " + std::to_string(named) + " refused");
      KCHECK_SAYS(sent() > before, what + " did not leave");
    } else {
      KCHECK_SAYS(named >= 1 && more >= named && sent() == before, what + ": " + std::to_string(named) + " of " + std::to_string(more) + " refused, " + std::to_string(sent() - before) + " left");
    }
  }
  // Loopback of the box's own is its own.
  uint64_t own = count("loopback");
  send_to("127.0.0.1", 9, true);
  send_to("::1", 9, false);
  KCHECK(count("loopback") >= own + 2);
  KCHECK_SAYS(held(r), said(held(r)));
}

KERNEL_TEST("a million datagrams whose address another thread turns while they are sent reach only what the rules name", "[nft]") {
  if (!has("ip")) return skip("nft-packets", "there is no ip program");
  if (!enter(k)) return;
  KREQUIRE(add_sink());
  // At the far end: what came for the address that is not named.
  UniqueFd far(socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_IP)));
  sockaddr_ll on{};
  on.sll_family = AF_PACKET, on.sll_protocol = htons(ETH_P_IP), on.sll_ifindex = static_cast<int>(if_nametoindex("other"));
  sock_filter only[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0a090709, 0, 1), BPF_STMT(BPF_RET | BPF_K, 64), BPF_STMT(BPF_RET | BPF_K, 0)};
  sock_fprog filter{std::size(only), only};
  KREQUIRE(setsockopt(far.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0 && bind(far.get(), reinterpret_cast<sockaddr*>(&on), sizeof on) == 0);
  auto arrived = [&] {
    char bytes[64];
    size_t n = 0;
    while (recv(far.get(), bytes, sizeof bytes, 0) > 0) n++;
    return n;
  };
  auto turned_while_sent = [&](int times) {
    static sockaddr_in to;
    to = {};
    to.sin_family = AF_INET, to.sin_port = htons(53);
    std::atomic<bool> stop{false};
    in_addr named{htonl(0x0a090609)}, other{htonl(0x0a090709)};
    std::thread turner([&] {
      auto* address = static_cast<volatile in_addr_t*>(&to.sin_addr.s_addr);
      while (!stop)
        for (in_addr_t a : {other.s_addr, named.s_addr})
          for (int i = 0; i < 20; i++) *address = a;
    });
    UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    for (int i = 0; i < times; i++) (void)sendto(fd.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    stop = true;
    turner.join();
  };
  turned_while_sent(20'000);
  KCHECK(arrived() > 0);  // the control: without rules
  KREQUIRE(give(ruleset_of(egress(kAllow))));
  turned_while_sent(1'000'000);
  size_t there = arrived();
  KCHECK_SAYS(there == 0, std::to_string(there) + " came");
  KCHECK_SAYS(count("allow names v4") > 1000 && count(kRefusedRule) > 1000, std::to_string(count("allow names v4")) + " and " + std::to_string(count(kRefusedRule)));
}

KERNEL_TEST("what is taken out of the rules ends at its next packet, a flow that runs too", "[nft]") {
  if (!has("ip")) return skip("nft-packets", "there is no ip program");
  if (!enter(k)) return;
  KREQUIRE(add_sink());
  KREQUIRE(give(ruleset_of(egress(kAllow))));
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET, to.sin_port = htons(53);
  inet_pton(AF_INET, "10.9.6.9", &to.sin_addr);
  KREQUIRE(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  KCHECK(send(fd.get(), "x", 1, 0) == 1);
  KCHECK(count("allow names v4") == 1);
  KREQUIRE(give(ruleset_of(egress(R"({"id":"web","about":"","protocol":"tcp","addresses":["10.9.5.10"],"ports":["443"]})")), Change::REPLACE));
  auto socket_of_log = open_netfilter_socket();
  auto log = PacketLog::listen(std::move(*socket_of_log), kGroup);
  KREQUIRE(log);
  (void)send(fd.get(), "x", 1, 0);
  auto told = log->read();
  KREQUIRE(told);
  // The kernel speaks of its own as well (multicast listeners), and is refused like anybody.
  bool named = false;
  for (const Refused& p : told->packets) named = named || to_text(p) == "udp 10.9.6.9:53";
  KCHECK(named);
}

KERNEL_TEST("one reader a group; a flood loses packets and says so", "[nft]") {
  if (!has("ip")) return skip("nft-packets", "there is no ip program");
  if (!enter(k)) return;
  KREQUIRE(add_sink());
  KREQUIRE(give(ruleset_of(egress(""))));
  auto first = open_netfilter_socket(), second = open_netfilter_socket();
  auto log = PacketLog::listen(std::move(*first), kGroup);
  KREQUIRE(log);
  auto other = PacketLog::listen(std::move(*second), kGroup);
  KCHECK(!other && other.error().code == Errc::DENIED);
  Refusals all;
  for (int i = 0; i < 20000; i++) send_to("10.9.1.1", static_cast<uint16_t>(1 + i % 100), false);
  for (int i = 0; i < 100; i++) {
    auto told = log->read();
    KREQUIRE(told);
    all.add(*told, realtime_ns());
    if (told->packets.empty() && !told->lost) break;
  }
  KCHECK(all.lost());
  KCHECK(all.truncated());
  KCHECK(all.entries().size() == Refusals::kMaxTold);
  KCHECK(count(kRefusedRule) >= 20000);
}
