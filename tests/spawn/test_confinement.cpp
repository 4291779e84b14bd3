// What a fully confined box can and cannot do, each guard with the control that shows that the test can fail.
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <fstream>

#include "tests/spawn/acts.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

static void put(const std::string& path, const std::string& text, mode_t mode = 0644) {
  std::ofstream(path) << text;
  chmod(path.c_str(), mode);
}

KERNEL_TEST("what is not granted is not there, and what is granted read-only stays as it is", "[spawn][fs]") {
  std::string secret = k.dir() + "/secret", given = k.dir() + "/given";
  mkdir(given.c_str(), 0755);
  put(secret, "s");
  put(given + "/file", "f", 0666);
  ActList acts{{"open", secret, "r"},          {"open", given + "/file", "r"},
               {"open", given + "/file", "w"}, {"chmod", given + "/file", "600"},
               {"utime", given + "/file"},     {"open", given + "/new", "creat"},
               {"unlink", given + "/file"},    {"open", "/new", "creat"},
               {"mkdir", "/usr/new"}};
  Json p = confined_plan(k);
  Json& m = add_mount(p, "bind", given);
  m["source"] = given;
  m["recursive"] = true;
  for (const char* f : {"ro", "nosuid", "nodev"}) m["flags"].push(f);
  auto in = act(p, acts);
  KCHECK_SAYS(in.outcome.ok(), in.outcome.text());
  KCHECK(in[0] == "ENOENT");
  KCHECK(in[1] == "ok");
  for (size_t i : {2, 3, 4, 5, 6, 7, 8}) KCHECK_SAYS(in[i] == "EROFS", std::to_string(i) + " " + in[i]);
  acts.resize(6);
  auto out = act_outside(acts);
  for (size_t i = 0; i < 6; i++) KCHECK_SAYS(out[i] == "ok", std::to_string(i) + " " + out[i]);
}

KERNEL_TEST("a writable grant is written with the owner that it had", "[spawn][fs]") {
  std::string work = k.dir() + "/work";
  mkdir(work.c_str(), 0755);
  put(work + "/old", "o");
  Json p = confined_plan(k);
  bind_writable(p, k, work);
  auto a = act(p, {{"open", work + "/old", "rw"},
                   {"open", work + "/new", "creat"},
                   {"mkdir", work + "/d"},
                   {"mknod", work + "/n", "c"},
                   {"ids"}});
  KCHECK_SAYS(a.outcome.ok(), a.outcome.text());
  for (size_t i : {0, 1, 2}) KCHECK_SAYS(a[i] == "ok", a[i] + " " + std::to_string(i));
  KCHECK_SAYS(a[3] == "EPERM", a[3]);
  struct stat st {};
  KCHECK(stat((work + "/new").c_str(), &st) == 0 && st.st_uid == k.who().uid && st.st_gid == k.who().gid);
}

KERNEL_TEST("as root, without mapped owners the box cannot write what root owns", "[spawn][fs]") {
  if (!k.root()) return;
  std::string work = k.dir() + "/work";
  mkdir(work.c_str(), 0755);
  Json p = confined_plan(k);
  bind_writable(p, k, work).make_object().erase("idmap");
  auto a = act(p, {{"open", work + "/new", "creat"}});
  KCHECK_SAYS(a[0] == "EACCES", a.outcome.text());
}

KERNEL_TEST("a source behind root's 0700 directory is granted although the box's id could not reach it",
            "[spawn][fs]") {
  std::string deep = k.dir() + "/closed", work = deep + "/work";
  mkdir(deep.c_str(), 0700);
  mkdir(work.c_str(), 0755);
  Json p = confined_plan(k);
  bind_writable(p, k, work);
  auto a = act(p, {{"open", work + "/new", "creat"}});
  KCHECK_SAYS(a[0] == "ok", a.outcome.text());
}

