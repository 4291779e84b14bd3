// What a session may use up, over all of its acts; and what is on the disk before it is sent.
#include "tests/support/schema.hpp"
#include "tests/websec_send/boxed.hpp"
#include "tests/websec_send/trace.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json asked(const User& user, const std::string& verb, std::vector<std::string> words, int status) {
  words.insert(words.begin(), verb);
  words.push_back("--json");
  Ended e = user.run(words);
  CAPTURE(verb, e.out, e.err);
  CHECK(e.status == status);
  for (const std::string& error : schema_errors_of_text("websec-" + verb, e.out)) FAIL_CHECK(error);
  auto v = json::parse(e.out);
  return v ? *v : Json();
}

// A line "refused" for each, and none of it at the origin.
void check_refused(const User& user, const char* why, size_t count) {
  size_t found = 0;
  for (const Json& r : user.records("s", "refused")) found += r["body"]["why"].string() == why;
  CHECK(found == count);
}

}  // namespace

TEST_CASE("the sends of all acts together end at the session's budget, redirects counted") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin origin([](const std::string& r) { return has(r, "GET /moved") ? moved(302, "/there") : ok(); });
    User user(uid);
    user.open("s", {origin.url("")}, {"--max-sends", "3"});
    Json first = asked(user, "send", {"s", origin.url("/moved"), "--follow", "3"}, 0);
    CHECK(first["rows"].array().size() == 2);
    CHECK(first["budget"]["sends"]["spent"].integer() == 2);
    // The third is the hop that is left; the one behind it is refused, and so is all that comes later.
    Json cut = asked(user, "send", {"s", origin.url("/moved"), "--follow", "3"}, 1);
    REQUIRE(cut["rows"].array().size() == 2);
    CHECK(cut["rows"].array()[0]["sent"].boolean());
    CHECK_FALSE(cut["rows"].array()[1]["sent"].boolean());
    CHECK(cut["rows"].array()[1]["why"].string() == "budget");
    for (int i = 0; i < 2; i++) {
      Ended e = user.run({"send", "s", origin.url("/more")});
      CAPTURE(e.out, e.err);
      CHECK(e.status == 1);
      CHECK(has(e.out, "3 of 3 sends"));
    }
    CHECK(user.run({"replay", "s", std::to_string(user.records("s", "send")[0]["seq"].integer())}).status == 1);
    CHECK(origin.connections() == 3);
    CHECK(user.records("s", "send").size() == 3);
    check_refused(user, "budget", 4);
    // Of an index that somebody threw away or wrote nonsense into nothing is believed.
    std::filesystem::remove_all(user.folder("s") + "/state/index/rows");
    CHECK(user.run({"send", "s", origin.url("/more")}).status == 1);
    std::ofstream(user.folder("s") + "/state/index/rows", std::ios::trunc) << std::string(8192, 'x');
    CHECK(user.run({"send", "s", origin.url("/more")}).status == 1);
    CHECK(origin.connections() == 3);
    Json scope = asked(user, "scope", {"s"}, 0);
    CHECK(scope["budget"]["sends"]["spent"].integer() == 3);
    CHECK(scope["budget"]["sends"]["of"].integer() == 3);
    // The control: without a budget as many as one likes.
    user.open("free", {origin.url("")});
    for (int i = 0; i < 5; i++) CHECK(user.run({"send", "free", origin.url("/x")}).status == 0);
    CHECK(asked(user, "scope", {"free"}, 0)["budget"].is_null());
  }
}

TEST_CASE("many at once take no more than there is") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin origin([](const std::string&) { return ok(); });
    User user(uid);
    user.open("s", {origin.url("")}, {"--max-sends", "11"});
    REQUIRE(user.run({"send", "s", origin.url("/x?id=0")}).status == 0);
    const std::string number = std::to_string(user.records("s", "send")[0]["seq"].integer());
    std::string list;
    for (int i = 0; i < 40; i++) list += "v" + std::to_string(i) + "\n";
    std::ofstream(user.home() + "/inputs") << list;
    Json e = asked(user, "experiment", {"s", number, "query.id={{input}}", "--inputs", user.home() + "/inputs", "--parallel", "16"}, 1);
    CHECK(e["reason"].string() == "budget");
    CHECK(e["complete"].integer() == 10);
    CHECK(e["refused"].integer() == 0);  // they were not sent, and may be when there is a budget again
    CHECK(origin.served() == 11);
    CHECK(user.records("s", "send").size() == 11);
    Json again = asked(user, "experiment", {"s", "--resume", e["name"].string()}, 1);
    CHECK(again["reason"].string() == "budget");
    CHECK(origin.served() == 11);
  }
}

