#include "plugins/websec-http/engine/proof.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "plugins/websec-http/digest/sha256.hpp"
#include "plugins/websec-http/engine/send.hpp"

namespace h5i::websec {
namespace {

constexpr int kPatienceMs = 5000;
constexpr const char* kLog = "log.jsonl";  // in the session's folder, where this process is
constexpr std::string_view kAnswer = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";

// Somebody who answers on the loopback, on a thread of its own, and looks at the log when the first byte arrives.
class Target {
 public:
  Target() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    if (fd_ < 0 || bind(fd_, reinterpret_cast<sockaddr*>(&a), size) != 0 || listen(fd_, 4) != 0 || getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &size) != 0) return;
    port_ = ntohs(a.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Target() {
    end();
    if (fd_ >= 0) close(fd_);
  }
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return port_; }
  int connections() const { return connections_; }
  int bytes() const { return bytes_; }
  bool named_before() const { return named_; }  // of the last request

 private:
  void serve() {
    while (!stop_) {
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, 20) <= 0) continue;
      int c = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (c < 0) continue;
      connections_++;
      pollfd q{c, POLLIN, 0};
      char piece[4096];
      ssize_t n = poll(&q, 1, kPatienceMs) > 0 ? recv(c, piece, sizeof piece, 0) : 0;
      if (n > 0) {
        bytes_ += static_cast<int>(n);
        named_ = in_the_log(sha256_hex({piece, static_cast<size_t>(n)}));
        (void)::send(c, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
      }
      close(c);
    }
  }
  static bool in_the_log(const std::string& digest) {
    int fd = open(kLog, O_RDONLY | O_CLOEXEC);
    std::string text;
    char piece[4096];
    for (ssize_t n; fd >= 0 && (n = read(fd, piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(n));
    if (fd >= 0) close(fd);
    return text.find("\"head_sha256\":\"" + digest + "\"") != std::string::npos;
  }

  int fd_;
  uint16_t port_ = 0;
  std::atomic<bool> stop_{false}, named_{false};
  std::atomic<int> connections_{0}, bytes_{0};
  std::thread thread_;
};

// The control: bytes that come by another way than the engine's, which the origin sees and no log names.
bool dial_past_the_record(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  bool went = fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 && ::send(fd, "control\r\n\r\n", 11, MSG_NOSIGNAL) == 11;
  char byte;
  pollfd p{fd, POLLIN, 0};
  if (went) went = poll(&p, 1, kPatienceMs) > 0 && recv(fd, &byte, 1, 0) == 1;
  if (fd >= 0) close(fd);
  return went;
}

}  // namespace

sdk::Result<json::Value> prove(const sdk::Host& host) {
  Target inside, outside;
  if (inside.port() == 0 || outside.port() == 0) return sdk::failure(H5I_E_SYSTEM, "no socket on the loopback for the proof");
  auto url = [](const Target& o) { return "http://127.0.0.1:" + std::to_string(o.port()) + "/"; };
  Scope scope = H5I_SDK_TRY(Scope::parse("allow http://127.0.0.1:" + std::to_string(inside.port())));
  Recorder recorder(host);
  SendOptions options;
  options.timeout_ns = int64_t{kPatienceMs} * 1'000'000;

  Sends let = H5I_SDK_TRY(send(host, recorder, scope, url(inside), {}, options));
  const bool named = inside.named_before(), answered = let.code == 0 && inside.bytes() > 0;
  Sends refused = H5I_SDK_TRY(send(host, recorder, scope, url(outside), {}, options));
  const bool seen = outside.connections() > 0;
  const bool control = dial_past_the_record(outside.port()) && outside.connections() > 0, unnamed = !outside.named_before();
  inside.end();
  outside.end();

  auto dimension = [](const char* claim, bool control_held, const char* negative, const char* expected, bool ok, const char* detail) {
    return json::Value(json::Object{{"claim", claim}, {"control", control_held ? "ok" : "failed"}, {"negative", negative}, {"expected", json::Array{expected}}, {"ok", ok}, {"detail", detail}});
  };
  const bool kept_out = !seen && refused.code == 1 && refused.rows.size() == 1 && !refused.rows[0].sent;
  json::Value dimensions = json::Array{};
  dimensions.push(dimension("scope", control, seen ? "a connection" : "no connection", "no connection", kept_out, "a target that no rule names, and the same target dialled otherwise"));
  dimensions.push(dimension("record-first", control && unnamed, named ? "in the log" : "not in the log", "in the log", named, "the digest of the first bytes that arrive, looked for when they arrive"));
  json::Value out = json::Object{{"schema", "h5i.verify/1"}, {"ok", answered && kept_out && named && control && unnamed}, {"missing", json::Array{}}};
  out["positive"] = json::Object{{"ok", answered}, {"detail", answered ? "a request on the loopback was answered" : "no answer on the loopback"}};
  out["dimensions"] = std::move(dimensions);
  return out;
}

}  // namespace h5i::websec
