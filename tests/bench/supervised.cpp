// What `supervised` adds to `process`: the packet rules of a box's network, the gate on sockets, and what is left of an uplink's
// throughput. Boxes are started by a spawner alone: no plugin, no log, and no cgroup, which many machines do not give.
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/base/unique_fd.hpp"
#include "tests/bench/benches.hpp"
#include "tests/bench/box.hpp"

namespace h5i::bench {
namespace {

constexpr const char* kServer = "203.0.113.1";  // TEST-NET-3: nobody else's
constexpr uint16_t kPort = 8000;
constexpr const char* kUplinks[] = {"slirp4netns", "pasta"};

std::vector<std::string> ten_addresses() {
  std::vector<std::string> out;
  for (int i = 1; i <= 10; i++) out.push_back("203.0.113." + std::to_string(i));
  return out;
}

// The same rules as nft writes them, for the peer.
std::string nft_program() {
  std::string out = "table inet bench {\n", rules;
  for (const std::string& address : ten_addresses()) {
    std::string name = "to" + address.substr(address.rfind('.') + 1);
    out += "set " + name + " { type ipv4_addr . inet_service; flags interval; elements = {";
    for (int port = 8000; port < 8020; port += 2) out += std::string(port == 8000 ? " " : ", ") + address + " . " + std::to_string(port);
    out += " }; }\n";
    rules += "ip daddr . tcp dport @" + name + " counter accept\n";
  }
  out += "chain input { type filter hook input priority filter; policy drop; iifname \"lo\" counter accept; ct state established,related counter accept; }\n"
         "chain forward { type filter hook forward priority filter; policy drop; }\n"
         "chain output { type filter hook output priority filter; policy drop; oifname \"lo\" counter accept\n" +
         rules + "counter log prefix \"refused\" group 5 snaplen 128\nmeta l4proto tcp counter reject with tcp reset\ncounter reject with icmpx admin-prohibited\n}\n}\n";
  return out;
}

Table rules(const Settings& s) {
  BoxFolders box(s, "rules");
  Json process = process_plan(box, {"/bin/true"}), supervised = process;
  add_network(supervised, "none", ten_addresses());
  std::string bwrap = find_program("bwrap"), nft = access("/usr/sbin/nft", X_OK) == 0 ? "/usr/sbin/nft" : find_program("nft"), program = box.dir + "/rules.nft";
  std::ofstream(program) << nft_program();
  auto peer = [&](std::vector<std::string> argv) {
    std::vector<std::string> words = {bwrap, "--unshare-user", "--unshare-all", "--uid", "0", "--gid", "0", "--cap-add", "CAP_NET_ADMIN", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr",
                                      "--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--ro-bind", "/etc", "/etc",
                                      "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", box.dir, box.dir};
    words.insert(words.end(), argv.begin(), argv.end());
    return run_timed({words, ""});
  };
  const bool with_peer = !bwrap.empty() && !nft.empty();
  struct WithUplink {
    std::string name;
    Json plan;
    Series us = {}, share = {};
  };
  std::vector<WithUplink> carried;
  for (const char* name : kUplinks) {
    if (find_program(name).empty()) continue;
    carried.push_back({name, process});
    add_network(carried.back().plan, name, ten_addresses());
  }
  Series plain, ruled, alone, with_nft, over;
  for (int i = 0; i <= s.rounds; i++) {
    double a = run_box(s, process).us, b = run_box(s, supervised).us;
    double d = with_peer ? peer({"/bin/true"}) : 0, e = with_peer ? peer({nft, "-f", program}) : 0;
    for (WithUplink& c : carried) {
      double us = run_box(s, c.plan).us;
      if (i > 0) c.us.us.push_back(us), c.share.us.push_back(us - b);
    }
    if (i == 0) continue;
    plain.us.push_back(a), ruled.us.push_back(b), alone.us.push_back(d), with_nft.us.push_back(e), over.us.push_back(b - a);
  }
  Table t;
  t.name = "supervised_rules";
  t.caption = "Milliseconds of `true` in a box, " + std::to_string(s.rounds) + " rounds in turn: a spawner is forked, the box is made, its program runs, everything ends. No core and no cgroup, in none of "
              "them. The ten rules have ten ports each and a counter; bubblewrap's last program is `nft -f` with the same ones, in place of `true`.";
  t.head = {"what", "p50", "p99", "over the plan of process", "beside bubblewrap and nft"};
  auto row = [&](const std::string& what, const Series& x, const std::string& difference) {
    t.rows.push_back({what, milliseconds(x.at(0.5)), milliseconds(x.at(0.99)), difference, with_peer ? number(ratio(x, with_nft)) + " x" : ""});
  };
  row("plan of process", plain, "");
  row("the same with a network behind ten rules", ruled, milliseconds(over.at(0.5)));
  for (const WithUplink& c : carried) row("the same with " + c.name + " as its way out", c.us, milliseconds(over.at(0.5) + c.share.at(0.5)));
  if (with_peer) {
    row("bubblewrap, all namespaces", alone, "");
    row("bubblewrap and nft", with_nft, "");
  }
  t.verdicts.push_back("bar: at most 4 ms over process, without the uplink; here " + milliseconds(over.at(0.5)) + " ms: " + (over.at(0.5) <= 4000 ? "held" : "missed"));
  for (const WithUplink& c : carried) t.verdicts.push_back("the uplink's share, until it carries packets and until it is gone: " + c.name + " " + milliseconds(c.share.at(0.5)) + " ms");
  if (carried.empty()) t.verdicts.push_back("neither slirp4netns nor pasta is installed here: no uplink");
  if (!with_peer) t.verdicts.push_back("bubblewrap or nft is not installed here: no peer");
  return t;
}

// Ten rules with a port each: through the command line, with the core, a receipt and the cgroup that this tier takes.
Table whole(const Settings& s) {
  Table t;
  t.name = "supervised_whole";
  t.head = {"what", "p50", "p99", "over process"};
  const std::string repo = s.scratch + "/whole", h5i = s.prefix + "/bin/h5i", git = find_program("git");
  if (git.empty()) give_up("git makes the repository here and is not installed");
  run_once({{git, "init", "-q", "-b", "main", repo}, ""});
  mkdir((repo + "/.h5i").c_str(), 0755);
  std::string rules;
  for (const std::string& address : ten_addresses()) rules += (rules.empty() ? "\"" : ", \"") + address + ":8000\"";
  std::ofstream(repo + "/.h5i/env.yaml") << "profiles:\n  plain: { extends: default, isolation: process }\n  shut: { extends: default, isolation: supervised }\n"
                                            "  ten: { extends: default, isolation: supervised, net: { egress: [" + rules + "] } }\n";
  run_once({{git, "-C", repo, "add", "-A"}, ""});
  run_once({{git, "-C", repo, "commit", "-q", "-m", "profiles"}, ""});
  std::vector<std::pair<std::string, Command>> commands;
  for (const char* name : {"plain", "shut", "ten"}) {
    auto made = parse_json(output_of({{h5i, "box", "create", "--name", name, "--profile", name, "--json"}, repo}), "box create");
    if (!made || (*made)["error"].is_object()) {
      std::string why = made ? (*made)["error"]["what"].string() + ": " + (*made)["error"]["evidence"].string() : "it says nothing";
      t.caption = "Not measured on this machine: a box for it is refused. " + why + ".";
      t.verdicts.push_back("bar: at most 4 ms over process, without the uplink; the whole of a run: not measured here");
      return t;
    }
    commands.emplace_back(name, Command{{h5i, "box", "run", name, "--", "/bin/true"}, repo});
    run_once(commands.back().second);  // proves itself
  }
  // The uplink's own share, from the plans of a spawner alone: the command line starts one with any rule.
  BoxFolders box(s, "whole-share");
  Json closed = process_plan(box, {"/bin/true"}), open = closed;
  add_network(closed, "none", ten_addresses());
  add_network(open, "any", ten_addresses());
  Series plain, shut, ten, over_shut, over_ten, without;
  for (int i = 0; i <= s.rounds; i++) {
    double a = run_timed(commands[0].second), b = run_timed(commands[1].second), c = run_timed(commands[2].second), share = run_box(s, open).us - run_box(s, closed).us;
    if (i == 0) continue;
    plain.us.push_back(a), shut.us.push_back(b), ten.us.push_back(c), over_shut.us.push_back(b - a), over_ten.us.push_back(c - a), without.us.push_back(c - a - share);
  }
  auto row = [&](const std::string& what, const Series& x, const std::string& difference) { t.rows.push_back({what, milliseconds(x.at(0.5)), milliseconds(x.at(0.99)), difference}); };
  t.caption = "Milliseconds of a whole `h5i box run -- /bin/true`, proof cached, " + std::to_string(s.rounds) + " rounds in turn: with the core, a receipt, and a cgroup for each of them. A rule brings an uplink with it; "
              "its share is what it adds between the same two plans of a spawner alone, in the same round.";
  row("process", plain, "");
  row("supervised without a rule, and so without an uplink", shut, milliseconds(over_shut.at(0.5)));
  row("supervised with ten rules", ten, milliseconds(over_ten.at(0.5)));
  const double rest = without.at(0.5);
  t.verdicts = {"the uplink's share: " + milliseconds(over_ten.at(0.5) - rest) + " ms",
                "bar: at most 4 ms over process, without the uplink; the whole of a run here " + milliseconds(rest) + " ms: " + (rest <= 4000 ? "held" : "missed")};
  return t;
}

double measured(const Settings& s, const Json& plan) { return strtod(run_box(s, plan).output.c_str(), nullptr); }

Table gate(const Settings& s) {
  BoxFolders box(s, "gate");
  std::string program = inside_program(box), batches = std::to_string(std::max(3, s.rounds));
  auto plan = [&](const char* which) { return process_plan(box, {program, "sockets", which, batches}); };
  Json allowed = plan("allowed"), refused = plan("refused"), bare = allowed;
  bare["seccomp"] = nullptr;
  const int rounds = std::max(3, s.rounds / 10);
  Series gated, ungated, answered, over;
  for (int i = 0; i <= rounds; i++) {
    double a = measured(s, allowed), b = measured(s, bare), c = measured(s, refused);
    if (i == 0) continue;
    gated.us.push_back(a), ungated.us.push_back(b), answered.us.push_back(c), over.us.push_back(a - b);
  }
  Table t;
  t.name = "socket_gate";
  t.caption = "Microseconds of one `socket()` in a box, " + std::to_string(rounds) + " boxes of each in turn, each the median of " + batches +
              " batches of 200. Without the gate there is no filter at all: its price is that of the whole filter.";
  t.head = {"what", "p50", "slowest box", "beside no gate"};
  t.rows = {{"allowed, no gate", number(ungated.at(0.5)), number(ungated.at(1)), "1 x"},
            {"allowed", number(gated.at(0.5)), number(gated.at(1)), number(ratio(gated, ungated)) + " x"},
            {"refused: notified, counted, answered", number(answered.at(0.5)), number(answered.at(1)), ""}};
  t.verdicts = {"bar: an allowed one at most 1 microsecond more; here " + number(over.at(0.5)) + ": " + (over.at(0.5) <= 1 ? "held" : "missed"),
                "bar: a refused one at most 100 microseconds; here " + number(answered.at(0.5)) + ": " + (answered.at(0.5) <= 100 ? "held" : "missed")};
  return t;
}

// Sends or takes as many bytes as it is asked for, one connection after the other, until it is killed.
pid_t start_server(pid_t parent) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(kPort);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || listen(fd.get(), 16) != 0) give_up("a server in a network of the bench's own");
  pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(1);
  signal(SIGPIPE, SIG_IGN);
  static char buffer[256 << 10];
  for (;;) {
    UniqueFd c(accept(fd.get(), nullptr, nullptr));
    std::string asked;
    for (char byte; asked.size() < 32 && read(c.get(), &byte, 1) == 1 && byte != '\n';) asked += byte;
    const bool takes = asked[0] == 'u';
    for (long left = atol(asked.c_str() + 1); left > 0;) {
      size_t part = static_cast<size_t>(std::min<long>(left, sizeof buffer));
      ssize_t n = takes ? read(c.get(), buffer, part) : write(c.get(), buffer, part);
      if (n <= 0) break;
      left -= n;
    }
    if (takes) (void)!write(c.get(), "!", 1);
    shutdown(c.get(), SHUT_WR);
    for (char byte; read(c.get(), &byte, 1) > 0;) {
    }
  }
}

