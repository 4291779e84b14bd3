// Too much output, processes that do not want to end, and too little of everything: descriptors, disk, time.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/cli/project.hpp"
#include "tests/endurance/census.hpp"
#include "tests/endurance/chance.hpp"
#include "tests/endurance/victim.hpp"
#include "tests/support/short_wall.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

constexpr int kLimit = kShortWall;  // seconds, of the boxes here that have one
constexpr double kAfterLimit = 1;   // everything of the box is gone by then

bool three_lines(const std::string& err) {
  return (err.find("refused: ") != std::string::npos || err.find("failed: ") != std::string::npos) && err.find("\n  because: ") != std::string::npos &&
         err.find("\n  see: ") != std::string::npos;
}

// A box at one tier as one user, that does one thing. Those that mostly wait do it side by side.
struct Cell {
  Cell(uid_t u, const char* t) : uid(u), tier(t), w(u), paths(w.box(MadeBox{.tier = t, .wall = kLimit})) {}
  uid_t uid;
  std::string tier;
  RunWorld w;
  session::BoxPaths paths;
  std::string mark;  // among the words of every process of its box
  pid_t core = 0;
  double begun = 0, took = -1;

  void begin(std::string script, const std::string& number) {
    static int cells = 0;
    mark = number + std::to_string(getpid()) + "0" + std::to_string(++cells);
    for (size_t at = 0; (at = script.find(number, at)) != std::string::npos; at += mark.size()) script.replace(at, number.size(), mark);
    begun = seconds_now();
    took = -1;
    core = start(w.sh("fix", script), w / "home/out", w / "home/err");
  }
  bool core_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(core), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  }
};
using Cells = std::vector<std::unique_ptr<Cell>>;

Cells every_user_and_tier() {
  Cells out;
  for (uid_t uid : users())
    for (const char* tier : {"workspace", "process"}) out.push_back(std::make_unique<Cell>(uid, tier));
  return out;
}

// Each cell's `took` is when `done` held for it; -1: not within a minute.
void await(const Cells& cells, const std::function<bool(Cell&)>& done) {
  bool all = false;
  for (double until = seconds_now() + 60; !all && seconds_now() < until; usleep(2000)) {
    all = true;
    for (const auto& c : cells) {
      if (c->took < 0 && done(*c)) c->took = seconds_now() - c->begun;
      all = all && c->took >= 0;
    }
  }
}

// A machine that had other things to do is given another chance; a mechanism that is late is late every time.
void in_time(Cells cells, const std::function<void(const Cells&)>& try_once, double most) {
  for (int i = 0; i < 3 && !cells.empty(); i++) {
    try_once(cells);
    std::erase_if(cells, [&](const auto& c) { return c->took >= 0 && c->took <= most; });
  }
  for (const auto& c : cells) FAIL_CHECK("as " << c->uid << " at " << c->tier << " after " << c->took << " s");
}

long peak_kib(pid_t pid) {
  std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  size_t at = status.find("VmHWM:");
  return at == std::string::npos ? 0 : atol(status.c_str() + at + 6);
}

}  // namespace

