// The cases that the process tier must stop, tried in a box and, as the control, by the same program outside it.
#include <sys/socket.h>
#include <sys/un.h>

#include <map>

#include "tests/tiers/box.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

std::map<std::string, std::string> table(const std::string& text) {
  std::map<std::string, std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (size_t colon = line.rfind(": "); colon != std::string::npos)
      out[line.substr(0, colon)] = line.substr(colon + 2);
    at = end + 1;
  }
  return out;
}

// What each act may answer in a box.
const std::map<std::string, std::vector<std::string>> kAnswers = {
    {"A01 io_uring", {"ENOSYS"}},
    {"A06 user namespace", {"EPERM"}},
    {"A07 fsopen", {"ENOSYS"}},
    {"A07 open_tree", {"ENOSYS"}},
    {"A09 ptrace", {"EPERM"}},
    {"A10 memory of pid 1", {"EACCES", "EPERM"}},
    {"A15 keyring", {"EPERM"}},
    {"A16 userfaultfd", {"EPERM"}},
    {"A18 alg", {"EPERM"}},
    {"A19 packet", {"EPERM"}},
    {"A21 vsock", {"EPERM"}},
    {"A22 mptcp", {"EPERM"}},
    {"A24 fast open", {"EPERM"}},
    {"A25 ping", {"EPERM"}},
    {"A25 raw", {"EPERM"}},
    {"A29 listener", {"EPERM"}},
    {"A42 personality", {"EPERM"}},
    {"A42 kcmp", {"EPERM"}},
    {"A42 syslog", {"EPERM"}},
    {"A42 handle", {"EPERM"}},
    {"B09 core_pattern", {"EROFS", "EACCES"}},
    {"B09 sysrq", {"EACCES", "EROFS"}},
    {"B12 signal outside", {"ESRCH"}},
    {"B18 shared memory of the host", {"ENOENT"}},
    {"B19 device", {"EPERM"}},
    {"B21 chmod", {"EROFS"}},
    {"B21 times", {"EROFS"}},
    {"B22 stat", {"ENOENT"}},
    {"set-id chmod", {"EPERM"}},
    {"set-id open", {"EPERM"}},
    {"set-id mkdir", {"EPERM"}},
    {"read /proc/kcore", {"EACCES"}},
    {"may: socketpair", {"did"}},
    {"may: own file", {"did"}},
    {"may: tcp", {"did"}},
    {"may: memfd", {"did"}},
};

std::string acts_file() { return std::string(getenv("H5I_SOURCE_DIR")) + "/tests/tiers/acts.py"; }

std::string slurp(const std::string& path) {
  std::ifstream f(path);
  return std::string(std::istreambuf_iterator<char>(f), {});
}

}  // namespace

KERNEL_TEST("what must not work in a box works outside it and not inside", "[tiers][escapes]") {
  TierBox box(k);
  mkdir((k.dir() + "/shared").c_str(), 0755);
  box.write(k.dir() + "/shared/file", "x");
  box.write(k.dir() + "/hidden", "x");
  std::string shm = "/dev/shm/h5i-test-" + std::to_string(getpid());
  box.write(shm, "x");
  box.write(box.work() + "/acts.py", slurp(acts_file()));
  box.profile()["fs"]["read"].push(k.dir() + "/shared");
  if (k.root()) chown((k.dir() + "/shared/file").c_str(), kBoxId, kBoxId);
  mkdir((k.dir() + "/out").c_str(), 0700);
  auto words = [&](const std::string& scratch, const std::string& readonly) {
    return std::vector<std::string>{"/usr/bin/python3",
                                    box.work() + "/acts.py",
                                    scratch,
                                    std::to_string(getppid()),
                                    k.dir() + "/hidden",
                                    readonly,
                                    shm};
  };
  Outcome inside = box.run(words(box.work(), k.dir() + "/shared/file"));
  Json plain = plain_plan(k);
  set_command(plain, words(k.dir() + "/out", k.dir() + "/hidden"));
  Outcome outside = run_once(plain);
  unlink(shm.c_str());
  KREQUIRE(inside.ok() || (k.say(inside.text()), false));
  KREQUIRE(outside.ok() || (k.say(outside.text()), false));

  auto in = table(inside.output), out = table(outside.output);
  size_t controlled = 0;
  for (const auto& [name, answers] : kAnswers) {
    // What this kernel does not have at all cannot be refused.
    bool held = std::find(answers.begin(), answers.end(), in[name]) != answers.end() ||
                (in[name] == "ENOENT" && out[name] == "ENOENT");
    KCHECK_SAYS(held, name + " gives " + in[name]);
    if (out[name] == "did") controlled++;
  }
  KCHECK(in.size() == kAnswers.size() && out.size() == kAnswers.size());
  // Some are not possible here even outside (no permission, no module); most must be, or the table proves little.
  KCHECK_SAYS(controlled >= (k.root() ? 26u : 17u), outside.output);

  // The host is unchanged, and what was refused by the filter was counted.
  struct stat s {};
  KCHECK(stat((k.dir() + "/shared/file").c_str(), &s) == 0 && (s.st_mode & 07777) == 0644 && s.st_mtime > 1000);
  std::map<uint32_t, uint64_t> counts;
  for (const auto& d : inside.result.denials) counts[d.syscall] = d.count;
#if defined(__x86_64__)
  for (uint32_t nr : {425u, 272u, 430u, 428u, 101u, 250u, 323u, 41u, 44u, 317u, 135u, 312u, 103u, 303u, 90u, 257u, 83u})
    KCHECK_SAYS(counts[nr] >= 1, std::to_string(nr));
  KCHECK(counts[41] >= 6);  // each socket family
#endif
}