// The same options as h5i-net gives.
std::vector<std::string> bare_uplink(const std::string& program, const std::string& proc, int ready, int alive) {
  if (program.ends_with("slirp4netns"))
    return {program, "--configure", "--mtu=65520", "--cidr=192.0.2.0/24", "--disable-dns", "--enable-seccomp", "--enable-sandbox", "--disable-host-loopback", "--ready-fd=" + std::to_string(ready),
            "--exit-fd=" + std::to_string(alive), "--netns-type=path", "--userns-path=" + proc + "/ns/user", proc + "/ns/net", "h5i0"};
  return {program, "--foreground", "--quiet", "--runas", "0:0", "--config-net", "--ns-ifname", "h5i0", "--address", "192.0.2.100", "--netmask", "255.255.255.0", "--gateway", "192.0.2.2", "--mtu", "65520",
          "--dns", "none", "--search", "none", "--no-dhcp", "--no-dhcpv6", "--no-ra", "--no-netns-quit", "--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none", "--no-map-gw",
          "--ipv4-only", "--pid", "/proc/self/fd/" + std::to_string(ready), "--userns", proc + "/ns/user", "--netns", proc + "/ns/net"};
}

// In a session of its own, as a box and its way out are: the kernel shares processors among sessions first.
[[noreturn]] void become(const std::vector<std::string>& argv) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  std::vector<char*> words;
  for (const std::string& w : argv) words.push_back(const_cast<char*>(w.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  _exit(1);
}

// A namespace with nothing of ours but the same uplink in it. Returns what the program in it printed.
double in_bare_namespace(const std::string& program, const std::vector<std::string>& argv) {
  int go[2], said[2], ready[2], alive[2];
  if (pipe(go) != 0 || pipe(said) != 0 || pipe(ready) != 0 || pipe(alive) != 0) give_up("pipe");
  pid_t box = fork();
  if (box == 0) {
    char byte = 0;
    close(go[1]);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) _exit(1);
    (void)!write(said[1], "n", 1);
    if (read(go[0], &byte, 1) != 1) _exit(1);
    dup2(said[1], 1);
    become(argv);
  }
  close(said[1]);
  char byte = 0;
  if (read(said[0], &byte, 1) != 1) give_up("no namespace");
  std::string proc = "/proc/" + std::to_string(box);
  for (const char* map : {"/uid_map", "/gid_map"}) std::ofstream(proc + map) << "0 0 1\n";
  pid_t uplink = fork();
  if (uplink == 0) {
    for (int fd : {alive[1], go[1]}) close(fd);
    int null = open("/dev/null", O_RDWR);
    for (int fd : {1, 2}) dup2(null, fd);
    become(bare_uplink(program, proc, ready[1], alive[0]));
  }
  close(ready[1]);
  if (read(ready[0], &byte, 1) != 1 || write(go[1], "g", 1) != 1) give_up("the bare uplink does not start");
  char text[64] = "";
  (void)!read(said[0], text, sizeof text - 1);
  int status = 0;
  waitpid(box, &status, 0);
  kill(uplink, SIGKILL);
  waitpid(uplink, nullptr, 0);
  for (int fd : {go[0], go[1], said[0], ready[0], alive[0], alive[1]}) close(fd);
  if (status != 0) give_up("a transfer beside a bare uplink failed: " + std::to_string(WEXITSTATUS(status)));
  return strtod(text, nullptr);
}

