// What a file speaks of becomes candidates: told with the scope's word, sent by nobody, and no value of the file stays.
#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/support/schema.hpp"
#include "tests/websec/sequences.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json json_of(const Ended& e) {
  for (const std::string& error : schema_errors_of_text("websec-import", e.out)) FAIL_CHECK(error);
  auto v = json::parse(e.out);
  CAPTURE(e.out, e.err);
  REQUIRE(v);
  return *v;
}

}  // namespace

TEST_CASE("a file's requests are candidates with the scope's word, and nothing is sent or kept of it") {
  for (uid_t uid : people()) {
    Origin origin([](const std::string&) { return ok(); });
    User user(uid);
    CAPTURE(uid);
    user.open("s", {origin.url("/app")});
    const std::string har = R"({"log":{"entries":[{"request":{"method":"GET","url":")" + origin.url("/app/x") + R"(","headers":[{"name":"Authorization","value":"very-secret"}]}},{"request":{"method":"POST","url":")" + origin.url("/other") +
                            R"(","postData":{"text":"very-secret"}}},{"request":{"method":"GET","url":"http://u:very-secret@127.0.0.1/"}}]}})";
    std::ofstream(user.home() + "/a.har") << har;
    std::ofstream(user.home() + "/list.txt") << origin.url("/app/y") << "\n" << origin.url("/app/x") << "\n";
    std::ofstream(user.home() + "/api.json") << R"({"openapi":"3.0.0","servers":[{"url":")" << origin.url("/app") << R"("}],"paths":{"/p/{id}":{"delete":{}}}})";
    Json done = json_of(user.run({"import", "s", "a.har", "--json"}));
    CHECK((done["candidates"].integer() == 2 && done["in_scope"].integer() == 1 && done["source"].string() == sha256_hex(har)));
    CHECK(json::canonical(done["left_out"]) == R"({"url-credentials":1})");
    CHECK(json_of(user.run({"import", "s", "list.txt", "--json"}))["in_scope"].integer() == 2);
    CHECK(json_of(user.run({"import", "s", "api.json", "--json"}))["candidates"].integer() == 1);
    CHECK(origin.connections() == 0);
    auto lines = user.records("s", "candidate");
    REQUIRE(lines.size() == 5);
    CHECK((lines[0]["body"]["in_scope"].boolean() && json::canonical(lines[0]["body"]["headers"]) == R"(["Authorization"])"));
    CHECK((!lines[1]["body"]["in_scope"].boolean(true) && lines[1]["lane"].string() == "engine-claimed"));
    CHECK((lines[4]["body"]["method"].string() == "DELETE" && lines[4]["body"]["url"].string() == origin.url("/app/p/id")));
    CHECK(user.records("s", "send").empty());
    CHECK(evidence::verify_chain(user.log("s")));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(user.folder("s")))
      if (entry.is_regular_file()) CHECK(read_file(entry.path()).find("very-secret") == std::string::npos);
    CHECK_FALSE(std::filesystem::exists(user.folder("s") + "/state/import"));
    Json listed = json_of(user.run({"import", "s", "--list", "--json"}));
    CHECK((listed["rows"].array().size() == 5 && listed["all"].integer() == 5));
    CHECK(json_of(user.run({"import", "s", "--list", "--last", "2", "--json"}))["rows"].array().size() == 2);
    CHECK(user.run({"import", "s", "--list"}).out.find("not in the scope") != std::string::npos);
    CHECK(user.run({"hist", "s"}).out.find("no send") != std::string::npos);  // they are none
    struct Bad {
      std::vector<std::string> words;
      int status;
    };
    std::ofstream(user.home() + "/bad.har") << "{\"log\":";
    std::ofstream(user.home() + "/a.yaml") << "swagger: '2.0'\n";
    std::ofstream(user.home() + "/api.yml") << "openapi: 3.0.0\nservers: [{url: '" + origin.url("/app") + "'}]\npaths:\n  /of-yaml: {get: {}}\n";
    CHECK(has(user.run({"import", "s", "api.yml"}).out, "1 "));
    CHECK(user.records("s", "candidate").back()["body"]["url"].string() == origin.url("/app/of-yaml"));
    for (const Bad& bad : std::vector<Bad>{{{"import", "s"}, 64}, {{"import", "s", "bad.har"}, 64}, {{"import", "s", "a.yaml"}, 64}, {{"import", "s", "a.har", "--format", "pdf"}, 64}, {{"import", "s", "a.har", "--format", "openapi"}, 64},
                                           {{"import", "s", "noname", "--format", "har"}, 2}, {{"import", "s", "x"}, 64}, {{"import", "s", "a.har", "--last", "2"}, 64}, {{"import", "s", "a.har", "--list"}, 64}, {{"import", "s", "--list", "--last", "x"}, 64},
                                           {{"import", "none", "a.har"}, 2}}) {
      Ended e = user.run(bad.words);
      CAPTURE(bad.words, e.out, e.err);
      CHECK(e.status == bad.status);
      CHECK(e.err.find("\n  because: ") != std::string::npos);
      CHECK_FALSE(std::filesystem::exists(user.folder("s") + "/state/import"));
    }
    // What a killed import left is written over, and a link in its place is not followed.
    std::ofstream(user.folder("s") + "/state/import") << "left by another";
    if (geteuid() == 0) REQUIRE(chown((user.folder("s") + "/state/import").c_str(), uid, uid) == 0);
    CHECK(user.run({"import", "s", "list.txt"}).status == 0);
    std::filesystem::create_symlink(user.home() + "/victim", user.folder("s") + "/state/import");
    std::ofstream(user.home() + "/victim") << "before";
    CHECK(user.run({"import", "s", "list.txt"}).status == 2);
    CHECK(read_file(user.home() + "/victim") == "before");
    std::filesystem::remove(user.folder("s") + "/state/import");
    CHECK(user.run({"close", "s"}).status == 0);
    CHECK(user.run({"import", "s", "list.txt"}).status == 69);
    CHECK(user.run({"import", "s", "--list"}).status == 0);
  }
}

TEST_CASE("a file of a stranger's moves no cursor and a large one is read whole") {
  User user(people().back());
  user.open("s", {"http://a.test"});
  std::string har = R"({"log":{"entries":[)";
  bool first = true;
  for (const Sequence& q : hostile_sequences()) {
    std::string text;
    json::detail::write_string(text, "http://a.test/" + q.bytes);
    har += std::string(first ? "" : ",") + R"({"request":{"method":"GET","url":)" + text + "}}";
    first = false;
  }
  har += R"(,{"response":{"content":{"text":")" + std::string(40u << 20, 'x') + R"("}},"request":{"method":"GET","url":"http://a.test/last"}}]}})";
  std::ofstream(user.home() + "/a.har", std::ios::binary) << har;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"import", "s", "a.har"}, {"import", "s", "--list"}, {"import", "s", "--list", "--json"}}) {
    Ended e = user.run(words);
    CAPTURE(words, e.out.substr(0, 2000), e.err);
    CHECK(e.status == 0);
    CHECK(harm(e.out, true) == "");
  }
  CHECK(user.records("s", "candidate").back()["body"]["url"].string() == "http://a.test/last");
}
