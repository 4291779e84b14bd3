// What arrives at origins, and what does not.
#include <sched.h>
#include <sys/mount.h>

#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/support/schema.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

void fits(const std::string& verb, const Ended& e) {
  CAPTURE(e.out, e.err);
  for (const std::string& error : schema_errors_of_text("websec-" + verb, e.out)) FAIL_CHECK(verb << " " << error);
}

Json json_of(const Ended& e) {
  auto v = json::parse(e.out);
  return v ? *v : Json();
}

}  // namespace

TEST_CASE("a request arrives as it was written, its line has the digest of what arrived, and each verb says so") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin origin([](const std::string&) { return ok(); });
    User user(uid);
    Ended opened = user.run({"open", "s", "--scope", origin.url(""), "--json"});
    fits("open", opened);
    REQUIRE(opened.status == 0);
    Ended sent = user.run({"send", "s", origin.url("/a?b=c#d"), "-H", "x-Odd: 1", "-H", "Accept: */*", "-H", "x-odd:  2 ", "-H", "Cookie: a=secret1; b=secret2", "--data", "body", "--json"});
    fits("send", sent);
    REQUIRE(sent.status == 0);
    REQUIRE(origin.requests().size() == 1);
    const std::string arrived = origin.requests()[0];
    CHECK(arrived == "POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:" + origin.port() + "\r\nx-Odd: 1\r\nAccept: */*\r\nx-odd:  2 \r\nCookie: a=secret1; b=secret2\r\nContent-Length: 4\r\n\r\nbody");
    auto lines = user.records("s", "send"), outcomes = user.records("s", "outcome");
    REQUIRE((lines.size() == 1 && outcomes.size() == 1));
    const Json& body = lines[0]["body"];
    const std::string head = arrived.substr(0, arrived.size() - 4);
    CHECK(body["head_sha256"].string() == sha256_hex(head));
    CHECK(body["body_sha256"].string() == sha256_hex("body"));
    CHECK(body["url"].string() == origin.url("/a?b=c"));
    CHECK(body["method"].string() == "POST");
    CHECK(body["peer"].string() == "127.0.0.1:" + origin.port());
    CHECK(json::canonical(body["cookies"]) == R"(["a","b"])");
    CHECK(lines[0]["lane"].string() == "engine-claimed");
    CHECK(outcomes[0]["body"]["of"].integer() == lines[0]["seq"].integer());
    CHECK(outcomes[0]["body"]["body_sha256"].string() == sha256_hex("hello"));
    CHECK(read_file(user.log("s")).find("secret1") == std::string::npos);
    CHECK(evidence::verify_chain(user.log("s")));
    const std::string number = std::to_string(lines[0]["seq"].integer());
    for (const std::vector<std::string>& words : {std::vector<std::string>{"hist", "s"}, {"hist", "s", "status:2xx", "method:POST", "path:/a", "size>4", "refused:no"}, {"show", "s", number}}) {
      std::vector<std::string> as_json = words;
      as_json.push_back("--json");
      Ended e = user.run(as_json);
      CHECK(e.status == 0);
      fits(words[0], e);
      CHECK(e.out.find(origin.url("/a?b=c")) != std::string::npos);
      Ended people_read = user.run(words);
      CHECK(people_read.out.find(origin.url("/a?b=c")) != std::string::npos);
      CHECK(people_read.out.find("complete") != std::string::npos);
    }
    CHECK(json_of(user.run({"hist", "s", "status:5xx", "--json"}))["rows"].array().empty());
    // What keeps no messages has none to show.
    Ended bytes = user.run({"show", "s", number, "--bytes"});
    CHECK(bytes.status == 2);
    CHECK(is_refusal(bytes.err, "not-found"));
  }
}

