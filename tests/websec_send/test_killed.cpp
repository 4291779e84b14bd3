// The engine, or the h5i that waits for it, is killed at a moment that nobody chose.
#include <random>

#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

TEST_CASE("what an origin saw is in the log whoever was killed, and the next act says what is not known") {
  const char* asked = getenv("H5I_ENDURANCE_ROUNDS");
  const int rounds = asked ? atoi(asked) : 20;
  std::mt19937 random(20260 + static_cast<unsigned>(getpid()));
  Origin origin([](const std::string&) {
    usleep(3000);
    return ok();
  });
  for (uid_t uid : people()) {
    User user(uid);
    user.open("s", {origin.url("")});
    const size_t before = origin.requests().size();
    int killed = 0;
    for (int i = 0; i < rounds; i++) {
      pid_t h5i = start(user.h5i({"send", "s", origin.url("/" + std::to_string(i))}), user.home() + "/out", user.home() + "/err");
      pid_t engine = engine_of(h5i);
      if (engine < 0) {  // it was done before it was seen
        wait_for(h5i, 60);
        continue;
      }
      killed++;
      usleep(std::uniform_int_distribution<useconds_t>(0, 60'000)(random));
      kill(i % 2 ? engine : h5i, SIGKILL);
      wait_for(h5i, 30);
      for (int n = 0; n < 1000 && runs(engine); n++) usleep(1000);
      CHECK_FALSE(runs(engine));  // it ends with whoever started it
    }
    CHECK(killed > rounds / 2);
    Ended last = user.run({"send", "s", origin.url("/last")});
    CAPTURE(uid, last.out, last.err);
    CHECK(last.status == 0);
    CHECK(evidence::verify_chain(user.log("s")));
    std::vector<std::string> recorded;
    for (const Json& r : user.records("s", "send")) recorded.push_back(r["body"]["head_sha256"].string());
    auto seen = origin.requests();
    for (size_t i = before; i < seen.size(); i++) CHECK(std::count(recorded.begin(), recorded.end(), sha256_hex(seen[i])) == 1);
    const size_t open = user.records("s", "send").size() - user.records("s", "outcome").size();
    Ended hist = user.run({"hist", "s", "ended:unknown-outcome", "--json"});
    auto rows = json::parse(hist.out);
    REQUIRE(rows);
    CHECK((*rows)["rows"].array().size() == open);
    CHECK_FALSE(std::filesystem::exists(user.folder("s") + "/serving"));
  }
}

TEST_CASE("while an act is at work its sends are under way, and only when it was killed does nobody know") {
  Origin origin([](const std::string& r) {
    if (r.starts_with("GET /slow")) usleep(1'500'000);
    return ok();
  });
  for (uid_t uid : people()) {
    User user(uid);
    user.open("s", {origin.url("")});
    auto ends = [&] {
      std::vector<std::string> out;
      Ended hist = user.run({"hist", "s", "--json"});
      auto doc = json::parse(hist.out);
      REQUIRE(doc);
      for (const Json& row : (*doc)["rows"].array()) out.push_back(row["ended"].string());
      return out;
    };
    auto begun = [&] {
      pid_t h5i = start(user.h5i({"send", "s", origin.url("/slow")}), user.home() + "/out", user.home() + "/err");
      const size_t before = user.records("s", "send").size();
      for (int i = 0; i < 5000 && user.records("s", "send").size() == before; i++) usleep(1000);
      return h5i;
    };
    const pid_t first = begun();
    CHECK(ends() == std::vector<std::string>{"under-way"});
    CHECK(user.run({"hist", "s"}).out.find("under-way") != std::string::npos);
    wait_for(first, 30);
    CHECK(ends() == std::vector<std::string>{"complete"});
    const pid_t second = begun(), engine = engine_of(second);
    kill(engine, SIGKILL);
    kill(second, SIGKILL);
    wait_for(second, 30);
    CHECK(ends() == std::vector<std::string>{"complete", "unknown-outcome"});
    const pid_t third = begun();  // beside one of an earlier act
    CHECK(ends() == std::vector<std::string>{"complete", "unknown-outcome", "under-way"});
    wait_for(third, 30);
    CHECK(ends() == std::vector<std::string>{"complete", "unknown-outcome", "complete"});
  }
}
