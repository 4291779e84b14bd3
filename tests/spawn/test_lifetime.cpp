// Nothing outlives its run, whoever dies first.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "core/base/ids.hpp"
#include "core/base/sha256.hpp"
#include "core/os/pidfd.hpp"
#include "core/spawn/walk.hpp"
#include "tests/spawn/acts.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

bool gone_within(pid_t pid, int ms) {
  for (int i = 0; i < ms; i++) {
    if (kill(pid, 0) != 0 && errno == ESRCH) return true;
    usleep(1000);
  }
  return false;
}

Json without_namespaces(const Checks& k) { return plain_plan(k); }

}  // namespace

KERNEL_TEST("survivors of a normal end are killed and counted, also when they made sessions of their own",
            "[spawn][life]") {
  for (bool confined : {true, false}) {
    Json p = confined ? confined_plan(k) : without_namespaces(k);
    set_shell(p, "setsid sh -c 'setsid sleep 300 & sleep 300' & (sleep 300 &) ; sleep 1; exit 0");
    Outcome o = run_once(p);
    KCHECK_SAYS(o.ok(), o.text());
    // Two sleeps, a shell and its sleep; on a busy machine one of them may not have been forked yet.
    KCHECK_SAYS(o.result.survivors >= 3 && o.result.survivors <= 4,
                std::to_string(o.result.survivors) + (confined ? " confined" : " walk"));
  }
  Json p = confined_plan(k);
  set_shell(p, "sleep 0.01 & wait; exit 0");
  KCHECK(run_once(p).result.survivors == 0);
}