TEST_CASE("raw bytes arrive as they are, and what a session keeps is shown without its keys") {
  for (uid_t uid : people()) {
    Origin origin([](const std::string&) { return "HTTP/1.1 200 OK\r\nSet-Cookie: id=very-secret; Path=/\r\nContent-Length: 2\r\n\r\nok"; });
    User user(uid);
    user.open("s", {origin.url("")}, {"--capture"});
    std::string raw = "GeT  / HTTP/1.1\nhost:x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer very-secret\r\n\r\n";
    for (int i = 0; i < 256; i++) raw += static_cast<char>(i);
    std::ofstream(user.home() + "/raw", std::ios::binary) << raw;
    Ended sent = user.run({"send", "s", origin.url("/"), "--raw", user.home() + "/raw"});
    CAPTURE(uid, sent.out, sent.err);
    CHECK(sent.status == 0);
    REQUIRE(origin.requests().size() == 1);
    CHECK(origin.requests()[0] == raw);
    auto lines = user.records("s", "send");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0]["body"]["raw"].boolean());
    CHECK(lines[0]["body"]["head_bytes"].integer() + lines[0]["body"]["body_bytes"].integer() == static_cast<int64_t>(raw.size()));
    Ended shown = user.run({"show", "s", std::to_string(lines[0]["seq"].integer()), "--bytes"});
    CHECK(shown.status == 0);
    CHECK(shown.out.find("very-secret") == std::string::npos);
    CHECK(shown.out.find("Authorization: [18 bytes]") != std::string::npos);
    CHECK(shown.out.find("Set-Cookie: [") != std::string::npos);
    CHECK(shown.out.find("ok") != std::string::npos);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(user.folder("s"))) {
      struct stat st {};
      CHECK(stat(entry.path().c_str(), &st) == 0);
      CHECK((st.st_mode & 077) == 0);
    }
  }
}

TEST_CASE("what no rule names is not contacted, by a URL, by a redirect or by a name, and is one line") {
  for (uid_t uid : people()) {
    Origin forbidden([](const std::string&) { return ok("secret"); });
    std::string to;
    struct Row {
      const char* what;
      std::string url, why;
      std::string location;  // of the answer, when the URL itself is in the scope
    };
    const std::string at = "127.0.0.1:" + forbidden.port();
    for (const Row& row : std::vector<Row>{{"another port", "http://" + at + "/r?a=b", "scope", ""},
                                           {"a redirect", "", "scope", "http://" + at + "/r?a=b"},
                                           {"a redirect without a scheme", "", "scope", "//" + at + "/x"},
                                           {"a redirect with backslashes", "", "scope", "\\\\" + at + "\\x"},
                                           {"a redirect with another scheme and no slashes", "", "scope", "https:" + at},
                                           {"a redirect with a user in it", "", "url-credentials", "http://x@" + at + "/"},
                                           {"a redirect to a number", "", "scope", "http://2130706433:" + forbidden.port() + "/"},
                                           {"a redirect to a mapped address", "", "scope", "http://[::ffff:127.0.0.1]:" + forbidden.port() + "/"},
                                           {"a redirect to a name of the same machine", "", "scope", "http://localhost:" + forbidden.port() + "/"},
                                           {"a redirect to a file", "", "scope", "file:///etc/passwd"},
                                           {"a redirect with tabs", "", "scope", "ht\ttp://127.0.0.1:" + forbidden.port() + "/"}}) {
      Origin origin([&](const std::string&) { return moved(302, row.location); });
      User user(uid);
      user.open("s", {origin.url("")});
      Ended sent = user.run({"send", "s", row.url.empty() ? origin.url("/start") : row.url, "--follow", "5", "--json"});
      CAPTURE(uid, row.what, sent.out, sent.err);
      CHECK(sent.status == 1);
      CHECK(forbidden.connections() == 0);
      auto refused = user.records("s", "refused"), sends = user.records("s", "send");
      REQUIRE(refused.size() == 1);
      CHECK(refused[0]["body"]["why"].string() == row.why);
      CHECK(sends.size() == (row.url.empty() ? 1u : 0u));
      if (row.url.empty()) CHECK(refused[0]["body"]["parent"].integer() == sends[0]["seq"].integer());
    }
    // With the scheme that it has already it is a path, for browsers too.
    Origin circle([&](const std::string&) { return moved(302, "http:" + at); });
    User relative(uid);
    relative.open("s", {circle.url("")});
    CHECK(relative.run({"send", "s", circle.url("/"), "--follow", "1"}).status == 0);
    CHECK((circle.requests().size() == 2 && forbidden.connections() == 0));
    // The control: named, it is contacted.
    User user(uid);
    user.open("s", {forbidden.url("")});
    CHECK(user.run({"send", "s", forbidden.url("/")}).status == 0);
    CHECK(forbidden.connections() == 1);
  }
}

