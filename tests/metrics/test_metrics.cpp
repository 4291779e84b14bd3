// h5i metrics over boxes that ran, refused and went.
#include "tests/cli/project.hpp"
#include "tests/support/schema.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {
int64_t runs_of(const Json& v, const std::string& tier, const std::string& outcome) {
  for (const Json& r : v["runs"].array())
    if (r["tier"].string() == tier && r["outcome"].string() == outcome) return r["count"].integer();
  return 0;
}
Json figures(const Project& p) {
  Ended e = p.ok({"metrics", "--json"});
  for (const std::string& error : schema_errors_of_text("metrics", e.out)) FAIL_CHECK(error);
  return *json::parse(e.out);
}
}  // namespace

TEST_CASE("the figures of boxes that ran, from anywhere, and of those that are gone") {
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Project p(uid);
    CHECK(figures(p)["runs"].array().empty());
    p.create("one");
    p.create("two", "workspace");
    p.ok({"box", "run", "one", "--", "true"});
    p.ok({"box", "run", "one", "--", "false"}, 1);
    p.ok({"box", "run", "two", "--", "true"});
    p.ok({"box", "run", "one", "--", "/bin/sh", "-c", "kill -9 $$"}, 137);
    // A run that is refused before anything ran: its policy is not what it was.
    write_file(p / "r/.git/h5i/boxes/human/two/policy.resolved.json", "{}");
    if (geteuid() == 0) REQUIRE(chown((p / "r/.git/h5i/boxes/human/two/policy.resolved.json").c_str(), uid, uid) == 0);
    p.ok({"box", "run", "two", "--", "true"}, 125);
    Json v = figures(p);
    CHECK(runs_of(v, "process", "exited") == 2);
    CHECK(runs_of(v, "process", "signaled") == 1);
    CHECK(runs_of(v, "workspace", "exited") == 1);
    int64_t refused = 0;
    for (const Json& r : v["refusals"].array()) refused += r["count"].integer();
    CHECK(refused == 1);
    CHECK(v["unreadable_logs"].integer() == 0);
    // A box that is removed leaves its evidence, and what was counted stays counted; from another place too.
    p.ok({"box", "rm", "one", "--force"});
    Program elsewhere = p.h5i({"metrics", "--json"});
    elsewhere.cwd = "/";
    Ended e = run(elsewhere);
    CHECK(e.status == 0);
    CHECK(runs_of(*json::parse(e.out), "process", "exited") == 2);
    // As text, and in a file that is whole or not there.
    const std::string text = p.ok({"metrics"}).out;
    CHECK(text.find("\nh5i_runs_total{tier=\"process\",outcome=\"exited\"} 2\n") != std::string::npos);
    CHECK(p.ok({"metrics", "--textfile", p / "h5i.prom"}).out.empty());
    CHECK(read_file(p / "h5i.prom") == text);
    struct stat st {};
    REQUIRE(stat((p / "h5i.prom").c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0644);
    CHECK(p.ok({"metrics", "--textfile", p / "no/such/folder.prom"}, 1).err.find("\n  see: ") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(p / "no"));
    p.ok({"metrics", "--textfile", ""}, 2);
    // A log that breaks off is told.
    std::ofstream(p / "r/.git/h5i/boxes/human/two/log.jsonl", std::ios::app) << "nonsense\n";
    CHECK(figures(p)["unreadable_logs"].integer() == 1);
    CHECK(p.ok({"metrics", "--help"}).out.find("--textfile") != std::string::npos);
  }
}
