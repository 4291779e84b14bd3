// What the spawner refuses to start, and what neither end can make it do.
#include <map>

#include "tests/spawn/acts.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

KERNEL_TEST("a workload starts once, with stdio from the core, and never as a canary", "[spawn][requests]") {
  Json p = confined_plan(k);
  set_command(p, {"/usr/bin/true"});
  Session s;
  auto early = s.client->start(json::canonical(p), H5I_SPAWN_WORKLOAD);
  KCHECK(!early && early.error().what.find("stdio") != std::string::npos);
  auto disguised = s.client->start(json::canonical(p), H5I_SPAWN_CANARY);
  KCHECK(!disguised && disguised.error().what.find("canary") != std::string::npos);
  Json acts = confined_plan(k);
  set_acts(acts, {{"ids"}});
  auto reverse = s.client->start(json::canonical(acts), H5I_SPAWN_WORKLOAD);
  KCHECK(!reverse);
  KCHECK(!s.client->start(json::canonical(p), 77));
  Outcome o = s.run(p);
  KCHECK_SAYS(o.ok(), o.text());
  Outcome again = s.run(p);
  KCHECK_SAYS(again.refused.find("already") != std::string::npos, again.text());
  KCHECK(s.canary(acts).ok());  // a canary still may
}

KERNEL_TEST("ids that are not the caller's to give are refused", "[spawn][requests]") {
  Json p = plain_plan(k);
  set_acts(p, {{"ids"}});
  KCHECK(Session().canary(p).ok());
  for (const char* key : {"inside_uid", "outside_uid"}) p["ids"][key] = k.root() ? 12345 : 0;
  Outcome o = Session().canary(p);
  KCHECK_SAYS(!o.refused.empty(), o.text());
  if (!k.root()) {
    p = confined_plan(k);
    set_acts(p, {{"ids"}});
    for (const char* key : {"inside_uid", "outside_uid"}) p["ids"][key] = 1;
    o = Session().canary(p);
    KCHECK_SAYS(!o.refused.empty(), o.text());
  }
}

KERNEL_TEST("garbage on a channel ends the session and leaves nothing", "[spawn][requests]") {
  for (bool core : {true, false}) {
    auto host = os::seqpacket_pair(), watch = os::seqpacket_pair();
    KREQUIRE(host && watch);
    auto pid = spawn::fork_spawner({host->b.get(), watch->b.get(), -1, -1, -1, getpid()});
    KREQUIRE(pid);
    host->b.reset();
    watch->b.reset();
    KCHECK(os::send_packet(core ? watch->a.get() : host->a.get(), std::string(100, 'A')));
    int status = 0;
    for (int i = 0; i < 500 && waitpid(*pid, &status, WNOHANG) == 0; i++) usleep(10000);
    KCHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    KCHECK(kill(*pid, 0) != 0);
  }
}

KERNEL_TEST("a run without a pid namespace has the spawner to itself; confined ones run side by side",
            "[spawn][requests]") {
  Session s;
  Json slow = confined_plan(k);
  set_acts(slow, {{"sleep", "300"}});
  Json plain = plain_plan(k);
  set_acts(plain, {{"ids"}});
  auto a = s.client->start(json::canonical(slow), H5I_SPAWN_CANARY),
       b = s.client->start(json::canonical(slow), H5I_SPAWN_CANARY);
  KREQUIRE(a && b);
  auto c = s.client->start(json::canonical(plain), H5I_SPAWN_CANARY);
  KCHECK(!c && c.error().code == Errc::BUSY);
  auto ra = s.client->wait(*a, 10000), rb = s.client->wait(*b, 10000);
  KCHECK(ra && ra->result.code == 0);
  KCHECK(rb && rb->result.code == 0);
  KCHECK(s.canary(plain).ok());
}

KERNEL_TEST("a canary can be killed by the host, and a wait can end before it", "[spawn][requests]") {
  Session s;
  Json slow = confined_plan(k);
  set_acts(slow, {{"sleep", "60000"}});
  auto h = s.client->start(json::canonical(slow), H5I_SPAWN_CANARY);
  KREQUIRE(h);
  auto early = s.client->wait(*h, 50);
  KCHECK(!early && early.error().code == Errc::TIMEOUT);
  KCHECK(s.client->kill(*h));
  auto r = s.client->wait(*h, 5000);
  KCHECK(r && r->result.status == H5I_OUTCOME_CANCELLED);
}

