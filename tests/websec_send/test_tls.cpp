// TLS: who answers is held against the scope's name before a request goes, and every byte of it comes after the record.
#include "core/base/sha256.hpp"
#include "tests/websec_send/tls_site.hpp"
#include "tests/websec_send/trace.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

struct Authority {
  Identity root = certificate("test authority", "", nullptr);
  std::string file;
  explicit Authority(const User& user) : file(user.home() + "/ca.pem") { std::ofstream(file) << root.pem(); }
};

std::string ended(const User& user, const std::string& session) {
  auto outcomes = user.records(session, "outcome");
  return outcomes.empty() ? "" : outcomes.back()["body"]["ended"].string();
}

}  // namespace

TEST_CASE("a request over TLS arrives behind a certificate that an authority of the session signed, with its facts in the log") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    User user(uid);
    Authority ca(user);
    TlsOrigin origin(certificate("127.0.0.1", "IP:127.0.0.1", &ca.root), [](const std::string&) { return ok(); });
    user.open("s", {origin.url("")}, {"--ca", ca.file});
    Ended e = user.run({"send", "s", origin.url("/a"), "-H", "Accept: */*"});
    CAPTURE(e.out, e.err);
    REQUIRE(e.status == 0);
    REQUIRE(origin.requests().size() == 1);
    CHECK(origin.requests()[0] == "GET /a HTTP/1.1\r\nHost: 127.0.0.1:" + origin.port() + "\r\nAccept: */*\r\n\r\n");
    CHECK(origin.server_name() == "-");  // an address is no server name
    auto send = user.records("s", "send"), outcome = user.records("s", "outcome");
    REQUIRE((send.size() == 1 && outcome.size() == 1));
    CHECK(send[0]["body"]["tls_name"].string() == "127.0.0.1");
    CHECK(send[0]["body"]["head_sha256"].string() == sha256_hex(origin.requests()[0]));
    const Json& tls = outcome[0]["body"]["tls"];
    CHECK(tls["version"].string() == "TLSv1.3");
    CHECK(tls["verify"].string() == "ok");
    CHECK(tls["alpn"].string() == "http/1.1");
    REQUIRE(tls["chain"].array().size() == 1);
    CHECK(tls["chain"].array()[0]["names"].array()[0].string() == "ip:127.0.0.1");
    CHECK(outcome[0]["body"]["times"]["tls_us"].integer() > outcome[0]["body"]["times"]["connect_us"].integer());
  }
}

TEST_CASE("whoever is not the one that the name says gets no request") {
  User user(people().back());
  Authority ca(user);
  const Identity stranger = certificate("another authority", "", nullptr);
  struct Row {
    const char* what;
    Identity identity;
    const char* text;
  };
  const Row rows[] = {
      {"another authority", certificate("127.0.0.1", "IP:127.0.0.1", &stranger), "certificate"},
      {"itself", certificate("127.0.0.1", "IP:127.0.0.1", nullptr), "certificate"},
      {"another address", certificate("127.0.0.2", "IP:127.0.0.2", &ca.root), "IP address mismatch"},
      {"the address as a name", certificate("127.0.0.1", "DNS:127.0.0.1", &ca.root), "IP address mismatch"},
      {"out of date", certificate("127.0.0.1", "IP:127.0.0.1", &ca.root, -3600), "expired"},
  };
  int n = 0;
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const std::string name = "s" + std::to_string(n++);
    TlsOrigin origin(row.identity, [](const std::string&) { return ok(); });
    user.open(name, {origin.url("")}, {"--ca", ca.file});
    Ended e = user.run({"send", name, origin.url("/"), "-H", "Authorization: PASSWD"});
    CAPTURE(e.out, e.err);
    CHECK(e.status == 2);
    CHECK(ended(user, name) == "tls-untrusted");
    CHECK(user.records(name, "outcome")[0]["body"]["text"].string().find(row.text) != std::string::npos);
    CHECK(user.records(name, "outcome")[0]["body"]["sent_bytes"].integer() == 0);
    CHECK(origin.requests().empty());
    // The control, and what the weaker option says: it is sent, and what is wrong with who answered stays in the log.
    CHECK(user.run({"send", name, origin.url("/"), "--insecure"}).status == 0);
    CHECK(origin.requests().size() == 1);
    CHECK(user.records(name, "outcome")[1]["body"]["tls"]["verify"].string() != "ok");
  }
}

