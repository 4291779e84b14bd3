#include <linux/netlink.h>
#include <sys/mount.h>

#include "core/broker/confinement.hpp"
#include "core/os/socket.hpp"
#include "tests/broker/place.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// h5i-proxy with its socket; ends it.
class Process {
 public:
  Process() {
    auto pair = os::seqpacket_pair();
    if (!pair) return;
    pid_ = fork();
    if (pid_ == 0) {
      if (dup2(pair->b.get(), 3) < 0) _exit(1);
      if (pair->b.get() == 3) fcntl(3, F_SETFD, 0);
      execl(H5I_PROXY, "h5i-proxy", nullptr);
      _exit(127);
    }
    socket_ = std::move(pair->a);
  }
  ~Process() {
    socket_.reset();
    int status = 0;
    if (pid_ > 0) waitpid(pid_, &status, 0);
  }
  Json ask(const Json& request, const std::vector<int>& fds = {}) {
    if (!os::send_packet(socket_.get(), json::canonical(request), fds)) return {};
    auto ready = os::wait_readable(socket_.get(), 5000);
    auto packet = ready && *ready ? os::receive_packet(socket_.get()) : Result<std::optional<os::Packet>>(std::optional<os::Packet>{});
    if (!packet || !*packet) return {};
    auto said = json::parse((*packet)->bytes);
    return said ? *said : Json();
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  UniqueFd socket_;
};

Json begin(const std::vector<std::string>& rules) {
  Json list = json::Array{};
  for (const std::string& r : rules) list.push(json::Object{{"to", r}, {"private", false}});
  return json::Object{{"do", "begin"}, {"rules", list}};
}
std::string status_line(pid_t pid, const std::string& name) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(name + ":", 0) == 0) return line.substr(line.find_last_of("\t ") + 1);
  return {};
}
std::string id(const Json& said) { return said["error"].string(); }

}  // namespace

