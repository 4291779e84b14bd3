// Many at once: on one log, on one box, on one repository. Whoever is in the way is told so or waits; nothing is half done,
// and every record is whole.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <map>

#include "core/evidence/log.hpp"
#include "tests/cli/project.hpp"
#include "tests/endurance/census.hpp"
#include "tests/endurance/chance.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// `work` in `n` processes of their own at once; the exit statuses.
std::vector<int> at_once(int n, const std::function<int(int)>& work) {
  int gate[2];
  REQUIRE(pipe2(gate, O_CLOEXEC) == 0);
  std::vector<pid_t> pids;
  for (int i = 0; i < n; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      char c;
      close(gate[1]);
      (void)!read(gate[0], &c, 1);  // until all are there
      _exit(work(i));
    }
    pids.push_back(pid);
  }
  close(gate[0]);
  close(gate[1]);
  std::vector<int> out;
  for (pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    out.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
  }
  return out;
}

std::map<std::string, int> kinds_of(const session::BoxPaths& paths) {
  std::map<std::string, int> out;
  CHECK(evidence::read_log(paths.log(), [&](uint64_t, const Json& r) {
    out[r["kind"].string()]++;
    return true;
  }));
  return out;
}

}  // namespace

TEST_CASE("64 records that 8 processes append at once are 64 records in one chain") {
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Project p(uid);
    p.create("fix");
    auto before = evidence::verify_chain(p.paths("fix").log());
    REQUIRE(before);
    // A refused run appends its record without the box's lock: while we hold that, all of them are refused.
    {
      auto lock = session::BoxLock::acquire(p.paths("fix"), "test");
      REQUIRE(lock);
      for (int status : at_once(8, [&](int) {
             for (int i = 0; i < 8; i++) {
               Ended e = run(p.h5i({"box", "run", "fix", "--", "true"}));
               if (e.status != 125 || !is_refusal(e.err, "box.busy")) return 1;
             }
             return 0;
           }))
        CHECK(status == 0);
    }
    auto after = evidence::verify_chain(p.paths("fix").log());
    REQUIRE(after);
    CHECK(after->records == before->records + 64);
    CHECK(kinds_of(p.paths("fix"))["run-refused"] == 64);
    p.ok({"log", "verify", "fix", "--allow-unsealed"});
  }
}

TEST_CASE("of two runs on one box one is told that it is busy, by whom, and leaves its record") {
  for (uid_t uid : users())
    for (const char* tier : {"workspace", "process"}) {
      CAPTURE(uid, tier);
      Project p(uid);
      p.create("fix", tier);
      pid_t first = start(p.h5i({"box", "run", "fix", "--", "sh", "-c", "echo ready; sleep 60"}), p / "out", p / "err");
      REQUIRE(soon([&] { return read_file(p / "out") == "ready\n"; }));
      Ended second = run(p.h5i({"box", "run", "fix", "--", "true"}));
      CAPTURE(second.err);
      CHECK(second.status == 125);
      CHECK(is_refusal(second.err, "box.busy"));
      CHECK(second.err.find("process " + std::to_string(first)) != std::string::npos);
      kill(first, SIGTERM);
      CHECK(wait_for(first, 30) == 143);
      CHECK(kinds_of(p.paths("fix"))["run-refused"] == 1);
      CHECK(run(p.h5i({"box", "run", "fix", "--", "true"})).status == 0);
    }
}

TEST_CASE("eight runs, proposals and looks at once on one box: in turn or refused, every record whole") {
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Project p(uid);
    p.create("fix");
    write_file(p.paths("fix").work() + "/new.txt", "new\n");
    if (uid != 0) give(p.paths("fix").work(), uid);
    const int rounds_each = 6;
    std::vector<int> statuses = at_once(10, [&](int i) {
      int odd = 0;
      for (int round = 0; round < rounds_each; round++) {
        std::vector<std::string> words = i < 8 ? std::vector<std::string>{"box", "run", "fix", "--", "sh", "-c", "exit 5"}
                                         : i == 8 ? std::vector<std::string>{"box", "propose", "fix", "--message", "m"} : std::vector<std::string>{"box", "diff", "fix"};
        Ended e = run(p.h5i(words));
        bool fine = e.status == (i < 8 ? 5 : 0) || (e.status == (i < 8 ? 125 : 1) && is_refusal(e.err, "box.busy"));
        if (!fine) {
          fprintf(stderr, "%s: %d %s\n", words[1].c_str(), e.status, e.err.c_str());
          odd++;
        }
      }
      return odd;
    });
    for (int odd : statuses) CHECK(odd == 0);
    auto kinds = kinds_of(p.paths("fix"));
    CHECK(kinds["receipt"] + kinds["run-refused"] == 8 * rounds_each);
    CHECK(kinds["receipt"] >= 1);
    CHECK(kinds["receipt"] == kinds["run-requested"]);
    CHECK(evidence::verify_chain(p.paths("fix").log()));
    p.ok({"box", "propose", "fix", "--message", "m"});
    p.ok({"log", "verify", "fix"});
    CHECK(soon([] { return descendants().empty(); }));
    CHECK(joined(holds_on(p / "")) == "");
  }
}

TEST_CASE("two applies at once: in turn or refused, never half") {
  const int n = rounds(20);
  int both = 0, refused = 0;
  for (int round = 0; round < n; round++) {
    uid_t uid = users()[static_cast<size_t>(round) % users().size()];
    CAPTURE(uid, round);
    static std::map<uid_t, std::unique_ptr<Project>> projects;
    auto& p = projects[uid];
    if (!p) p = std::make_unique<Project>(uid);
    std::string mark = std::to_string(round);
    for (const char* box : {"one", "two"}) {
      p->create(box, "workspace");
      for (int i = 0; i < 10; i++) write_file(p->paths(box).work() + "/" + box + "-" + mark + "/" + std::to_string(i), mark);
      if (uid != 0) give(p->paths(box).work(), uid);
    }
    std::vector<int> statuses = at_once(2, [&](int i) {
      Ended e = run(p->h5i({"box", "apply", i ? "one" : "two", "--yes"}));
      if (e.status == 0) return 0;
      if (is_refusal(e.err, "busy") || is_refusal(e.err, "git.ref-changed")) return 1;
      fprintf(stderr, "%d %s\n", e.status, e.err.c_str());
      return 2;
    });
    CHECK(statuses[0] < 2);
    CHECK(statuses[1] < 2);
    CHECK(statuses[0] + statuses[1] < 2);  // one at least gets through
    (statuses[0] + statuses[1] == 0 ? both : refused)++;
    CHECK(p->git("status --porcelain -uall").out == "");
    for (int i = 0; i < 2; i++) {
      std::string name = i ? "one" : "two";
      size_t files = 0;
      std::error_code none;
      for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(*p / ("r/" + name + "-" + mark), none)) files++;
      CHECK(files == (statuses[static_cast<size_t>(i)] == 0 ? 10 : 0));
      if (statuses[static_cast<size_t>(i)] == 1) p->ok({"box", "apply", name, "--yes"});
      p->ok({"box", "rm", name, "--force"});
    }
    if (round >= n - static_cast<int>(users().size())) p->git("fsck --strict --no-dangling");
    if (round == n - 1) projects.clear();
  }
  printf("two applies at once, %d times: both %d, one refused %d\n", n, both, refused);
}
