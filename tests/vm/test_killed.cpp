// Runs in the guest, as its user or as root, in a login or in a service whose group is delegated: whatever of a supervised box's is killed, at whatever moment, the next command finds nothing left that it does not clear
// (invariant I9). What a network namespace leaves is counted by the kernel: the guest allows its user few of them.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "tests/cli/project.hpp"
#include "tests/endurance/census.hpp"
#include "tests/endurance/chance.hpp"
#include "tests/endurance/victim.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

constexpr int kOwnEnd = 7;
// Each in its turn, or those of H5I_VICTIM.
std::vector<std::string> victims = {"h5i", "h5i-host", "spawner", "h5i-net", "slirp4netns", "h5i-init", "all"};

std::string first_word(const Seen& s) { return s.words.substr(0, s.words.find(' ')); }

// Of this run; 0 when it is not there now.
pid_t find(const std::string& victim, pid_t core) {
  if (victim == "h5i") return core;
  if (victim == "h5i-host") return find_victim(Victim::host, core);
  if (victim == "spawner") return find_victim(Victim::spawner, core);
  for (const Seen& s : descendants(core))
    if (s.state != 'Z' && (first_word(s) == victim || first_word(s).ends_with("/" + victim))) return s.pid;
  return 0;
}

bool ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

// Waits `after` seconds, then until the victim is there, and kills it. False: the run ended before.
bool kill_later(const std::string& victim, pid_t core, double after) {
  if (victim == "all") return kill_at(Victim::all, core, after);
  for (double until = seconds_now() + after; seconds_now() < until && !ended(core);) usleep(2000);
  while (!ended(core)) {
    pid_t pid = find(victim, core);
    int fd = pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1;
    bool met = fd >= 0 && find(victim, core) == pid && syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0) == 0;
    if (fd >= 0) close(fd);
    if (met) return true;
    usleep(2000);
  }
  return false;
}

struct Box : Project {
  Box() : Project(0) {
    std::filesystem::create_directories(*this / "r/.h5i");
    write_file(*this / "r/.h5i/env.yaml", "profiles: { net: { extends: default, isolation: supervised, net: { egress: [\"198.51.100.0/28:80\"] } } }\n");
    git("add -A && git commit -qm profile");
    ok({"box", "create", "--name", "fix", "--profile", "net"});
    length = whole_run();
    for (const char* verb : {"seal", "verify"}) ok({"log", verb, "fix"});
    CHECK(survivors() == "");
    before = files();
  }
  pid_t begin() const {
    return start(h5i({"box", "run", "fix", "--", "sh", "-c", "setsid sleep 4741 & sleep 1; exit " + std::to_string(kOwnEnd)}), *this / "out", *this / "err");
  }
  double whole_run() const {
    double begun = seconds_now();
    CHECK(wait_for(begin(), 120) == kOwnEnd);
    return seconds_now() - begun;
  }
  std::string survivors() const {
    std::vector<Seen> left;
    soon([&] { return (left = descendants()).empty() && (left = marked(*this / "r/")).empty(); }, 20);
    return text_of(left);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (std::string& line : listing(*this / "")) {
      size_t digest = line.find("/proved/");
      if (digest != std::string::npos) line = line.substr(0, line.find('-', digest));
      out.push_back(std::move(line));
    }
    return out;
  }
  std::string left_over() const {
    std::vector<std::string> out;
    soon(
        [&] {
          out = difference(before, files());
          for (std::string& line : groups_of_ours()) out.push_back("group " + line);
          for (std::string& line : holds_on(*this / "")) out.push_back(std::move(line));
          return out.empty();
        },
        10);
    return joined(out);
  }
  double length = 0;
  std::vector<std::string> before;
};

// How many network namespaces this user may still make, out of what the guest allows.
int networks_left(int most) {
  std::vector<pid_t> held;
  int p[2];
  REQUIRE(pipe2(p, O_CLOEXEC) == 0);
  int made = 0;
  for (int i = 0; i <= most; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      char said = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 'y' : 'n';
      (void)!write(p[1], &said, 1);
      for (;;) pause();
    }
    held.push_back(pid);
    char said = 0;
    REQUIRE(read(p[0], &said, 1) == 1);
    made += said == 'y';
  }
  for (pid_t pid : held) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  close(p[0]);
  close(p[1]);
  return made;
}

}  // namespace

TEST_CASE("whatever of a supervised box is killed at any moment, nothing is left after the next command") {
  adopt_orphans();
  const int most = atoi(read_file("/proc/sys/user/max_net_namespaces").c_str());
  REQUIRE(most < 50);                    // the guest was prepared
  REQUIRE(networks_left(most) == most);  // the control: none is in use, and one more than that cannot be had
  Box box;
  {
    // The control: while a box runs, all of it is seen.
    pid_t core = box.begin();
    REQUIRE(soon([&] { return find("slirp4netns", core) != 0; }, 60));
    CHECK(!groups_of_ours().empty());
    CHECK(networks_left(most) < most);
    CHECK(!descendants().empty());
    CHECK(soon([&] { return !marked(box / "r/").empty(); }, 60));  // not before its program runs
    CHECK(!holds_on(box / "").empty());
    CHECK(!difference(box.before, box.files()).empty());
    CHECK(wait_for(core, 120) == kOwnEnd);
    CHECK(box.survivors() == "");
  }
  std::vector<std::vector<std::string>> commands = {{"box", "ls"}, {"box", "run", "fix", "--", "true"}, {"box", "status", "fix"}, {"box", "gc"}};
  if (const char* only = getenv("H5I_VICTIM")) victims = {only};
  if (victims == std::vector<std::string>{"spawner"}) commands.push_back({"box", "doctor"});  // all that is left then is in groups
  std::map<std::string, int> met;
  const int n = rounds(10);
  int done = 0;
  for (int round = 0; done < n && round < kDraws * n; round++) {
    const std::string& victim = victims[static_cast<size_t>(done) % victims.size()];
    // Each of them once while all of it is there, then at any moment.
    const bool whole = static_cast<size_t>(done) < victims.size();
    double moment = whole ? 0 : uniform(0, box.length);
    CAPTURE(victim, seed(), round, whole, moment);
    pid_t core = box.begin();
    if (whole) soon([&] { return ended(core) || (find("slirp4netns", core) != 0 && !marked(box / "r/").empty()); }, 60);
    bool killed = kill_later(victim, core, moment);
    int status = wait_for(core, 120);
    CAPTURE(killed, status, read_file(box / "err"));
    if (killed)
      done++, met[victim]++;
    else
      CHECK(status == kOwnEnd);
    if (killed && victim != "h5i" && victim != "all") CHECK((status == kOwnEnd || status == 125 || status == 128 + SIGKILL));
    CHECK(box.survivors() == "");
    const std::vector<std::string>& command = commands[chance()() % commands.size()];
    Ended next = run(box.h5i(command));
    CAPTURE(command, next.err);
    CHECK(next.status == 0);
    CHECK(box.survivors() == "");
    CHECK(box.left_over() == "");
    CHECK(evidence::verify_chain(box.paths("fix").log()));
  }
  CHECK(run(box.h5i({"box", "run", "fix", "--", "sh", "-c", "exit 3"})).status == 3);
  CHECK(run(box.h5i({"log", "verify", "fix"})).status == 0);
  CHECK(soon([&] { return networks_left(most) == most; }, 20));
  for (const auto& [victim, times] : met) printf("%s killed %d times\n", victim.c_str(), times);
  CHECK(done == n);
}