// In a network of the bench's own, which stands for the world: the machine's is not touched and sees no packet.
Table throughput(const Settings& s) {
  Table t;
  t.name = "uplink_throughput";
  std::vector<std::string> programs;
  for (const char* name : kUplinks)
    if (std::string program = find_program(name); !program.empty()) programs.push_back(program);
  std::string ip = access("/sbin/ip", X_OK) == 0 ? "/sbin/ip" : find_program("ip");
  t.head = {"what", "MB/s, p50", "slowest", "beside the bare uplink"};
  if (geteuid() != 0 || programs.empty() || ip.empty()) {
    t.caption = "Not measured: needs root, an uplink and ip.";
    return t;
  }
  if (unshare(CLONE_NEWNET) != 0) give_up("no network of the bench's own");
  run_once({{ip, "link", "set", "lo", "up"}, ""});
  // pasta wants to see a way to the world, though none is taken.
  run_once({{ip, "link", "add", "name", "world0", "type", "veth", "peer", "name", "world1"}, ""});
  for (const char* end : {"world0", "world1"}) run_once({{ip, "link", "set", end, "up"}, ""});
  run_once({{ip, "address", "add", std::string(kServer) + "/24", "dev", "world0"}, ""});
  run_once({{ip, "route", "add", "default", "via", "203.0.113.254"}, ""});
  BoxFolders box(s, "throughput");
  std::string program = inside_program(box), port = std::to_string(kPort);
  const long bytes = s.rounds < 10 ? 4L << 20 : 128L << 20;
  const int rounds = s.rounds < 10 ? 2 : std::min(15, s.rounds / 5);
  int stalled = 0, stalled_bare = 0;
  pid_t server = start_server(getpid());
  for (const std::string& uplink : programs)
    for (const char* direction : {"download", "upload"}) {
      const std::string name = uplink.substr(uplink.rfind('/') + 1);
      std::vector<std::string> argv = {program, direction, kServer, port, std::to_string(bytes)};
      Json plan = process_plan(box, argv);
      add_network(plan, name, ten_addresses());
      Series ours, bare;
      for (int i = 0; i <= rounds; i++) {
        // Who comes first changes: what the machine does else is in both.
        double a = i % 2 ? measured(s, plan) : 0, b = in_bare_namespace(uplink, argv);
        if (i % 2 == 0) a = measured(s, plan);
        stalled += (a <= 0) + (b <= 0);
        stalled_bare += b <= 0;
        if (i > 0 && a > 0 && b > 0) ours.us.push_back(a), bare.us.push_back(b);
      }
      auto rate = [&](double us) { return number(static_cast<double>(bytes) / us, 0); };
      double part = ratio(bare, ours);
      t.rows.push_back({std::string(direction) + ", " + name + " with our rules", rate(ours.at(0.5)), rate(ours.at(1)), number(part) + " x"});
      t.rows.push_back({std::string(direction) + ", " + name + " alone", rate(bare.at(0.5)), rate(bare.at(1)), "1 x"});
      t.verdicts.push_back("bar: at least 0.95 of the bare uplink; here, " + name + ", " + direction + ", " + number(part) + " x: " + (part >= 0.95 ? "held" : "missed"));
    }
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  t.caption = "One TCP connection of " + std::to_string(bytes >> 20) + " MiB between a box and a server on this machine, " + std::to_string(rounds) +
              " rounds in turn: through an uplink behind ten rules, and through the same uplink with the same options in a namespace that has nothing else, both of them in sessions of their own too." +
              (stalled == 0 ? "" : " Left out: rounds with a transfer that stood still for five seconds (" + std::to_string(stalled) + ", of them " + std::to_string(stalled_bare) + " without us).");
  return t;
}

}  // namespace

std::vector<Table> supervised_rules(const Settings& s) { return {rules(s)}; }
std::vector<Table> supervised_whole(const Settings& s) { return {whole(s)}; }
std::vector<Table> socket_gate(const Settings& s) { return {gate(s)}; }
std::vector<Table> uplink_throughput(const Settings& s) { return {throughput(s)}; }

}  // namespace h5i::bench
