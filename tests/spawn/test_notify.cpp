// System-call filters and the notification of refused calls.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "core/base/sha256.hpp"
#include "tests/spawn/acts.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// Everything is allowed but `numbers` and those from `beyond` on, which get `action`.
Json filter(const std::vector<unsigned>& numbers, unsigned action, unsigned beyond = UINT32_MAX) {
  std::vector<sock_filter> f;
  f.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
  for (unsigned nr : numbers) {
    f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1));
    f.push_back(BPF_STMT(BPF_RET | BPF_K, action));
  }
  f.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, beyond, 0, 1));
  f.push_back(BPF_STMT(BPF_RET | BPF_K, action));
  f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  std::string raw(reinterpret_cast<const char*>(f.data()), f.size() * sizeof f[0]);
  Json s;
  s["program"] = base64(raw);
  s["sha256"] = sha256_hex(raw);
  return s;
}

Json notifying(const Checks& k, const std::vector<unsigned>& numbers, unsigned beyond = UINT32_MAX) {
  Json p = confined_plan(k);
  p["seccomp"] = filter(numbers, SECCOMP_RET_USER_NOTIF, beyond);
  p["seccomp"]["notify"]["default"] = EPERM;
  return p;
}

std::string number(unsigned n) { return std::to_string(n); }

}  // namespace

KERNEL_TEST("a notified call is refused with the plan's errno and counted by number", "[spawn][notify]") {
  Json p = notifying(k, {SYS_keyctl, SYS_bpf, SYS_userfaultfd});
  p["seccomp"]["notify"][number(SYS_bpf)] = ENOSYS;
  auto a = act(p, {{"syscall", number(SYS_keyctl), "0", "0"},
                   {"syscall", number(SYS_keyctl), "0", "0"},
                   {"syscall", number(SYS_bpf), "0"},
                   {"ids"}});
  KCHECK_SAYS(a.outcome.ok(), a.outcome.text());
  KCHECK_SAYS(a[0] == "EPERM" && a[1] == "EPERM", a[0]);
  KCHECK_SAYS(a[2] == "ENOSYS", a[2]);
  KCHECK(a[3] == "ok");
  auto& d = a.outcome.result.denials;
  KREQUIRE(d.size() == 2);
  auto count = [&](uint32_t nr) {
    for (auto& x : d)
      if (x.syscall == nr) return x.count;
    return uint64_t{0};
  };
  KCHECK(count(SYS_keyctl) == 2);
  KCHECK(count(SYS_bpf) == 1);
  // The control: without the filter the same call reaches the kernel.
  auto control = act(confined_plan(k), {{"syscall", number(SYS_keyctl), "0", "0"}});
  KCHECK_SAYS(control[0] != "EPERM", control[0]);
  KCHECK(control.outcome.result.denials.empty());
}

KERNEL_TEST("the core hears of each first denial while the box runs, and of all at the end", "[spawn][notify]") {
  Json p = notifying(k, {SYS_personality});
  set_command(p, {"/usr/bin/setarch", "x86_64", "-R", "/usr/bin/true"});
  Outcome o = run_once(p);
  KCHECK_SAYS(o.refused.empty(), o.text());
  KREQUIRE(o.denials.size() == 1);
  KCHECK(o.denials[0].syscall == SYS_personality && o.denials[0].count == 1 && o.denials[0].err == EPERM);
  KREQUIRE(o.result.denials.size() == 1);
  KCHECK(o.result.denials[0].count >= 1);
  KCHECK(o.result.code != 0);
}

KERNEL_TEST("ten thousand refused calls are all answered, counted and told once", "[spawn][notify]") {
  Json p = notifying(k, {SYS_sched_get_priority_max});
  set_command(p, {"/usr/bin/python3", "-c",
                  "import os\nn=0\nfor i in range(10000):\n try: os.sched_get_priority_max(0)\n except "
                  "PermissionError: n+=1\nprint(n)"});
  Outcome o = run_once(p);
  KCHECK_SAYS(o.ok() && o.output == "10000\n", o.text());
  KREQUIRE(o.result.denials.size() == 1);
  KCHECK(o.result.denials[0].count == 10000);
  KCHECK(o.denials.size() == 1);
}

KERNEL_TEST("a flood of numbers that nobody has hides no call that comes after it", "[spawn][notify]") {
  Json p = notifying(k, {SYS_sched_get_priority_max}, 5000);
  set_command(p, {"/usr/bin/python3", "-c",
                  "import ctypes, os\nl=ctypes.CDLL(None)\nfor i in range(3000): l.syscall(5000 + i)\ntry: "
                  "os.sched_get_priority_max(0)\nexcept OSError: print('refused')"});
  Outcome o = run_once(p);
  KCHECK_SAYS(o.ok() && o.output == "refused\n", o.text());
  uint64_t all = 0, ours = 0;
  for (const auto& d : o.result.denials) {
    all += d.count;
    if (d.syscall == SYS_sched_get_priority_max) ours = d.count;
  }
  KCHECK(all == 3001 && ours == 1);
  KCHECK(o.result.denials.size() <= spawn::kMaxDenials);
}