KERNEL_TEST("a symbolic link as a source or on the way to one is a refusal", "[spawn][fs]") {
  std::string real = k.dir() + "/real", link = k.dir() + "/link";
  mkdir(real.c_str(), 0755);
  mkdir((real + "/in").c_str(), 0755);
  KREQUIRE(symlink(real.c_str(), link.c_str()) == 0);
  for (const std::string& source : {link, link + "/in"}) {
    Json p = confined_plan(k);
    Json& m = bind_writable(p, k, source);
    m["target"] = "/granted";
    auto a = act(p, {{"ids"}});
    KCHECK_SAYS(!a.outcome.ok(), a.outcome.text());
    bool named = a.outcome.result.setup_errno == ELOOP || a.outcome.refused.find("symbolic link") != std::string::npos;
    KCHECK_SAYS(named, a.outcome.text());
  }
  Json p = confined_plan(k);
  bind_writable(p, k, real)["target"] = "/granted";
  KCHECK(act(p, {{"ids"}}).outcome.ok());
}

KERNEL_TEST("a mask hides a file and a directory, cannot be written, removed, moved or unmounted", "[spawn][fs]") {
  std::string work = k.dir() + "/work";
  mkdir(work.c_str(), 0755);
  mkdir((work + "/hooks").c_str(), 0755);
  put(work + "/hooks/pre", "x");
  put(work + "/token", "secret", 0644);
  Json p = confined_plan(k);
  bind_writable(p, k, work);
  add_mount(p, "mask", work + "/hooks");
  add_mount(p, "mask", work + "/token");
  auto a = act(p, {{"list", work + "/hooks"},
                   {"open", work + "/hooks/new", "creat"},
                   {"open", work + "/token", "r"},
                   {"open", work + "/token", "w"},
                   {"chmod", work + "/token", "644"},
                   {"unlink", work + "/token"},
                   {"rename", work + "/hooks", work + "/aside"},
                   {"umount", work + "/token"},
                   {"umount", work + "/hooks"},
                   {"open", work + "/free", "creat"}});
  KCHECK_SAYS(a.outcome.ok(), a.outcome.text());
  const char* expected[] = {"EACCES", "EACCES", "EACCES", "EROFS", "EROFS", "EBUSY", "EBUSY", "EPERM", "EPERM", "ok"};
  for (size_t i = 0; i < 10; i++)
    KCHECK_SAYS(a[i] == expected[i] || (i == 3 && a[i] == "EACCES"), std::to_string(i) + " " + a[i]);
  KCHECK(access((work + "/hooks/pre").c_str(), F_OK) == 0);  // and the host's tree is as before
  auto control =
      act_outside({{"list", work + "/hooks"}, {"open", work + "/token", "r"}, {"open", work + "/token", "w"}});
  for (size_t i = 0; i < 3; i++) KCHECK(control[i] == "ok");
}

KERNEL_TEST("what is mounted in a box is mounted nowhere else, also where the host shares its mounts", "[spawn][fs]") {
  if (!k.root()) return;  // a mount namespace of an ordinary user's is below the host's, and gives nothing back
  KREQUIRE(unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) == 0);
  std::string work = k.dir() + "/work";
  mkdir(work.c_str(), 0755);
  mkdir((work + "/hooks").c_str(), 0755);
  put(work + "/token", "secret", 0644);
  Json p = confined_plan(k);
  bind_writable(p, k, work);
  add_mount(p, "mask", work + "/hooks");
  add_mount(p, "mask", work + "/token");
  set_shell(p, "cat " + work + "/token 2>/dev/null || echo masked");
  auto mounts = [] {
    std::ifstream in("/proc/self/mountinfo");
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::string before = mounts(), during;
  KCHECK(before.find(" shared:") != std::string::npos);
  Outcome o = Session().run(p, [&](Session&, pid_t) { during = mounts(); });
  KCHECK_SAYS(o.ok() && o.output == "masked\n", o.text());  // the control: there were such mounts
  KCHECK_SAYS(during == before, during);
  KCHECK_SAYS(mounts() == before, mounts());
}

