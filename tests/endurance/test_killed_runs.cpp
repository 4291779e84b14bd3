// Whatever of ours is killed, at whatever moment of a run: no process of a confined box survives, at `workspace` the next
// command kills and records what did, and after that command nothing is left (invariant I9).
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <map>
#include <optional>

#include "tests/cli/project.hpp"
#include "tests/endurance/census.hpp"
#include "tests/endurance/chance.hpp"
#include "tests/endurance/victim.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

constexpr int kOwnEnd = 7;  // of the command
constexpr const char* kDaemon = "sleep 4741";

struct Setting {
  uid_t uid;
  const char* tier;
  bool bare;  // h5i runs where nobody may make a user namespace: `workspace` has no pid namespace then
};

std::vector<Setting> settings() {
  std::vector<Setting> out;
  for (uid_t uid : users()) {
    out.push_back({uid, "process", false});
    out.push_back({uid, "workspace", false});
    if (geteuid() == 0) out.push_back({uid, "workspace", true});  // the ids of the namespace need root
  }
  return out;
}

// A user namespace with every id of this one, in which there can be no other. h5i starts in it without any capability.
class Bare {
 public:
  Bare() {
    holder_ = fork();
    if (holder_ == 0) {
      if (unshare(CLONE_NEWUSER) != 0) _exit(1);
      for (;;) pause();
    }
    std::string proc = "/proc/" + std::to_string(holder_);
    std::string ours = link_of("/proc/self/ns/user");
    REQUIRE(soon([&] { return link_of(proc + "/ns/user") != ours; }));
    for (const char* map : {"/uid_map", "/gid_map"}) put(proc + map, "0 0 4294967295");
    Ended limited = run(Program{.argv = enter({"/bin/sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && ! unshare --user true 2>/dev/null"})});
    CAPTURE(limited.err);
    REQUIRE(limited.status == 0);
  }
  ~Bare() {
    kill(holder_, SIGKILL);
    waitpid(holder_, nullptr, 0);
  }
  Bare(const Bare&) = delete;
  pid_t holder() const { return holder_; }

  Program start_in(Program p) const {
    std::vector<std::string> words = {"/usr/bin/setpriv", "--inh-caps=-all"};
    if (p.uid != 0)
      for (std::string word : {"--reuid=" + std::to_string(p.uid), "--regid=" + std::to_string(p.uid), std::string("--clear-groups")}) words.push_back(word);
    words.push_back(h5i_path());
    words.insert(words.end(), p.argv.begin() + 1, p.argv.end());
    p.argv = enter(words);
    p.uid = 0;
    return p;
  }

 private:
  static std::string link_of(const std::string& path) {
    char to[64];
    ssize_t n = readlink(path.c_str(), to, sizeof to);
    return n > 0 ? std::string(to, static_cast<size_t>(n)) : "";
  }
  static void put(const std::string& path, const std::string& text) {
    int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    CAPTURE(path);
    CHECK(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(fd);
  }
  std::vector<std::string> enter(std::vector<std::string> words) const {
    words.insert(words.begin(), {"/usr/bin/nsenter", "--user", "--target", std::to_string(holder_)});
    return words;
  }
  pid_t holder_;
};

// What lasts of a run is there before any kill: everything that a later round adds is left over.
class Box {
 public:
  explicit Box(const Setting& s) : p_(s.uid) {
    if (s.bare) bare_.emplace();
    p_.create("fix", s.tier);
    cold_ = whole_run(true);
    warm_ = whole_run(false);
    CHECK(run(h5i({"box", "run", "fix", "--", "true"})).status == 0);
    for (const char* verb : {"seal", "verify"}) CHECK(run(p_.h5i({"log", verb, "fix"})).status == 0);
    settle();
    before_ = files();
    groups_ = groups_of_ours();
  }

  // What the last whole run took. One that ended before its moment came is the newest measure of it.
  double& length(bool cold) { return cold ? cold_ : warm_; }
  session::BoxPaths paths() const { return p_.paths("fix"); }
  std::string place() const { return p_ / ""; }
  const Project& project() const { return p_; }

  Program h5i(std::vector<std::string> words) const { return bare_ ? bare_->start_in(p_.h5i(std::move(words))) : p_.h5i(std::move(words)); }
  Program command() const { return h5i({"box", "run", "fix", "--", "sh", "-c", std::string("setsid ") + kDaemon + " & sleep 0.03; exit " + std::to_string(kOwnEnd)}); }
  pid_t begin(bool cold) const {
    if (cold) std::filesystem::remove_all(p_ / ".cache/h5i/proved");  // the tier proves itself again
    return start(command(), p_ / "out", p_ / "err");
  }

  // Nothing that descends from us lives; empty when so, else what does.
  std::string survivors(int seconds) const {
    std::vector<Seen> left;
    soon([&] {
      left = descendants(bare_ ? bare_->holder() : 0);
      if (left.empty()) left = marked(p_ / "r/");
      return left.empty();
    }, seconds);
    return text_of(left);
  }
  void settle() const { CHECK(survivors(30).empty()); }

  // The proofs' names are digests of what the machine looked like: one of each is enough.
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (std::string& line : listing(p_ / "")) {
      size_t digest = line.find("/proved/");
      if (digest != std::string::npos) line = line.substr(0, line.find('-', digest));
      out.push_back(std::move(line));
    }
    return out;
  }

  std::string left_over() const {
    std::vector<std::string> out = difference(before_, files());
    for (std::string& line : difference(groups_, groups_of_ours())) out.push_back(std::move(line));
    for (std::string& line : holds_on(p_ / "")) out.push_back(std::move(line));
    return joined(out);
  }