KERNEL_TEST("refused sockets are counted by what was asked for, and a flood of kinds has a bound", "[spawn][notify]") {
  Json p = notifying(k, {SYS_socket});
  set_command(p, {"/usr/bin/python3", "-c",
                  "import ctypes\nl=ctypes.CDLL(None)\nfor a in [(2,2|0o2000000,1),(2,2|0o4000,1),(16,3,12),(17,3,768)]: l.socket(*a)\n"
                  "for i in range(300): l.socket(300 + i, 1, 0)\nl.socket(2,2,1)\nprint('tried')"});
  Outcome o = run_once(p);
  KCHECK_SAYS(o.ok() && o.output == "tried\n", o.text());
  KREQUIRE(o.result.denials.size() == 1);
  KCHECK(o.result.denials[0].count >= 305);  // an interpreter asks for some of its own
  KCHECK(o.result.sockets.size() == spawn::kMaxSocketKinds);
  auto count = [&](spawn::SocketKind kind) {
    for (const auto& s : o.result.sockets)
      if (s.kind == kind) return s.count;
    return uint64_t{0};
  };
  KCHECK(count({2, 2, 1}) == 3);
  KCHECK(count({16, 3, 12}) == 1);
  KCHECK(count({17, 3, 768}) == 1);
}

KERNEL_TEST("a filter that refuses by itself needs no listener, and one that kills ends the program",
            "[spawn][notify]") {
  Json p = confined_plan(k);
  p["seccomp"] = filter({SYS_keyctl}, SECCOMP_RET_ERRNO | EBADMSG);
  auto a = act(p, {{"syscall", number(SYS_keyctl), "0", "0"}});
  KCHECK_SAYS(a[0] == "EBADMSG", a[0]);
  p["seccomp"] = filter({SYS_keyctl}, SECCOMP_RET_KILL_PROCESS);
  a = act(p, {{"ids"}, {"syscall", number(SYS_keyctl), "0", "0"}, {"ids"}});
  KCHECK_SAYS(a[0] == "ok" && a[1] == "none", a.outcome.text());
  KCHECK_SAYS(a.outcome.result.status == H5I_OUTCOME_SIGNALED && a.outcome.result.code == SIGSYS, a.outcome.text());
}

KERNEL_TEST("a filter that would stop the start itself is refused before anything is cloned", "[spawn][notify]") {
  for (unsigned nr : {SYS_write, SYS_read, SYS_execveat, SYS_exit_group, SYS_sendmsg}) {
    Json p = notifying(k, {nr});
    auto a = act(p, {{"ids"}});
    KCHECK_SAYS(a.outcome.refused.find("the start itself needs") != std::string::npos, a.outcome.text());
  }
}

KERNEL_TEST("calls that are held while the box is killed do not hold the spawner", "[spawn][notify]") {
  Json p = notifying(k, {SYS_personality});
  set_shell(
      p, "while :; do setarch x86_64 -R true 2>/dev/null; done & while :; do setarch x86_64 -R true 2>/dev/null; done");
  Session s;
  Outcome o;
  auto waiting = s.start(p, o);
  KREQUIRE(waiting);
  KREQUIRE(waiting->gate.wait_ready(5000) && waiting->gate.go());
  usleep(300000);
  KCHECK(s.watch->kill_all(H5I_OUTCOME_TIMEOUT));
  s.collect(o, waiting->handle, waiting->output.get());
  KCHECK_SAYS(o.result.status == H5I_OUTCOME_TIMEOUT, o.text());
  KCHECK(!o.result.denials.empty());
  KCHECK(s.end() == 0);
}

KERNEL_TEST("refused calls from many threads, with children that die in the middle of theirs, are each answered and each counted", "[spawn][notify]") {
  const char* wanted = getenv("H5I_NOTIFY_CALLS");  // of all threads together; a million on demand
  const long calls = wanted ? atol(wanted) : 80'000, threads = 8;
  Json p = notifying(k, {SYS_socket});
  Json& storm = add_mount(p, "bind", "/storm");
  storm["source"] = build_dir() + "/tests/spawn/notify_storm";
  for (const char* flag : {"ro", "nosuid", "nodev"}) storm["flags"].push(flag);
  set_command(p, {"/storm", std::to_string(threads), std::to_string(calls / threads), "200"});
  Outcome o = Session().run(p);
  KCHECK_SAYS(o.ok() && o.output == std::to_string(calls / threads * threads) + " 0\n", o.text());
  uint64_t counted = 0;
  for (const spawn::Denial& d : o.result.denials)
    if (d.syscall == SYS_socket) counted += d.count;
  KCHECK_SAYS(counted >= static_cast<uint64_t>(calls / threads * threads), std::to_string(counted));
}

KERNEL_TEST("a thousand shells that fork while each start notifies come to their ends", "[spawn][notify]") {
  Json p = notifying(k, {SYS_getppid});  // what a shell asks at its start
  // Each end of a child is a signal with a handler, and so may interrupt a call that is held.
  set_command(p, {"/usr/bin/bash", "-c", "n=0; trap 'n=$((n+1))' CHLD; for ((i = 0; i < 1000; i++)); do sh -c \"trap : CHLD; sh -c : & wait\" & wait $!; done; echo $i; ((n >= 900)) && echo signals"});
  Outcome o = Session().run(p);
  KCHECK_SAYS(o.ok() && o.output == "1000\nsignals\n", o.text());
  uint64_t counted = 0;
  for (const spawn::Denial& d : o.result.denials)
    if (d.syscall == SYS_getppid) counted += d.count;
  KCHECK_SAYS(counted >= 2000, std::to_string(counted));
}
