// WebSockets and streams of events: each frame is a line before it goes and as it came.
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "core/base/sha256.hpp"
#include "tests/websec_send/boxed.hpp"
#include "tests/websec_send/tls_site.hpp"
#include "tests/websec_send/trace.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

std::string accepted(const std::string& request) {
  const std::string name = "Sec-WebSocket-Key: ";
  size_t at = request.find(name) + name.size();
  const std::string key = request.substr(at, request.find("\r\n", at) - at) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[SHA_DIGEST_LENGTH], text[64];
  SHA1(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest);
  EVP_EncodeBlock(text, digest, sizeof digest);
  return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + std::string(reinterpret_cast<char*>(text)) + "\r\n\r\n";
}

std::string text_frame(const std::string& s, int opcode = 1) { return std::string(1, static_cast<char>(0x80 | opcode)) + static_cast<char>(s.size()) + s; }

// Shakes hands, says `greeting`, then sends back each frame unmasked; a file has the number of frames that it saw. "die" ends it.
class Echo : public Listener {
 public:
  explicit Echo(std::string greeting = {}, bool right_key = true) {
    begin([&] { serve(greeting, right_key); });
  }
  std::string url() const { return "ws://127.0.0.1:" + port() + "/chat"; }
  std::string http() const { return "http://127.0.0.1:" + port(); }
  // The payloads that came, in order.
  std::vector<std::string> seen() const {
    std::vector<std::string> out;
    std::ifstream in(seen_.path() + "/frames");
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }

 private:
  [[noreturn]] void serve(const std::string& greeting, bool right_key) {
    for (;;) {
      UniqueFd c(accept(fd_.get(), nullptr, nullptr));
      std::string in;
      char piece[65536];
      ssize_t n = 0;
      while (in.find("\r\n\r\n") == std::string::npos && (n = recv(c.get(), piece, sizeof piece, 0)) > 0) in.append(piece, static_cast<size_t>(n));
      std::string hello = accepted(right_key ? in : "Sec-WebSocket-Key: other\r\n") + greeting;
      in.clear();
      if (::send(c.get(), hello.data(), hello.size(), MSG_NOSIGNAL) < 0) continue;
      for (bool open = true; open;) {
        while (in.size() >= 6 && in.size() >= 6 + static_cast<size_t>(in[1] & 0x7f)) {
          const size_t size = static_cast<size_t>(in[1] & 0x7f);
          const int opcode = in[0] & 15;
          std::string payload = in.substr(6, size);
          for (size_t i = 0; i < size; i++) payload[i] = static_cast<char>(payload[i] ^ in[2 + i % 4]);
          in.erase(0, 6 + size);
          std::ofstream(seen_.path() + "/frames", std::ios::app) << opcode << " " << (opcode == 8 ? "" : payload) << "\n";
          if (payload == "die") open = false;
          else if (std::string back = text_frame(payload, opcode); ::send(c.get(), back.data(), back.size(), MSG_NOSIGNAL) < 0) open = false;
          if (opcode == 8) open = false;
        }
        if (!open || (n = recv(c.get(), piece, sizeof piece, 0)) <= 0) break;
        in.append(piece, static_cast<size_t>(n));
      }
    }
  }
};

}  // namespace

