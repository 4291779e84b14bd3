// Through a proxy: CONNECT is a send with a line of its own, the scope must name both, and what is for one is not told to the other.
#include "core/base/sha256.hpp"
#include "tests/websec_send/tls_site.hpp"
#include "tests/websec_send/trace.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// A proxy that keeps what it was asked, and carries bytes to where it was asked to unless its answer is another than 200.
class Proxy : public Listener {
 public:
  explicit Proxy(std::string answer = "HTTP/1.1 200 OK\r\n\r\n") {
    begin([&] { serve(answer); });
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> asked() const {
    std::vector<std::string> out;
    for (int i = 0; std::filesystem::exists(seen_.path() + "/asked" + std::to_string(i)); i++) out.push_back(read_file(seen_.path() + "/asked" + std::to_string(i)));
    return out;
  }

 private:
  [[noreturn]] void serve(const std::string& answer) {
    char piece[65536];
    for (int n = 0;; n++) {
      UniqueFd c(accept(fd_.get(), nullptr, nullptr)), to;
      std::string asked;
      ssize_t got = 0;
      while (!has(asked, "\r\n\r\n") && (got = recv(c.get(), piece, sizeof piece, 0)) > 0) asked.append(piece, static_cast<size_t>(got));
      if (asked.empty()) continue;
      std::ofstream(seen_.path() + "/asked" + std::to_string(n), std::ios::binary) << asked;
      if (::send(c.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0 || !answer.starts_with("HTTP/1.1 200")) continue;
      sockaddr_in a{};
      a.sin_family = AF_INET;
      a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      const std::string authority = asked.substr(8, asked.find(' ', 8) - 8);
      a.sin_port = htons(static_cast<uint16_t>(std::stoi(authority.substr(authority.find(':') + 1))));
      to = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(to.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) continue;
      pollfd p[2] = {{c.get(), POLLIN, 0}, {to.get(), POLLIN, 0}};
      for (bool open = true; open && poll(p, 2, 10'000) > 0;)
        for (int i : {0, 1}) {
          if (!p[i].revents) continue;
          got = recv(p[i].fd, piece, sizeof piece, 0);
          if (got <= 0 || ::send(p[1 - i].fd, piece, static_cast<size_t>(got), MSG_NOSIGNAL) < 0) open = false;
        }
    }
  }
};

}  // namespace

TEST_CASE("through a proxy the target gets the same bytes, in TLS or without, and the proxy gets a CONNECT to the pinned address and no more") {
  Proxy proxy;
  const Identity self = certificate("127.0.0.1", "IP:127.0.0.1", nullptr);
  Origin plain([](const std::string&) { return ok(); });
  TlsOrigin secure(self, [](const std::string&) { return ok(); });
  User user(people().back());
  user.open("s", {plain.url(""), secure.url(""), proxy.url()});
  Ended e = user.run({"send", "s", plain.url("/a"), "--proxy", proxy.url(), "-H", "Authorization: for-target", "--proxy-header", "Proxy-Authorization: for-proxy"});
  CAPTURE(e.out, e.err);
  REQUIRE(e.status == 0);
  REQUIRE((plain.requests().size() == 1 && proxy.asked().size() == 1));
  CHECK(proxy.asked()[0].starts_with("CONNECT 127.0.0.1:" + plain.port() + " HTTP/1.1\r\n"));
  CHECK((has(proxy.asked()[0], "for-proxy") && !has(proxy.asked()[0], "for-target")));
  CHECK((has(plain.requests()[0], "for-target") && !has(plain.requests()[0], "for-proxy")));
  auto sends = user.records("s", "send");
  REQUIRE(sends.size() == 2);
  CHECK(sends[0]["body"]["head_sha256"].string() == sha256_hex(proxy.asked()[0]));
  CHECK(sends[0]["body"]["peer"].string() == "127.0.0.1:" + proxy.port());
  CHECK(sends[0]["body"]["tunnel_to"].string() == "127.0.0.1:" + plain.port());
  CHECK(sends[1]["body"]["via"].string() == "127.0.0.1:" + proxy.port());
  CHECK(sends[1]["body"]["parent"].integer() == sends[0]["seq"].integer());
  CHECK(!has(read_file(user.log("s")), "for-"));
  CHECK(user.run({"send", "s", secure.url("/b"), "--proxy", proxy.url(), "--insecure"}).status == 0);
  CHECK(secure.requests().size() == 1);
}

TEST_CASE("of a CONNECT too, and of what goes through its tunnel, the line comes before the connection and the bytes") {
  if (no_tracer()) return;
  Proxy proxy;
  Origin origin([](const std::string&) { return ok(); });
  User user(0);
  user.open("s", {origin.url(""), proxy.url()});
  auto calls = traced(user.h5i({"send", "s", origin.url("/a"), "--proxy", proxy.url()}), user.home() + "/trace");
  REQUIRE((origin.requests().size() == 1 && proxy.asked().size() == 1));
  check_order(calls, {{proxy.asked()[0], proxy.port()}, {origin.requests()[0], ""}});
  CHECK(first(calls, "connect(", "htons(" + origin.port() + ")") == calls.size());  // that one is the proxy's
}

TEST_CASE("a proxy that no rule names, and one that refuses, reach no target") {
  Proxy proxy, refuses("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"), early("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
  Origin plain([](const std::string&) { return ok(); });
  User user(people().back());
  user.open("only", {plain.url("")});
  CHECK(user.run({"send", "only", plain.url("/"), "--proxy", proxy.url()}).status == 1);
  CHECK(proxy.asked().empty());
  user.open("proxy", {proxy.url()});
  CHECK(user.run({"send", "proxy", plain.url("/"), "--proxy", proxy.url()}).status == 1);
  CHECK(proxy.asked().empty());
  // A rule that was not written with a proxy in mind, and a target that is the proxy.
  user.open("path", {plain.url(""), proxy.url() + "/"});
  CHECK(user.run({"send", "path", plain.url("/"), "--proxy", proxy.url()}).status == 1);
  user.open("loop", {proxy.url()});
  CHECK(user.run({"send", "loop", proxy.url() + "/", "--proxy", proxy.url()}).status == 1);
  CHECK(proxy.asked().empty());
  user.open("s", {plain.url(""), refuses.url(), early.url()});
  CHECK(user.run({"send", "s", plain.url("/"), "--proxy", refuses.url()}).status == 1);
  CHECK(user.records("s", "outcome")[0]["body"]["status"].integer() == 407);
  CHECK(json::canonical(user.records("s", "outcome")[0]["body"]["proxy_schemes"]) == R"(["Basic"])");
  CHECK(user.run({"send", "s", plain.url("/"), "--proxy", early.url()}).status == 1);  // an answer before the question
  CHECK(user.records("s", "send").size() == 2);
  CHECK(plain.requests().empty());  // a proxy may have dialled it: of ours nothing arrived
}