TEST_CASE("bytes and time are counted over acts, and an answer gets what is left") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    const std::string body(10'000, 'x');
    Origin origin([&](const std::string& r) {
      if (has(r, "GET /slow")) usleep(1'100'000);
      return ok(body);
    });
    User user(uid);
    user.open("s", {origin.url("")}, {"--max-wire", "15K"});
    CHECK(user.run({"send", "s", origin.url("/")}).status == 0);
    CHECK(user.run({"send", "s", origin.url("/")}).status == 1);
    CHECK(user.run({"send", "s", origin.url("/")}).status == 1);
    CHECK(origin.connections() == 2);
    auto outcomes = user.records("s", "outcome");
    REQUIRE(outcomes.size() == 2);
    CHECK(outcomes[0]["body"]["ended"].string() == "complete");
    CHECK(outcomes[1]["body"]["ended"].string() == "refused");
    CHECK(outcomes[1]["body"]["wire_bytes"].integer() <= 15 * 1024);
    check_refused(user, "budget", 1);

    user.open("d", {origin.url("")}, {"--max-decoded", "10000"});
    CHECK(user.run({"send", "d", origin.url("/")}).status == 0);
    Ended decoded = user.run({"send", "d", origin.url("/")});
    CHECK(has(decoded.out, "10000 of 10000 decoded bytes"));

    user.open("t", {origin.url("")}, {"--max-time", "1s"});
    CHECK(user.run({"send", "t", origin.url("/slow")}).status == 0);
    Ended late = user.run({"send", "t", origin.url("/")});
    CHECK(late.status == 1);
    CHECK(has(late.out, "1 of 1 seconds"));
    CHECK(origin.connections() == 4);
  }
}

TEST_CASE("a send that was killed counts") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin origin([](const std::string& r) {
      if (has(r, "GET /hang")) usleep(3'000'000);
      return ok();
    });
    User user(uid);
    user.open("s", {origin.url("")}, {"--max-sends", "1"});
    const pid_t hung = start(user.h5i({"send", "s", origin.url("/hang")}), user.home() + "/out", user.home() + "/err");
    for (int i = 0; i < 10'000 && origin.served() == 0; i++) usleep(1000);
    REQUIRE(origin.served() == 1);
    kill(engine_of(hung), SIGKILL);
    CHECK(wait_for(hung, 30) != 0);
    Ended e = user.run({"send", "s", origin.url("/")});
    CAPTURE(e.out, e.err);
    CHECK(e.status == 1);
    CHECK(has(e.out, "1 of 1 sends"));
    CHECK(origin.connections() == 1);
  }
}

TEST_CASE("all redirects of a send share what an answer may have") {
  Origin origin([](const std::string& r) {
    return has(r, "GET /1") ? "HTTP/1.1 302 Found\r\nLocation: /2\r\nContent-Length: 600\r\n\r\n" + std::string(600, 'a') : ok(std::string(600, 'b'));
  });
  User user(people().back());
  user.open("s", {origin.url("")});
  CHECK(user.run({"send", "s", origin.url("/1"), "--follow", "1", "--max-bytes", "1000"}).status == 1);
  CHECK(user.records("s", "outcome")[1]["body"]["ended"].string() == "refused");
  // One whose first hop takes all of it has no second.
  CHECK(user.run({"send", "s", origin.url("/1"), "--follow", "1", "--max-bytes", "700"}).status == 1);
  CHECK(user.run({"send", "s", origin.url("/1"), "--follow", "1", "--max-bytes", "2000"}).status == 0);
}

TEST_CASE("a box holds to the budget as the host does") {
  for (uid_t uid : people()) {
    if (uid == 0) continue;
    Origin origin([](const std::string&) { return ok(); });
    Boxed b(uid);
    Json opened = b.json_of({"open", "s", "--scope", origin.url(""), "--in", "out", "--max-sends", "2", "--durable"});
    CHECK(opened["budget"]["sends"].integer() == 2);
    CHECK(b.json_of({"send", "s", origin.url("/a")})["budget"]["sends"]["spent"].integer() == 1);
    b.json_of({"send", "s", origin.url("/b")});
    Json no = b.json_of({"send", "s", origin.url("/c")}, 1);
    CHECK(no["rows"].array()[0]["why"].string() == "budget");
    CHECK(origin.connections() == 2);
    CHECK(b.of("s", "box-claimed").empty());
  }
}

TEST_CASE("a budget that is no number is refused, and no session is there") {
  User user(people().back());
  for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{
           {"--max-sends", "0"}, {"--max-sends", "-1"}, {"--max-sends", "many"}, {"--max-sends", ""}, {"--max-wire", "0"}, {"--max-wire", "10Q"}, {"--max-decoded", "1e9"}, {"--max-time", "0s"}, {"--max-time", "5"}}) {
    Ended e = user.run({"open", "s", "--scope", "app.test", option, value});
    CAPTURE(option, value, e.out, e.err);
    CHECK(e.status == 64);
    CHECK(has(e.err, option));
  }
  CHECK_FALSE(std::filesystem::exists(user.folder("s")));
}

TEST_CASE("a durable session's line is on the disk before the connection") {
  if (no_tracer()) return;
  Origin origin([](const std::string&) { return ok(); });
  for (bool durable : {true, false}) {
    CAPTURE(durable);
    User user(0);
    user.open("s", {origin.url("")}, durable ? std::vector<std::string>{"--durable"} : std::vector<std::string>{});
    auto calls = traced(user.h5i({"send", "s", origin.url("/1")}), user.home() + "/trace");
    const size_t record = first(calls, "write(", "\\\"head_sha256\\\""), dialled = first(calls, "connect(", "htons(" + origin.port() + ")");
    REQUIRE((record < dialled && dialled < calls.size()));
    const size_t flushed = first(calls, "fdatasync(", "", record);
    CHECK((flushed < dialled) == durable);
    if (durable) {
      CHECK(calls[flushed].find("= 0") != std::string::npos);
      // The same descriptor that the line went to.
      const size_t open = calls[record].find("write(") + 6;
      CHECK(calls[flushed].find("fdatasync(" + calls[record].substr(open, calls[record].find(',') - open) + ")") != std::string::npos);
    }
  }
}
