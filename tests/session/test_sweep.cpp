#include <signal.h>
#include <sys/wait.h>

#include "core/evidence/log.hpp"
#include "core/session/sweep.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;
using namespace h5i::test;

namespace {

// Sleeps until it is killed; with `mark`, its start environment carries the session.
pid_t sleeper(const std::string& mark = {}) {
  pid_t pid = fork();
  if (pid == 0) {
    std::string variable = "H5I_SESSION=" + mark;
    const char* argv[] = {"sleep", "1000", nullptr};
    const char* marked[] = {variable.c_str(), nullptr};
    const char* plain[] = {nullptr};
    execve("/bin/sleep", const_cast<char**>(argv), const_cast<char**>(mark.empty() ? plain : marked));
    _exit(127);
  }
  for (int i = 0; i < 500; i++) {  // until exec happened, so that its environment is the one that we look for
    char target[256];
    ssize_t n = readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), target, sizeof target);
    if (n > 0 && std::string(target, static_cast<size_t>(n)).find("sleep") != std::string::npos) break;
    if (n > 0 && std::string(target, static_cast<size_t>(n)).find("coreutils") != std::string::npos) break;
    usleep(2000);
  }
  return pid;
}

bool ended_by_kill(pid_t pid) {
  int status = 0;
  for (int i = 0; i < 500; i++) {
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    usleep(2000);
  }
  return false;
}

void end(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

struct DeadRun {
  Scratch s;
  BoxEntry box;
  Live live;
  DeadRun() {
    Manifest m = some_manifest("human", "fix");
    m.state = BoxState::RUNNING;
    box = {m.name, make_box(s / "boxes", m)};
    live.session = *new_session_id();
    live.verb = "box run";
    live.started = rfc3339(realtime_ns());
    live.boot = boot_id();
    live.tier = "workspace";
  }
  void save() { REQUIRE(write_live(box.paths, live)); }
  std::vector<Json> records(const std::string& kind) {
    std::vector<Json> out;
    auto read = evidence::read_log(box.paths.log(), [&](uint64_t, const Json& r) {
      if (r["kind"].string() == kind) out.push_back(r);
      return true;
    });
    (void)read;
    return out;
  }
};

}  // namespace

TEST_CASE("what a live record says is read back") {
  DeadRun run;
  run.live.processes = {{"host", 4242, 77}, {"init", 4243, 78}};
  run.live.groups = "/sys/fs/cgroup/a.service";
  run.save();
  auto back = read_live(run.box.paths);
  REQUIRE(back);
  REQUIRE(*back);
  CHECK((*back)->session == run.live.session);
  CHECK((*back)->processes.size() == 2);
  CHECK((*back)->processes[1].start == 78);
  CHECK((*back)->groups == "/sys/fs/cgroup/a.service");
  REQUIRE(clear_live(run.box.paths));
  CHECK_FALSE(*read_live(run.box.paths));
  for (const char* bad : {"{", "{\"schema\":\"h5i.live/2\"}", R"({"schema":"h5i.live/1","processes":[{"pid":1,"start":5}]})",
                          R"({"schema":"h5i.live/1","processes":[{"pid":-5,"start":5}]})", R"({"schema":"h5i.live/1","groups":"a.service"})",
                          R"({"schema":"h5i.live/1","processes":[{"pid":500,"start":0}]})"}) {
    write_file(run.box.paths.live(), bad);
    CHECK(read_live(run.box.paths).error().code == Errc::CORRUPT);
  }
}

TEST_CASE("a recorded survivor is killed and recorded, and the box is idle again") {
  DeadRun run;
  pid_t survivor = sleeper();
  run.live.processes = {{"workload", survivor, process_start(survivor)}};
  run.save();
  const std::vector<std::string> half = {kNewLive, ".manifest.json.01ABC", ".policy.resolved.json.01ABC", "control"};
  for (const std::string& name : half) write_file(run.box.paths.dir + "/" + name, "half");
  write_file(run.box.paths.dir + "/notes", "whole");
  auto swept = sweep_box(run.box, nullptr);
  REQUIRE(swept);
  REQUIRE(*swept);
  CHECK(ended_by_kill(survivor));
  REQUIRE((*swept)->killed.size() == 1);
  CHECK((*swept)->killed[0].pid == survivor);
  CHECK((*swept)->removed == half);
  for (const std::string& name : half) CHECK_FALSE(std::filesystem::exists(run.box.paths.dir + "/" + name));
  CHECK(std::filesystem::exists(run.box.paths.dir + "/notes"));
  CHECK(load_manifest(run.box.paths)->state == BoxState::IDLE);
  CHECK_FALSE(*read_live(run.box.paths));
  auto records = run.records("sweep");
  REQUIRE(records.size() == 1);
  CHECK(records[0]["session"].string() == run.live.session.value);
  CHECK(records[0]["lane"].string() == "host-observed");
  CHECK(records[0]["body"]["killed"].array()[0]["pid"].integer() == survivor);
  CHECK_FALSE(*sweep_box(run.box, nullptr));  // nothing is left for a second one
  CHECK(run.records("sweep").size() == 1);
}

