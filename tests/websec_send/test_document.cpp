// As a document's script: what it may send, what it must ask first, and what it may read.
#include "tests/websec_send/trace.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

std::string with(const std::string& headers) { return "HTTP/1.1 200 OK\r\n" + headers + "Content-Length: 0\r\n\r\n"; }

}  // namespace

TEST_CASE("a simple request of a script goes with its origin, and the line says whether the script may read the answer") {
  Origin origin([](const std::string& r) { return r.starts_with("GET /open") ? with("Access-Control-Allow-Origin: https://page.test\r\n") : ok(); });
  User user(people().back());
  user.open("s", {origin.url("")});
  CHECK(user.run({"send", "s", origin.url("/open"), "--document", "https://page.test/x"}).status == 0);
  CHECK(user.run({"send", "s", origin.url("/shut"), "--document", "https://page.test/x"}).status == 0);
  CHECK(user.run({"send", "s", origin.url("/shut")}).status == 0);
  auto requests = origin.requests();
  REQUIRE(requests.size() == 3);
  CHECK(has(requests[0], "\r\nOrigin: https://page.test\r\n"));
  CHECK(!has(requests[2], "Origin"));
  auto sends = user.records("s", "send"), outcomes = user.records("s", "outcome");
  CHECK(sends[0]["body"]["requester"].string() == "document https://page.test");
  CHECK(sends[2]["body"]["requester"].string() == "tester");
  CHECK(outcomes[0]["body"]["cors"]["allowed"].boolean());
  CHECK_FALSE(outcomes[1]["body"]["cors"]["allowed"].boolean());
  CHECK(outcomes[2]["body"]["cors"].is_null());
}

TEST_CASE("what needs a preflight is asked first, in a line of its own, and is not sent when the answer forbids it") {
  for (bool allows : {true, false}) {
    CAPTURE(allows);
    Origin origin([=](const std::string& r) {
      if (!r.starts_with("OPTIONS ")) return with("Access-Control-Allow-Origin: https://page.test\r\n");
      return with("Access-Control-Allow-Origin: https://page.test\r\nAccess-Control-Allow-Methods: PUT\r\n" + std::string(allows ? "Access-Control-Allow-Headers: x-token\r\n" : ""));
    });
    User user(people().back());
    user.open("s", {origin.url("")});
    Ended e = user.run({"send", "s", origin.url("/a"), "--document", "https://page.test/", "--method", "PUT", "--header", "X-Token: k", "--data", "b"});
    CAPTURE(e.out, e.err);
    CHECK(e.status == (allows ? 0 : 1));
    auto requests = origin.requests();
    REQUIRE(requests.size() == (allows ? 2u : 1u));
    CHECK(requests[0].starts_with("OPTIONS /a HTTP/1.1\r\n"));
    CHECK(has(requests[0], "Access-Control-Request-Method: PUT\r\n"));
    CHECK(has(requests[0], "Access-Control-Request-Headers: x-token\r\n"));
    CHECK(!has(requests[0], "X-Token: k"));
    auto sends = user.records("s", "send");
    REQUIRE(sends.size() == requests.size());
    CHECK(sends[0]["body"]["preflight"].boolean());
    if (allows) CHECK(sends[1]["body"]["parent"].integer() == sends[0]["seq"].integer());
    else CHECK(user.records("s", "refused")[0]["body"]["why"].string() == "cors-preflight");
  }
}

TEST_CASE("of a preflight too, and of what it lets through, the line comes before the connection and the bytes") {
  if (no_tracer()) return;
  Origin origin([](const std::string&) { return with("Access-Control-Allow-Origin: https://page.test\r\nAccess-Control-Allow-Methods: PUT\r\n"); });
  User user(0);
  user.open("s", {origin.url("")});
  auto calls = traced(user.h5i({"send", "s", origin.url("/a"), "--document", "https://page.test/", "--method", "PUT", "--data", "b"}), user.home() + "/trace");
  auto requests = origin.requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].starts_with("OPTIONS "));
  const std::string put = requests[1].substr(0, requests[1].find("\r\n\r\n") + 4);
  check_order(calls, {{requests[0], origin.port()}, {put, origin.port()}});
}

TEST_CASE("a script's cookies go to another origin only when it asks and SameSite lets them, and to its own always") {
  Origin origin([](const std::string& r) { return r.starts_with("GET /set") ? with("Set-Cookie: lax=1; SameSite=Lax\r\nSet-Cookie: plain=2\r\n") : ok(); });
  User user(people().back());
  user.open("s", {origin.url("")});
  REQUIRE(user.run({"send", "s", origin.url("/set")}).status == 0);
  const std::string here = origin.url("/page");
  CHECK(user.run({"send", "s", origin.url("/own"), "--document", here}).status == 0);
  CHECK(user.run({"send", "s", origin.url("/other"), "--document", "https://page.test/"}).status == 0);
  CHECK(user.run({"send", "s", origin.url("/asked"), "--document", "https://page.test/", "--credentials"}).status == 0);
  auto requests = origin.requests();
  REQUIRE(requests.size() == 4);
  CHECK(has(requests[1], "Cookie: lax=1; plain=2\r\n"));
  CHECK(!has(requests[2], "Cookie"));
  CHECK(!has(requests[3], "lax=1"));
}