TEST_CASE("a name that leads to this machine is not dialled under a rule that grants the public, and is looked up once") {
  if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    printf("SKIP: websec-names: only root gives names of its own to a test\n");
    return;
  }
  Scratch names;
  std::ofstream(names / "hosts") << "127.0.0.1 localhost\n127.0.0.1 inner.test\n169.254.169.254 meta.test\n203.0.113.9 mixed.test\n127.0.0.1 mixed.test\n::ffff:127.0.0.1 mapped.test\n10.0.0.1 site.test\n";
  REQUIRE(mount((names / "hosts").c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0);
  Origin origin([](const std::string&) { return ok(); });
  Origin leads([&](const std::string&) { return moved(302, "http://inner.test:" + origin.port() + "/"); });
  for (uid_t uid : people()) {
    User user(uid);
    std::vector<std::string> rules = {leads.url("")};
    const char* all[] = {"inner.test", "meta.test", "mixed.test", "mapped.test", "site.test"};
    for (const char* name : all) rules.push_back("http://" + std::string(name) + ":" + origin.port());
    user.open("s", rules);
    for (const char* name : all) {
      Ended e = user.run({"send", "s", "http://" + std::string(name) + ":" + origin.port() + "/"});
      CAPTURE(uid, name, e.out, e.err);
      CHECK(e.status == 1);
      auto refused = user.records("s", "refused");
      REQUIRE_FALSE(refused.empty());
      CHECK(refused.back()["body"]["why"].string() == "address");
    }
    CHECK(user.run({"send", "s", leads.url("/"), "--follow", "2"}).status == 1);
    CHECK(user.records("s", "refused").back()["body"]["why"].string() == "address");
    CHECK(origin.connections() == (uid == people().front() ? 0 : 1));
    // The control: the rule says where it may lead.
    user.open("t", {"http://inner.test:" + origin.port() + " at loopback"});
    CHECK(user.run({"send", "t", "http://inner.test:" + origin.port() + "/"}).status == 0);
    CHECK(user.records("t", "send")[0]["body"]["peer"].string() == "127.0.0.1:" + origin.port());
  }
  CHECK(origin.connections() == static_cast<int>(people().size()));
  CHECK(umount2("/etc/hosts", MNT_DETACH) == 0);
}