TEST_CASE("messages go over a WebSocket in their order, each frame is in the log with its digest, and the end is said") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Echo echo;
    User user(uid);
    user.open("s", {"http://127.0.0.1:" + echo.port()}, {"--capture"});
    Ended e = user.run({"send", "s", echo.url(), "--message", "one", "--message", "two", "--listen", "1"});
    CAPTURE(e.out, e.err);
    REQUIRE(e.status == 0);
    CHECK(json::canonical(Json(json::Array{echo.seen()[0], echo.seen()[1]})) == R"(["1 one","1 two"])");
    CHECK(echo.seen().back() == "8 ");
    auto frames = user.records("s", "frame");
    REQUIRE(frames.size() == 6);  // two and their echoes, a close and its echo
    std::vector<std::string> told;
    for (const Json& f : frames) told.push_back(f["body"]["direction"].string() + " " + std::to_string(f["body"]["opcode"].integer()) + " " + f["body"]["sha256"].string());
    CHECK(told[0] == "send 1 " + sha256_hex("one"));
    CHECK(told[1] == "send 1 " + sha256_hex("two"));
    CHECK(std::find(told.begin(), told.end(), "receive 1 " + sha256_hex("two")) != told.end());
    for (const Json& f : frames) CHECK(f["body"]["of"].integer() == user.records("s", "send")[0]["seq"].integer());
    Json outcome = user.records("s", "outcome")[0]["body"];
    CHECK(outcome["status"].integer() == 101);
    CHECK(outcome["ended"].string() == "listened");
    CHECK(outcome["frames"]["sent"].integer() == 3);
    CHECK(read_file(user.folder("s") + "/blobs/" + sha256_hex("one").substr(0, 2) + "/" + sha256_hex("one").substr(2)) == "one");
  }
}

TEST_CASE("a handshake that is answered with the wrong key is no WebSocket, and one that is out of scope is not made") {
  Echo wrong({}, false);
  User user(people().back());
  user.open("s", {"http://127.0.0.1:" + wrong.port()});
  CHECK(user.run({"send", "s", wrong.url(), "--message", "secret"}).status == 1);
  CHECK(user.records("s", "outcome")[0]["body"]["ended"].string() == "refused");
  CHECK(user.records("s", "frame").empty());
  CHECK(wrong.seen().empty());
  user.open("other", {"http://127.0.0.1:1"});
  CHECK(user.run({"send", "other", wrong.url(), "--message", "x"}).status == 1);
  CHECK(user.records("other", "send").empty());
}

TEST_CASE("what a peer sends that is no frame, or beyond the limit, ends it with a code; pings are answered") {
  User user(people().back());
  struct Row {
    const char* what;
    std::string greeting;
    const char* ended;
    const char* answer;  // the peer sees
  };
  const Row rows[] = {
      {"ping", text_frame("p", 9), "listened", "10 p"},
      {"masked", std::string("\x81\x81" "mask" "x", 7), "refused", "8 "},
      {"reserved bit", std::string("\xc1\x01x", 3), "refused", "8 "},
      {"unknown opcode", text_frame("x", 3), "refused", "8 "},
      {"not UTF-8", text_frame("\xff"), "refused", "8 "},
      {"closes", text_frame("\x03\xe8", 8), "closed", "8 "},
  };
  int n = 0;
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Echo echo(row.greeting);
    const std::string name = "s" + std::to_string(n++);
    user.open(name, {"http://127.0.0.1:" + echo.port()});
    Ended e = user.run({"send", name, echo.url(), "--listen", "1"});
    CAPTURE(e.out, e.err);
    CHECK(user.records(name, "outcome")[0]["body"]["ended"].string() == row.ended);
    CHECK(e.status == (std::string(row.ended) == "refused" ? 1 : 0));
    for (int i = 0; i < 100 && echo.seen().empty(); i++) usleep(20'000);
    auto seen = echo.seen();
    CHECK(std::find(seen.begin(), seen.end(), row.answer) != seen.end());
  }
}

