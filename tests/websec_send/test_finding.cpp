// Findings: lines that cite sends, and the report of them.
#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/support/schema.hpp"
#include "tests/websec/sequences.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json json_of(const Ended& e) {
  for (const std::string& error : schema_errors_of_text("websec-finding", e.out)) FAIL_CHECK(error);
  auto v = json::parse(e.out);
  CAPTURE(e.out, e.err);
  REQUIRE(v);
  return *v;
}

}  // namespace

TEST_CASE("a finding cites sends that are there, is withdrawn by another line, and its report says how to check it") {
  for (uid_t uid : people()) {
    Origin origin([](const std::string&) { return std::string("HTTP/1.1 200 OK\r\nSet-Cookie: id=very-secret\r\nX-Page: <script>alert(1)</script>\r\nContent-Length: 2\r\n\r\nok"); });
    User user(uid);
    CAPTURE(uid);
    user.open("s", {origin.url("")}, {"--capture"});
    user.run({"send", "s", origin.url("/one"), "-H", "Authorization: Bearer very-secret"});
    user.run({"send", "s", origin.url("/two")});
    user.run({"send", "s", "http://127.0.0.1:1/refused"});
    auto sends = user.records("s", "send"), refused = user.records("s", "refused");
    REQUIRE((sends.size() == 2 && refused.size() == 1));
    const std::string one = std::to_string(sends[0]["seq"].integer()), two = std::to_string(sends[1]["seq"].integer()), none = std::to_string(refused[0]["seq"].integer());
    Json added = json_of(user.run({"finding", "s", "add", "--title", "Session id without HttpOnly", "--severity", "medium", "--cite", two + "," + one, "--note", "line one\nline two", "--json"}));
    REQUIRE(added["findings"].array().size() == 1);
    const Json& finding = added["findings"].array()[0];
    CHECK(json::canonical(finding["cites"]) == "[" + one + "," + two + "]");
    const std::string number = std::to_string(finding["number"].integer());
    CHECK(user.run({"finding", "s", "add", "--title", "Another", "--severity", "high", "--cite", one, "--cite", "#" + two}).status == 0);
    struct Bad {
      std::vector<std::string> words;
      int status;
    };
    for (const Bad& bad : std::vector<Bad>{{{"add", "--title", "x", "--severity", "low", "--cite", "99999"}, 2},
                                           {{"add", "--title", "x", "--severity", "low", "--cite", one + ",99999"}, 2},
                                           {{"add", "--title", "x", "--severity", "low", "--cite", none}, 2},    // was not sent
                                           {{"add", "--title", "x", "--severity", "low", "--cite", "0"}, 2},     // a line, and no send
                                           {{"add", "--title", "x", "--severity", "low", "--cite", number}, 2},  // a finding
                                           {{"add", "--title", "x", "--severity", "low", "--cite", "x"}, 64},
                                           {{"add", "--title", "x", "--severity", "low", "--cite", ""}, 64},
                                           {{"add", "--title", "x", "--severity", "low"}, 64},
                                           {{"add", "--title", "x", "--severity", "grave", "--cite", one}, 64},
                                           {{"add", "--title", "", "--severity", "low", "--cite", one}, 64},
                                           {{"add", "--title", "x\ny", "--severity", "low", "--cite", one}, 64},
                                           {{"add", "--title", std::string(300, 'x'), "--severity", "low", "--cite", one}, 64},
                                           {{"add", "--title", "\xff", "--severity", "low", "--cite", one}, 64},
                                           {{"add", "--title", "x", "--severity", "low", "--cite", one, "--reason", "y"}, 64},
                                           {{"add", "7", "--title", "x", "--severity", "low", "--cite", one}, 64},
                                           {{"withdraw", "99999", "--reason", "x"}, 2},
                                           {{"withdraw", one, "--reason", "x"}, 2},
                                           {{"withdraw", number}, 64},
                                           {{"withdraw"}, 64},
                                           {{"list", "--title", "x"}, 64},
                                           {{"edit"}, 64},
                                           {{"report", "--format", "pdf"}, 64},
                                           {{"report", "--force"}, 64}}) {
      std::vector<std::string> words = {"finding", "s"};
      words.insert(words.end(), bad.words.begin(), bad.words.end());
      Ended e = user.run(words);
      CAPTURE(words, e.out, e.err);
      CHECK(e.status == bad.status);
      CHECK(e.err.find("\n  because: ") != std::string::npos);
    }
    CHECK(user.records("s", "finding").size() == 2);
    Json gone = json_of(user.run({"finding", "s", "withdraw", number, "--reason", "the cookie is no session", "--json"}));
    CHECK(gone["findings"].array()[0]["withdrawn"]["reason"].string() == "the cookie is no session");
    CHECK(user.run({"finding", "s", "withdraw", number, "--reason", "again"}).status == 2);
    CHECK(user.records("s", "finding-withdrawn").size() == 1);
    CHECK(user.records("s", "finding").size() == 2);  // what was said stays
    CHECK(user.run({"close", "s"}).status == 0);
    CHECK(user.run({"finding", "s", "add", "--title", "late", "--severity", "low", "--cite", one}).status == 69);
    CHECK(json_of(user.run({"finding", "s", "list", "--json"}))["findings"].array().size() == 2);
    const evidence::Head head = *evidence::read_head(user.log("s"));
    for (const char* format : {"md", "html"}) {
      CAPTURE(format);
      Json told = json_of(user.run({"finding", "s", "report", "--format", format, "--out", std::string("r.") + format, "--json"}));
      const std::string file = user.home() + "/r." + format, text = read_file(file);
      struct stat st {};
      CHECK((stat(file.c_str(), &st) == 0 && (st.st_mode & 0777) == 0600));
      CHECK(told["report"]["sha256"].string() == sha256_hex(text));
      CHECK((told["report"]["records"].integer() == static_cast<int64_t>(head.count) && told["report"]["head_sha256"].string() == head.digest));
      CHECK(text.find(head.digest) != std::string::npos);
      CHECK(text.find("very-secret") == std::string::npos);
      CHECK(text.find("Another") != std::string::npos);
      CHECK(text.find("/one") != std::string::npos);
      CHECK((text.find("<script>") == std::string::npos || format == std::string("md")));  // in Markdown it stands in a block of code
      CHECK(text.find("the cookie is no session") != std::string::npos);
      CHECK(user.run({"finding", "s", "report", "--format", format}).out == text);
      CHECK(user.run({"finding", "s", "report", "--format", format, "--out", std::string("r.") + format}).status == 2);
    }
    // What the report says of the log's head is what its command gives.
    const std::string lines = read_file(user.log("s"));
    CHECK(sha256_hex(lines.substr(lines.rfind('\n', lines.size() - 2) + 1, lines.size() - lines.rfind('\n', lines.size() - 2) - 2)) == head.digest);
    CHECK(evidence::verify_chain(user.log("s")));
  }
}