TEST_CASE("values that say who asks are in no line of the log and on no screen, however they are written") {
  Origin origin([](const std::string&) {
    return "HTTP/1.1 302 Found\r\nSet-Cookie: PASSWD1; Path=/\r\nSET-COOKIE: a=PASSWD2\r\nset-cookie : b=PASSWD3\r\nLocation: http://u:PASSWD4@127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
  });
  User user(people().back());
  user.open("s", {origin.url("")}, {"--capture"});
  std::string said;
  auto tried = [&](std::vector<std::string> words) {
    Ended e = user.run(words);
    said += e.out + e.err;
  };
  tried({"send", "s", origin.url("/"), "--lenient", "--follow", "2", "-H", "Cookie: PASSWD5; x=PASSWD6", "-H", "authorization: PASSWD7"});
  tried({"send", "s", "http://u:PASSWD8@127.0.0.1:99999/"});
  tried({"send", "s", "http://u:PASSWD9@127.0.0.1/", "--json"});
  tried({"scope", "s", "http://u:PASSWDA@127.0.0.1/", "--json"});
  tried({"send", "s", origin.url("/"), "-H", "Authorization: PASSWDB\xff"});
  std::ofstream(user.home() + "/raw", std::ios::binary) << "PASSWDC\r\nAuthorization:\r\n PASSWDD\r\nX: y\rCookie: c=PASSWDE\r\n\r\n";
  tried({"send", "s", origin.url("/"), "--raw", user.home() + "/raw", "--lenient"});
  REQUIRE(origin.requests().size() == 2);
  for (const Json& line : user.records("s", "send")) tried({"show", "s", std::to_string(line["seq"].integer())});
  const std::string log = read_file(user.log("s"));
  CAPTURE(said, log);
  CHECK(said.find("PASSWD") == std::string::npos);
  CHECK(log.find("PASSWD") == std::string::npos);
  // With the messages that were asked to be kept: what the person wrote in the first line is theirs, what follows a name is masked.
  said.clear();
  for (const Json& line : user.records("s", "send")) tried({"show", "s", std::to_string(line["seq"].integer()), "--bytes"});
  for (char c : std::string("1235678ABDE")) {
    CAPTURE(said, c);
    CHECK(said.find(std::string("PASSWD") + c) == std::string::npos);
  }
}

TEST_CASE("bytes that no path rule can be held to are not sent where one is, and an answer read two ways leads nowhere") {
  Origin origin([](const std::string& request) {
    return request.find("/two") != std::string::npos ? "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n" : ok();
  });
  User user(people().back());
  user.open("s", {origin.url("/ok")});
  std::ofstream(user.home() + "/raw", std::ios::binary) << "GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n";
  CHECK(user.run({"send", "s", origin.url("/ok"), "--raw", user.home() + "/raw"}).status == 1);
  CHECK(user.records("s", "refused").back()["body"]["why"].string() == "raw-path");
  CHECK(origin.connections() == 0);
  user.open("t", {origin.url("")});
  CHECK(user.run({"send", "t", origin.url("/ok"), "--raw", user.home() + "/raw"}).status == 0);  // the control
  CHECK(user.run({"send", "t", origin.url("/two"), "--follow", "3", "--lenient"}).out.find("/a") == std::string::npos);
  CHECK(origin.requests().size() == 2);
  // The machine itself by the name that is none.
  user.open("u", {"http://0.0.0.0:" + origin.port()});
  CHECK(user.run({"send", "u", "http://0.0.0.0:" + origin.port() + "/"}).status == 1);
  CHECK(origin.connections() == 2);
  // The session's end holds between two hops as well.
  Origin slow([](const std::string&) {
    usleep(2'200'000);
    return moved(302, "/next");
  });
  user.open("v", {slow.url("")}, {"--for", "2s"});
  CHECK(user.run({"send", "v", slow.url("/"), "--follow", "3"}).status == 1);
  CHECK(slow.requests().size() == 1);
  CHECK(user.records("v", "refused").back()["body"]["why"].string() == "expired");
}

TEST_CASE("an answer that is more than a line holds has its outcome all the same") {
  Origin origin([](const std::string&) {
    std::string head = "HTTP/1.1 302 Found\r\n";
    for (int i = 0; i < 120; i++) head += std::string(2000, '\x01') + std::to_string(i) + ": x\r\nSet-Cookie: " + std::string(500, '\x02') + "=x\r\n";
    return head + "Location: /" + std::string(100000, '\x81') + "\r\nContent-Length: 0\r\n\r\n";
  });
  User user(people().back());
  user.open("s", {origin.url("")});
  for (const char* how : {"--lenient", "--json"}) {
    Ended e = user.run({"send", "s", origin.url("/"), "--follow", "2", how});
    CAPTURE(e.out.substr(0, 2000), e.err);
    CHECK((e.status == 0 || e.status == 1));
  }
  CHECK(user.records("s", "outcome").size() == user.records("s", "send").size());
  CHECK(origin.requests().size() == 2);
}

