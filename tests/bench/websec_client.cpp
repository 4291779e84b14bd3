// The web engine as a client, beside others, against one origin that counts: a request is what arrived there, a rate is what came between the
// first and the last of them.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "core/base/unique_fd.hpp"
#include "core/evidence/log.hpp"
#include "tests/bench/benches.hpp"

namespace h5i::bench {
namespace {

constexpr size_t kBody = 1024;
constexpr int kSends = 1000;  // what one experiment may send

int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// One thread that answers every request head with the same kilobyte; connections stay open until the client closes them. A thread and no
// process: whoever measures waits for every process that a command left.
class Origin {
 public:
  // `others`: where /wN leads, to each in turn by N; none: everything is answered here.
  explicit Origin(std::vector<std::string> others = {}) : others_(std::move(others)), poll_(epoll_create1(EPOLL_CLOEXEC)), end_(eventfd(0, EFD_CLOEXEC)) {
    listener_.reset(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || listen(listener_.get(), 4096) != 0 ||
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&a), &size) != 0 || !poll_ || !end_)
      give_up("an origin on loopback");
    port_ = ntohs(a.sin_port);
    watch(listener_.get());
    watch(end_.get());
    thread_ = std::thread([this] { serve(); });
  }
  ~Origin() {
    eventfd_write(end_.get(), 1);
    thread_.join();
  }
  Origin(const Origin&) = delete;
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void forget() {
    std::lock_guard lock(one_);
    at_.clear();
    connections_ = 0;
  }
  int64_t requests() const { return static_cast<int64_t>(arrivals().size()); }
  // When each came, nanoseconds, in order.
  std::vector<int64_t> arrivals() const {
    std::lock_guard lock(one_);
    return at_;
  }
  int64_t connections() const { return connections_; }
  // Requests a second, of what arrived since forget().
  double rate() const {
    const std::vector<int64_t> at = arrivals();
    return at.size() < 2 ? 0 : static_cast<double>(at.size() - 1) * 1e9 / static_cast<double>(std::max<int64_t>(1, at.back() - at.front()));
  }

 private:
  void watch(int fd) {
    epoll_event e{EPOLLIN, {.fd = fd}};
    epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &e);
  }

  void accept_all() {
    for (int c, one = 1; (c = accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      watch(c);
      open_[c] = {UniqueFd(c), ""};
      connections_++;
    }
  }

  std::string led_on(const std::string& head) const {
    const auto n = static_cast<size_t>(atoll(head.c_str() + 6));
    return "HTTP/1.1 302 Found\r\nLocation: " + others_[n % others_.size()] + "/there\r\nContent-Length: 0\r\n\r\n";
  }

  // False: the client is gone.
  bool answer(int fd, std::string& head) {
    char buffer[16384];
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    head.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = head.find("\r\n\r\n")) != std::string::npos;) {
      {
        std::lock_guard lock(one_);
        at_.push_back(clock_ns());
      }
      const bool leads = !others_.empty() && head.starts_with("GET /w");
      const std::string elsewhere = leads ? led_on(head) : std::string();
      const std::string& said = leads ? elsewhere : answer_;
      head.erase(0, end + 4);
      if (send(fd, said.data(), said.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(said.size())) return false;
    }
    return true;
  }

  void serve() {
    epoll_event events[256];
    for (;;) {
      int n = epoll_wait(poll_.get(), events, 256, -1);
      for (int i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        if (fd == end_.get()) return;
        if (fd == listener_.get()) accept_all();
        else if (auto at = open_.find(fd); at != open_.end() && !answer(fd, at->second.second)) open_.erase(at);
      }
    }
  }

  const std::string answer_ = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(kBody) + "\r\n\r\n" + std::string(kBody, 'x');
  const std::vector<std::string> others_;
  UniqueFd poll_, end_, listener_;
  std::map<int, std::pair<UniqueFd, std::string>> open_;  // and what came of its next head
  std::atomic<int64_t> connections_ = 0;
  mutable std::mutex one_;
  std::vector<int64_t> at_;
  uint16_t port_ = 0;
  std::thread thread_;
};