TEST_CASE("what an origin writes is harmless in a report and in the list") {
  size_t at = 0;
  Origin origin([&](const std::string&) {
    const std::string& q = hostile_sequences()[at++].bytes;
    std::string line = q;
    for (char& c : line)
      if (c == '\r' || c == '\n') c = '.';
    return "HTTP/1.1 200 " + line + "\r\nX" + line + ": " + line + "\r\nContent-Length: 0\r\n\r\n";
  });
  User user(people().back());
  user.open("s", {origin.url("")}, {"--capture"});
  std::string cites;
  for (size_t i = 0; i < hostile_sequences().size(); i += 2) {
    at = i;
    user.run({"send", "s", origin.url("/" + std::to_string(i)), "--lenient"});
  }
  auto sends = user.records("s", "send");
  REQUIRE(sends.size() >= 40);
  for (const Json& s : sends) cites += (cites.empty() ? "" : ",") + std::to_string(s["seq"].integer());
  CHECK(user.run({"finding", "s", "add", "--title", "a\x1b[2J\xe2\x80\xae" "b", "--note", "n\x1b]0;t\a", "--severity", "info", "--cite", cites}).status == 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"finding", "s", "list"}, {"finding", "s", "list", "--json"}, {"finding", "s", "report"}, {"finding", "s", "report", "--format", "html"}}) {
    Ended e = user.run(words);
    CAPTURE(words, e.out.substr(0, 3000), e.err);
    CHECK(e.status == 0);
    CHECK(harm(e.out, true) == "");
  }
}