KERNEL_TEST("after the core ended the session nothing new is started", "[spawn][requests]") {
  Session s;
  Json p = confined_plan(k);
  set_acts(p, {{"ids"}});
  KCHECK(s.canary(p).ok());
  KCHECK(s.watch->kill_all(H5I_OUTCOME_TIMEOUT));
  auto late = s.client->start(json::canonical(p), H5I_SPAWN_CANARY);
  KCHECK(!late && late.error().code == Errc::CANCELLED);
}

KERNEL_TEST("a canary's output is capped and never holds it up", "[spawn][requests]") {
  Session s;
  Json p = confined_plan(k);
  set_acts(p, {{"output", "1000000"}});
  Outcome o = s.canary(p);
  KCHECK(o.ok());
  KCHECK(o.output.size() == spawn::kMaxCanaryOutput);
}

KERNEL_TEST("the spawner cannot be read or traced by its own user", "[spawn][requests]") {
  Session s;
  Json p = confined_plan(k);
  set_acts(p, {{"ids"}});
  KCHECK(s.canary(p).ok());  // whoever answers has begun
  std::string proc = "/proc/" + std::to_string(s.pid);
  int fd = open((proc + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (k.root()) {
    KCHECK(fd >= 0);  // root reads everything: the control
    close(fd);
  } else {
    KCHECK(fd < 0 && errno == EACCES);
  }
}

KERNEL_TEST("the canary's manual names each of its acts, and an unknown one or a missing word is an error",
            "[spawn][canary]") {
  const char* source = getenv("H5I_SOURCE_DIR");
  auto manual = os::read_file(std::string(source ? source : H5I_TEST_SOURCE_DIR) + "/core/spawn/canary.md", 1 << 16);
  KREQUIRE(manual);
  int acts = 0;
  size_t at = 0;
  while ((at = manual->find("\n| `", at)) != std::string::npos) {
    size_t end = manual->find('|', at + 2);
    std::string cell = manual->substr(at + 3, end - at - 3);
    at = end;
    for (size_t i = 0; (i = cell.find('`', i)) != std::string::npos;) {
      size_t close = cell.find('`', i + 1);
      std::string name = cell.substr(i + 1, close - i - 1);
      i = close + 1;
      acts++;
      // With too many words rather than too few none is EINVAL for its number of words; harmless values throughout.
      static const std::map<std::string, std::vector<std::string>> kHarmless{{"open", {"/", "r"}},
                                                                             {"read", {"/dev/null"}},
                                                                             {"stat", {"/"}},
                                                                             {"list", {"/"}},
                                                                             {"fork", {"1"}},
                                                                             {"memory", {"1"}},
                                                                             {"cpu", {"0"}},
                                                                             {"sleep", {"1"}},
                                                                             {"output", {"1"}},
                                                                             {"ids", {}},
                                                                             {"env", {}},
                                                                             {"interfaces", {}},
                                                                             {"capabilities", {}},
                                                                             {"socket", {"1", "1", "0"}},
                                                                             {"write", {k.dir() + "/x", "1"}}};
      auto known = kHarmless.find(name);
      std::vector<std::string> words =
          known == kHarmless.end() ? std::vector<std::string>{"/nowhere/x", "/nowhere/y", "0"} : known->second;
      words.insert(words.begin(), name);
      auto a = act_outside({words});
      KCHECK_SAYS(a[0] != "none", name);
      if (known != kHarmless.end()) KCHECK_SAYS(a[0] == "ok" || name == "capabilities", name + " " + a[0]);
    }
  }
  KCHECK_SAYS(acts >= 35, std::to_string(acts));
  auto bad = act_outside({{"surprise"}, {"open", "/"}, {"socket", "1"}});
  for (size_t i = 0; i < 3; i++) KCHECK_SAYS(bad[i] == "EINVAL", bad[i]);
}