KERNEL_TEST("a missing mount point beneath a grant is a failure that leaves nothing behind", "[spawn][fs]") {
  std::string work = k.dir() + "/work";
  mkdir(work.c_str(), 0755);
  for (bool optional : {false, true}) {
    Json p = confined_plan(k);
    bind_writable(p, k, work);
    Json& m = add_mount(p, "mask", work + "/absent");
    if (optional) m["optional"] = true;
    auto a = act(p, {{"ids"}});
    KCHECK_SAYS(a.outcome.ok() == optional, a.outcome.text());
    if (!optional) KCHECK(a.outcome.result.setup_text.find("mask") != std::string::npos);
    KCHECK(access((work + "/absent").c_str(), F_OK) != 0);
  }
}

KERNEL_TEST("a small file is read-only on the root, over a grant and in a tmpfs", "[spawn][fs]") {
  std::string work = k.dir() + "/work";
  mkdir(work.c_str(), 0755);
  put(work + "/hosts", "old");
  Json p = confined_plan(k);
  bind_writable(p, k, work);
  for (const std::string& target : {std::string("/etc/hosts"), work + "/hosts", std::string("/tmp/hosts")})
    add_mount(p, "file", target)["content"] = "127.0.0.1 localhost\n";
  auto a = act(p, {{"read", "/etc/hosts"},
                   {"read", work + "/hosts"},
                   {"read", "/tmp/hosts"},
                   {"open", "/etc/hosts", "w"},
                   {"open", work + "/hosts", "w"},
                   {"open", "/tmp/hosts", "w"},
                   {"unlink", "/tmp/hosts"}});
  KCHECK_SAYS(a.outcome.ok(), a.outcome.text());
  for (size_t i : {0, 1, 2}) KCHECK(a.value(i).integer() == 20);
  for (size_t i : {3, 4, 5}) KCHECK_SAYS(a[i] == "EROFS" || a[i] == "EACCES", a[i]);
  KCHECK_SAYS(a[6] == "EBUSY", a[6]);
  std::string now;
  std::ifstream(work + "/hosts") >> now;
  KCHECK(now == "old");
}

KERNEL_TEST("no capability, no namespace of its own, no mount, no dangerous proc file", "[spawn][caps]") {
  Json p = confined_plan(k);
  add_mount(p, "mask", "/proc/kcore")["optional"] = true;
  // Without a system-call filter the kernel would let an unprivileged process make a user namespace; that it gets no
  // capability over the box's network or mounts is what the nested namespace is for.
  auto a = act(p, {{"capabilities"},
                   {"mount", "/tmp"},
                   {"umount", "/usr"},
                   {"open", "/proc/sysrq-trigger", "w"},
                   {"open", "/proc/sys/kernel/core_pattern", "w"},
                   {"open", "/proc/kcore", "r"},
                   {"pids"},
                   {"open", "/proc/sys/kernel/hostname", "w"}});
  KCHECK_SAYS(a.outcome.ok(), a.outcome.text());
  KCHECK(a[0] == "ok");
  KCHECK_SAYS(a[2] == "EPERM", a[2]);
  for (size_t i : {3, 4, 5, 7}) KCHECK_SAYS(a[i] == "EACCES" || a[i] == "ENOENT" || a[i] == "EPERM", a[i]);
  KCHECK_SAYS(a.value(6).integer() == 2, json::canonical(a.value(6)));  // init and the canary
  if (k.root()) {
    auto control = act_outside({{"capabilities"}, {"open", "/proc/sys/kernel/core_pattern", "w"}});
    KCHECK(control[0] == "EPERM");  // it has some
    KCHECK(control[1] == "ok");
  }
}