KERNEL_TEST("a 32-bit entry kills the process (A04)", "[tiers][escapes]") {
#if defined(__x86_64__)
  TierBox box(k);
  box.write(
      box.work() + "/i.c",
      "int main(){ int r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20)); return r > 0 ? 0 : 1; }");  // getpid
  Outcome built = box.shell("gcc i.c -o i");
  KREQUIRE(built.ok() || (k.say(built.text()), false));
  Outcome inside = box.run({box.work() + "/i"});
  KCHECK_SAYS(inside.result.status == H5I_OUTCOME_SIGNALED && inside.result.code == SIGSYS, inside.text());
  Json plain = plain_plan(k);
  set_command(plain, {box.work() + "/i"});
  Outcome outside = run_once(plain);
  KCHECK_SAYS(outside.ok(), outside.text());
#endif
}

KERNEL_TEST("the x32 table is not there, whatever this kernel has (A03)", "[tiers][escapes]") {
#if defined(__x86_64__)
  TierBox box(k);
  Outcome o = box.run(
      {"/usr/bin/python3", "-c",
       "import ctypes; l=ctypes.CDLL(None,use_errno=True); print(l.syscall(0x40000000|39), ctypes.get_errno())"});
  KCHECK_SAYS(o.output == "-1 38\n", o.text());
  bool counted = false;
  for (const auto& d : o.result.denials) counted = counted || d.syscall == (0x40000000u | 39);
  KCHECK(counted);
#endif
}

KERNEL_TEST("no process of a box survives its first (E09, E10), and orphans are reaped (E12)", "[tiers][escapes]") {
  TierBox box(k);
  Outcome o = box.shell("setsid sh -c 'setsid sleep 73 & sleep 73 &' & (sleep 73 &); exit 3");
  KCHECK_SAYS(o.result.status == H5I_OUTCOME_EXITED && o.result.code == 3, o.text());
  int found = system("pgrep -f '^sleep 73$' > /dev/null");
  KCHECK(WIFEXITED(found) && WEXITSTATUS(found) == 1);
  Outcome zombies =
      box.shell("for i in $(seq 200); do (true &); done; sleep 0.3; cat /proc/[0-9]*/stat | grep -c ' Z '; true");
  KCHECK_SAYS(zombies.output == "0\n", zombies.output);
}

KERNEL_TEST("processes of the host are not seen, and not reached by kill -1 (B12)", "[tiers][escapes]") {
  pid_t host = fork();
  if (host == 0) {
    pause();
    _exit(0);
  }
  TierBox box(k);
  Outcome o = box.shell("ls /proc | grep -c '^[0-9]'; kill -9 " + std::to_string(host) + "; kill -KILL -1; true");
  KCHECK(kill(host, 0) == 0 && waitpid(host, nullptr, WNOHANG) == 0);
  KCHECK_SAYS(atoi(o.output.c_str()) > 0 && atoi(o.output.c_str()) < 12, o.text());
  kill(host, SIGKILL);
  waitpid(host, nullptr, 0);
}

KERNEL_TEST("a hook planted in the box's git directory is the box's own (C01)", "[tiers][escapes]") {
  TierBox box(k);
  Outcome o = box.shell(
      "mkdir -p .git/hooks; echo id > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; mv .git g; rm -rf .git; "
      "true");
  KCHECK_SAYS(o.ok(), o.text());
  struct stat s {};
  KCHECK(stat((box.work() + "/.git/hooks").c_str(), &s) != 0);  // the host's side of the mount point
  KCHECK(stat((box.work() + "/.git").c_str(), &s) == 0);
  KCHECK(stat((box.work() + "/g").c_str(), &s) != 0);
}

KERNEL_TEST("pathname sockets of the host are outside the view, and no socket reaches them (B15)", "[tiers][escapes]") {
  TierBox box(k);
  std::string path = k.dir() + "/shared/agent";
  mkdir((k.dir() + "/shared").c_str(), 0755);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  snprintf(a.sun_path, sizeof a.sun_path, "%s", path.c_str());
  KREQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 && listen(fd, 1) == 0);
  box.profile()["fs"]["read"].push(k.dir() + "/shared");
  Outcome o = box.shell("true");
  KCHECK(!o.refused.empty() && box.refusal == H5I_E_POLICY_SOCKET);
  close(fd);
  unlink(path.c_str());
  KCHECK(box.shell("true").ok());  // control
}