// Of the loopback, of nobody's just now.
uint16_t free_port() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof a;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&a), size) != 0 || getsockname(fd.get(), reinterpret_cast<sockaddr*>(&a), &size) != 0) give_up("a port of the loopback");
  return ntohs(a.sin_port);
}

struct Client {
  std::string name;
  std::vector<std::string> argv;
};

// Microseconds that recording costs a request: the lines of a session's sends, appended once more to another log.
double recording_us(const std::string& from, const std::string& to) {
  std::vector<evidence::Record> lines;
  auto read = evidence::read_log(from, [&](uint64_t, const json::Value& r) {
    const std::string& kind = r["kind"].string();
    if (kind != "send" && kind != "outcome") return true;
    evidence::Record line;
    line.kind = kind;
    line.boundary = evidence::Boundary::NET;
    line.body = r["body"];
    lines.push_back(std::move(line));
    return true;
  });
  auto log = evidence::Log::open(to);
  if (!read || !log || lines.size() < 4) give_up("the lines of " + from);
  double begin = now_us();
  for (const evidence::Record& line : lines)
    if (!log->append(line)) give_up("append");
  return (now_us() - begin) * 2 / static_cast<double>(lines.size());
}

// A session with one send, whose number it returns.
std::string begun(const std::string& h5i, const std::string& session, const Origin& origin, const std::string& dir, bool durable = false, const std::vector<std::string>& others = {}) {
  std::vector<std::string> open = {h5i, "websec", "open", session, "--scope", origin.url()};
  for (const std::string& url : others) open.insert(open.end(), {"--scope", url});
  if (durable) open.push_back("--durable");
  run_once({open, dir});
  auto sent = json::parse(output_of({{h5i, "websec", "send", session, origin.url() + "/first", "--json"}, dir}));
  if (!sent || (*sent)["rows"].array().empty()) give_up("a first send of " + session);
  return std::to_string((*sent)["rows"].array()[0]["number"].integer(-1));
}

std::string folder_of(const std::string& session) { return std::string(getenv("HOME")) + "/.local/state/h5i/websec/" + session; }

void ended(const std::string& h5i, const std::string& session, const std::string& dir) {
  run_once({{h5i, "websec", "close", session}, dir});
  run_once({{"/bin/rm", "-rf", folder_of(session)}, ""});
}

// One input a line; a line of curl's configuration for each besides.
void write_list(const std::string& words, const std::string& urls, const Origin& origin, int count) {
  std::ofstream list(words), config(urls);
  for (int i = 0; i < count; i++) {
    list << "w" << i << "\n";
    config << "url = \"" << origin.url() << "/w" << i << "\"\noutput = /dev/null\n";
  }
}

}  // namespace