TEST_CASE("a chain of redirects is a line for each hop with its own answer, and no more hops than asked") {
  Origin origin([](const std::string& request) {
    if (request.starts_with("GET /1 ") || request.starts_with("POST /1 ")) return moved(302, "/2");
    if (request.starts_with("GET /2 ")) return moved(307, "3?x");
    return ok(request.substr(0, request.find(" HTTP")));
  });
  User user(people().back());
  user.open("s", {origin.url("")});
  Ended sent = user.run({"send", "s", origin.url("/1"), "-X", "POST", "--data", "x", "-H", "Content-Type: a/b", "--follow", "5"});
  CAPTURE(sent.out, sent.err);
  CHECK(sent.status == 0);
  auto requests = origin.requests();
  REQUIRE(requests.size() == 3);
  CHECK(requests[1].find("Content-") == std::string::npos);
  CHECK(requests[2].starts_with("GET /3?x HTTP/1.1\r\n"));
  auto lines = user.records("s", "send"), outcomes = user.records("s", "outcome");
  REQUIRE((lines.size() == 3 && outcomes.size() == 3));
  const int64_t statuses[] = {302, 307, 200};
  for (size_t i = 0; i < 3; i++) {
    CHECK(outcomes[i]["body"]["of"].integer() == lines[i]["seq"].integer());
    CHECK(outcomes[i]["body"]["status"].integer() == statuses[i]);
    CHECK(lines[i]["body"]["parent"].integer(-1) == (i == 0 ? -1 : lines[i - 1]["seq"].integer()));
  }
  user.open("t", {origin.url("")});
  CHECK(user.run({"send", "t", origin.url("/1"), "--follow", "1"}).status == 0);
  CHECK(user.records("t", "send").size() == 2);
  CHECK(user.run({"send", "t", origin.url("/1")}).status == 0);
  CHECK(user.records("t", "send").size() == 3);
}

TEST_CASE("an answer that leads to a name that is none, or offers another way, is kept, and what it leads to is a line of its own") {
  const std::string nobody = "http://nobody.invalid:8099";
  Origin origin([&](const std::string& r) {
    return r.starts_with("GET /moved") ? moved(302, nobody + "/x") : "HTTP/1.1 200 OK\r\nAlt-Svc: h3=\":443\"\r\nContent-Length: 2\r\n\r\nok";
  });
  User user(people().back());
  user.open("s", {origin.url(""), nobody});
  CHECK(user.run({"send", "s", origin.url("/moved"), "--follow", "2"}).status == 2);
  auto outcomes = user.records("s", "outcome"), refused = user.records("s", "refused");
  REQUIRE((outcomes.size() == 1 && refused.size() == 1));
  CHECK(outcomes[0]["body"]["status"].integer() == 302);
  CHECK(refused[0]["body"]["why"].string() == "dns-failed");
  CHECK(refused[0]["body"]["parent"].integer() == user.records("s", "send")[0]["seq"].integer());
  CHECK(user.run({"send", "s", origin.url("/alt")}).status == 0);
  CHECK(json::canonical(user.records("s", "outcome")[1]["body"]["passive"]).find("\"alt-svc\"") != std::string::npos);
  CHECK(origin.connections() == 2);  // and nobody asked for the other way
}

