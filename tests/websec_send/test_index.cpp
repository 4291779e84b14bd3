// What a session answers does not depend on what became of the index of its log.
#include <fcntl.h>
#include <sys/file.h>

#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/support/schema.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json json_of(const Ended& e) {
  CAPTURE(e.out, e.err);
  auto v = json::parse(e.out);
  REQUIRE(v);
  return std::move(*v);
}

const std::vector<std::vector<std::string>> kQuestions = {
    {"hist", "s", "--json"},         {"hist", "s"},
    {"hist", "s", "status:404"},     {"hist", "s", "host:127", "status:2xx", "--last", "2"},
    {"hist", "s", "refused:yes"},    {"hist", "s", "path:%1b"},
    {"hist", "s", "path:'"},         {"hist", "s", "type:x"},
    {"hist", "s", "host:nobody"},    {"hist", "s", "--last", "all", "--json"},
    {"show", "s", "2", "--json"},    {"show", "s", "4000", "--json"},
    {"diff", "s", "2", "5", "--json"}, {"match", "s", "2", "status:200", "--json"},
    {"finding", "s", "list", "--json"}, {"export", "s", "--format", "jsonl"}, {"export", "s", "--format", "har", "status:404"}};

std::string answers(const User& user) {
  std::string out;
  for (const auto& words : kQuestions) {
    Ended e = user.run(words);
    for (const std::string& w : words) out += w + " ";
    out += std::to_string(e.status) + "\n" + e.out + e.err + "\n";
  }
  return out;
}

struct Session {
  explicit Session(uid_t uid)
      : user(uid), origin([](const std::string& request) {
          const bool missing = request.find(" /missing") != std::string::npos;
          return std::string("HTTP/1.1 ") + (missing ? "404 \x1b[31mNo" : "200 OK") + "\r\nContent-Type: " + (missing ? "x/<script>'\"" : "text/html") + "\r\nContent-Length: 2\r\n\r\nhi";
        }) {
    user.open("s", {origin.url()}, {"--capture"});
    for (const char* path : {"/", "/missing", "/a%1b%5b31m'%22%00", "/%ff/../;DROP%20TABLE%20sent", "/missing?q=1"}) REQUIRE(user.run({"send", "s", origin.url(path)}).status == 0);
    REQUIRE(user.run({"send", "s", "http://127.0.0.2:" + origin.port() + "/"}).status == 1);  // refused
    REQUIRE(user.run({"finding", "s", "add", "--title", "t", "--severity", "low", "--cite", "2"}).status == 0);
  }
  std::string index() const { return user.folder("s") + "/state/index"; }
  std::string rows() const { return index() + "/rows"; }
  // What the log says, without any index: its place is taken.
  std::string from_log() const {
    std::filesystem::remove_all(index());
    std::ofstream(index()) << "in the way";
    std::string out = answers(user);
    REQUIRE(std::filesystem::is_regular_file(index()));
    std::filesystem::remove(index());
    return out;
  }
  User user;
  Origin origin;
};

void put(const std::string& path, const std::string& bytes) {
  std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
  REQUIRE(out.good());
  out << bytes;
  out.close();
  std::filesystem::resize_file(path, bytes.size());
}

}  // namespace

TEST_CASE("whatever becomes of a session's index, its verbs say what its log says") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Session s(uid);
    const std::string expected = s.from_log();
    REQUIRE(has(expected, "refused:yes 0"));
    REQUIRE(has(expected, "show s 2 --json 0"));
    CHECK((answers(s.user) == expected));
    const std::string good = read_file(s.rows());
    REQUIRE(good.size() > 4096);
    struct stat st {};
    REQUIRE((stat(s.rows().c_str(), &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_uid == s.user.uid()));
    CHECK(read_file(s.index() + "/lock").empty());

    auto after = [&](const char* what, const std::function<void()>& damage) {
      CAPTURE(what);
      damage();
      CHECK((answers(s.user) == expected));
    };
    after("missing", [&] { std::filesystem::remove(s.rows()); });
    after("missing, with its folder", [&] { std::filesystem::remove_all(s.index()); });
    after("cut in half", [&] { put(s.rows(), good.substr(0, good.size() / 2)); });
    std::string bytes = good;
    bytes[bytes.size() / 2 + 100] ^= 1;
    after("one bit of a page", [&] { put(s.rows(), bytes); });
    after("zeros", [&] { put(s.rows(), std::string(good.size(), '\0')); });
    after("a writer was killed", [&] { std::ofstream(s.index() + "/lock") << "w"; });
    after("no right to write", [&] { REQUIRE((chmod(s.rows().c_str(), 0400) == 0 && chmod((s.index() + "/lock").c_str(), 0400) == 0 && chmod(s.index().c_str(), 0500) == 0)); });
    REQUIRE((chmod(s.index().c_str(), 0700) == 0 && chmod((s.index() + "/lock").c_str(), 0600) == 0 && chmod(s.rows().c_str(), 0600) == 0));

    // Of another session, which has as many lines.
    Session other(uid);
    for (int i = 0; i < 3; i++) REQUIRE(other.user.run({"send", "s", other.origin.url("/missing")}).status == 0);
    REQUIRE(other.user.run({"hist", "s"}).status == 0);
    after("another session's", [&] { put(s.rows(), read_file(other.rows())); });
    CHECK((read_file(s.user.log("s")).size() > 0 && evidence::verify_chain(s.user.log("s"))));
  }
}

