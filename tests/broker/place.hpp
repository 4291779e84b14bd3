// Where the proxy is tried: a network namespace whose loopback has addresses of all kinds, origins on them that write down what arrives, names
// that mean what the test says, and a running proxy.
#pragma once
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "core/base/ids.hpp"
#include "core/broker/egress_proxy.hpp"
#include "tests/support/kernel_test.hpp"

namespace h5i::test {

inline void put(const char* path, const std::string& text) { std::ofstream(path) << text; }

// Root of a user namespace with a network of its own. Before any thread.
inline bool enter_place() {
  unsigned uid = geteuid(), gid = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
  put("/proc/self/setgroups", "deny");
  put("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
  put("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
  std::string all = "PATH=$PATH:/sbin:/usr/sbin; ip link set lo up";
  for (const char* a : {"93.184.216.34/32", "93.184.216.35/32", "10.9.0.1/32", "169.254.169.254/32", "2606:4700::7/128 nodad"}) all += std::string(" && ip addr add ") + a + " dev lo";
  return system((all + " >/dev/null 2>&1").c_str()) == 0;
}

constexpr const char* kPublicA = "93.184.216.34";
constexpr const char* kPublicB = "93.184.216.35";
constexpr const char* kPrivate = "10.9.0.1";
constexpr const char* kMetadata = "169.254.169.254";

inline socklen_t address_of(const std::string& a, uint16_t port, sockaddr_storage* out) {
  *out = {};
  auto* v6 = reinterpret_cast<sockaddr_in6*>(out);
  auto* v4 = reinterpret_cast<sockaddr_in*>(out);
  if (inet_pton(AF_INET6, a.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return sizeof *v6;
  }
  inet_pton(AF_INET, a.c_str(), &v4->sin_addr);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  return sizeof *v4;
}
inline UniqueFd listen_at(const std::string& a, uint16_t port) {
  sockaddr_storage to;
  socklen_t n = address_of(a, port, &to);
  UniqueFd fd(socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int one = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&to), n) != 0 || listen(fd.get(), 512) != 0) fd.reset();
  return fd;
}
inline UniqueFd dial_to(const std::string& a, uint16_t port, int type = SOCK_STREAM) {
  sockaddr_storage to;
  socklen_t n = address_of(a, port, &to);
  UniqueFd fd(socket(to.ss_family, type | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), n) != 0) fd.reset();
  return fd;
}
inline void say(const UniqueFd& fd, std::string_view text) { (void)!send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL); }
// Until `enough` is in it, the other side is done, or `ms` are over.
inline std::string hear(const UniqueFd& fd, std::string_view enough = {}, int ms = 5000) {
  std::string out;
  for (int64_t until = monotonic_ns() + int64_t{ms} * 1'000'000; enough.empty() || out.find(enough) == std::string::npos;) {
    pollfd q{fd.get(), POLLIN, 0};
    int left = static_cast<int>((until - monotonic_ns()) / 1'000'000);
    if (left <= 0 || poll(&q, 1, left) <= 0) return out + "<late>";
    char buffer[4096];
    ssize_t n = recv(fd.get(), buffer, sizeof buffer, 0);
    if (n <= 0) return out;
    out.append(buffer, static_cast<size_t>(n));
  }
  return out;
}