TEST_CASE("lines that somebody wrote twice, in any case, and a Host of their own arrive as they are, in their order") {
  Origin origin([](const std::string&) { return ok(); });
  User user(people().back());
  user.open("s", {origin.url("")});
  CHECK(user.run({"send", "s", origin.url("/a"), "-H", "X-b: 1", "-H", "hOST: other.test:80", "-H", "x-B: 2", "-H", "TE: trailers", "-H", "te: gzip", "-H", "X-b: 1"}).status == 0);
  REQUIRE(origin.requests().size() == 1);
  CHECK(origin.requests()[0] == "GET /a HTTP/1.1\r\nX-b: 1\r\nhOST: other.test:80\r\nx-B: 2\r\nTE: trailers\r\nte: gzip\r\nX-b: 1\r\n\r\n");
}

TEST_CASE("what says who asks goes to no other origin, and the line names what was dropped") {
  for (uid_t uid : people())
    for (int status : {301, 302, 303, 307, 308}) {
      Origin second([](const std::string&) { return ok(); });
      Origin first([&](const std::string& request) { return request.find("/same") != std::string::npos ? moved(status, "/other") : moved(status, second.url("/")); });
      User user(uid);
      user.open("s", {first.url(""), second.url("")});
      std::vector<std::string> words = {"send", "s", first.url("/same"), "--follow", "5", "-H", "Accept: */*"};
      const char* keys[] = {"Authorization: Bearer k1", "Cookie: k2=k2", "Proxy-Authorization: k3", "X-Api-Key: k4", "X-Anything: k5", "Referer: http://k6/"};
      for (const char* key : keys) words.insert(words.end(), {"-H", key});
      Ended sent = user.run(words);
      CAPTURE(uid, status, sent.out, sent.err);
      CHECK(sent.status == 0);
      auto at_first = first.requests(), at_second = second.requests();
      REQUIRE((at_first.size() == 2 && at_second.size() == 1));
      // The control: within the origin all of them go along.
      for (const char* key : keys) CHECK(at_first[1].find(key) != std::string::npos);
      for (const char* key : keys) CHECK(at_second[0].find(key) == std::string::npos);
      CHECK(at_second[0].find("Accept: */*") != std::string::npos);
      auto lines = user.records("s", "send");
      REQUIRE(lines.size() == 3);
      CHECK(json::canonical(lines[2]["body"]["dropped"]) == R"(["Authorization","Cookie","Proxy-Authorization","X-Api-Key","X-Anything","Referer"])");
      CHECK(lines[1]["body"]["dropped"].is_null());
    }
}