KERNEL_TEST("a kill from the core ends everything at once and says why", "[spawn][life]") {
  for (bool confined : {true, false}) {
    Json p = confined ? confined_plan(k) : without_namespaces(k);
    set_shell(p, "trap '' TERM INT HUP; setsid sleep 300 & kill -STOP $! ; sleep 300");
    Session s;
    int64_t begin = 0;
    Outcome o = s.run(p, [&](Session& session, pid_t) {
      begin = monotonic_ns();
      // While it still waits: the kill must reach a workload that was never let go, too.
      (void)session.watch->kill_all(H5I_OUTCOME_TIMEOUT);
    });
    KCHECK_SAYS(o.result.status == H5I_OUTCOME_TIMEOUT, o.text());
    KCHECK(monotonic_ns() - begin < 2'000'000'000);
    KCHECK(s.end() == 0);
  }
}

KERNEL_TEST("a running tree that ignores signals is gone within a second of the kill", "[spawn][life]") {
  for (bool confined : {true, false}) {
    Json p = confined ? confined_plan(k) : without_namespaces(k);
    set_shell(p,
              "trap '' TERM INT HUP; sleep 300 & kill -STOP $!; setsid sleep 300 & echo up; while :; do sleep 1; done");
    Session s;
    Outcome o;
    auto waiting = s.start(p, o);
    KREQUIRE(waiting);
    KREQUIRE(waiting->gate.wait_ready(5000) && waiting->gate.go());
    auto started = waiting->gate.exec_errno(5000);
    KCHECK(started && *started == 0);
    char buf[8];
    KCHECK(read(waiting->output.get(), buf, sizeof buf) == 3);
    int64_t begin = monotonic_ns();
    KCHECK(s.watch->kill_all(H5I_OUTCOME_TIMEOUT));
    s.collect(o, waiting->handle, waiting->output.get());
    KCHECK_SAYS(monotonic_ns() - begin < 1'000'000'000, std::to_string(monotonic_ns() - begin));
    KCHECK_SAYS(o.result.status == H5I_OUTCOME_TIMEOUT, o.text());
    KCHECK(!gone_within(getpid(), 1));  // control of the helper itself
    KCHECK(s.end() == 0);
  }
}

KERNEL_TEST("the spawner keeps the deadline that the core told it, whatever became of the core", "[spawn][life]") {
  for (bool confined : {true, false}) {
    Json p = confined ? confined_plan(k) : without_namespaces(k);
    set_shell(p, "sleep 300");
    Session s;
    const int64_t until = monotonic_ns() + 500'000'000;
    KCHECK(s.watch->set_deadline(until));
    Outcome o = s.run(p);  // the core of this test asks for nothing more
    KCHECK_SAYS(o.result.status == H5I_OUTCOME_TIMEOUT, o.text());
    KCHECK(monotonic_ns() >= until);
    // Nothing more is started in a session that is over.
    auto late = s.client->start(json::canonical(p), H5I_SPAWN_WORKLOAD);
    KCHECK(!late);
    KCHECK(s.end() == 0);
  }
}

KERNEL_TEST("when the host process or the core closes, the box dies and the spawner leaves", "[spawn][life]") {
  for (bool core : {true, false})
    for (bool confined : {true, false}) {
      Json p = confined ? confined_plan(k) : without_namespaces(k);
      set_shell(p, "sleep 300 & sleep 300");
      Session s;
      UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
      KREQUIRE(s.watch->give_stdio(null.get(), null.get(), null.get(), false));
      KREQUIRE(s.client->start(json::canonical(p), H5I_SPAWN_WORKLOAD));
      auto event = s.watch->next(5000);
      KREQUIRE(event);
      spawn::Gate gate(std::move(event->gate));
      auto peer = gate.wait_ready(5000);
      KREQUIRE(peer && *peer && gate.go());
      KCHECK(!gone_within((*peer)->pid, 20));
      if (core)
        s.watch.reset();
      else
        s.client.reset();
      KCHECK(gone_within((*peer)->pid, 3000));
      KCHECK(gone_within(event->init_pid, 3000));
      KCHECK(s.end() == 0);
    }
}

KERNEL_TEST("kill -9 of the host process or of the spawner leaves no process of a confined box", "[spawn][life]") {
  for (bool spawner : {true, false}) {
    int p[2];
    KREQUIRE(pipe2(p, O_CLOEXEC) == 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t host = fork();
    if (host == 0) {
      Json plan = confined_plan(k);
      set_shell(plan, "sleep 300 & sleep 300");
      Session s;
      UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
      (void)s.watch->give_stdio(null.get(), null.get(), null.get(), false);
      (void)s.client->start(json::canonical(plan), H5I_SPAWN_WORKLOAD);
      auto event = s.watch->next(5000);
      spawn::Gate gate(std::move(event->gate));
      auto peer = gate.wait_ready(5000);
      (void)gate.go();
      pid_t pids[3] = {s.pid, event->init_pid, (*peer)->pid};
      if (write(p[1], pids, sizeof pids) < 0) _exit(1);
      for (;;) pause();
    }
    close(p[1]);
    pid_t pids[3] = {};
    KREQUIRE(read(p[0], pids, sizeof pids) == sizeof pids);
    close(p[0]);
    KCHECK(!gone_within(pids[2], 20));
    kill(spawner ? pids[0] : host, SIGKILL);
    for (int i = 0; i < 3000; i++) {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (kill(pids[1], 0) != 0 && kill(pids[2], 0) != 0 && (spawner || kill(pids[0], 0) != 0)) break;
      usleep(1000);
    }
    KCHECK(kill(pids[1], 0) != 0);
    KCHECK(kill(pids[2], 0) != 0);
    if (!spawner) KCHECK(kill(pids[0], 0) != 0);
    kill(host, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }
}

KERNEL_TEST("a spawner killed the moment it cloned leaves no copy of itself that waits for it", "[spawn][life]") {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int met = 0;
  for (int round = 0; round < 200 && met < 20; round++) {
    int p[2];
    KREQUIRE(pipe2(p, O_CLOEXEC) == 0);
    pid_t host = fork();
    if (host == 0) {
      Json plan = confined_plan(k);
      set_shell(plan, "sleep 300");
      Session s;
      if (write(p[1], &s.pid, sizeof s.pid) < 0) _exit(1);
      UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
      (void)s.watch->give_stdio(null.get(), null.get(), null.get(), false);
      // Ends when the spawner does: its answer is waited for without a limit.
      _exit(s.client->start(json::canonical(plan), H5I_SPAWN_WORKLOAD) ? 2 : 0);
    }
    close(p[1]);
    pid_t spawner = 0;
    KREQUIRE(read(p[0], &spawner, sizeof spawner) == sizeof spawner);
    close(p[0]);
    const std::string children = "/proc/" + std::to_string(spawner) + "/task/" + std::to_string(spawner) + "/children";
    pid_t copy = 0;
    for (int64_t until = monotonic_ns() + 2'000'000'000; copy == 0 && monotonic_ns() < until;)
      if (auto text = os::read_file(children, 64)) copy = atoi(text->c_str());
    kill(spawner, SIGKILL);
    int status = 0;
    bool ended = false;
    for (int i = 0; i < 3000 && !ended; i++, usleep(1000)) ended = waitpid(host, &status, WNOHANG) == host;
    KCHECK(ended);
    if (!ended) kill(host, SIGKILL);
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) met++;  // the answer had not come yet
    for (int i = 0; i < 3000 && copy != 0 && kill(copy, 0) == 0; i++) {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      usleep(1000);
    }
    KCHECK(copy == 0 || kill(copy, 0) != 0);
    if (copy) kill(copy, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }
  KCHECK(met > 0);
}

KERNEL_TEST("a canary that is killed where nothing confines it takes the children of its act along", "[spawn][life]") {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (std::vector<std::string> act : {std::vector<std::string>{"cpu", "600"}, {"fork", "2000"}}) {
    std::string program = build_dir() + "/out/libexec/h5i/h5i-canary", two = "2";
    pid_t canary = fork();
    if (canary == 0) {
      char* argv[] = {program.data(), two.data(), act[0].data(), act[1].data(), nullptr};
      execv(argv[0], argv);
      _exit(1);
    }
    const std::string children = "/proc/" + std::to_string(canary) + "/task/" + std::to_string(canary) + "/children";
    std::string seen;
    for (int i = 0; i < 20000 && seen.empty(); i++, usleep(100))
      if (auto text = os::read_file(children, 1 << 20)) seen = *text;
    KREQUIRE(!seen.empty());
    KCHECK(kill(canary, SIGKILL) == 0);
    // They come to us when it is gone: each ends, by its own parent's end.
    int ended = 0, status = 0;
    pid_t pid = 0;
    for (int i = 0; i < 5000 && pid >= 0; i++) {
      pid = waitpid(-1, &status, WNOHANG);
      if (pid > 0 && pid != canary) ended++;
      if (pid == 0) usleep(1000);
    }
    KCHECK_SAYS(pid < 0 && ended > 0, act[0] + ": " + std::to_string(ended) + " ended");
    if (pid < 0) continue;
    for (pid_t left = 0; (left = atoi(os::read_file("/proc/self/task/" + std::to_string(getpid()) + "/children", 64)->c_str())) > 0;) {
      kill(left, SIGKILL);
      waitpid(left, nullptr, 0);
    }
  }
}

KERNEL_TEST("a pid 1 that is killed from outside takes the box with it and is reported as no orderly end",
            "[spawn][life]") {
  Json p = confined_plan(k);
  set_shell(p, "sleep 300 & sleep 300");
  Session s;
  Outcome o = s.run(p, [](Session& session, pid_t) { kill(session.init_pid, SIGKILL); });
  KCHECK_SAYS(o.result.status == H5I_OUTCOME_SIGNALED && o.result.code == SIGKILL && o.result.incomplete, o.text());
  KCHECK(s.end() == 0);
}

KERNEL_TEST("pipelines complete, every one, under a filter with a listener", "[spawn][life]") {
  Json p = confined_plan(k);
  sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_keyctl, 0, 1),
                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  std::string raw(reinterpret_cast<char*>(f), sizeof f);
  p["seccomp"]["program"] = base64(raw);
  p["seccomp"]["sha256"] = sha256_hex(raw);
  p["seccomp"]["notify"]["default"] = EPERM;
  set_shell(p, "i=0; while [ $i -lt 200 ]; do sh -c 'seq 9|cat|cat' || exit 1; i=$((i+1)); done | wc -l");
  Outcome o = run_once(p);
  KCHECK_SAYS(o.ok() && o.output == "1800\n", o.text());
}

KERNEL_TEST("a thousand orphans leave no zombie while the box runs", "[spawn][life]") {
  Json p = confined_plan(k);
  set_shell(p,
            "i=0; while [ $i -lt 1000 ]; do (true &) ; i=$((i+1)); done; sleep 0.2; "
            "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l");
  Outcome o = run_once(p);
  KCHECK_SAYS(o.ok() && o.output == "0\n", o.text());
}

KERNEL_TEST("a signal from the core reaches the workload's group", "[spawn][life]") {
  for (bool confined : {true, false}) {
    Json p = confined ? confined_plan(k) : without_namespaces(k);
    set_shell(p, "trap 'exit 42' USR1; echo up; while :; do sleep 0.05; done");
    Session s;
    Outcome o;
    auto waiting = s.start(p, o);
    KREQUIRE(waiting);
    KREQUIRE(waiting->gate.wait_ready(5000) && waiting->gate.go());
    char buf[8];
    KCHECK(read(waiting->output.get(), buf, sizeof buf) == 3);
    KCHECK(s.watch->signal(SIGUSR1));
    s.collect(o, waiting->handle, waiting->output.get());
    KCHECK_SAYS(o.result.status == H5I_OUTCOME_EXITED && o.result.code == 42, o.text());
  }
}

KERNEL_TEST("how a program ended is told apart: status, signal, not found, not executable", "[spawn][life]") {
  for (bool confined : {true, false}) {
    auto base = [&] { return confined ? confined_plan(k) : without_namespaces(k); };
    Json p = base();
    set_shell(p, "kill -SEGV $$");
    Outcome o = run_once(p);
    KCHECK_SAYS(o.result.status == H5I_OUTCOME_SIGNALED && o.result.code == SIGSEGV, o.text());
    p = base();
    set_command(p, {"/usr/bin/no-such-program"});
    o = run_once(p);
    KCHECK_SAYS(o.result.code == 127 && o.result.exec_errno == ENOENT, o.text());
    p = base();
    set_command(p, {"/usr/share"});
    o = run_once(p);
    KCHECK_SAYS(o.result.code == 126 && o.result.exec_errno == EACCES, o.text());
    p = base();
    set_shell(p, "exit 0");
    p["exec"] = json::Array{Json("/usr/no/such"), Json("/usr/bin/sh/x"), Json("/usr/share"), Json("/usr/bin/sh")};
    o = run_once(p);
    KCHECK_SAYS(o.ok(), o.text());
    p["exec"] = json::Array{Json("/usr/share"), Json("/usr/no/such")};
    o = run_once(p);
    KCHECK_SAYS(o.result.code == 126 && o.result.exec_errno == EACCES, o.text());
    p = base();
    set_shell(p, "head -c 3000000 /dev/zero; head -c 1000 /dev/zero >&2");
    o = run_once(p);
    KCHECK(o.ok() && o.output.size() == 3001000);
  }
}

KERNEL_TEST("usage is measured", "[spawn][life]") {
  for (bool confined : {true, false}) {
    Json p = confined ? confined_plan(k) : without_namespaces(k);
    set_shell(p, "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; sleep 0.1");
    Outcome o = run_once(p);
    KCHECK_SAYS(o.ok(), o.text());
    KCHECK(o.result.wall_us > 100000 && o.result.wall_us < 20000000);
    KCHECK(o.result.user_us > 5000);
    KCHECK(o.result.max_rss_kib > 500);
  }
}

KERNEL_TEST("the workload waits, confined, until it is let go", "[spawn][gate]") {
  Json p = confined_plan(k);
  set_shell(p, "echo ran");
  Session s;
  Outcome o = s.run(p, [&](Session&, pid_t pid) {
    auto status = os::read_file("/proc/" + std::to_string(pid) + "/status", 1 << 16);
    KCHECK(status && status->find("NoNewPrivs:\t1") != std::string::npos);
    KCHECK(status && status->find("CapEff:\t0000000000000000") != std::string::npos);
    KCHECK(status && status->find("CapBnd:\t0000000000000000") != std::string::npos);
    auto maps = os::read_file("/proc/" + std::to_string(pid) + "/uid_map", 4096);
    KCHECK_SAYS(maps && !maps->empty(), maps ? *maps : maps.error().evidence);
    char link[64], own[64];
    for (const char* ns : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
      ssize_t a = readlink(("/proc/" + std::to_string(pid) + "/ns/" + ns).c_str(), link, sizeof link);
      ssize_t b = readlink((std::string("/proc/self/ns/") + ns).c_str(), own, sizeof own);
      KCHECK_SAYS(
          a > 0 && b > 0 && std::string(link, static_cast<size_t>(a)) != std::string(own, static_cast<size_t>(b)),
          std::string(ns) + " " + (a < 0 ? strerror(errno) : "same"));
    }
    ssize_t n = readlink(("/proc/" + std::to_string(s.init_pid) + "/ns/user").c_str(), link, sizeof link);
    KCHECK(n > 0);
  });
  KCHECK_SAYS(o.ok() && o.output == "ran\n", o.text());
  KCHECK(o.peer && o.peer->uid == (k.root() ? kBoxId : k.who().uid));
}

KERNEL_TEST("a gate that closes without go lets nothing run", "[spawn][gate]") {
  Json p = confined_plan(k);
  set_shell(p, "echo ran");
  Session s;
  Outcome o;
  auto waiting = s.start(p, o);
  KREQUIRE(waiting);
  {
    spawn::Gate gate = std::move(waiting->gate);
    auto peer = gate.wait_ready(5000);
    KREQUIRE(peer && *peer);
  }
  s.collect(o, waiting->handle, waiting->output.get());
  KCHECK_SAYS(o.output.empty() && o.result.code == 125, o.text());
}

TEST_CASE("descendants are found through any depth and never the root or strangers", "[spawn][unit]") {
  std::map<pid_t, pid_t> parents{{1, 0}, {10, 1}, {11, 10}, {12, 11}, {13, 10}, {20, 1}, {21, 20}};
  auto d = spawn::descendants_of(10, parents);
  std::sort(d.begin(), d.end());
  CHECK(d == std::vector<pid_t>{11, 12, 13});
  CHECK(spawn::descendants_of(99, parents).empty());
}