 private:
  double whole_run(bool cold) {
    double begun = seconds_now();
    CHECK(wait_for(begin(cold), 60) == kOwnEnd);
    return seconds_now() - begun;
  }

  Project p_;
  std::optional<Bare> bare_;
  double cold_ = 0, warm_ = 0;
  std::vector<std::string> before_, groups_;
};

Json last_record(const session::BoxPaths& paths) {
  Json last;
  CHECK(evidence::read_log(paths.log(), [&](uint64_t, const Json& r) {
    last = r;
    return true;
  }));
  return last;
}

// What the next command may be: any.
std::vector<std::string> next_command() {
  static const std::vector<std::vector<std::string>> kCommands = {
      {"box", "ls"}, {"box", "run", "fix", "--", "true"}, {"box", "status", "fix"}, {"box", "diff", "fix"}, {"box", "gc"}, {"box", "log", "fix"}};
  return kCommands[chance()() % kCommands.size()];
}

void killed_at_random(Victim v) {
  adopt_orphans();
  std::map<std::string, int> moments;
  int met = 0, wanted = 0;
  for (const Setting& s : settings()) {
    Box box(s);
    const int n = share(rounds(12), settings().size());
    wanted += n;
    int here = 0;
    for (int round = 0; here < n && round < kDraws * n; round++) {
      bool cold = round % 3 == 0, confined = std::string(s.tier) == "process";
      double moment = uniform(0, box.length(cold)), begun = seconds_now();
      CAPTURE(name_of(v), s.uid, s.tier, s.bare, seed(), round, cold, moment);
      pid_t core = box.begin(cold);
      bool killed = kill_at(v, core, moment);
      double took = seconds_now() - begun;
      int status = wait_for(core, 60);
      CAPTURE(killed, status, read_file(box.place() + "err"));
      if (!killed) {
        CHECK(status == kOwnEnd);
        box.length(cold) = took;
        box.settle();
        continue;
      }
      here++;
      Json last = last_record(box.paths());
      CAPTURE(json::canonical(last["body"]));
      if (v == Victim::core || v == Victim::all) {
        CHECK((status == 1000 + SIGKILL || status == kOwnEnd));
      } else {
        // Its own end when that had come; refused or failed when not; the kernel's word for an init that was shot.
        CHECK((status == kOwnEnd || status == 125 || (v == Victim::init && status == 128 + SIGKILL)));
        CHECK(last["body"]["exit_status"].integer(-1) == status);
        // A canary's init takes the proof with it, or the set-up when its ids were not mapped yet.
        std::string id = last["body"]["id"].is_string() ? last["body"]["id"].string() : "";
        if (status == 125 && !id.empty()) CHECK((v == Victim::init ? id == "tier.verify.failed" || id == "tier.setup-failed" : id == "plugin.crashed"));
        if (status == 125 && last["body"]["outcome"].is_object()) CHECK(last["body"]["outcome"]["reason"].string() == (v == Victim::init ? "tier.setup-failed" : "plugin.crashed"));
      }
      moments[last["kind"].string()]++;
      std::vector<Seen> outlived;
      if (confined || v != Victim::all) {
        CHECK(box.survivors(10) == "");
      } else {
        // With a pid namespace its init follows the spawner in a moment, and all with it; who lives on after that outlived them.
        soon([&] {
          outlived = marked(box.paths().spool());
          return outlived.empty();
        }, 1);
      }
      const std::vector<std::string> command = next_command();
      Ended next = run(box.h5i(command));
      CAPTURE(command, next.err);
      CHECK(next.status == 0);
      CHECK(box.survivors(10) == "");
      if (!outlived.empty()) {
        moments["survivors"]++;
        Json ended;
        CHECK(evidence::read_log(box.paths().log(), [&](uint64_t, const Json& r) {
          if (r["kind"].string() == "sweep") ended = r["body"]["killed"];
          return true;
        }));
        std::string recorded = json::canonical(ended);
        for (const Seen& p : outlived) {
          if (p.words != kDaemon + std::string(" ")) continue;  // the others end by themselves
          CAPTURE(recorded, p.words);
          CHECK(recorded.find("\"pid\":" + std::to_string(p.pid) + ",") != std::string::npos);
        }
      }
      if (command[1] != "run") {
        Ended again = run(box.h5i({"box", "run", "fix", "--", "sh", "-c", "exit 3"}));
        CAPTURE(again.err);
        CHECK(again.status == 3);
      }
      box.settle();
      CHECK(box.left_over() == "");
      CHECK(evidence::verify_chain(box.paths().log()));
      if (round % 5 == 0) CHECK(run(box.project().h5i({"log", "verify", "fix"})).status == 0);
    }
    box.settle();
    CHECK(run(box.project().h5i({"log", "verify", "fix"})).status == 0);
    met += here;
  }
  printf("%s killed %d times of %d; the last record then:", name_of(v), met, wanted);
  for (const auto& [kind, n] : moments) printf(" %s %d", kind.c_str(), n);
  printf("\n");
  CHECK(met == wanted);
}

}  // namespace

TEST_CASE("h5i killed at any moment of a run") { killed_at_random(Victim::core); }
TEST_CASE("h5i-host killed at any moment of a run") { killed_at_random(Victim::host); }
TEST_CASE("the spawner killed at any moment of a run") { killed_at_random(Victim::spawner); }
TEST_CASE("a box's init killed at any moment of a run") { killed_at_random(Victim::init); }
TEST_CASE("h5i, h5i-host and the spawner killed at once at any moment of a run") { killed_at_random(Victim::all); }
