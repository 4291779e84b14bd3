// Two sends side by side, and what an answer is asked.
#include "tests/support/schema.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json fits(const std::string& verb, const Ended& e) {
  CAPTURE(e.out, e.err);
  for (const std::string& error : schema_errors_of_text("websec-" + verb, e.out)) FAIL_CHECK(verb << " " << error);
  auto v = json::parse(e.out);
  return v ? *v : Json();
}

std::string answer(const std::string& request) {
  if (request.starts_with("GET /gone")) return "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ngone";
  if (request.starts_with("GET /binary")) return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: sid=very-secret-" + std::string(request.starts_with("GET /binary/2") ? "2" : "1") + "\r\nContent-Length: 3\r\n\r\n\x01\xff" + request.substr(12, 1);
  if (request.starts_with("GET /hostile")) return ok("one\n\x1b]0;title\x07two\n\xe2\x80\xae" "eert\n");
  std::string lines;
  for (int i = 0; i < 30; i++) lines += (i == 20 && request.starts_with("GET /b") ? "changed" : "line " + std::to_string(i)) + "\n";
  return ok(lines);
}

}  // namespace

TEST_CASE("two sends differ field by field, their bodies line by line, and what may be a key is its size") {
  Origin origin(answer);
  User user(people().back());
  for (bool kept : {true, false}) {
    const std::string s = kept ? "kept" : "plain";
    user.open(s, {origin.url("")}, kept ? std::vector<std::string>{"--capture"} : std::vector<std::string>{});
    for (const char* path : {"/a", "/a", "/b", "/gone", "/binary/1", "/binary/2", "/hostile"}) REQUIRE(user.run({"send", s, origin.url(path), "-H", "Authorization: Bearer very-secret", "-H", "X-Path: " + std::string(path)}).status == 0);
    std::vector<std::string> n;
    for (const Json& r : user.records(s, "send")) n.push_back(std::to_string(r["seq"].integer()));
    CAPTURE(kept);
    Ended same = user.run({"diff", s, n[0], n[1], "--json"});
    CHECK(same.status == 0);
    CHECK(fits("diff", same)["same"].boolean());
    Ended lines = user.run({"diff", s, n[0], n[2], "--json"});
    CHECK(lines.status == 1);
    Json doc = fits("diff", lines);
    CHECK(json::canonical(doc["fields"]).find("body_sha256") != std::string::npos);
    if (kept) {
      CHECK(doc["body"]["kind"].string() == "text");
      CHECK(json::canonical(doc["body"]["hunks"]) == R"([{"a":18,"b":18,"lines":[" line 17"," line 18"," line 19","-line 20","+changed"," line 21"," line 22"," line 23"]}])");
      CHECK(json::canonical(doc["fields"]).find("request.header.X-Path") != std::string::npos);
      Ended people_read = user.run({"diff", s, n[0], n[2]});
      CHECK(people_read.out.find("  - line 20\n  + changed\n") != std::string::npos);
      CHECK(fits("diff", user.run({"diff", s, n[4], n[5], "--json"}))["body"]["kind"].string() == "binary");
      Ended cookies = user.run({"diff", s, n[4], n[5]});
      CHECK(cookies.out.find("Set-Cookie") != std::string::npos);
      Ended hostile = user.run({"diff", s, n[3], n[6]});
      CHECK(hostile.out.find('\x1b') == std::string::npos);
      CHECK(hostile.out.find("\xe2\x80\xae") == std::string::npos);
      CHECK(hostile.out.find("two") != std::string::npos);
      CHECK((lines.out + people_read.out + cookies.out).find("very-secret") == std::string::npos);
    } else {
      CHECK(doc["body"]["kind"].string() == "not-kept");
    }
    doc = fits("diff", user.run({"diff", s, n[0], n[3], "--json"}));
    CHECK(json::canonical(doc["fields"]).find(R"({"a":200,"b":404,"field":"status"})") != std::string::npos);
    CHECK(user.run({"diff", s, n[0], "999"}).status == 2);
    CHECK(user.run({"diff", s, n[0], "x"}).status == 64);
  }
}

TEST_CASE("a match holds, does not, or cannot be known, and its status says which") {
  Origin origin(answer);
  User user(people().back());
  struct Row {
    std::vector<std::string> patterns;
    int kept, plain;
  };
  for (bool kept : {true, false}) {
    const std::string s = kept ? "kept" : "plain";
    user.open(s, {origin.url("")}, kept ? std::vector<std::string>{"--capture"} : std::vector<std::string>{});
    REQUIRE(user.run({"send", s, origin.url("/gone")}).status == 0);
    const std::string n = std::to_string(user.records(s, "send")[0]["seq"].integer());
    for (const Row& r : std::vector<Row>{{{"status:404", "size:4", "header.content-type", "!header.Location", "type:text/plain", "ended:complete", "time<10000"}, 0, 0},
                                         {{"status:2xx"}, 1, 1},
                                         {{"status:404", "size>4"}, 1, 1},
                                         {{"body~^go+ne$"}, 0, 2},
                                         {{"!body~gone"}, 1, 2},
                                         {{"body~gone", "status:200"}, 1, 1},
                                         {{"header.Content-Type~plain$", "head~^HTTP/1.1 404"}, 0, 2},
                                         {{"status:4xx", "nonsense"}, 64, 64},
                                         {{"body~("}, 64, 64}}) {
      std::vector<std::string> words = {"match", s, n};
      words.insert(words.end(), r.patterns.begin(), r.patterns.end());
      words.push_back("--json");
      Ended e = user.run(words);
      CAPTURE(kept, r.patterns, e.out, e.err);
      CHECK(e.status == (kept ? r.kept : r.plain));
      fits("match", e);
    }
    CHECK(user.run({"match", s, "999", "status:200"}).status == 2);
  }
}
