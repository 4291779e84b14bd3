// An origin on the loopback that keeps what arrives, and a user with a home and the verbs.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::test {

// A socket on the loopback and a process of its own behind it, so that what it saw is nobody else's word: files in seen_.
class Listener {
 public:
  ~Listener() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  std::string port() const { return std::to_string(port_); }

 protected:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    REQUIRE((bind(fd_.get(), reinterpret_cast<sockaddr*>(&a), size) == 0 && listen(fd_.get(), 64) == 0 && getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&a), &size) == 0));
    port_ = ntohs(a.sin_port);
  }
  template <class Serve>
  void begin(Serve serve) {
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    serve();
  }
  // How many files NAME0, NAME1, ... it wrote.
  int count(const std::string& name) const {
    int n = 0;
    while (std::filesystem::exists(seen_.path() + "/" + name + std::to_string(n))) n++;
    return n;
  }

  UniqueFd fd_;
  uint16_t port_ = 0;
  pid_t pid_ = -1;
  Scratch seen_;
};

// Answers each connection's first request and closes. A process of its own, so that what it saw is nobody else's word.
class Origin : public Listener {
 public:
  using Answer = std::function<std::string(const std::string& request)>;
  explicit Origin(Answer answer, int quiet_ms = 300) {
    begin([&] { serve(answer, quiet_ms); });
  }
  std::string url(const std::string& path = "/") const { return "http://127.0.0.1:" + port() + path; }
  int connections() const { return count("connection"); }
  int served() const { return count("request"); }
  // In the order in which they arrived.
  std::vector<std::string> requests() const {
    std::vector<std::string> out;
    for (int i = 0; i < count("request"); i++) out.push_back(read_file(seen_.path() + "/request" + std::to_string(i)));
    return out;
  }

 private:
  static bool whole(const std::string& request) {
    size_t end = request.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    size_t at = request.find("\r\nContent-Length: ");
    return at == std::string::npos || at > end || request.size() >= end + 4 + std::stoul(request.substr(at + 18));
  }
  [[noreturn]] void serve(const Answer& answer, int quiet_ms) {
    for (int n = 0, r = 0;;) {
      UniqueFd c(accept(fd_.get(), nullptr, nullptr));
      if (!c) _exit(1);
      std::ofstream(seen_.path() + "/connection" + std::to_string(n++)) << "x";
      std::string request;
      char piece[65536];
      for (pollfd p{c.get(), POLLIN, 0}; !whole(request) && poll(&p, 1, request.empty() ? 5000 : quiet_ms) > 0;) {
        ssize_t got = recv(c.get(), piece, sizeof piece, 0);
        if (got <= 0) break;
        request.append(piece, static_cast<size_t>(got));
      }
      if (request.empty()) continue;
      std::string file = seen_.path() + "/request" + std::to_string(r++);
      std::ofstream(file + ".new", std::ios::binary) << request;
      rename((file + ".new").c_str(), file.c_str());
      std::string said = answer(request);
      (void)!::send(c.get(), said.data(), said.size(), MSG_NOSIGNAL);
    }
  }
};

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
inline std::string ok(const std::string& body = "hello") { return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body; }
inline std::string moved(int status, const std::string& to) { return "HTTP/1.1 " + std::to_string(status) + " Moved\r\nLocation: " + to + "\r\nContent-Length: 0\r\n\r\n"; }

inline std::vector<uid_t> people() { return geteuid() == 0 ? std::vector<uid_t>{0, 65533} : std::vector<uid_t>{geteuid()}; }

class User {
 public:
  explicit User(uid_t uid) : uid_(uid) {
    REQUIRE(chmod(home_.path().c_str(), 0755) == 0);
    REQUIRE((geteuid() != 0 || chown(home_.path().c_str(), uid, uid) == 0));
  }
  Program h5i(std::vector<std::string> words) const {
    Program p{.argv = {"h5i", "websec"}, .env = {{"HOME", home_.path()}}};
    p.argv.insert(p.argv.end(), words.begin(), words.end());
    p.uid = geteuid() == 0 ? uid_ : 0;
    p.cwd = home_.path();
    return p;
  }
  Ended run(std::vector<std::string> words) const { return test::run(h5i(std::move(words))); }
  void open(const std::string& name, const std::vector<std::string>& rules, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"open", name};
    for (const std::string& r : rules) words.insert(words.end(), {"--scope", r});
    words.insert(words.end(), more.begin(), more.end());
    Ended e = run(words);
    CAPTURE(e.out, e.err);
    REQUIRE(e.status == 0);
  }
  std::string folder(const std::string& session) const { return home_.path() + "/.local/state/h5i/websec/" + session; }
  std::string log(const std::string& session) const { return folder(session) + "/log.jsonl"; }
  std::vector<Json> records(const std::string& session, const std::string& kind) const {
    std::vector<Json> out;
    std::ifstream in(log(session));
    for (std::string line; std::getline(in, line);)
      if (auto v = json::parse(line); v && (*v)["kind"].string() == kind) out.push_back(*v);
    return out;
  }
  const std::string& home() const { return home_.path(); }
  uid_t uid() const { return uid_; }

 private:
  uid_t uid_;
  Scratch home_;
};

// A zombie that nobody has waited for yet is gone.
inline bool runs(pid_t pid) {
  std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  size_t paren = stat.rfind(')');
  return paren != std::string::npos && stat.size() > paren + 2 && stat[paren + 2] != 'Z' && stat[paren + 2] != 'X';
}

// The engine of this h5i, once it is there.
inline pid_t engine_of(pid_t h5i) {
  std::string path = "/proc/" + std::to_string(h5i) + "/task/" + std::to_string(h5i) + "/children";
  for (int i = 0; i < 60'000 && runs(h5i); i++) {
    std::ifstream in(path);
    for (pid_t child; in >> child;)
      if (read_file("/proc/" + std::to_string(child) + "/cmdline").starts_with("h5i-engine")) return child;
    usleep(500);
  }
  return -1;
}

}  // namespace h5i::test