// A ceiling, seen where the requests arrive: the most that came in any one window, and the mean.
std::vector<Table> websec_rate(const Settings& s) {
  const std::string dir = s.scratch + "/websec-rate", words = dir + "/words", h5i = s.prefix + "/bin/h5i";
  run_once({{"/bin/mkdir", "-p", dir}, ""});
  Origin second, third, fourth;
  Origin origin({second.url(), third.url(), fourth.url()});
  Table t;
  t.name = "websec_rate";
  t.caption = "Requests of `websec experiment --rate --parallel 8 --reuse --follow 1` as they arrive at four origins together, half of them at the first, which leads each on to one of the others: on the way there a request may be late or early by a turn of the scheduler; where it is "
              "decided the ceiling is exact, which the tests show with a clock of their own.";
  t.head = {"--rate", "requests", "most in a window", "ceiling", "mean of the ceiling"};
  struct Ceiling {
    const char* rate;
    int count;
    double a_window, window_s;
  };
  const bool small = s.rounds < 10;
  for (const Ceiling& c : {Ceiling{"20/s", small ? 26 : 100, 20, 1}, Ceiling{"100/min", small ? 4 : 150, 100, 60}, Ceiling{"1000/s", small ? 50 : 1000, 1000, 1}}) {
    const std::string session = "r" + std::to_string(c.count);
    write_list(words, dir + "/urls", origin, c.count / 2);
    const std::string number = begun(h5i, session, origin, dir, false, {second.url(), third.url(), fourth.url()});
    for (Origin* o : {&origin, &second, &third, &fourth}) o->forget();
    run_once({{h5i, "websec", "experiment", session, number, "path=/{{input}}", "--inputs", words, "--rate", c.rate, "--parallel", "8", "--reuse", "--follow", "1"}, dir});
    ended(h5i, session, dir);
    std::vector<int64_t> at;
    for (const Origin* o : {&origin, &second, &third, &fourth})
      for (int64_t ns : o->arrivals()) at.push_back(ns);
    std::sort(at.begin(), at.end());
    if (at.size() != static_cast<size_t>(c.count)) give_up(std::to_string(at.size()) + " requests arrived of " + std::to_string(c.count));
    size_t most = 0;
    for (size_t i = 0, j = 0; j < at.size(); j++) {
      while (static_cast<double>(at[j] - at[i]) >= c.window_s * 1e9) i++;
      most = std::max(most, j - i + 1);
    }
    const double mean = static_cast<double>(at.size() - 1) * 1e9 / static_cast<double>(std::max<int64_t>(1, at.back() - at.front())) * c.window_s / c.a_window;
    t.rows.push_back({c.rate, std::to_string(at.size()), std::to_string(most), h5i::bench::number(c.a_window, 0), h5i::bench::number(mean * 100, 1) + " %"});
    t.verdicts.push_back(std::string("bar: ") + c.rate + ", mean at least 97 % of the ceiling and none above it; here " + h5i::bench::number(mean * 100, 1) + " %, " + std::to_string(most) +
                         " in a window: " + (mean >= 0.97 && mean <= 1.0 + 2.0 / c.count && static_cast<double>(most) <= c.a_window ? "held" : "missed"));
  }
  run_once({{"/bin/rm", "-rf", dir}, ""});
  return {t};
}