KERNEL_TEST("from a network with no other way out, the proxy's rules are all that there is", "[broker][process]") {
  KREQUIRE(enter_place());
  std::string hosts = k.dir() + "/hosts";
  put(hosts.c_str(), "93.184.216.34 a.example\n93.184.216.35 b.example\n");
  KREQUIRE(mount(hosts.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0);
  Origin a(kPublicA, 80, web()), b(kPublicB, 80, web()), six("2606:4700::7", 80, web());
  KREQUIRE(a.up() && b.up() && six.up());
  KCHECK(dial_to(kPublicB, 80).valid() && dial_to("2606:4700::7", 80).valid());  // control: out here there is a way
  auto ready = os::seqpacket_pair(), said = os::seqpacket_pair();
  KREQUIRE(ready.ok() && said.ok());
  pid_t box = fork();
  if (box == 0) {
    // A namespace of the box's own, and in it the one socket that leads anywhere.
    if (unshare(CLONE_NEWNET) != 0 || system("PATH=$PATH:/sbin:/usr/sbin; ip link set lo up") != 0) _exit(1);
    UniqueFd listener = listen_at("127.0.0.1", kProxyPort);
    if (!listener || !os::send_packet(ready->b.get(), "listens", {listener.get()})) _exit(1);
    listener.reset();
    (void)os::receive_packet(said->b.get());
    auto ask = [](const std::string& request) {
      UniqueFd c = dial_to("127.0.0.1", kProxyPort);
      say(c, request);
      return hear(c, {}, 5000);
    };
    std::string out;
    auto note = [&](const char* what, bool holds) { out += std::string(holds ? "" : what) + (holds ? "" : "; "); };
    note("a.example", has(ask(get("http://a.example/", "a.example")), "200 OK"));
    note("b.example", has(ask(get("http://b.example/", "b.example")), "403 "));
    note("tcp", !dial_to(kPublicA, 80).valid() && !dial_to(kPublicB, 80).valid());
    note("tcp6", !dial_to("2606:4700::7", 80).valid());
    for (uint16_t port : {uint16_t{53}, uint16_t{443}}) note("udp", !dial_to(kPublicA, port, SOCK_DGRAM).valid() && !dial_to("2606:4700::7", port, SOCK_DGRAM).valid());
    UniqueFd raw(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
    sockaddr_storage to;
    socklen_t n = address_of(kPublicA, 0, &to);
    note("raw", raw && sendto(raw.get(), "xxxxxxxx", 8, 0, reinterpret_cast<sockaddr*>(&to), n) < 0);  // even with every capability in there
    note("metadata", has(ask(get("http://169.254.169.254/", "169.254.169.254")), "403 "));
    (void)os::send_packet(said->b.get(), out.empty() ? "all" : out);
    _exit(0);
  }
  auto listens = os::receive_packet(ready->a.get());
  KREQUIRE(listens.ok() && listens->has_value() && (*listens)->fds.size() == 1);
  Process proxy;
  KCHECK(!id(proxy.ask(json::Object{{"do", "report"}})).empty());
  KCHECK(proxy.ask(begin({"a.example:80"}), {(*listens)->fds[0].get()})["begun"].boolean());
  (*listens)->fds.clear();
  KCHECK(status_line(proxy.pid(), "Seccomp") == "2" && status_line(proxy.pid(), "NoNewPrivs") == "1");
  KCHECK(os::send_packet(said->a.get(), "go").ok());
  auto told = os::receive_packet(said->a.get());
  KCHECK_SAYS(told.ok() && told->has_value() && (*told)->bytes == "all", told.ok() && told->has_value() ? (*told)->bytes : "nothing");
  int status = 0;
  waitpid(box, &status, 0);
  Json r = proxy.ask(json::Object{{"do", "report"}});
  KCHECK(r["schema"].string() == "h5i.proxy/1" && allowed(r, "a.example:80") == 1 && refused(r, "b.example:80", "no-rule") == 1 && refused(r, "169.254.169.254:80", "address-link-local") == 1);
  KCHECK(b.connections() == 1);  // the control's
  KCHECK(proxy.ask(json::Object{{"do", "replace"}, {"rules", json::Array{}}})["replaced"].boolean());
  umount("/etc/hosts");
}

KERNEL_TEST("what h5i-proxy is asked wrongly it refuses, and goes on", "[broker][process]") {
  KREQUIRE(enter_place());
  UniqueFd listener = listen_at("127.0.0.1", kProxyPort);
  int p[2];
  KREQUIRE(pipe2(p, O_CLOEXEC) == 0);
  UniqueFd r(p[0]), w(p[1]);
  {
    Process proxy;
    KCHECK(!id(proxy.ask(json::Object{{"do", "nothing"}})).empty());
    KCHECK(!id(proxy.ask(begin({"a.example"}))).empty());
    KCHECK(!id(proxy.ask(begin({"*"}), {listener.get()})).empty());
    KCHECK(!id(proxy.ask(begin({"127.0.0.1:80"}), {listener.get()})).empty());
    KCHECK(proxy.ask(begin({"a.example"}), {listener.get()})["begun"].boolean());
    KCHECK(!id(proxy.ask(begin({"a.example"}), {listener.get()})).empty());
    KCHECK(!id(proxy.ask(json::Object{{"do", "replace"}, {"rules", "all"}})).empty());
    KCHECK(proxy.ask(json::Object{{"do", "report"}})["schema"].string() == "h5i.proxy/1");
  }
  Process other;
  KCHECK(!id(other.ask(begin({"a.example"}), {r.get()})).empty());
}

KERNEL_TEST("a confined proxy reads no file of the host, starts nothing and listens on nothing", "[broker][process]") {
  KREQUIRE(enter_place());
  std::string file = k.dir() + "/file";
  put(file.c_str(), "x");
  auto opens = [&](const char* path, int how) { return UniqueFd(open(path, how | O_CLOEXEC)).valid(); };
  auto tries = [&] {
    std::string out;
    if (opens(file.c_str(), O_RDONLY)) out += "read ";
    if (opens(file.c_str(), O_WRONLY)) out += "write ";
    if (opens("/etc/passwd", O_RDONLY)) out += "passwd ";
    if (UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))) out += "unix ";
    if (UniqueFd(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP))) out += "raw ";
    if (UniqueFd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER))) out += "netfilter ";
    if (unshare(CLONE_NEWUTS) == 0) out += "unshare ";
    UniqueFd listens(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listens && listen(listens.get(), 1) == 0) out += "listen ";
    pid_t pid = fork();
    if (pid == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(1);
    }
    int status = 1;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0) out += "fork ";
    if (UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))) out += "tcp ";
    if (opens("/etc/hosts", O_RDONLY)) out += "hosts ";
    return out;
  };
  KCHECK_SAYS(tries() == "read write passwd unix raw netfilter unshare listen fork tcp hosts ", tries());
  auto confined = broker::confine_proxy();
  KREQUIRE(confined.ok());
  std::string after = tries();
  KCHECK_SAYS(after == "tcp hosts ", after);
}