TEST_CASE("a redirect from TLS to no TLS is not followed, and credentials do not go from one to the other") {
  User user(people().back());
  Authority ca(user);
  Origin plain([](const std::string&) { return ok(); });
  TlsOrigin second(certificate("127.0.0.1", "IP:127.0.0.1", &ca.root), [](const std::string&) { return ok(); });
  TlsOrigin origin(certificate("127.0.0.1", "IP:127.0.0.1", &ca.root), [&](const std::string& r) { return moved(302, r.starts_with("GET /down") ? plain.url("/") : second.url("/")); });
  user.open("s", {origin.url(""), plain.url(""), second.url("")}, {"--ca", ca.file});
  Ended down = user.run({"send", "s", origin.url("/down"), "--follow", "2"});
  CHECK(down.status == 1);
  CHECK(down.out.find("refused (downgrade)") != std::string::npos);
  CHECK(plain.connections() == 0);
  Ended across = user.run({"send", "s", origin.url("/"), "--follow", "2", "-H", "Authorization: k", "-H", "X-Api-Key: k", "-H", "Accept: */*"});
  CHECK(across.status == 0);
  REQUIRE(second.requests().size() == 1);
  CHECK(second.requests()[0].find(": k\r\n") == std::string::npos);
  CHECK(second.requests()[0].find("Accept: */*\r\n") != std::string::npos);
  CHECK(json::canonical(user.records("s", "send").back()["body"]["dropped"]) == R"(["Authorization","X-Api-Key"])");
}

TEST_CASE("a body that is read to the end of the connection is whole only when TLS says that it ended") {
  User user(people().back());
  Authority ca(user);
  for (bool goodbye : {true, false}) {
    CAPTURE(goodbye);
    TlsOrigin origin(certificate("127.0.0.1", "IP:127.0.0.1", &ca.root), [](const std::string&) { return "HTTP/1.1 200 OK\r\n\r\nto the end"; }, "http/1.1", goodbye);
    const std::string name = goodbye ? "whole" : "cut";
    user.open(name, {origin.url("")}, {"--ca", ca.file});
    CHECK(user.run({"send", name, origin.url("/")}).status == (goodbye ? 0 : 1));
    CHECK(ended(user, name) == (goodbye ? "complete" : "short"));
    CHECK(user.records(name, "outcome")[0]["body"]["body_bytes"].integer() == 10);
  }
}

TEST_CASE("a peer that speaks no TLS, or breaks off, or says nothing, is an outcome") {
  User user(people().back());
  Origin plain([](const std::string&) { return ok(); });
  Origin silent([](const std::string&) { sleep(20); return ok(); });
  const std::string bad = "https://127.0.0.1:" + plain.port(), slow = "https://127.0.0.1:" + silent.port();
  user.open("s", {bad, slow});
  CHECK(user.run({"send", "s", bad + "/"}).status == 2);
  CHECK(ended(user, "s") == "tls-failed");
  CHECK(user.run({"send", "s", slow + "/", "--timeout", "1"}).status == 2);
  CHECK(ended(user, "s") == "timeout");
}

TEST_CASE("over TLS too, the line of the log comes before the connection and before the first byte of the handshake") {
  if (no_tracer()) return;
  User user(0);
  Authority ca(user);
  TlsOrigin origin(certificate("127.0.0.1", "IP:127.0.0.1", &ca.root), [](const std::string& r) { return r.starts_with("GET /1") ? moved(302, "/2") : ok(); });
  user.open("s", {origin.url("")}, {"--ca", ca.file});
  auto calls = traced(user.h5i({"send", "s", origin.url("/1"), "--follow", "1"}), user.home() + "/trace");
  auto requests = origin.requests();
  REQUIRE(requests.size() == 2);
  // Every write to a socket of the internet lies behind the line of a send, and the first of each connection behind the line of that very one.
  size_t from = 0;
  for (const std::string& request : requests) {
    size_t record = first(calls, "write(", "\\\"head_sha256\\\":\\\"" + sha256_hex(request), from);
    size_t dialled = first(calls, "connect(", "htons(" + origin.port() + ")", from), hello = first(calls, "sendmsg(", "\\x16\\x03", from);
    CAPTURE(record, dialled, hello, calls.size());
    CHECK((record < dialled && dialled < hello && hello < calls.size()));
    from = hello + 1;
  }
  const size_t first_send = first(calls, "sendmsg(", "\\x16\\x03"), first_record = first(calls, "write(", "head_sha256");
  CHECK(first_record < first_send);
}