TEST_CASE("who asks while sends go on gets an answer, and each is of the log") {
  Session s(people().back());
  std::vector<pid_t> running;
  for (int i = 0; i < 2; i++)
    for (const char* filter : {"status:404", "host:127"}) {
      const std::string out = s.user.home() + "/hist" + std::to_string(running.size());
      Program p = s.user.h5i({"hist", "s", filter, "--json"});
      running.push_back(start(p, out, out + ".err"));
      REQUIRE(s.user.run({"send", "s", s.origin.url("/missing")}).status == 0);
    }
  for (size_t i = 0; i < running.size(); i++) {
    CHECK(wait_for(running[i], 60) == 0);
    auto v = json::parse(read_file(s.user.home() + "/hist" + std::to_string(i)));
    REQUIRE(v);
    CHECK((*v)["rows"].array().size() >= 2);
  }
  const std::string now = answers(s.user);
  CHECK((now == s.from_log()));
  // One that is kept waiting does not wait for ever.
  REQUIRE(s.user.run({"hist", "s"}).status == 0);
  UniqueFd lock(open((s.index() + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE((lock && flock(lock.get(), LOCK_EX) == 0));
  const double began = test::now();
  CHECK(s.user.run({"hist", "s", "status:404"}).status == 0);
  CHECK(test::now() - began < 30);
}

TEST_CASE("hist lists the last thousand unless it is told otherwise, and says that there are more") {
  User user(people().back());
  user.open("s", {"http://a.test"});
  constexpr int kSends = 2600;
  {
    auto log = evidence::Log::open(user.log("s"));
    REQUIRE(log);
    evidence::Record r;
    r.observer = evidence::Observer::plugin("http", PluginDigest(std::string(64, '0')));
    r.observer.lane = evidence::Lane::ENGINE_CLAIMED;
    const std::string filler(1500, 'x');
    for (int i = 0; i < kSends; i++) {
      r.kind = "send";
      r.body = json::Object{{"method", "GET"}, {"url", "http://a.test/" + std::to_string(i)}, {"filler", filler}};
      auto sent = log->append(r);
      REQUIRE(sent);
      r.kind = "outcome";
      r.body = json::Object{{"of", sent->count - 1}, {"ended", "complete"}, {"status", i % 2 ? 200 : 404}};
      REQUIRE(log->append(r));
    }
  }
  auto numbers = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"hist", "s", "--json"});
    Json v = json_of(user.run(words));
    std::vector<std::string> out;
    for (const Json& row : v["rows"].array()) out.push_back(row["record"]["url"].string().substr(14));
    return std::pair(out, v["cut"].boolean());
  };
  auto [usual, usual_cut] = numbers({});
  CHECK((usual.size() == 1000 && usual_cut && usual.front() == std::to_string(kSends - 1000) && usual.back() == std::to_string(kSends - 1)));
  auto [two, two_cut] = numbers({"--last", "2", "status:404"});
  CHECK((two == std::vector<std::string>{std::to_string(kSends - 4), std::to_string(kSends - 2)} && two_cut));
  // More than one answer of the engine holds.
  auto [all, all_cut] = numbers({"--last", "all"});
  REQUIRE((all.size() == kSends && !all_cut));
  for (int i = 0; i < kSends; i++) REQUIRE(all[static_cast<size_t>(i)] == std::to_string(i));
  auto [one, one_cut] = numbers({"path:/1234"});
  CHECK((one == std::vector<std::string>{"1234"} && !one_cut));

  Ended people_read = user.run({"hist", "s"});
  CHECK((people_read.status == 0 && has(people_read.err, "--last N or --last all") && std::count(people_read.out.begin(), people_read.out.end(), '\n') == 1000));
  Ended whole = user.run({"hist", "s", "--last", "all"});
  CHECK((whole.err.empty() && std::count(whole.out.begin(), whole.out.end(), '\n') == kSends));
  for (const char* wrong : {"x", "-1", "1.5", "10000000000", "ALL"}) CHECK(user.run({"hist", "s", "--last", wrong}).status == 64);
  Ended none = user.run({"hist", "s", "--last", "0"});
  CHECK((none.status == 0 && has(none.out, "no send") && has(none.err, "--last all")));
}

TEST_CASE("the document of a history fits its schema") {
  Session s(people().back());
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"hist", "s", "--json"}, {"hist", "s", "--last", "1", "--json"}, {"hist", "s", "host:nobody", "--json"}})
    for (const std::string& error : schema_errors_of_text("websec-hist", s.user.run(words).out)) FAIL_CHECK(error);
}