TEST_CASE("a process whose id was reused since is not killed") {
  DeadRun run;
  pid_t innocent = sleeper();
  run.live.processes = {{"workload", innocent, process_start(innocent) - 1}};
  run.save();
  auto swept = sweep_box(run.box, nullptr);
  REQUIRE(swept);
  CHECK((*swept)->killed.empty());
  CHECK(kill(innocent, 0) == 0);
  CHECK(process_start(innocent) != 0);
  end(innocent);
}

TEST_CASE("after a reboot nothing of the record is looked for") {
  DeadRun run;
  pid_t innocent = sleeper();
  run.live.boot = "another boot";
  run.live.processes = {{"workload", innocent, process_start(innocent)}};
  run.save();
  REQUIRE(*sweep_box(run.box, nullptr));
  CHECK(process_start(innocent) != 0);
  end(innocent);
}

TEST_CASE("a survivor that no record names is found by the session's mark, and another session's is left alone") {
  DeadRun run;
  pid_t ours = sleeper(run.live.session.value), other = sleeper(new_session_id()->value), longer = sleeper(run.live.session.value + "X");
  run.save();
  auto swept = sweep_box(run.box, nullptr);
  REQUIRE(swept);
  CHECK(ended_by_kill(ours));
  REQUIRE((*swept)->killed.size() == 1);
  CHECK((*swept)->killed[0].role == "found");
  CHECK(process_start(other) != 0);
  CHECK(process_start(longer) != 0);
  end(other);
  end(longer);
}

TEST_CASE("children of a survivor are killed with it") {
  DeadRun run;
  int out[2];
  REQUIRE(pipe(out) == 0);
  pid_t parent = fork();
  if (parent == 0) {
    pid_t child = sleeper();
    if (write(out[1], &child, sizeof child) != sizeof child) _exit(1);
    for (;;) pause();
  }
  pid_t child = 0;
  REQUIRE(read(out[0], &child, sizeof child) == sizeof child);
  close(out[0]);
  close(out[1]);
  run.live.processes = {{"workload", parent, process_start(parent)}};
  run.save();
  auto swept = sweep_box(run.box, nullptr);
  REQUIRE(swept);
  CHECK((*swept)->killed.size() == 2);
  CHECK(ended_by_kill(parent));
  CHECK(process_start(child) == 0);
}

TEST_CASE("a box that runs is not swept") {
  DeadRun run;
  pid_t worker = sleeper();
  run.live.processes = {{"workload", worker, process_start(worker)}};
  run.save();
  auto lock = BoxLock::acquire(run.box.paths, "box run");
  REQUIRE(lock);
  auto swept = sweep_box(run.box, nullptr);
  REQUIRE(swept);
  CHECK_FALSE(*swept);
  CHECK(process_start(worker) != 0);
  end(worker);
}

TEST_CASE("a run that was killed while it wrote its first record leaves nothing, and one that writes it is not disturbed") {
  DeadRun d;
  std::string half = d.box.paths.dir + "/" + kNewLive;
  write_file(half, "{");
  {
    auto lock = BoxLock::acquire(d.box.paths, "box run");
    REQUIRE(lock);
    auto swept = sweep_box(d.box, {});
    REQUIRE(swept);
    CHECK_FALSE(*swept);
    CHECK(std::filesystem::exists(half));
  }
  auto swept = sweep_box(d.box, {});
  REQUIRE(swept);
  CHECK_FALSE(*swept);
  CHECK_FALSE(std::filesystem::exists(half));
}

TEST_CASE("the tier is asked to clean up, and what it could not do is recorded") {
  DeadRun run;
  run.save();
  std::string asked;
  auto swept = sweep_box(run.box, [&](const std::string& tier, const SessionId& session) -> Result<void> {
    asked = tier + " " + session.value;
    return make_error(Errc::TIER_NOT_INSTALLED, "the tier is gone", "no file");
  });
  REQUIRE(swept);
  CHECK(asked == "workspace " + run.live.session.value);
  CHECK(run.records("sweep")[0]["body"]["cleanup"].string() == "the tier is gone: no file");
}

TEST_CASE("a damaged record of a run is recorded as such and does not block the box for ever") {
  DeadRun run;
  write_file(run.box.paths.live(), "garbage");
  auto swept = sweep_box(run.box, nullptr);
  REQUIRE(swept);
  REQUIRE(*swept);
  CHECK(run.records("sweep")[0]["body"]["cleanup"].string().find("not known") != std::string::npos);
  CHECK_FALSE(*sweep_box(run.box, nullptr));
}
