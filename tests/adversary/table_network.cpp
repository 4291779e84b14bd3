// Group D: what a box with an egress list reaches. Its tries at `supervised` are made where tests/vm/supervised_world.sh stands for the
// internet: 203.0.113.10 is api.test, .11 mirror.test, .12 nobody's; each of them answers at every port that is tried here.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "tests/adversary/cases.hpp"
#include "tests/adversary/world.hpp"
#include "tests/cli/program.hpp"

namespace h5i::adversary {
namespace {

bool has(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

// Refused by a packet rule, which the receipt counts for the destination.
Try dropped(const std::string& words, const std::string& told, const std::string& outside = "") {
  Try t = held(words, {"ECONNREFUSED", "EPERM", "EACCES", "EHOSTUNREACH"});
  t.told = told;
  if (!outside.empty()) t.outside = words_of(outside);
  return t;
}
Try nowhere(const std::string& words, const std::string& grant = "") {
  return held(words, {"ENETUNREACH", "EADDRNOTAVAIL", "ECONNREFUSED", "EHOSTUNREACH"}, grant);
}

// The policy of a folder that says this in its file; "" is no file at all.
Ran policy(const Place& p, const std::string& text, const std::vector<std::string>& words) {
  World& w = *p.world;
  const std::string folder = w.home() + "/out/policy";
  w.host({"/bin/sh", "-c", "mkdir -p " + folder + "/.h5i && cd " + folder + " && git init -q ."}, w.home());
  if (!text.empty()) w.write(folder + "/.h5i/env.yaml", text);
  std::vector<std::string> argv{w.target().h5i, "policy"};
  argv.insert(argv.end(), words.begin(), words.end());
  return w.host(argv, folder);
}
std::string rules_text(const std::vector<std::string>& rules) {
  std::string out = "profiles:\n  x:\n    extends: default\n    net:\n      egress:\n";
  for (const std::string& r : rules) out += "        - \"" + r + "\"\n";
  return out;
}

// Each rule of the list is refused when the file is read; outside one that is spelled well is not, so that it is the spelling.
Scene refused_rules(std::vector<std::string> rules) {
  return [rules = std::move(rules)](const Place& p) -> std::string {
    if (!p.inside()) return policy(p, rules_text({"api.allowed.example:443"}), {"check"}).status == 0 ? "did" : "did not";
    Ran r = policy(p, rules_text(rules), {"check"});
    size_t n = 0;
    for (size_t at = 0; (at = r.err.find("[policy.egress-rule]", at)) != std::string::npos; at++) n++;
    if (r.status != 1) return "status " + std::to_string(r.status);
    return n == rules.size() ? "each refused" : std::to_string(n) + " of " + std::to_string(rules.size()) + " refused: " + r.err;
  };
}

// Spellings of one name are one rule, by its canonical form.
std::string one_form(const Place& p) {
  Ran r = policy(p,
                 rules_text(p.inside() ? std::vector<std::string>{"API.Allowed.Example.", "api.allowed.example:443"}
                                       : std::vector<std::string>{"api.allowed.example", "evilapi.allowed.example"}),
                 {"show", "x", "--json"});
  auto document = json::parse(r.out);
  if (!document) return "no policy: " + r.err;
  size_t n = (*document)["policy"]["profile"]["net"]["egress"].array().size();
  return p.inside() ? (n == 1 ? "one rule" : std::to_string(n) + " rules") : (n == 2 ? "did" : "did not");
}

// Neither an empty list nor a file of comments nor none opens anything; a profile that is not there is no box.
std::string nothing_named(const Place& p) {
  if (!p.inside()) {
    auto open = json::parse(policy(p, rules_text({"api.allowed.example"}), {"show", "x", "--json"}).out);
    return open && (*open)["policy"]["profile"]["net"]["egress"].array().size() == 1 ? "did" : "did not";
  }
  const std::vector<std::pair<std::string, std::string>> kFiles = {
      {"profiles:\n  default2: { extends: default, net: { egress: [] } }\n", "default2"}, {"# egress: [evil.example]\n", "default"}, {"", "default"}};
  for (const auto& [text, profile] : kFiles) {
    std::filesystem::remove_all(p.world->home() + "/out/policy");
    Ran r = policy(p, text, {"show", profile, "--json"});
    auto shown = json::parse(r.out);
    if (!shown) return "no policy: " + r.err;
    const Json& net = (*shown)["policy"]["profile"]["net"];
    if (net["mode"].string() != "deny" || !net["egress"].array().empty()) return "open: " + json::canonical(net);
  }
  std::filesystem::remove_all(p.world->home() + "/out/policy");
  Ran gone = policy(p, "", {"show", "x"});
  return gone.status != 0 && has(gone.err, "[policy.no-profile]") ? "nothing is open" : "a profile that is not there: " + gone.out + gone.err;
}

std::string host_mode(const Place& p) {
  if (!p.inside()) return p.tries({{"connect", "tcp", "127.0.0.1", "{port}"}}).answers[0];
  std::string why;
  return p.world->box("host", &why).inside()                                      ? "a box was made"
         : has(why, "[policy.field-unenforceable]") && has(why, "net.mode: host") ? "refused by name"
                                                                                  : why;
}

std::string names(const Place& p) {
  if (!p.inside()) return has(p.command({"/bin/sh", "-c", "getent hosts six.test"}).out, "2001:db8:1::10") ? "did" : "did not";
  Ran r = p.command(
      {"/bin/sh", "-c", "getent hosts api.test; for n in six.test mirror.test.six.test nobody.test; do getent hosts $n && echo knows $n; done; echo end"});
  if (!has(r.out, "203.0.113.10") || !has(r.out, "end")) return "its own name is not known: " + r.out + r.err;
  return has(r.out, "knows") ? r.out : "only its own";
}

std::string by_name(const Place& p) {
  Ran r = p.command(
      {"/bin/bash", "-c", "for n in localhost localhost. ip6-localhost; do (exec 3<>/dev/tcp/$n/{port}) 2>/dev/null && echo reached $n; done; echo end"});
  return has(r.out, "reached localhost\n") ? "did" : has(r.out, "end") && !has(r.out, "reached") ? "its own" : r.out + r.err;
}

// Every port of the gateway, and more of them than a receipt names.
std::string scan(const Place& p) {
  if (!p.inside()) return p.tries({{"scan", "127.0.0.1", "{port}", "{port}"}}).answers[0];
  Ran r = p.tries({{"scan", "192.0.2.2", "1", "300"}, {"scan", "192.0.2.3", "1", "60"}});
  for (const std::string& a : r.answers)
    if (a != "ECONNREFUSED") return a + r.err;
  const Json& n = r.receipt["network"];
  return n["truncated"].boolean() && n["refused_packets"].integer() >= 360 ? "nothing, and told" : json::canonical(n);
}

// What the very first instruction of a run reaches.
std::string first_instruction(const Place& p) {
  Ran r = p.command({"{attack}", "itself", "connect", "tcp", "203.0.113.12", "443"});
  if (!p.inside()) return r.status == 0 ? "did" : "status " + std::to_string(r.status);
  if (r.status == 0) return "let through";
  for (const Json& d : r.receipt["network"]["refused"].array())
    if (d["to"].string() == "tcp 203.0.113.12:443") return "refused, and told";
  return "status " + std::to_string(r.status) + r.err;
}

// A server in the box on every address of its own; then it is looked for at the host's.
std::string published(const Place& p) {
  World& w = *p.world;
  sockaddr_in a{};
  a.sin_family = AF_INET;
  socklen_t n = sizeof a;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bind(fd, reinterpret_cast<sockaddr*>(&a), n);
  getsockname(fd, reinterpret_cast<sockaddr*>(&a), &n);
  close(fd);
  const std::string err = w.home() + "/out/listening", out = w.home() + "/out/listened";
  test::Program program{.argv = {w.target().h5i, "box", "run", p.box, "--"}, .env = {{"HOME", w.home()}}, .cwd = w.repo(), .uid = w.target().uid};
  if (!p.inside()) program.argv.clear();
  for (const std::string& word : {w.fill("{attack}", p), std::string("listen"), std::string("0.0.0.0"), std::to_string(ntohs(a.sin_port)), std::string("20")})
    program.argv.push_back(word);
  w.write(err, "");
  w.write(out, "");
  pid_t pid = test::start(program, out, err);
  bool up = false, reached = false;
  for (int i = 0; i < 600 && !(up = has(w.read(err), "listening")); i++) usleep(50000);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; up && i < 20 && !reached; i++) {
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    reached = connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0;
    close(fd);
    if (!reached) usleep(50000);
  }
  kill(pid, SIGTERM);
  test::wait_for(pid, 30);
  return !up ? "it did not listen: " + w.read(err) : reached ? "did" : "out of reach";
}

std::string crowd(const Place& p) {
  Ran r = p.tries({{"crowd", "24", "100"}}, 120);
  if (!p.inside()) return r.answers[0];
  int64_t n = 0;
  for (const Json& d : r.receipt["denials"].array())
    if (d["syscall"].string() == "socket") n += d["count"].integer();
  return r.answers[0] != "EPERM" ? r.answers[0] : n == 2400 ? "all refused, all counted" : std::to_string(n) + " counted";
}

}  // namespace

std::vector<Case> cases_of_network() {
  const std::string grammar = "tests/policy/test_egress.cpp", kernel = "tests/nft/test_kernel.cpp", spawn = "tests/spawn/test_network.cpp";
  return {
      {.id = "A19",
       .what = "frames that leave below the packet rules",
       .must = "S",
       .claim = "net.egress",
       .right = "EPERM at socket()",
       .profile = "net",
       .tries = {refused("socket 17 3 768", "EPERM", "socket"),
                 refused("socket 17 2 768", "EPERM", "socket")}},
      {.id = "A19",
       .what = "who only looks at its own addresses",
       .must = "S",
       .claim = "net.egress",
       .right = "sees them: netlink is there for reading",
       .profile = "net",
       .tries = {may("addresses")}},
      {.id = "A25",
       .what = "a profile that asks for the host's network",
       .must = "S",
       .claim = "net.mode",
       .right = "refused by name: here a box always has a network of its own",
       .tries = {watched("net.mode: host", {"refused by name"}, host_mode)}},
      {.id = "A30",
       .what = "a process that nobody may look into",
       .must = "S",
       .right = "refused and counted like any other: no answer depends on its memory",
       .tries = {refused("unseen add_key s:user s:h5i s:x 1 -1", "EPERM", "add_key"),
                 answers_outside(refused("unseen socketpair 2 1 0 b:8", "EPERM", "socketpair"), {"EOPNOTSUPP"})}},
      {.id = "A31",
       .what = "another thread changes the address while the call is looked at",
       .must = "S",
       .claim = "net.egress",
       .right = "never reached: packets are judged, not calls",
       .profile = "net",
       .tries = {dropped("turn 203.0.113.10 203.0.113.12 443 300", "tcp 203.0.113.12:443")},
       .elsewhere = {{kernel, "a million datagrams whose address another thread turns while they are sent reach only what the rules name"}}},
      {.id = "A34",
       .what = "lengths and pointers that lead nowhere",
       .must = "S",
       .right = "the gate decides by numbers alone and reads no memory; the rest is the kernel's own answer",
       .tries = {answers_outside(refused("sys add_key 1 1 1 0x7fffffffffffffff 0", "EPERM"), {"EFAULT", "EINVAL"}),
                 answers_outside(refused("sys socketpair 2 1 0 1", "EPERM"), {"EOPNOTSUPP", "EFAULT"}),
                 answers_outside(refused("sys mount 1 1 1 0 1", "EPERM"), {"EFAULT"}), may("odd-lengths")},
       .elsewhere = {{"tests/spawn/test_notify.cpp", "ten thousand refused calls are all answered, counted and told once"}}},
      {.id = "A36",
       .what = "signals interrupt a call that is held for an answer",
       .must = "S",
       .right = "no call of a shell's is held: every pipeline completes",
       .elsewhere = {{"tests/spawn/test_notify.cpp", "a thousand shells that fork while each start notifies come to their ends"},
                     {"tests/spawn/test_lifetime.cpp", "pipelines complete, every one, under a filter with a listener"}}},
      {.id = "A37",
       .what = "a kernel whose notifications have another size",
       .must = "S",
       .right = "found out by the probe, and named",
       .elsewhere = {{"tests/tiers/test_probe.cpp", "whatever supervised needs is named when it is taken away, and without it nothing is claimed"}}},
      {.id = "B33",
       .what = "code of its own that is written over through /proc/self/mem",
       .must = "S",
       .right = "allowed, and without effect on what holds it: that is in the kernel",
       .tries = {may("own-code")}},
      {.id = "D01",
       .what = "IPv6 beside rules that were made for IPv4, and IPv4 in its clothes",
       .must = "S",
       .claim = "net.egress",
       .right = "one table for both: what no rule names is refused and told",
       .profile = "six",
       .tries = {may("connect tcp 2001:db8:1::10 443"), dropped("connect tcp 2001:db8:1::10 80", "tcp [2001:db8:1::10]:80"),
                 dropped("connect tcp 2001:db8:1::11 443", "tcp [2001:db8:1::11]:443"), dropped("connect tcp ::ffff:203.0.113.10 443", "tcp 203.0.113.10:443"),
                 dropped("connect udp 2001:db8:1::10 443", "udp [2001:db8:1::10]:443")}},
      {.id = "D01",
       .what = "the same where no rule names an IPv6 address",
       .must = "S",
       .claim = "net.egress",
       .right = "refused and told",
       .profile = "net",
       .tries = {granted_by(dropped("connect tcp 2001:db8:1::10 443", "tcp [2001:db8:1::10]:443"), "six"), dropped("connect udp 2001:db8:1::10 443", "udp [2001:db8:1::10]:443"),
                 dropped("connect tcp ::ffff:203.0.113.12 443", "tcp 203.0.113.12:443")}},
      {.id = "D03",
       .what = "an IPv4 address inside an IPv6 one: NAT64, 6to4, Teredo, compatible, translated",
       .must = "S",
       .claim = "net.egress",
       .right = "refused and told",
       .profile = "six",
       .tries = {dropped("connect tcp 64:ff9b::a9fe:a9fe 80", "tcp [64:ff9b::a9fe:a9fe]:80"),
                 dropped("connect tcp 2002:a9fe:a9fe::1 80", "tcp [2002:a9fe:a9fe::1]:80"),
                 dropped("connect tcp 2001::ffff:5601:5601 80", "tcp [2001::ffff:5601:5601]:80"),
                 dropped("connect tcp ::ffff:0:a9fe:a9fe 80", "tcp [::ffff:0:a9fe:a9fe]:80")}},
      {.id = "D03",
       .what = "the same in a rule, and in what a name leads to",
       .must = "K",
       .right = "no rule admits them",
       .elsewhere = {{grammar, "addresses that reach the host or a cloud's credentials are never reachable, however spelt"},
                     {"tests/session/test_egress.cpp",
                      "a name that points where no box may go gives no address, and none at all is a refusal that says where"}}},
      {.id = "D04",
       .what = "the host's loopback in any spelling",
       .must = "S",
       .claim = "net.loopback",
       .right = "it is the box's own, where nobody listens",
       .profile = "net",
       .tries = {held("connect tcp 127.0.0.1 {port}", {"ECONNREFUSED"}), held("connect tcp 0x7f.1 {port}", {"ECONNREFUSED"}),
                 held("connect tcp 2130706433 {port}", {"ECONNREFUSED"}), held("connect tcp 017700000001 {port}", {"ECONNREFUSED"}),
                 held("connect tcp 0.0.0.0 {port}", {"ECONNREFUSED"}), held("connect tcp ::1 {port6}", {"ECONNREFUSED"}),
                 held("connect tcp :: {port6}", {"ECONNREFUSED"}), held("connect tcp ::ffff:127.0.0.1 {port}", {"ECONNREFUSED"}),
                 watched("by its names", {"its own"}, by_name)}},
      {.id = "D04",
       .what = "the same in a rule",
       .must = "K",
       .right = "refused when the file is read",
       .tries = {watched("rules for loopback", {"each refused"},
                         refused_rules({"0.0.0.0:80", "[::]:80", "127.0.0.1:80", "127.9.9.9:80", "0x7f.1:80", "017700000001:80", "2130706433:80",
                                        "localhost.:80", "a.localhost:80", "[::ffff:127.0.0.1]:80"}))},
       .elsewhere = {{grammar, "addresses that reach the host or a cloud's credentials are never reachable, however spelt"}}},
      {.id = "D06",
       .what = "names carry data to a name server although the connection is refused",
       .must = "S",
       .claim = "net.egress",
       .right = "no question leaves: names are in the box's hosts file, and no server is reachable",
       .profile = "net",
       .tries = {dropped("ask 203.0.113.10 53", "udp 203.0.113.10:53"), dropped("connect tcp 203.0.113.10 53", "tcp 203.0.113.10:53"),
                 dropped("ask 192.0.2.3 53", "udp 192.0.2.3:53", "ask 203.0.113.10 53"), watched("names", {"only its own"}, names)},
       .elsewhere = {{"tests/session/test_egress.cpp", "names are pinned once: addresses for the rules, and lines for the box's hosts file"}}},
      {.id = "D07",
       .what = "side doors to a resolver",
       .must = "S",
       .claim = "net.egress",
       .right = "refused and told; what names a resolver cannot be written",
       .profile = "net",
       .tries = {dropped("connect tcp 203.0.113.10 853", "tcp 203.0.113.10:853"), dropped("connect tcp 203.0.113.12 443", "tcp 203.0.113.12:443"),
                 dropped("connect udp 224.0.0.251 5353", "udp 224.0.0.251:5353"), dropped("connect udp 224.0.0.252 5355", "udp 224.0.0.252:5355"),
                 outside_by(held("write /etc/resolv.conf", {"EROFS", "EACCES", "ENOENT"}), "write {open}/plain"),
                 needs(refused("unix stream /run/systemd/resolve/io.systemd.Resolve", "EPERM", "socket"), file_of_kernel("/run/systemd/resolve/io.systemd.Resolve"))}},
      {.id = "D09",
       .what = "the box writes its own hosts file",
       .must = "S",
       .claim = "net.egress",
       .right = "it cannot; and packets go by address, whatever a name says",
       .profile = "net",
       .tries = {outside_by(held("write /etc/hosts", {"EROFS", "EACCES"}), "write {open}/plain"),
                 outside_by(held("sys renameat2 -100 s:/etc/hosts -100 s:/etc/hosts2 0", {"EROFS", "EBUSY", "EACCES", "ENOENT"}),
                            "sys renameat2 -100 s:{open}/plain -100 s:{open}/plainer 0"),
                 dropped("connect tcp 203.0.113.11 443", "tcp 203.0.113.11:443")}},
      {.id = "D12",
       .what = "spellings of a name",
       .must = "K",
       .right = "one canonical form, which is what is looked up; the rest is refused",
       .tries = {watched("one form", {"one rule"}, one_form),
                 watched("what is no name", {"each refused"},
                         refused_rules(
                             {"allowed.example..", "a..allowed.example", ".allowed.example",
                              "b\xc3\xbc"
                              "cher.example",
                              "al_lowed.example", "allowed%2eexample", "user@allowed.example", "allowed.example:443@evil.example", "allowed.example/x",
                              std::string(64, 'a') + ".example",
                              std::string(63, 'a') + "." + std::string(63, 'a') + "." + std::string(63, 'a') + "." + std::string(63, 'a') + ".example"}))},
       .elsewhere = {{grammar, "a rule has one canonical form"}, {grammar, "what the grammar does not admit is refused with its reason"}}},
      {.id = "D13",
       .what = "a suffix without a dot before it",
       .must = "K",
       .right = "labels are compared, and the apex is no subdomain",
       .tries = {watched("suffixes of no label", {"each refused"},
                         refused_rules({"*allowed.example", "*", "*.", "*.com", "a.*.example.com", "*.*.example.com"}))},
       .elsewhere = {{grammar, "a name matches on label boundaries, and a wildcard leaves its apex out"}}},
      {.id = "D15",
       .what = "a list without an entry, a file of comments, no file",
       .must = "KP",
       .claim = "net.mode",
       .right = "nothing is open; a profile that is not there is a refusal",
       .profile = "empty",
       .tries = {watched("nothing named", {"nothing is open"}, nothing_named), held("connect tcp 127.0.0.1 {port}", {"ECONNREFUSED"}, "host")},
       .elsewhere = {{grammar, "the host's list never widens a profile that denies all"}}},
      {.id = "D15",
       .what = "the same where a list could be held",
       .must = "S",
       .claim = "net.egress",
       .right = "nothing is reached",
       .profile = "empty",
       .tries = {nowhere("connect tcp 203.0.113.10 443", "net"), nowhere("connect udp 203.0.113.10 53")}},
      {.id = "D16",
       .what = "a port that is parsed away",
       .must = "K",
       .right = "refused when the file is read",
       .tries = {watched("what is no port", {"each refused"},
                         refused_rules({"allowed.example:99999", "allowed.example:", "allowed.example:443:22", "allowed.example:443-80", "allowed.example:0",
                                        "allowed.example:0443", "allowed.example:https", "allowed.example:-1", "10.0.0.0/8:", "[2001:db8::]/32:443:22"}))},
       .elsewhere = {{grammar, "what the grammar does not admit is refused with its reason"}}},
      {.id = "D16",
       .what = "another port of a host that a rule names",
       .must = "S",
       .claim = "net.egress",
       .right = "refused and told",
       .profile = "net",
       .tries = {may("connect tcp 203.0.113.10 443"), dropped("connect tcp 203.0.113.10 22", "tcp 203.0.113.10:22"), may("connect tcp 203.0.113.11 8443"),
                 dropped("connect tcp 203.0.113.11 80", "tcp 203.0.113.11:80")}},
      {.id = "D24",
       .what = "what of ours listens where the box could come",
       .must = "S",
       .claim = "net.egress",
       .right = "no port of the gateway answers; a receipt says that there were more than it names",
       .profile = "net",
       .tries = {watched("a scan", {"nothing, and told"}, scan)},
       .elsewhere = {{"tests/spawn/test_requests.cpp", "the spawner cannot be read or traced by its own user"}}},
      {.id = "D25",
       .what = "the host's loopback by way of the gateway",
       .must = "S",
       .claim = "net.loopback",
       .right = "refused, but for ports that the profile names",
       .profile = "net",
       .tries = {granted_by(dropped("connect tcp 192.0.2.2 {port}", "tcp 192.0.2.2:{port}", "connect tcp 127.0.0.1 {port}"), "loopback"),
                 dropped("connect tcp 10.0.2.2 {port}", "tcp 10.0.2.2:{port}", "connect tcp 127.0.0.1 {port}"),
                 dropped("connect tcp 192.168.5.2 {port}", "tcp 192.168.5.2:{port}", "connect tcp 127.0.0.1 {port}"),
                 dropped("connect tcp 203.0.113.1 {port}", "tcp 203.0.113.1:{port}", "connect tcp 127.0.0.1 {port}")},
       .elsewhere = {{spawn, "the way out carries what the rules name and is gone with the box, whichever program it is"}}},
      {.id = "D27",
       .what = "the ends of a range",
       .must = "S",
       .claim = "net.egress",
       .right = "both are in it, and what is beyond is not",
       .profile = "net",
       .tries = {may("connect tcp 198.51.100.0 80"), may("connect tcp 198.51.100.15 80"), dropped("connect tcp 198.51.100.16 80", "tcp 198.51.100.16:80")},
       .elsewhere = {{kernel, "each range holds at both of its ends, for both families; all else is counted, logged and refused"},
                     {"tests/nft/test_egress.cpp", "ranges of addresses are sorted, joined where they touch, and written in one way"}}},
      {.id = "D28",
       .what = "a batch that failed is sent again with the next",
       .must = "KS",
       .right = "a socket for each, and what the kernel holds is read back",
       .elsewhere = {{kernel, "a table is made once, changed whole, and nothing stays of a transaction that failed"},
                     {kernel, "whatever is changed behind our back is found and named"}}},
      {.id = "D30",
       .what = "a flow that outlives a tighter policy",
       .must = "S",
       .right = "its next packet is refused",
       .elsewhere = {{kernel, "what is taken out of the rules ends at its next packet, a flow that runs too"},
                     {spawn, "rules of a box that runs are replaced: what is new passes, what is gone is cut, and names follow"}}},
      {.id = "D31",
       .what = "a moment before the rules are there",
       .must = "S",
       .claim = "net.egress",
       .right = "the way out is opened after they were read back, and nothing runs before",
       .profile = "net",
       .tries = {watched("the first instruction", {"refused, and told"}, first_instruction)},
       .elsewhere = {{spawn, "a network that cannot be had is no box"}}},
      {.id = "D37",
       .what = "an allowed host takes whatever it is sent",
       .must = "S",
       .claim = "net.egress",
       .right = "nothing looks at it, and `net.content` in not_enforced says so",
       .profile = "net",
       .tries = {may("connect tcp 203.0.113.10 443")},
       .declared = "net.content"},
      {.id = "D39",
       .what = "a server in the box is found at the host's addresses",
       .must = "PS",
       .claim = "net.mode",
       .right = "out of reach, unless the host's network is granted",
       .tries = {granted_by(watched("a server", {"out of reach"}, published), "host")}},
      {.id = "E18",
       .what = "a crowd of refused calls at once",
       .must = "S",
       .right = "each is refused and counted",
       .tries = {watched("a crowd", {"all refused, all counted"}, crowd)},
       .elsewhere = {{"tests/spawn/test_notify.cpp",
                      "refused calls from many threads, with children that die in the middle of theirs, are each answered and each counted"}}},
  };
}

}  // namespace h5i::adversary
