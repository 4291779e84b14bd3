// Cookies: kept between two commands, sent where they belong, told by name.
#include "tests/support/schema.hpp"
#include "tests/websec_send/tls_site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

std::string answer_with(const std::string& cookies) { return "HTTP/1.1 200 OK\r\n" + cookies + "Content-Length: 0\r\n\r\n"; }

}  // namespace

TEST_CASE("what an origin sets is sent to it by the next command, under one identity's name and no other's") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin origin([](const std::string& r) {
      return r.starts_with("GET /set") ? answer_with("Set-Cookie: a=PASSWD1; Path=/\r\nSet-Cookie: b=PASSWD2; Path=/deep; HttpOnly\r\nSet-Cookie: c=PASSWD3; Secure\r\nSet-Cookie: d=PASSWD4; Domain=other.test\r\n") : ok();
    });
    User user(uid);
    user.open("s", {origin.url("")});
    REQUIRE(user.run({"send", "s", origin.url("/set"), "--as", "alice"}).status == 0);
    auto jar = user.records("s", "outcome")[0]["body"]["jar"].array();
    REQUIRE(jar.size() == 4);
    CHECK((jar[0]["kept"].boolean() && jar[1]["kept"].boolean() && !jar[2]["kept"].boolean() && !jar[3]["kept"].boolean()));
    CHECK(jar[3]["why"].string() == "domain-mismatch");
    CHECK(user.run({"send", "s", origin.url("/deep/x"), "--as", "alice"}).status == 0);
    CHECK(user.run({"send", "s", origin.url("/deep/x"), "--as", "bob"}).status == 0);
    CHECK(user.run({"send", "s", origin.url("/deep/x")}).status == 0);
    CHECK(user.run({"send", "s", origin.url("/deep/x"), "--as", "alice", "--no-cookies"}).status == 0);
    CHECK(user.run({"send", "s", origin.url("/deep/x"), "--as", "alice", "-H", "Cookie: mine=1"}).status == 0);
    CHECK(user.run({"send", "s", origin.url("/"), "--as", "alice"}).status == 0);
    auto requests = origin.requests();
    REQUIRE(requests.size() == 7);
    CHECK(has(requests[1], "\r\nCookie: b=PASSWD2; a=PASSWD1\r\n"));
    for (int i : {2, 3, 4}) CHECK(!has(requests[static_cast<size_t>(i)], "Cookie"));
    CHECK((has(requests[5], "\r\nCookie: mine=1\r\n") && !has(requests[5], "PASSWD")));
    CHECK(has(requests[6], "\r\nCookie: a=PASSWD1\r\n"));
    auto lines = user.records("s", "send");
    CHECK(json::canonical(lines[1]["body"]["cookies"]) == R"(["b","a"])");
    CHECK(json::canonical(lines[6]["body"]["withheld"]) == R"(["b: other-path"])");
    CHECK(lines[1]["body"]["identity"].string() == "alice");
    Ended listed = user.run({"jar", "s", "--as", "alice", "--json"});
    for (const std::string& error : schema_errors_of_text("websec-jar", listed.out)) FAIL_CHECK(error);
    CHECK(has(listed.out, "\"name\":\"b\""));
    std::string said = listed.out + user.run({"jar", "s", "--as", "alice"}).out + user.run({"hist", "s", "--json"}).out + read_file(user.log("s"));
    CHECK(!has(said, "PASSWD"));
    CHECK(user.run({"jar", "s", "--as", "alice", "--clear"}).status == 0);
    CHECK(user.run({"send", "s", origin.url("/"), "--as", "alice"}).status == 0);
    CHECK(!has(origin.requests()[7], "Cookie"));
    struct stat st {};
    REQUIRE(stat((user.folder("s") + "/state/jar-alice.json").c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
  }
}

TEST_CASE("a jar is no way to another header, and one that is not as it was saved is refused") {
  Origin origin([](const std::string&) { return ok(); });
  User user(people().back());
  user.open("s", {origin.url("")});
  const std::string file = user.folder("s") + "/state/jar.json";
  const std::string good = R"({"schema":"h5i.websec-jar/1","cookies":[{"name":"n","value":"v","domain":"127.0.0.1","path":"/","host_only":true,"secure":false,"http_only":false,"same_site":0,"created":1,"used":1,"order":1}]})";
  auto with = [&](const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    if (geteuid() == 0) REQUIRE(chown(file.c_str(), user.uid(), user.uid()) == 0);
    return user.run({"send", "s", origin.url("/")});
  };
  CHECK(with(good).status == 0);  // the control
  REQUIRE(origin.requests().size() == 1);
  CHECK(has(origin.requests()[0], "Cookie: n=v\r\n"));
  std::string crlf = good, cut = good.substr(0, good.size() / 2);
  crlf.replace(crlf.find("\"v\""), 3, R"("v\r\nX-Evil: 1")");
  for (const std::string& bad : {crlf, cut, std::string("{}"), std::string()}) {
    Ended e = with(bad);
    CAPTURE(bad, e.out, e.err);
    CHECK(e.status == 2);
    CHECK(has(e.err, "jar"));
  }
  CHECK(origin.requests().size() == 1);
  CHECK(user.run({"send", "s", origin.url("/"), "--as", "../x"}).status == 64);
}

TEST_CASE("a cookie of any bytes goes back as it came, and no cookie makes a jar that cannot be read") {
  const std::string pair = "n\x9b\xff=v\xc3\xa9\x80\tw";
  Origin origin([&](const std::string&) { return answer_with("Set-Cookie: " + pair + "; Path=/\r\n"); });
  User user(people().back());
  user.open("s", {origin.url("")});
  for (int i = 0; i < 3; i++) {
    Ended e = user.run({"send", "s", origin.url("/"), "--lenient"});
    CAPTURE(i, e.out, e.err);
    CHECK(e.status == 0);
  }
  auto requests = origin.requests();
  REQUIRE(requests.size() == 3);
  CHECK(!has(requests[0], "Cookie"));
  for (size_t i : {1u, 2u}) CHECK(has(requests[i], "\r\nCookie: " + pair + "\r\n"));
  CHECK(user.run({"jar", "s"}).status == 0);
}
