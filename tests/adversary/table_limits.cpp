// Group E: resources, and who is left when a run is over.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/adversary/cases.hpp"
#include "tests/adversary/world.hpp"
#include "tests/cli/program.hpp"

namespace h5i::adversary {
namespace {

std::string fresh_mark() {
  static int n = 0;
  return "h5i-mark-" + std::to_string(getpid()) + "-" + std::to_string(n++);
}

// Ends what a control left behind; each carries a mark that nobody else has.
void end_marked(const std::string& mark) {
  for (pid_t pid : processes_with(mark)) kill(pid, SIGKILL);
}

bool gone(const std::string& mark, int ms = 3000) {
  for (int waited = 0; waited < ms; waited += 20) {
    if (processes_with(mark).empty()) return true;
    usleep(20000);
  }
  return processes_with(mark).empty();
}

// HOW leaves a process behind and ends with success.
Scene survivor(const std::string& how) {
  return [=](const Place& p) -> std::string {
    std::string mark = fresh_mark();
    Ran r = p.tries({{"leave", how, "73", mark}});
    if (r.answers[0] != "did") return r.answers[0] + r.err;
    if (!p.inside()) {
      std::string out = !processes_with(mark).empty() ? "lives" : "gone";
      end_marked(mark);
      return out;
    }
    if (!gone(mark)) {
      end_marked(mark);
      return "lives";
    }
    bool told = r.receipt["survivors"].array().size() > 0;
    return told ? "gone, and told" : "gone";
  };
}

// What a busy machine, or a guest, adds to the deadline of `short`; whatever runs there would go on for a minute.
double soon(const Place& p) { return p.world->slow() ? 40 : 20; }

// All moods at once, under a deadline.
std::string moods(const Place& p) {
  std::string mark = fresh_mark(), script;
  for (const char* mood : {"stopped", "deaf", "vfork", "group", "spin"}) script += std::string("{attack} mood ") + mood + " 60 " + mark + " & ";
  script += "{attack} mood stopped 60 " + mark;
  if (!p.inside()) {
    std::string file = p.work + "/moods";
    p.world->write(file, p.world->fill("#!/bin/sh\n" + script + "\n", p), 0755);
    pid_t pid = test::start(test::Program{.argv = {"/bin/sh", file}, .cwd = p.work, .uid = p.world->target().uid}, "/dev/null", "/dev/null");
    usleep(2500000);
    std::string out = processes_with(mark).size() >= 5 ? "lives" : "gone";
    end_marked(mark);
    test::wait_for(pid, 5);
    return out;
  }
  double begin = test::now();
  Ran r = p.command({"/bin/sh", "-c", script}, 60);
  double took = test::now() - begin;
  bool all_gone = gone(mark);
  end_marked(mark);
  if (!all_gone) return "lives";
  // A deadline that passes before the box is there has ended nothing.
  if (r.status != 124 || r.receipt["outcome"]["reason"].string() != "run.deadline") return "status " + std::to_string(r.status) + " " + json::canonical(r.receipt["outcome"]) + r.err;
  return took < soon(p) ? "gone by the deadline" : "took " + std::to_string(took) + " s";
}

std::string bomb(const Place& p) {
  if (!p.inside()) return p.tries({{"fork", "40"}}).answers[0];
  std::string mark = fresh_mark();
  double begin = test::now();
  Ran r = p.command({"{attack}", "bomb", "60", mark}, 60);
  double took = test::now() - begin;
  if (!gone(mark)) return "lives";
  double spawn = test::now();
  p.world->host({"/bin/true"}, "/");
  spawn = test::now() - spawn;
  if (r.status != 124 || r.receipt["outcome"]["reason"].string() != "run.deadline") return "status " + std::to_string(r.status) + " " + json::canonical(r.receipt["outcome"]) + r.err;
  if (took > soon(p)) return "took " + std::to_string(took) + " s";
  return spawn < 5 ? "ended by the deadline" : "the host is slow: " + std::to_string(spawn) + " s";
}

// More memory of one kind than the box may have; under a profile that has more, it is had.
Scene pocket(const std::string& kind) {
  return [=](const Place& p) -> std::string {
    Ran r = p.command({"{attack}", "itself", "memory", kind, "200"}, 120);
    if (r.status == 0) return "did";
    const Json& o = r.receipt["outcome"];
    bool told = o["status"].string() == "signaled" && o["code"].integer() == 9 && o["detail"].string().find("resources.mem") == 0;
    return told ? "ended, and told" : "status " + std::to_string(r.status) + " " + json::canonical(o);
  };
}

std::string flood(const Place& p) {
  constexpr const char* kBytes = "60000000";
  Ran r = p.tries({{"output", "1", kBytes}, {"output", "2", "1000000"}}, 120);
  if (r.answers[1] != "did" || r.out.size() < 60000000 || r.err.size() < 1000000) return "lost: " + std::to_string(r.out.size()) + " bytes came";
  if (!p.inside()) return "did";
  const Json& o = r.receipt["output"]["stdout"];
  if (o["bytes"].integer() != static_cast<int64_t>(r.out.size())) return "the receipt says " + std::to_string(o["bytes"].integer());
  return o["captured"].integer() <= 64 << 20 ? "whole, counted" : "captured too much";
}

std::string capped(const Place& p) {
  Ran r = p.tries({{"output", "1", "1000000"}});
  if (r.out.size() < 1000000) return "lost";
  if (!p.inside()) return "did";
  const Json& o = r.receipt["output"]["stdout"];
  return o["truncated"].boolean() && o["captured"].integer() <= 65536 && o["bytes"].integer() >= 1000000 ? "whole to the terminal, capped in the receipt" : json::canonical(o);
}

std::string long_words(const Place& p) {
  Ran r = p.command({"/bin/sh", "-c", "echo ${#1}", "sh", std::string(120000, 'a')});
  if (r.out != "120000\n") return "the argument did not arrive: " + r.err.substr(0, 200);
  if (!p.inside()) return "did";
  Ran name = p.world->h5i({"box", "create", "--name", std::string(200, 'n')});
  if (name.status == 0) return "a name of 200 characters is taken";
  return name.err.find("refused: ") != std::string::npos && name.err.find("because: ") != std::string::npos ? "works, or is refused in words" : name.err;
}

}  // namespace

std::vector<Case> cases_of_limits() {
  const Missing memory_cgroup{"a delegated cgroup v2 with the memory controller", [](const World& w) { return !w.delegated("memory"); }};
  const Missing quota{"project quotas on the file system of the work tree", [](const World& w) { return !w.has_quota(); }};
  std::vector<Case> out = {
      {.id = "E01",
       .what = "a fork bomb, of processes and of threads",
       .must = "PS",
       .claim = "resources.procs",
       .right = "EAGAIN at the limit",
       .profile = "small",
       .tries = {held("fork 64", {"EAGAIN"}, "attack"), held("threads 64", {"EAGAIN"}, "attack")}},
      {.id = "E01",
       .what = "the same without an end",
       .must = "PS",
       .claim = "resources.procs",
       .right = "ended by the deadline, the host stays quick",
       .profile = "short",
       .tries = {watched("a bomb", {"ended by the deadline"}, bomb)}},
      {.id = "E03",
       .what = "private memory",
       .must = "P",
       .claim = "resources.mem",
       .right = "ENOMEM at the limit",
       .profile = "small",
       .tries = {held("memory anonymous 200", {"ENOMEM", "killed 9"}, "attack"), held("memory brk 200", {"ENOMEM", "killed 9"}, "attack")}},
      {.id = "E03",
       .what = "memory file systems of the box",
       .must = "PS",
       .claim = "resources.mem",
       .right = "ENOSPC at their sizes, which together are below the limit",
       .profile = "small",
       .tries = {outside_by(held("files /dev/shm 20 1000000", {"ENOSPC"}), "files {work} 20 1000000"), outside_by(held("files /tmp 80 1000000", {"ENOSPC"}), "files {work} 80 1000000"),
                 outside_by(held("files {home} 40 1000000", {"ENOSPC"}), "files {work} 40 1000000")}},
      {.id = "E03",
       .what = "memory in other pockets: shared, nameless files, System V",
       .must = "P",
       .claim = "resources.mem",
       .right = "killed at the limit where there is a memory cgroup; else declared, with the worst case",
       .profile = "small",
       .tries = {held("memory shared 200", {"killed 9", "ENOMEM"}, "attack"), held("memory memfd 200", {"killed 9", "ENOMEM", "EFBIG", "killed 25"}), held("memory sysv 200", {"killed 9", "ENOMEM"}, "attack")},
       .written_off = WrittenOff{memory_cgroup, "resources.mem"}},
      {.id = "E03",
       .what = "memory of any kind, where a group counts it",
       .must = "S",
       .claim = "resources.mem",
       .right = "the whole box is ended at once, and the receipt says for which limit",
       .profile = "small",
       .tries = {granted_by(watched("anonymous", {"ended, and told"}, pocket("anonymous")), "attack"), watched("brk", {"ended, and told"}, pocket("brk")),
                 watched("shared", {"ended, and told"}, pocket("shared")), watched("sysv", {"ended, and told"}, pocket("sysv")),
                 granted_by(watched("nameless files", {"ended, and told"}, pocket("memfds")), "attack")}},
      {.id = "E04",
       .what = "filling the disk by many files",
       .must = "PS",
       .claim = "resources.disk",
       .right = "held where the file system has quotas; else declared. Memory file systems have sizes",
       .tries = {held("files {work} 100 500000", {"EDQUOT", "ENOSPC"})},
       .written_off = WrittenOff{quota, "resources.disk"}},
      {.id = "E04",
       .what = "one large file",
       .must = "PS",
       .claim = "resources.fsize",
       .right = "EFBIG or SIGXFSZ",
       .profile = "small",
       .tries = {held("files {work} 1 4000000", {"EFBIG", "killed 25"}, "attack")}},
      {.id = "E06",
       .what = "huge output on both streams, and a limit on what is kept",
       .must = "KPW",
       .claim = "resources.output",
       .right = "all of it passes, the receipt counts it, and keeps no more than the limit",
       .tries = {watched("sixty megabytes", {"whole, counted"}, flood)},
       .elsewhere = {{"tests/session_run/test_run.cpp", "a hundred megabytes of output do not grow h5i"}}},
      {.id = "E06",
       .what = "the same under a small limit",
       .must = "PS",
       .right = "capped, with the byte count",
       .profile = "small",
       .tries = {watched("a megabyte, one line", {"whole to the terminal, capped in the receipt"}, capped)}},
      {.id = "E07", .what = "more than a pipe of output on both streams at once", .must = "KPSW", .right = "completes", .elsewhere = {{"tests/cli/test_run.cpp", "a megabyte on both streams arrives whole, and the receipt has its size and digest"}}},
      {.id = "E09",
       .what = "setsid, and a double fork",
       .must = "PSW",
       .claim = "resources.wall",
       .right = "no process outlives the run",
       .tries = {watched("leave by setsid", {"gone, and told", "gone"}, survivor("setsid"), {"lives"}), watched("leave by double fork", {"gone, and told", "gone"}, survivor("double"), {"lives"})},
       .elsewhere = {{"tests/spawn/test_lifetime.cpp", "survivors of a normal end are killed and counted, also when they made sessions of their own"}}},
      {.id = "E10",
       .what = "a process left behind by a command that ended well",
       .must = "KPSW",
       .right = "killed, and told in the receipt",
       .tries = {watched("leave plainly", {"gone, and told"}, survivor("plain"), {"lives"})}},
      {.id = "E12",
       .what = "orphans that nobody waits for",
       .must = "PS",
       .right = "reaped: no zombie",  // in bare namespaces the first process reaps nobody
       .tries = {by_itself_in_bare(held("orphans 200", {"ECHILD"}))},
       .elsewhere = {{"tests/spawn/test_lifetime.cpp", "a thousand orphans leave no zombie while the box runs"}}},
      {.id = "E13",
       .what = "processes that do not want to end: stopped, deaf to signals, in vfork, in groups of their own, busy",
       .must = "KPSW",
       .claim = "resources.wall",
       .right = "gone by the deadline",
       .profile = "short",
       .tries = {watched("all moods at once", {"gone by the deadline"}, moods, {"lives"})}},
      {.id = "E15", .what = "waits without a deadline", .must = "KS", .right = "an error within seconds, nothing left", .elsewhere = {{"tests/session_run/test_run.cpp", "a plugin that fails in a verb ends the run with its reason, nothing runs, nothing is left"}, {"tests/spawn/test_network.cpp", "the way out ends with h5i-net, and with whoever holds it"}}},
      {.id = "E16", .what = "debris after kill -9 of the host", .must = "KS", .right = "the next command clears it", .elsewhere = {{"tests/endurance/test_killed_runs.cpp", "h5i killed at any moment of a run"}, {"tests/endurance/test_killed.cpp", "all of ours killed at once: at a confining tier nothing survives, at workspace the next command ends the rest"}, {"tests/vm/test_killed.cpp", "whatever of a supervised box is killed at any moment, nothing is left after the next command"}}},
      {.id = "E19",
       .what = "long names and arguments",
       .must = "K",
       .right = "works, or is refused in words",
       .tries = {watched("a long argument, a long name", {"works, or is refused in words"}, long_words)},
       .elsewhere = {{"tests/cli/test_run.cpp", "long names and arguments work or are refused in words"}, {"tests/cli/test_run.cpp", "a run with a home of three hundred characters works"}}},
      {.id = "E22", .what = "a second run wipes scratch that a first still uses", .must = "K", .right = "a box runs one command at a time", .elsewhere = {{"tests/session_run/test_run.cpp", "a box runs one command at a time"}}},
      {.id = "E24", .what = "concurrent runs of one box", .must = "K", .right = "one runs, the others are told by whom it is held", .elsewhere = {{"tests/cli/test_run.cpp", "of eight runs of one box at once one runs, and the others are told by whom it is held"}}},
  };
  return out;
}

}  // namespace h5i::adversary