KERNEL_TEST("the network is the box's own loopback and nothing else", "[spawn][net]") {
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof at;
  KREQUIRE(bind(server, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 && listen(server, 8) == 0);
  getsockname(server, reinterpret_cast<sockaddr*>(&at), &len);
  std::string port = std::to_string(ntohs(at.sin_port));
  ActList acts{{"connect", "tcp", "127.0.0.1", port},
               {"interfaces"},
               {"listen", "18080"},
               {"connect", "udp", "192.0.2.1", "53"},
               {"connect", "tcp", "2001:db8::1", "80"}};
  auto in = act(confined_plan(k), acts);
  KCHECK_SAYS(in[0] == "ECONNREFUSED", in[0]);
  KCHECK_SAYS(json::canonical(in.value(1)) == "[\"lo\"]", json::canonical(in.value(1)));
  KCHECK(in[2] == "ok");
  KCHECK_SAYS(in[3] == "ENETUNREACH", in[3]);
  KCHECK_SAYS(in[4] == "ENETUNREACH", in[4]);
  KCHECK(act_outside({acts[0]})[0] == "ok");
  Json p = confined_plan(k);
  p["loopback"] = false;
  KCHECK(act(p, {{"listen", "18081"}})[0] != "ok");
  close(server);
}

KERNEL_TEST("processes outside are neither seen nor reached, and init cannot be read, traced or killed",
            "[spawn][pid]") {
  pid_t outside = fork();
  if (outside == 0) {
    pause();
    _exit(0);
  }
  std::string pid = std::to_string(outside);
  ActList acts{{"kill", pid, "9"},
               {"kill", "-1", "0"},
               {"mem", "1"},
               {"ptrace", "1"},
               {"kill", "1", "9"},
               {"open", "/proc/1/environ", "r"},
               {"readlink", "/proc/1/exe"},
               {"pids"}};
  auto in = act(confined_plan(k), acts);
  KCHECK_SAYS(in.outcome.ok(), in.outcome.text());
  KCHECK_SAYS(in[0] == "ESRCH", in[0]);
  KCHECK_SAYS(in[2] == "EACCES", in[2]);
  KCHECK_SAYS(in[3] == "EPERM", in[3]);
  KCHECK_SAYS(in[5] == "EACCES", in[5]);
  KCHECK_SAYS(in[6] == "EACCES", in[6]);
  KCHECK(in[7] == "ok");  // a SIGKILL to pid 1 from inside does nothing: the box went on
  KCHECK(waitpid(outside, nullptr, WNOHANG) == 0);
  auto out = act_outside({{"mem", std::to_string(getpid())}, acts[0]});
  KCHECK(out[0] == "ok");
  KCHECK(out[1] == "ok");
  waitpid(outside, nullptr, 0);
}

KERNEL_TEST("pid 1 cannot be read even by the first instruction of the workload", "[spawn][pid]") {
  Session s;
  Json p = confined_plan(k);
  set_acts(p, {{"mem", "1"}, {"open", "/proc/1/environ", "r"}, {"list", "/proc/1/fd"}, {"ptrace", "1"}});
  for (int i = 0; i < 100; i++) {
    auto a = answers_of(s.canary(p));
    KCHECK_SAYS(a[0] == "EACCES" && a[1] == "EACCES" && a[2] == "EACCES" && a[3] == "EPERM", a.outcome.text());
    if (k.failed()) return;
  }
}

KERNEL_TEST("the environment is the plan's and no descriptor but stdio is open", "[spawn]") {
  setenv("H5I_TEST_SECRET", "x", 1);
  int leak = open("/dev/null", O_RDONLY);  // not close-on-exec
  Json p = confined_plan(k);
  p["env"]["ONE"] = "1";
  auto a = act(p, {{"env"}, {"list", "/proc/self/fd"}});
  KCHECK_SAYS(json::canonical(a.value(0)) == "[\"ONE\"]", json::canonical(a.value(0)));
  KCHECK_SAYS(a.value(1).integer() == 4, json::canonical(a.value(1)));  // 0, 1, 2 and the listing itself
  close(leak);
}

KERNEL_TEST("limits are lowered and never raised", "[spawn][limits]") {
  Json p = confined_plan(k);
  auto limit = [&](const char* name, int64_t v) {
    Json r;
    r["name"] = name;
    r["soft"] = v;
    r["hard"] = v;
    p["rlimits"].push(r);
  };
  limit("nproc", 20);
  limit("fsize", 4096);
  limit("data", 64 << 20);
  limit("cpu", 1);
  auto a = act(p, {{"fork", "40"}, {"write", "/tmp/f", "8192"}, {"memory", "128"}, {"memory", "16"}, {"cpu", "3"}});
  KCHECK_SAYS(a.outcome.ok(), a.outcome.text());
  KCHECK_SAYS(a[0] == "EAGAIN" && a.value(0).integer() < 20, a.outcome.output);
  KCHECK_SAYS(a[1] == "EFBIG" && a.value(1).integer() == 4096, a[1]);
  KCHECK_SAYS(a[2] == "ENOMEM", a[2]);
  KCHECK(a[3] == "ok");
  KCHECK_SAYS(a[4] == "SIGKILL" || a[4] == "SIGXCPU", a[4]);
  auto control = act(confined_plan(k), {{"fork", "40"}, {"write", "/tmp/f", "8192"}, {"memory", "128"}});
  for (size_t i = 0; i < 3; i++) KCHECK_SAYS(control[i] == "ok", control[i]);
  // Asking for more than there is changes nothing.
  p = confined_plan(k);
  limit("nofile", 1 << 30);
  set_shell(p, "ulimit -Hn; ulimit -Sn");
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  Outcome o = run_once(p);
  KCHECK_SAYS(o.output == std::to_string(now.rlim_max) + "\n" + std::to_string(now.rlim_cur) + "\n", o.text());
}

KERNEL_TEST("Landlock holds what it handles, and a missing rule path fails the start", "[spawn][landlock]") {
  namespace ll = os::landlock;
  int abi = ll::abi();
  if (abi < 1) {
    printf("SKIP: spawn.landlock: this kernel has no Landlock\n");
    return;
  }
  auto with_rules = [&](const std::vector<std::pair<std::string, uint64_t>>& rules) {
    Json p = confined_plan(k);
    Json& l = p["landlock"];
    l["abi"] = abi;
    l["handled_fs"] = ll::all_fs(abi);
    l["handled_net"] = ll::all_net(abi);
    l["scoped"] = ll::all_scopes(abi);
    for (const auto& [path, access] : rules) {
      Json r;
      r["path"] = path;
      r["access"] = access;
      l["rules"].push(r);
    }
    return p;
  };
  ActList acts{{"open", "/tmp/x", "creat"}, {"open", "/usr/bin/true", "r"}, {"list", "/proc"}};
  auto a = act(with_rules({{"/usr", ll::kReadFile | ll::kReadDir | ll::kExecute}}), acts);
  KCHECK_SAYS(a.outcome.ok(), a.outcome.text());
  KCHECK_SAYS(a[0] == "EACCES", a[0]);
  KCHECK(a[1] == "ok");
  KCHECK_SAYS(a[2] == "EACCES", a[2]);
  a = act(with_rules({{"/usr", ll::kReadFile | ll::kReadDir},
                      {"/proc", ll::kReadDir | ll::kReadFile},
                      {"/dev/null", ll::all_fs(abi)},
                      {"/tmp", ll::all_fs(abi)}}),
          acts);
  for (size_t i = 0; i < 3; i++) KCHECK_SAYS(a[i] == "ok", a[i]);
  a = act(with_rules({{"/nowhere", ll::kReadFile}}), acts);
  KCHECK_SAYS(a.outcome.result.status == H5I_OUTCOME_SETUP_FAILED && a.outcome.result.setup_errno == ENOENT &&
                  a.outcome.result.setup_text.find("/nowhere") != std::string::npos,
              a.outcome.text());
}

KERNEL_TEST("workspace form: the caller's own view and ids, and still every descendant dies", "[spawn][workspace]") {
  Json p = plain_plan(k);
  p["namespaces"] = json::Array{Json("user"), Json("pid")};
  p["identity_map"] = true;
  p["init"] = true;
  set_shell(p, "id -u; sleep 1000 & echo $$ > " + k.dir() + "/f; exit 3");
  Outcome o = run_once(p);
  KCHECK_SAYS(o.result.status == H5I_OUTCOME_EXITED && o.result.code == 3, o.text());
  KCHECK_SAYS(o.output == std::to_string(k.who().uid) + "\n", o.output);
  KCHECK(o.result.survivors == 1);
  struct stat st {};
  KCHECK(stat((k.dir() + "/f").c_str(), &st) == 0 && st.st_uid == k.who().uid);
}

KERNEL_TEST("the keyring of the login that started it is not the box's", "[spawn]") {
  constexpr const char* kSession = "-3";
  ActList acts{{"syscall", std::to_string(SYS_keyctl), "0", kSession, "0"}};
  auto out = act_outside(acts);
  if (out[0] != "ok") {
    printf("SKIP: spawn.keyring: keyctl is not available here\n");
    return;
  }
  auto in = act(confined_plan(k), acts);
  KCHECK(in[0] == "ok" && in.value(0).integer() != out.value(0).integer());
}

KERNEL_TEST("standard output can be opened again by name", "[spawn][fs]") {
  Json p = confined_plan(k);
  add_mount(p, "symlink", "/dev/stdout")["to"] = "/proc/self/fd/1";
  set_shell(p, "echo again > /dev/stdout");
  Outcome o = run_once(p);
  KCHECK_SAYS(o.ok() && o.output == "again\n", o.text());
}

KERNEL_TEST("when set-up fails the core hears of it and no gate opens", "[spawn][gate]") {
  Json p = confined_plan(k);
  set_shell(p, "echo ran");
  p["cwd"] = "/nowhere";
  bool waited = false;
  Session s;
  Outcome o = s.run(p, [&](Session&, pid_t) { waited = true; });
  KCHECK(!waited);
  KCHECK_SAYS(o.result.status == H5I_OUTCOME_SETUP_FAILED && o.result.setup_errno == ENOENT, o.text());
  KCHECK_SAYS(o.result.setup_text.find("working directory /nowhere") == 0, o.result.setup_text);
  KCHECK(o.output.empty());
}

KERNEL_TEST("three hundred starts in a row all succeed", "[spawn]") {
  Session s;
  Json p = confined_plan(k);
  set_acts(p, {{"ids"}});
  int failed = 0;
  for (int i = 0; i < 300; i++) failed += s.canary(p).ok() ? 0 : 1;
  KCHECK_SAYS(failed == 0, std::to_string(failed));
}

KERNEL_TEST("a source that is swapped for a link while boxes start is never followed", "[spawn][fs]") {
  std::string at = k.dir() + "/d", aside = k.dir() + "/aside";
  mkdir(at.c_str(), 0755);
  put(at + "/mine", "m");
  pid_t swapper = fork();
  if (swapper == 0) {
    for (;;) {
      if (rename(at.c_str(), aside.c_str()) == 0 && symlink("/", at.c_str()) == 0) unlink(at.c_str());
      if (rename(aside.c_str(), at.c_str()) != 0) _exit(1);
      usleep(200);  // in its place for long enough that some boxes start
    }
  }
  Session s;
  Json p = confined_plan(k);
  Json& m = bind_writable(p, k, at);
  m["target"] = "/granted";
  m["recursive"] = false;
  set_acts(p, {{"stat", "/granted/etc"}, {"stat", "/granted/mine"}});
  int started = 0, refused = 0;
  // Which of the two a round meets is the scheduler's choice: on until both were met.
  for (int i = 0; i < 150 || ((started == 0 || refused == 0) && i < 3000); i++) {
    auto a = answers_of(s.canary(p));
    if (!a.outcome.ok()) {
      refused++;
      continue;
    }
    started++;
    KCHECK_SAYS(a[0] == "ENOENT" && a[1] == "ok", a.outcome.text());
  }
  kill(swapper, SIGKILL);
  waitpid(swapper, nullptr, 0);
  KCHECK_SAYS(started > 0 && refused > 0,
              std::to_string(started) + " started, " + std::to_string(refused) + " refused");
}

KERNEL_TEST("owners that a file system cannot map are a refusal in words", "[spawn][fs]") {
  Json p = confined_plan(k);
  Json& m = add_mount(p, "bind", "/granted");
  m["source"] = "/sys";
  m["recursive"] = true;
  m["idmap"] = true;
  auto a = act(p, {{"ids"}});
  KCHECK_SAYS(a.outcome.refused.find("mapped owners") != std::string::npos, a.outcome.text());
}