std::vector<Table> websec_client(const Settings& s) {
  const int sends = std::min(kSends, std::max(20, s.scale)), rounds = s.rounds < 10 ? 1 : 7;
  const std::string dir = s.scratch + "/websec", words = dir + "/words", urls = dir + "/urls", h5i = s.prefix + "/bin/h5i";
  run_once({{"/bin/mkdir", "-p", dir}, ""});
  Origin origin;
  write_list(words, urls, origin, sends);
  std::vector<Client> peers;
  std::vector<std::string> absent;
  auto peer = [&](const char* program, const std::string& name, std::vector<std::string> argv) {
    std::string path = find_program(program);
    if (path.empty()) return absent.push_back(name);
    argv.insert(argv.begin(), path);
    peers.push_back({name, std::move(argv)});
  };
  peer("curl", "curl, one connection", {"-s", "-K", urls});
  peer("wrk", "wrk, one connection, no list", {"-t1", "-c1", "-d1s", origin.url() + "/w"});
  peer("wrk", "wrk, 32 connections, no list", {"-t1", "-c32", "-d1s", origin.url() + "/w"});
  peer("ffuf", "ffuf, 40", {"-w", words, "-u", origin.url() + "/FUZZ", "-t", "40", "-s", "-mc", "404"});
  peer("gobuster", "gobuster, 40", {"fuzz", "-w", words, "-u", origin.url() + "/FUZZ", "-t", "40", "-q", "-b", "200"});

  // A recorder too, but one that stands between: its start is in the whole command, not in the rate.
  if (const std::string mitm = find_program("mitmdump"), curl = find_program("curl"); !mitm.empty() && !curl.empty()) {
    const std::string port = std::to_string(free_port()), proxy = "http://127.0.0.1:" + port;
    peers.push_back({"curl, through mitmdump -w", {"/bin/sh", "-c", mitm + " -q -w " + dir + "/flows --set confdir=" + dir + "/mitm --listen-host 127.0.0.1 -p " + port + " & it=$!; n=0; until " + curl + " -s -o /dev/null " + proxy +
                                                  "/ || [ $n -gt 200 ]; do n=$((n+1)); sleep 0.1; done; " + curl + " -s -x " + proxy + " -K " + urls + "; kill -9 $it"}});
  } else {
    absent.push_back("curl, through mitmdump -w");
  }

  std::map<std::string, Series> rates, whole;  // a second; microseconds
  std::map<std::string, double> connections;
  Series recording;
  auto measured = [&](const std::string& name, const std::vector<std::string>& argv, int round, int64_t least) {
    origin.forget();
    double us = run_timed({argv, dir});
    if (origin.requests() < least) give_up(name + ": " + std::to_string(origin.requests()) + " requests arrived");
    if (round == 0 && rounds > 1) return;
    rates[name].us.push_back(origin.rate());
    whole[name].us.push_back(us);
    connections[name] = static_cast<double>(origin.connections());
  };
  struct Ours {
    std::string name, parallel;
    bool reuse, durable = false;
  };
  const std::vector<Ours> ours = {{"h5i, one at a time", "1", false}, {"h5i, 32 at a time", "32", false}, {"h5i, one connection", "1", true}, {"h5i, 32 connections", "32", true}, {"h5i, 32 connections, --durable", "32", true, true}};
  for (int round = 0; round <= (rounds > 1 ? rounds : 0); round++) {
    for (const Client& c : peers) measured(c.name, c.argv, round, 2);
    for (const auto& [name, parallel, reuse, durable] : ours) {
      std::string session = "b" + std::to_string(round) + "x" + parallel + (reuse ? "r" : "") + (durable ? "d" : "");
      const std::string number = begun(h5i, session, origin, dir, durable);
      std::vector<std::string> argv = {h5i, "websec", "experiment", session, number, "path=/{{input}}", "--inputs", words, "--parallel", parallel, "--json"};
      if (reuse) argv.push_back("--reuse");
      measured(name, argv, round, sends);
      if (parallel == "1" && reuse) recording.us.push_back(recording_us(folder_of(session) + "/log.jsonl", dir + "/again" + std::to_string(round) + ".jsonl"));
      ended(h5i, session, dir);
    }
  }

  Table t;
  t.name = "websec_client";
  t.caption = std::to_string(sends) + " requests of a list to one origin on this machine, which answers with a kilobyte from one thread; " + std::to_string(rounds) +
              " rounds in turn; a rate is what came between the first and the last request at the origin. h5i writes two lines a request into its log, without a flush unless it says --durable.";
  t.head = {"client", "requests/s, p50", "lowest", "connections", "whole command, p50"};
  std::vector<std::string> order;
  for (const Client& c : peers) order.push_back(c.name);
  for (const Ours& o : ours) order.push_back(o.name);
  for (const std::string& name : order)
    t.rows.push_back({name, number(rates[name].at(0.5), 0), number(rates[name].at(0), 0), number(connections[name], 0), milliseconds(whole[name].at(0.5)) + " ms"});
  for (const std::string& name : absent) t.rows.push_back({name, "not installed here", "", "", ""});
  auto verdict = [&](const std::string& what, double bar, double here, bool most = false) {
    t.verdicts.push_back("bar: " + what + "; here " + number(here, bar < 100 ? 2 : 0) + ": " + ((most ? here <= bar : here >= bar) ? "held" : "missed"));
  };
  const double one = rates[ours[2].name].at(0.5), many = rates[ours[3].name].at(0.5), ffuf = rates["ffuf, 40"].at(0.5);
  verdict("at least 8000 requests a second on one connection", 8000, one);
  verdict("at least 15000 requests a second on 32 connections", 15000, many);
  verdict("at least 15000 requests a second on 32 connections, each on the disk before it is sent", 15000, rates[ours[4].name].at(0.5));
  if (ffuf > 0) verdict("at least 0.6 of ffuf at 40", 0.6, many / ffuf);
  verdict("recording takes at most 15 microseconds a request", 15, recording.at(0.5), true);
  run_once({{"/bin/rm", "-rf", dir}, ""});
  return {t};
}

}  // namespace h5i::bench
