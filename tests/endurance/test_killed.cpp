// Each process of ours killed once, in the middle of a run: what is said, recorded and left (invariant I9).
#include <signal.h>

#include "core/session/live.hpp"
#include "tests/cli/made_box.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

struct Running {
  pid_t core = 0, host = 0, spawner = 0;
  session::Live live;
};

// Starts a command with a daemon of its own and waits until both run.
Running begin(const RunWorld& w, const session::BoxPaths& paths, const std::string& mark) {
  Running r;
  r.core = start(w.sh("fix", "setsid sleep " + mark + " & echo ready; sleep " + mark), w / "home/out", w / "home/err");
  REQUIRE(soon([&] { return read_file(w / "home/out") == "ready\n" && processes_with("sleep" + std::string(1, '\0') + mark).size() >= 2; }));
  auto live = session::read_live(paths);
  REQUIRE(live);
  REQUIRE(*live);
  r.live = **live;
  for (const auto& p : r.live.processes) {
    if (p.role == "host") r.host = p.pid;
    if (p.role == "spawner") r.spawner = p.pid;
  }
  REQUIRE(r.host > 0);
  REQUIRE(r.spawner > 0);
  return r;
}

bool gone(const std::string& mark) { return processes_with("sleep" + std::string(1, '\0') + mark).empty(); }

template <class Each>
void with_box(Each each) {
  everywhere([&](RunWorld& w, const MadeBox& b) { each(w, w.box(b), b.tier == "process"); });
}

void usable_again(const RunWorld& w, const session::BoxPaths& paths) {
  Ended e = run(w.sh("fix", "exit 4"));
  CAPTURE(e.err);
  CHECK(e.status == 4);
  CHECK_FALSE(*session::read_live(paths));
  CHECK(evidence::verify_chain(paths.log()));
}

}  // namespace

TEST_CASE("h5i killed in the middle of a run: nothing of the box survives, the next command records it") {
  with_box([](RunWorld& w, const session::BoxPaths& paths, bool) {
    std::string mark = "4721" + std::to_string(getpid());
    Running r = begin(w, paths, mark);
    kill(r.core, SIGKILL);
    CHECK(wait_for(r.core, 10) == 1000 + SIGKILL);
    CHECK(soon([&] { return gone(mark); }, 10));
    Ended ls = run(w.h5i({"box", "ls"}));
    CHECK(ls.status == 0);
    CHECK(ls.err.find("swept") != std::string::npos);
    auto sweeps = w.records(paths, "sweep");
    REQUIRE(sweeps.size() == 1);
    CHECK(sweeps[0]["session"].string() == r.live.session.value);
    CHECK(sweeps[0]["body"]["cleanup"].string() == "done");
    usable_again(w, paths);
    CHECK(w.records(paths, "sweep").size() == 1);
  });
}

TEST_CASE("h5i-host killed in the middle of a run: the run ends with 125, a receipt, and no survivor") {
  with_box([](RunWorld& w, const session::BoxPaths& paths, bool) {
    std::string mark = "4722" + std::to_string(getpid());
    Running r = begin(w, paths, mark);
    kill(r.host, SIGKILL);
    int status = wait_for(r.core, 30);
    CHECK(status == 125);
    CHECK(soon([&] { return gone(mark); }, 10));
    auto receipts = w.records(paths, "receipt");
    REQUIRE(receipts.size() == 1);
    CHECK(receipts[0]["body"]["exit_status"].integer() == 125);
    usable_again(w, paths);
  });
}

TEST_CASE("what stood there for a denial is gone after h5i-host or all of ours was killed, in the work tree and outside") {
  for (uid_t uid : users()) {
    RunWorld w(uid);
    const std::string open = w / "home/open", late = open + "/late/name";
    std::filesystem::create_directory(open);
    give(open, uid);
    session::BoxPaths paths = w.box({.write = {open}, .deny = {late, "$WORK/a/key"}});
    for (bool all : {false, true}) {
      CAPTURE(uid, all);
      std::string mark = "4726" + std::to_string(getpid());
      Running r = begin(w, paths, mark);
      // The control: while it runs, both are there.
      CHECK(std::filesystem::exists(late));
      CHECK(std::filesystem::exists(paths.work() + "/a/key"));
      for (pid_t pid : all ? std::vector<pid_t>{r.core, r.host, r.spawner} : std::vector<pid_t>{r.host}) kill(pid, SIGKILL);
      CHECK(wait_for(r.core, 20) == (all ? 1000 + SIGKILL : 125));
      CHECK(soon([&] { return gone(mark); }, 10));
      if (all) CHECK(run(w.h5i({"box", "ls"})).status == 0);
      CHECK(std::filesystem::is_empty(open));
      CHECK_FALSE(std::filesystem::exists(paths.work() + "/a"));
    }
    usable_again(w, paths);
  }
}

TEST_CASE("the spawner killed in the middle of a run: the run ends with 125 and no survivor") {
  with_box([](RunWorld& w, const session::BoxPaths& paths, bool) {
    std::string mark = "4723" + std::to_string(getpid());
    Running r = begin(w, paths, mark);
    kill(r.spawner, SIGKILL);
    int status = wait_for(r.core, 30);
    CHECK(status == 125);
    CHECK(soon([&] { return gone(mark); }, 10));
    usable_again(w, paths);
  });
}

TEST_CASE("all of ours killed at once: at a confining tier nothing survives, at workspace the next command ends the rest") {
  with_box([](RunWorld& w, const session::BoxPaths& paths, bool confined) {
    std::string mark = "4724" + std::to_string(getpid());
    Running r = begin(w, paths, mark);
    for (pid_t pid : {r.core, r.host, r.spawner}) kill(pid, SIGSTOP);  // so that none can act on another's death
    for (pid_t pid : {r.core, r.host, r.spawner}) kill(pid, SIGKILL);
    CHECK(wait_for(r.core, 10) == 1000 + SIGKILL);
    if (confined) CHECK(soon([&] { return gone(mark); }, 10));
    Ended ls = run(w.h5i({"box", "ls"}));
    CHECK(ls.status == 0);
    CHECK(soon([&] { return gone(mark); }, 2));
    CHECK(w.records(paths, "sweep").size() == 1);
    usable_again(w, paths);
  });
}