// Listens, writes down what arrives, and answers each piece by `answers`; an answer that ends in "<end>" ends the connection.
class Origin {
 public:
  using Answers = std::function<std::string(const std::string& piece)>;
  Origin(const std::string& address, uint16_t port, Answers answers, std::string greeting = {}) : listener_(listen_at(address, port)), stop_(eventfd(0, EFD_CLOEXEC)), answers_(std::move(answers)), greeting_(std::move(greeting)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~Origin() {
    uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  bool up() const { return listener_.valid(); }
  std::string seen() {
    std::lock_guard lock(mutex_);
    return seen_;
  }
  int connections() const { return connections_; }

 private:
  void serve() {
    std::vector<UniqueFd> open;
    for (;;) {
      std::vector<pollfd> q{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const UniqueFd& c : open) q.push_back({c.get(), POLLIN, 0});
      if (poll(q.data(), q.size(), -1) < 0) continue;
      if (q[0].revents) return;
      for (size_t i = q.size(); i-- > 2;) {
        if (!q[i].revents) continue;
        char buffer[16384];
        ssize_t n = recv(open[i - 2].get(), buffer, sizeof buffer, 0);
        std::string piece(buffer, n > 0 ? static_cast<size_t>(n) : 0);
        {
          std::lock_guard lock(mutex_);
          if (seen_.size() < (1 << 20)) seen_ += piece;
        }
        std::string said = n > 0 ? answers_(piece) : "<end>";
        bool end = said.size() >= 5 && said.substr(said.size() - 5) == "<end>";
        if (end) said.resize(said.size() - 5);
        test::say(open[i - 2], said);
        if (end) open.erase(open.begin() + static_cast<long>(i) - 2);
      }
      if (q[1].revents) {
        UniqueFd c(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!c) continue;
        connections_++;
        if (!greeting_.empty()) test::say(c, greeting_);
        open.push_back(std::move(c));
      }
    }
  }
  UniqueFd listener_, stop_;
  Answers answers_;
  std::string greeting_;
  std::mutex mutex_;
  std::string seen_;
  std::atomic<int> connections_{0};
  std::thread thread_;
};
inline Origin::Answers web(std::string body = "ok") {
  return [body](const std::string&) { return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body + "<end>"; };
}
inline Origin::Answers silent() {
  return [](const std::string&) { return std::string(); };
}
inline Origin::Answers echo() {
  return [](const std::string& piece) { return piece; };
}

constexpr uint16_t kProxyPort = 3128;

class Proxy {
 public:
  using Names = std::map<std::string, std::vector<std::string>>;
  Proxy(const std::vector<std::string>& rules, Names names, broker::ProxyLimits limits = {}, const std::string& at = "127.0.0.1", bool private_ok = false) : at_(at), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    auto lookup = [this, names = std::move(names)](const std::string& name) {
      lookups_++;
      asked_++;
      struct Done {
        std::atomic<int>& n;
        ~Done() { n--; }
      } done{asked_};
      if (name.rfind("hangs", 0) == 0)
        while (!over_) usleep(10'000);
      std::vector<Address> out;
      std::lock_guard lock(mutex_);
      auto changed = moved_.find(name);
      auto it = names.find(name);
      const std::vector<std::string> none;
      for (const std::string& a : changed != moved_.end() ? changed->second : it != names.end() ? it->second : none) {
        auto v4 = parse_ipv4(a);
        auto v6 = v4 ? v4 : parse_ipv6(a);
        if (v6) out.push_back(*v6);
      }
      return out;
    };
    auto made = broker::EgressProxy::make(listen_at(at, kProxyPort), parse(rules, private_ok), lookup, limits);
    if (!made) return;
    proxy_.emplace(std::move(*made));
    thread_ = std::thread([this] { run(); });
  }
  ~Proxy() {
    over_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
    proxy_.reset();
    // The threads that look names up end by themselves.
    while (asked_ > 0) usleep(1000);
    for (int i = 0; i < 500 && threads() > before_; i++) usleep(10'000);
  }
  bool up() const { return proxy_.has_value(); }
  static std::vector<policy::EgressRule> parse(const std::vector<std::string>& rules, bool private_ok = false) {
    std::vector<policy::EgressRule> out;
    for (const std::string& r : rules) {
      auto rule = policy::parse_egress(r, private_ok);
      if (!rule) abort();
      out.push_back(*rule);
    }
    return out;
  }
  // What follows runs where the proxy does, between two things that it does.
  Json report() {
    Json out;
    inside([&] { out = proxy_->report(); });
    return out;
  }
  void replace(const std::vector<std::string>& rules) {
    inside([&] { proxy_->replace(parse(rules)); });
  }
  void move(const std::string& name, std::vector<std::string> to) {
    std::lock_guard lock(mutex_);
    moved_[name] = std::move(to);
  }
  int lookups() const { return lookups_; }

  // One request by a connection of its own; what came back.
  std::string ask(const std::string& request, int ms = 5000) {
    UniqueFd c = dial_to(at(), kProxyPort);
    say(c, request);
    return hear(c, {}, ms);
  }
  UniqueFd open_to(const std::string& authority) {
    UniqueFd c = dial_to(at(), kProxyPort);
    say(c, "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
    return c;
  }
  std::string at() const { return at_; }

 private:
  static int threads() {
    int n = 0;
    if (DIR* d = opendir("/proc/self/task")) {
      while (dirent* e = readdir(d)) n += e->d_name[0] != '.';
      closedir(d);
    }
    return n;
  }
  void wake() {
    uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);
  }
  void inside(const std::function<void()>& what) {
    std::atomic<bool> done{false};
    {
      std::lock_guard lock(mutex_);
      todo_ = [&] { what(), done = true; };
    }
    wake();
    while (!done) usleep(500);
  }
  void run() {
    while (!over_ && proxy_->serve(wake_.get())) {
      uint64_t n;
      (void)!read(wake_.get(), &n, sizeof n);
      std::function<void()> now;
      {
        std::lock_guard lock(mutex_);
        std::swap(now, todo_);
      }
      if (now) now();
    }
  }
  const int before_ = threads();  // the origins of a test are there before its proxy
  std::string at_;
  UniqueFd wake_;
  std::mutex mutex_;
  std::function<void()> todo_;
  std::map<std::string, std::vector<std::string>> moved_;
  std::atomic<int> lookups_{0}, asked_{0};
  std::atomic<bool> over_{false};
  std::optional<broker::EgressProxy> proxy_;
  std::thread thread_;
};

inline std::string get(const std::string& url, const std::string& host, const std::string& fields = {}) { return "GET " + url + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n"; }
inline bool has(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }
// What a report says of one destination.
inline Json row(const Json& report, std::string_view to) {
  for (const Json& h : report["hosts"].array())
    if (h["to"].string() == to) return h;
  return {};
}
inline uint64_t refused(const Json& report, std::string_view to, std::string_view reason) { return static_cast<uint64_t>(row(report, to)["refused"][reason].integer()); }
inline uint64_t allowed(const Json& report, std::string_view to) { return static_cast<uint64_t>(row(report, to)["allowed"].integer()); }

}  // namespace h5i::test