TEST_CASE("an answer that is no HTTP is refused with its oddities, and read on when that is asked for") {
  struct Row {
    const char *what, *answer, *fact;
    int strict, lenient;
  };
  for (const Row& row : {Row{"two lengths and a coding", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "te-and-cl", 1, 0},
                         Row{"a line that ends in LF", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "bare-lf", 1, 0},
                         Row{"a body that is too short", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", "short-body", 1, 1},
                         Row{"no answer", "", "", 2, 2}}) {
    Origin origin([&](const std::string&) { return std::string(row.answer); });
    User user(people().back());
    user.open("s", {origin.url("")});
    Ended strict = user.run({"send", "s", origin.url("/"), "--json"}), lenient = user.run({"send", "s", origin.url("/"), "--lenient", "--json"});
    CAPTURE(row.what, strict.out, strict.err, lenient.out, lenient.err);
    CHECK(strict.status == row.strict);
    CHECK(lenient.status == row.lenient);
    CHECK(strict.out.find(row.fact) != std::string::npos);
    CHECK(origin.requests().size() == 2);  // no second try of either
    CHECK(user.records("s", "outcome").size() == 2);
  }
}

TEST_CASE("what cannot be seen is said so: nobody listens, no such name, no time") {
  Origin slow([](const std::string&) {
    sleep(3);
    return ok();
  });
  User user(people().back());
  const std::string nobody = "http://" + std::string(64, 'a') + ".test";  // no name that a resolver could be asked for: nothing leaves for it
  user.open("s", {slow.url(""), "http://127.0.0.1:1", nobody});
  struct Row {
    std::string url, what;
    bool line;  // of a send: something may have left
  };
  for (const Row& row : {Row{"http://127.0.0.1:1/", "connect-failed", true}, Row{nobody + "/", "dns-failed", false}, Row{slow.url("/"), "timeout", true}}) {
    Ended e = user.run({"send", "s", row.url, "--timeout", "1", "--json"});
    CAPTURE(row.url, e.out, e.err);
    CHECK(e.status == 2);
    fits("send", e);
    CHECK(e.out.find("\"" + row.what + "\"") != std::string::npos);
    CHECK(user.records("s", row.line ? "outcome" : "refused").back()["body"][row.line ? "ended" : "why"].string() == row.what);
  }
}

TEST_CASE("a session that ended sends nothing more and still shows what it did; names and words are checked") {
  for (uid_t uid : people()) {
    Origin origin([](const std::string&) { return ok(); });
    User user(uid);
    user.open("s", {origin.url("")});
    CHECK(user.run({"send", "s", origin.url("/")}).status == 0);
    Ended closed = user.run({"close", "s", "--json"});
    fits("close", closed);
    CHECK((closed.status == 0 && json_of(closed)["changed"].boolean()));
    // Signed to its end, by a program that nobody waited for.
    Program verify = user.h5i({});
    verify.argv = {"h5i", "log", "verify", user.log("s")};
    Ended verified;
    for (int i = 0; i < 100 && verified.status != 0; i++) {
      verified = run(verify);
      usleep(100'000);
    }
    CAPTURE(verified.out, verified.err);
    CHECK(verified.status == 0);
    CHECK_FALSE(json_of(user.run({"close", "s", "--json"}))["changed"].boolean(true));
    Ended after = user.run({"send", "s", origin.url("/")});
    CHECK(after.status == 69);
    user.open("short", {origin.url("")}, {"--for", "1s"});
    sleep(2);
    CHECK(user.run({"send", "short", origin.url("/")}).status == 69);
    CHECK(origin.requests().size() == 1);
    CHECK(user.run({"hist", "s"}).out.find("complete") != std::string::npos);
    Ended listed = user.run({"ls", "--json"});
    fits("ls", listed);
    CHECK((listed.out.find("\"closed\"") != std::string::npos && listed.out.find("\"expired\"") != std::string::npos));
    struct Bad {
      std::vector<std::string> words;
      int status;
    };
    for (const Bad& bad : std::vector<Bad>{{{"open", "s", "--scope", origin.url("")}, 2},
                                           {{"open", "../x", "--scope", origin.url("")}, 64},
                                           {{"open", "x"}, 64},
                                           {{"open", "x", "--deny", "a.test"}, 64},
                                           {{"open", "x", "--scope", "not a rule"}, 64},
                                           {{"open", "x", "--scope", "a.test\ndeny b.test"}, 64},
                                           {{"open", "x", "--scope", "a.test", "--for", "9y"}, 64},
                                           {{"send", "none", origin.url("/")}, 2},
                                           {{"send", "s"}, 64},
                                           {{"send", "s", origin.url("/"), "--follow", "21"}, 64},
                                           {{"send", "s", origin.url("/"), "--raw", "/etc/hostname", "--data", "x"}, 64},
                                           {{"hist", "s", "colour:red"}, 64},
                                           {{"show", "s", "99999"}, 2},
                                           {{"show", "s", "x"}, 64},
                                           {{"close", "none"}, 2}}) {
      Ended e = user.run(bad.words);
      CAPTURE(uid, bad.words, e.out, e.err);
      CHECK(e.status == bad.status);
      CHECK(e.err.find("\n  because: ") != std::string::npos);
    }
    CHECK_FALSE(std::filesystem::exists(user.folder("x")));
  }
}

TEST_CASE("a session is what its log says that was opened, and no file of another's is taken for a part of it") {
  for (uid_t uid : people()) {
    Origin origin([](const std::string&) { return ok(); }), other([](const std::string&) { return ok(); });
    User user(uid);
    user.open("s", {origin.url("")});
    const std::string manifest = user.folder("s") + "/session.json", before = read_file(manifest);
    std::string widened = before;
    widened.replace(widened.find(origin.port()), origin.port().size(), other.port());
    for (const std::string& text : {widened, std::string("{}"), std::string()}) {
      std::ofstream(manifest) << text;
      for (const std::vector<std::string>& words : {std::vector<std::string>{"send", "s", other.url("/")}, {"hist", "s"}, {"scope", "s", other.url("/")}}) {
        Ended e = user.run(words);
        CAPTURE(uid, text, words, e.out, e.err);
        CHECK(e.status == 2);
      }
    }
    std::ofstream(manifest) << before;
    CHECK(user.run({"send", "s", origin.url("/")}).status == 0);  // the control
    CHECK(other.connections() == 0);
    REQUIRE(rename(user.log("s").c_str(), (user.home() + "/elsewhere").c_str()) == 0);
    REQUIRE(symlink((user.home() + "/elsewhere").c_str(), user.log("s").c_str()) == 0);
    CHECK(user.run({"send", "s", origin.url("/")}).status == 2);
    CHECK(origin.connections() == 1);
  }
}

TEST_CASE("what an origin says moves no cursor and forges no line") {
  const std::string evil = "\x1b]0;owned\x07\x1b[2J\r\n#1  forged\xe2\x80\xae\xf3\xa0\x81\x81\x9b";
  Origin origin([&](const std::string&) {
    return "HTTP/1.1 302 \x1b[31mred\x9b\x07\r\nContent-Type: te\x1bxt\r\nLocation: http://\x1b[2J/\r\nX-\x7f: y\r\nSet-Cookie: \x1b[1mname=\x1b\r\nContent-Length: " + std::to_string(evil.size()) + "\r\n\r\n" + evil;
  });
  User user(people().back());
  user.open("s", {origin.url("")}, {"--capture"});
  Ended sent = user.run({"send", "s", origin.url("/"), "--lenient"}), json = user.run({"send", "s", origin.url("/"), "--lenient", "--json"});
  CHECK(origin.requests().size() == 2);
  auto lines = user.records("s", "send");
  REQUIRE(lines.size() == 2);
  const std::string number = std::to_string(lines[0]["seq"].integer());
  CHECK(json::parse(json.out));
  for (const Ended& e : {sent, json, user.run({"hist", "s"}), user.run({"show", "s", number}), user.run({"show", "s", number, "--bytes"}), user.run({"hist", "s", "--json"})}) {
    CAPTURE(e.out, e.err);
    for (const std::string* text : {&e.out, &e.err})
      for (unsigned char c : *text) CHECK_FALSE(((c < 0x20 && c != '\n') || c == 0x7f));
    CHECK(e.out.find("\xe2\x80\xae") == std::string::npos);
    CHECK(e.out.find("\xf3\xa0\x81\x81") == std::string::npos);
  }
}

TEST_CASE("two sends of one session take turns or are told that it is in use") {
  Origin slow([](const std::string&) {
    usleep(700'000);
    return ok();
  });
  User user(people().back());
  user.open("s", {slow.url("")});
  pid_t first = start(user.h5i({"send", "s", slow.url("/")}), user.home() + "/out", user.home() + "/err");
  for (int i = 0; i < 100 && slow.connections() == 0; i++) usleep(20'000);
  Ended second = user.run({"send", "s", slow.url("/")});
  CHECK(second.status == 2);
  CHECK(is_refusal(second.err, "busy"));
  CHECK(user.run({"hist", "s"}).status == 0);  // who only looks is not in the way
  CHECK(wait_for(first, 30) == 0);
  CHECK(slow.requests().size() == 1);
}