TEST_CASE("whoever dies while frames go on, each frame that the peer saw has its line") {
  for (bool kills : {false, true}) {
    CAPTURE(kills);
    Echo echo;
    User user(people().back());
    user.open("s", {"http://127.0.0.1:" + echo.port()});
    std::vector<std::string> words = {"send", "s", echo.url(), "--listen", "60"};
    for (int i = 0; i < 1000; i++) words.insert(words.end(), {"--message", "m" + std::to_string(i)});
    if (!kills) words.insert(words.end(), {"--message", "die"});
    pid_t h5i = start(user.h5i(words), user.home() + "/out", user.home() + "/err");
    if (kills) {
      pid_t engine = engine_of(h5i);
      REQUIRE(engine > 0);
      for (int i = 0; i < 5000 && echo.seen().size() < 60; i++) usleep(1000);
      kill(engine, SIGKILL);
    }
    wait_for(h5i, 60);
    usleep(100'000);  // what was on its way arrives
    size_t sent = 0;
    for (const Json& f : user.records("s", "frame")) sent += f["body"]["direction"].string() == "send";
    const size_t seen = echo.seen().size();
    CHECK(seen >= 60);
    CHECK(seen <= sent);
    if (!kills) CHECK(user.records("s", "outcome")[0]["body"]["ended"].string() == "connection-lost");
    else CHECK(user.records("s", "outcome").empty());
  }
}

TEST_CASE("over a WebSocket too no frame leaves before its line") {
  if (no_tracer()) return;
  Echo echo;
  User user(0);
  user.open("s", {"http://127.0.0.1:" + echo.port()});
  auto calls = traced(user.h5i({"send", "s", echo.url(), "--message", "one", "--message", "two", "--listen", "1"}), user.home() + "/trace");
  size_t from = first(calls, "sendmsg(", "GET /chat");
  REQUIRE(from < calls.size());
  CHECK(first(calls, "write(", "head_sha256") < from);
  for (const char* text : {"one", "two"}) {
    size_t record = first(calls, "write(", "\\\"sha256\\\":\\\"" + sha256_hex(text) + "\\\"", from), frame = first(calls, "sendmsg(", "\\x81\\x83", from + 1);
    CAPTURE(text, record, frame);
    CHECK((record < frame && frame < calls.size()));
    from = frame;
  }
}

TEST_CASE("a stream of events is a line for each, and listening to it for a time is an end of its own") {
  User user(people().back());
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
  Origin ends([&](const std::string&) { return head + "data: one\n\nevent: named\nid: 7\ndata: two\ndata: lines\n\ndata: not ended"; });
  user.open("s", {ends.url("")});
  CHECK(user.run({"send", "s", ends.url("/")}).status == 0);
  auto events = user.records("s", "event");
  REQUIRE(events.size() == 2);
  CHECK(events[0]["body"]["sha256"].string() == sha256_hex("one"));
  CHECK((events[1]["body"]["type"].string() == "named" && events[1]["body"]["id"].string() == "7" && events[1]["body"]["sha256"].string() == sha256_hex("two\nlines")));
  CHECK(user.records("s", "outcome")[0]["body"]["events"].integer() == 2);
  Identity self = certificate("127.0.0.1", "IP:127.0.0.1", nullptr);
  TlsOrigin stays(self, [&](const std::string&) { return head + "data: tick\n\nContent-Length"; });  // no end: the connection stays
  user.open("t", {stays.url("")});
  Ended e = user.run({"send", "t", stays.url("/"), "--insecure", "--listen", "1"});
  CAPTURE(e.out, e.err);
  CHECK(e.status == 0);
  CHECK(user.records("t", "outcome")[0]["body"]["ended"].string() == "listened");
  CHECK(user.records("t", "event").size() == 1);
}

TEST_CASE("from a box each frame of a WebSocket has its line before it goes, as without one") {
  Echo echo;
  Boxed b(users().back());
  b.web({"open", "s", "--scope", "http://127.0.0.1:" + echo.port(), "--in", "out", "--capture"});
  b.web({"send", "s", echo.url(), "--message", "one", "--message", "two", "--listen", "1"});
  auto frames = b.of("s", "frame");
  REQUIRE(frames.size() == 6);
  CHECK(frames[0]["body"]["sha256"].string() == sha256_hex("one"));
  CHECK(frames[0]["body"]["direction"].string() == "send");
  CHECK(echo.seen()[1] == "1 two");
  for (const Json& f : frames) CHECK(f["lane"].string() == "engine-claimed");
}