TEST_CASE("one endless line and both streams at once pass with the memory of a short one") {
  const long bytes = amount("H5I_ENDURANCE_BYTES", 200'000'000);
  for (const char* tier : {"workspace", "process"}) {
    CAPTURE(tier);
    RunWorld w(users().back());
    auto paths = w.box(MadeBox{.tier = tier, .wall = 3600});
    auto peak_of = [&](long n) {
      std::string script = "head -c " + std::to_string(n) + " /dev/zero & head -c " + std::to_string(n / 4) + " /dev/zero | tr '\\0' a >&2; wait";
      pid_t core = start(w.sh("fix", script), "/dev/null", "/dev/null");
      long peak = 0;
      siginfo_t info{};
      while (waitid(P_PID, static_cast<id_t>(core), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
        peak = std::max(peak, peak_kib(core));
        usleep(2000);
      }
      CHECK(wait_for(core, 60) == 0);
      Json out = w.last(paths, "receipt")["output"];
      CHECK(out["stdout"]["bytes"].integer() == n);
      CHECK(out["stderr"]["bytes"].integer() == n / 4);
      CHECK(out["stdout"]["captured"].integer() + out["stderr"]["captured"].integer() <= 64 << 20);
      return peak;
    };
    long small = peak_of(50'000'000), large = peak_of(bytes);
    printf("%s: h5i at %ld KiB after 50 MB, %ld KiB after %ld MB\n", tier, small, large, bytes / 1'000'000);
    CHECK(large < small + 4096);
  }
}

TEST_CASE("whatever mood its processes are in, a box is gone a second after its limit") {
  adopt_orphans();
  struct Mood {
    const char* name;
    const char* script;
  };
  for (const Mood& m : {Mood{"stopped", "sleep 4751 & kill -STOP $!; kill -STOP $$; sleep 4751"},
                        {"deaf", "trap '' TERM INT HUP QUIT; setsid sleep 4751 & while :; do sleep 4751; done"},
                        {"in vfork", "python3 -c 'import ctypes,time; p = ctypes.CDLL(None).vfork(); time.sleep(99)' 4751"},
                        {"many", "i=0; while [ $i -lt 100 ]; do setsid sleep 4751 & i=$((i+1)); done; wait"}}) {
    CAPTURE(m.name);
    in_time(
        every_user_and_tier(),
        [&](const Cells& cells) {
          for (const auto& c : cells) c->begin(m.script, "4751");
          for (const auto& c : cells) CHECK(soon([&] { return !processes_with(c->mark).empty(); }));
          await(cells, [](Cell& c) {
            if (!c.core_ended()) return false;
            for (pid_t pid : processes_with(c.mark)) CHECK(pid == c.core);
            return true;
          });
          for (const auto& c : cells) {
            CAPTURE(c->uid, c->tier);
            CHECK(wait_for(c->core, 1) == 124);
            CHECK(c->w.last(c->paths, "receipt")["outcome"]["reason"].string() == "run.deadline");
          }
          CHECK(soon([] { return descendants().empty(); }));
        },
        kLimit + kAfterLimit);
  }
}

TEST_CASE("with h5i, h5i-host or the spawner stopped the limit still ends the box") {
  adopt_orphans();
  for (Victim v : {Victim::core, Victim::host, Victim::spawner}) {
    CAPTURE(name_of(v));
    in_time(
        every_user_and_tier(),
        [&](const Cells& cells) {
          for (const auto& c : cells) c->begin("setsid sleep 4752 & echo ready; sleep 4752", "4752");
          for (const auto& c : cells) {
            REQUIRE(soon([&] { return read_file(c->w / "home/out") == "ready\n"; }));
            REQUIRE(kill(find_victim(v, c->core), SIGSTOP) == 0);
          }
          await(cells, [](Cell& c) { return processes_with("sleep" + std::string(1, '\0') + c.mark).empty(); });
          for (const auto& c : cells) kill(c->core, SIGCONT);
          for (const auto& c : cells) {
            CAPTURE(c->uid, c->tier);
            CHECK(wait_for(c->core, 60) == 124);
            CHECK(c->w.last(c->paths, "receipt")["outcome"]["reason"].string() == "run.deadline");
            CHECK(c->w.last(c->paths, "killed")["reason"].string() == "deadline");
          }
          CHECK(soon([] { return descendants().empty(); }));
        },
        kLimit + kAfterLimit);
  }
}

TEST_CASE("five thousand orphans leave no zombie in a box that goes on") {
  for (const char* tier : {"workspace", "process"}) {
    CAPTURE(tier);
    RunWorld w(users().back());
    auto paths = w.box(MadeBox{.tier = tier, .wall = 600});
    Program p = w.sh("fix",
                     "i=0; while [ $i -lt 5000 ]; do (true &); i=$((i+1)); done; n=1; j=0; "
                     "while [ $n -gt 0 ] && [ $j -lt 100 ]; do n=0; for p in /proc/[0-9]*; do { read -r a b c d < $p/stat; } 2>/dev/null && "
                     "[ \"$c\" = Z ] && [ \"$b\" = '(sh)' ] && n=$((n+1)); done; j=$((j+1)); sleep 0.1; done; echo zombies $n");
    p.timeout_s = 300;
    Ended e = run(p);
    CHECK(e.status == 0);
    CHECK(e.out == "zombies 0\n");
  }
}

TEST_CASE("with too few descriptors a run says so or works, and leaves nothing") {
  adopt_orphans();
  for (uid_t uid : users()) {
    RunWorld w(uid);
    auto paths = w.box(MadeBox{});
    CHECK(run(w.sh("fix", "true")).status == 0);
    CHECK(soon([] { return descendants().empty(); }));
    // The limit is part of the plan, so a plan and its proof are kept for each.
    auto files = [&] {
      std::vector<std::string> out;
      for (std::string& line : listing(w / ""))
        if (line.find("/blobs/") == std::string::npos && line.find("/proved/") == std::string::npos) out.push_back(std::move(line));
      return out;
    };
    auto before = files();
    int worked = 0, told = 0;
    for (int limit = 3; limit < 80; limit += limit < 40 ? 1 : 8) {
      CAPTURE(uid, limit);
      Program p = w.h5i({});
      p.argv = {"/bin/sh", "-c", "ulimit -n " + std::to_string(limit) + "; exec " + h5i_path() + " box run fix -- true"};
      Ended e = run(p);
      CAPTURE(e.status, e.err);
      bool said = three_lines(e.err) && e.status >= 1 && e.status <= 125;
      // With hardly any even the loader of a program finds no descriptor: it says so itself, before anything of ours runs.
      bool not_loaded = e.status == 127 && e.err.find("shared libraries") != std::string::npos;
      CHECK((e.status == 0 || said || (limit < 5 && e.status != 0) || (limit < 10 && not_loaded)));
      (e.status == 0 ? worked : told)++;
      CHECK(soon([] { return descendants().empty(); }));
      Ended next = run(w.sh("fix", "true"));
      CAPTURE(next.err);
      CHECK(next.status == 0);
      CHECK(soon([] { return descendants().empty(); }));
      CHECK(joined(difference(before, files())) == "");
      CHECK(evidence::verify_chain(paths.log()));
    }
    CHECK(worked > 0);
    CHECK(told > 0);
  }
}

namespace {

// A small file system at `path`, in a mount namespace of this process's own until the end.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size) : before_(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) {
    REQUIRE(unshare(CLONE_NEWNS) == 0);
    REQUIRE(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    std::filesystem::create_directories(path());
    REQUIRE(mount("small", path().c_str(), "tmpfs", 0, (std::string("mode=0755,size=") + size).c_str()) == 0);
    setenv("TMPDIR", path().c_str(), 1);
  }
  ~SmallDisk() {
    unsetenv("TMPDIR");
    umount2(path().c_str(), MNT_DETACH);
    setns(before_, CLONE_NEWNS);
    close(before_);
    rmdir(path().c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  static std::string path() { return "/tmp/h5i-small-" + std::to_string(getpid()); }

  // All but `left` bytes are taken; gives back with what.
  static std::string fill(size_t left) {
    std::string file = path() + "/filler", block(4096, 'x');
    int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (write(fd, block.data(), block.size()) == static_cast<ssize_t>(block.size())) {
    }
    off_t end = lseek(fd, 0, SEEK_END);
    if (ftruncate(fd, std::max<off_t>(0, end - static_cast<off_t>(left))) != 0) abort();
    close(fd);
    return file;
  }

 private:
  int before_;
};

}  // namespace

TEST_CASE("on a full disk a verb says so, nothing is torn, and with room again all goes on") {
  if (geteuid() != 0) {
    printf("SKIP: endurance-disk-full: only root mounts a small file system\n");
    return;
  }
  adopt_orphans();
  for (uid_t uid : users()) {
    SmallDisk disk("24m");
    Project p(uid);
    p.create("fix");
    p.ok({"box", "run", "fix", "--", "sh", "-c", "echo changed >> hello.c"});
    int failed = 0, worked = 0;
    for (size_t left : {0, 4096, 8192, 16384, 32768, 65536, 131072, 262144})
      for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{"box", "run", "fix", "--", "sh", "-c", "head -c 100000 /dev/urandom | od -x"},
                                                                                  {"box", "propose", "fix", "--message", "m"},
                                                                                  {"box", "create", "--name", "other", "--isolation", "process"},
                                                                                  {"box", "export", "fix", "--output", p / "exported"},
                                                                                  {"box", "apply", "fix", "--yes"}}) {
        CAPTURE(uid, left, words);
        std::string head = read_file(p / "r/.git/refs/heads/main");
        std::string filler = SmallDisk::fill(left);
        Ended e = run(p.h5i(words));
        CHECK(soon([] { return descendants().empty(); }));
        std::filesystem::remove(filler);
        CAPTURE(e.status, e.err);
        CHECK((e.status == 0 || (e.status <= 125 && three_lines(e.err))));
        (e.status == 0 ? worked : failed)++;
        // A run that could not record what it does has not done it.
        CHECK(run(p.h5i({"box", "status", "fix"})).status == 0);
        CHECK(run(p.h5i({"box", "run", "fix", "--", "true"})).status == 0);
        CHECK(evidence::verify_chain(p.paths("fix").log()));
        CHECK(p.git("status --porcelain -uno").out == "");
        if (words[1] == "create" && e.status == 0) p.ok({"box", "rm", "other", "--force"});
        if (words[1] == "create" && e.status != 0) CHECK_FALSE(std::filesystem::exists(p.paths("other").dir));
        if (words[1] == "export") {
          CHECK(std::filesystem::exists(p / "exported") == (e.status == 0));
          std::filesystem::remove_all(p / "exported");
        }
        if (words[1] == "apply" && e.status == 0) {  // another change for the next time
          p.ok({"box", "rm", "fix", "--force"});
          p.create("fix");
          p.ok({"box", "run", "fix", "--", "sh", "-c", "echo changed >> hello.c"});
        } else if (words[1] == "apply") {
          CHECK(read_file(p / "r/.git/refs/heads/main") == head);
        }
      }
    p.ok({"log", "verify", "fix"});
    p.git("fsck --strict --no-dangling");
    printf("as %u with too little disk: %d verbs failed and said so, %d went through\n", static_cast<unsigned>(uid), failed, worked);
    CHECK(failed > 0);
  }
}
