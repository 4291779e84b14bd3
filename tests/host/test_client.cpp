#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/os/fs.hpp"
#include "tests/host/fixture.hpp"

using namespace h5i;
using namespace h5i::plugin;

namespace {

HostHelpers helpers() {
  auto h = HostHelpers::open(fixture::build_dir() + "/out");
  REQUIRE(h);
  return std::move(*h);
}

int children() {
  int n = 0;
  DIR* d = opendir("/proc");
  while (dirent* e = readdir(d)) {
    int pid = atoi(e->d_name);
    if (pid <= 0) continue;
    auto read = os::read_file("/proc/" + std::to_string(pid) + "/stat", 8192);  // other processes come and go meanwhile
    std::string line = read ? *read : "";
    size_t paren = line.rfind(')');
    int parent = 0;
    char state = 0;
    if (paren != std::string::npos && sscanf(line.c_str() + paren + 1, " %c %d", &state, &parent) == 2 && parent == getpid()) n++;
  }
  closedir(d);
  return n;
}

int descriptors() {
  int n = 0;
  for (int fd = 0; fd < 512; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

// A hang is waited for shortly; everything else gets the time that a loaded machine needs.
constexpr HostTimeouts kShort = {.hello = 1000, .probe = 300, .verify = 300, .plan = 300, .cleanup = 300};
constexpr HostTimeouts kAmple = {.hello = 30000, .probe = 30000, .verify = 30000, .plan = 30000, .cleanup = 30000};
const Json kRequest = json::Object{{"schema", "h5i.run/1"}};

// Every test: no process and no descriptor of ours is left, whatever the plugin did.
struct NothingLeft {
  int fds = descriptors(), kids = children();
  ~NothingLeft() {
    CHECK(children() == kids);
    CHECK(descriptors() == fds);
  }
};

Result<HostProcess> started(const std::string& act, HostEvents events = {}) {
  static HostHelpers h = helpers();
  auto p = fixture::make(act);
  auto host = HostProcess::start(h, std::move(events));
  REQUIRE(host);
  bool waits = act.ends_with(":hang") || act.ends_with(":two-documents");
  host->set_timeouts(waits ? kShort : kAmple);
  p.spec.library = &p.library;
  auto loaded = host->load(p.spec);
  if (!loaded) return loaded.error();
  return std::move(*host);
}

using Verb = std::function<Result<void>(HostProcess&)>;
Result<void> drop(Result<Json> r) { return r ? Result<void>() : Result<void>(r.error()); }

Result<void> run_to_outcome(HostProcess& h) {
  H5I_TRY(h.begin_run(kRequest));
  int64_t until = monotonic_ns() + (h.timeouts().plan < 1000 ? 300 : 30000) * 1000000LL;
  while (monotonic_ns() < until) {
    auto outcome = H5I_TRY(h.on_ready());
    if (outcome) return h.run_error() ? Result<void>(*h.run_error()) : Result<void>();
    pollfd p{h.control().get(), POLLIN, 0};
    poll(&p, 1, 20);
  }
  return make_error(Errc::PLUGIN_HUNG, "no outcome");  // in a session the deadline decides; here the test does
}

const std::pair<const char*, Verb> kVerbs[] = {
    {"probe", [](HostProcess& h) { return drop(h.probe()); }},
    {"verify", [](HostProcess& h) { return drop(h.verify_exec(kRequest)); }},
    {"plan", [](HostProcess& h) { return drop(h.plan(kRequest)); }},
    {"run", run_to_outcome},
    {"cleanup", [](HostProcess& h) { return h.cleanup(SessionId("s")); }},
};

}  // namespace

TEST_CASE("control: the honest fixture says hello and answers each verb of one process") {
  descriptors();
  { auto warm = started(""); }  // helpers are opened once
  NothingLeft check;
  auto host = started("");
  REQUIRE(host);
  auto probe = host->probe();
  REQUIRE(probe);
  CHECK((*probe)["tier"].string() == "fixture");
  auto verify = host->verify_exec(kRequest);
  REQUIRE(verify);
  CHECK((*verify)["ok"].boolean());
  auto plan = host->plan(kRequest);
  REQUIRE(plan);
  CHECK((*plan)["schema"].string() == "h5i.plan/1");
  CHECK(host->cleanup(SessionId("s")));
  host->shutdown();
  CHECK(!host->alive());
}

TEST_CASE("what a plugin does wrong in a verb is told apart, and its process is gone afterwards") {
  struct Case {
    const char* act;
    Errc expected;
    const char* evidence;
    bool lives;
    bool document_verbs_only;
  };
  const Case cases[] = {
      {"crash", Errc::PLUGIN_CRASHED, "signal 11", false, false},
      {"abort", Errc::PLUGIN_CRASHED, "it said: the fixture gives up \\x1b[31mred", false, false},
      {"exit", Errc::PLUGIN_CRASHED, "exit status 0", false, false},
      {"fork-crash", Errc::PLUGIN_CRASHED, "signal 11", false, false},
      {"hang", Errc::PLUGIN_HUNG, "", false, false},
      {"close", Errc::PLUGIN_CRASHED, "closed its connection", false, false},
      {"garbage", Errc::PLUGIN_PROTOCOL, "packet of 7 bytes", false, false},
      {"length", Errc::PLUGIN_PROTOCOL, "length says 4000", false, false},
      {"huge-length", Errc::PLUGIN_PROTOCOL, "length 4294967295", false, false},
      {"foreign", Errc::PLUGIN_PROTOCOL, "answer to call", false, false},
      {"core-frame", Errc::PLUGIN_PROTOCOL, "only the core may send", false, false},
      {"bad-result", Errc::PLUGIN_PROTOCOL, "h5i.result/1", false, false},
      {"bad-evidence", Errc::PLUGIN_PROTOCOL, "without boundary, kind and body", false, false},
      {"flood", Errc::PLUGIN_PROTOCOL, "more than 10000 records", false, false},
      {"throw", Errc::PLUGIN_CRASHED, "signal 6", false, false},
      {"refuse", Errc::TIER_PROBE_MISSING, "the fixture refuses \\x1b[31m", true, false},
      {"two-documents", Errc::PLUGIN_PROTOCOL, "", false, false},
      {"not-json", Errc::PLUGIN_PROTOCOL, "not strict JSON", false, true},
      {"too-large", Errc::TOO_LARGE, "as it should be", true, true},
      {"null-document", Errc::INVALID, "as it should be", true, true},
  };
  for (const auto& [verb, call] : kVerbs)
    for (const Case& c : cases) {
      bool documents = std::string(verb) != "run" && std::string(verb) != "cleanup";
      if (c.document_verbs_only && !documents) continue;
      INFO(verb << ":" << c.act);
      NothingLeft check;
      auto host = started(std::string(verb) + ":" + c.act);
      REQUIRE(host);
      auto r = call(*host);
      REQUIRE(!r);
      INFO(r.error().what << " / " << r.error().evidence);
      CHECK(errc_id(r.error().code) == errc_id(c.expected));
      if (std::string(verb) != "run" || c.expected != Errc::PLUGIN_HUNG) {
        CHECK(r.error().evidence.find(c.evidence) != std::string::npos);
        CHECK(host->alive() == c.lives);
      }
      if (c.lives) CHECK((std::string(verb) == "plan" ? host->probe() : host->plan(kRequest)));  // a refusal does not end the process
    }
}

TEST_CASE("a plugin that fails while it is opened is refused with its reason") {
  struct Case {
    const char* act;
    Errc expected;
  };
  for (const Case& c : {Case{"open:crash", Errc::PLUGIN_CRASHED}, {"open:exit", Errc::PLUGIN_CRASHED},
                        {"open:hang", Errc::PLUGIN_HUNG}, {"open:garbage", Errc::PLUGIN_PROTOCOL},
                        {"open:throw", Errc::PLUGIN_CRASHED}, {"open:refuse", Errc::TIER_PROBE_MISSING}}) {
    INFO(c.act);
    NothingLeft check;
    auto host = started(c.act);
    REQUIRE(!host);
    CHECK(errc_id(host.error().code) == errc_id(c.expected));
  }
}

TEST_CASE("a plugin that hangs when it is closed does not hold up the end") {
  NothingLeft check;
  auto host = started("close:hang");
  REQUIRE(host);
  int64_t before = monotonic_ns();
  host->shutdown();
  CHECK(!host->alive());
  CHECK(monotonic_ns() - before < 10000000000);
}

TEST_CASE("the host maps only the bytes, id and version that were verified") {
  NothingLeft check;
  HostHelpers h = helpers();
  auto attempt = [&](auto change) {
    auto p = fixture::make("");
    change(p.spec);
    p.spec.library = &p.library;
    auto host = HostProcess::start(h);
    REQUIRE(host);
    auto r = host->load(p.spec);
    REQUIRE(!r);
    CHECK(!host->alive());
    return r.error().code;
  };
  CHECK(attempt([](LoadSpec& s) { s.digest.value[0] = s.digest.value[0] == '0' ? '1' : '0'; }) == Errc::PLUGIN_DIGEST);
  CHECK(attempt([](LoadSpec& s) { s.id = "other"; }) == Errc::PLUGIN_ID);
  CHECK(attempt([](LoadSpec& s) { s.version = "2.0.0"; }) == Errc::PLUGIN_ID);
}

TEST_CASE("a document of a megabyte arrives whole") {
  NothingLeft check;
  auto host = started("plan:large");
  REQUIRE(host);
  auto plan = host->plan(kRequest);
  REQUIRE(plan);
  CHECK((*plan)["x"].string().size() == 1u << 20);
}

TEST_CASE("a plugin gets the services that its manifest asks for, and no others") {
  NothingLeft check;
  auto host = started("probe:services");
  REQUIRE(host);
  auto got = host->probe();
  REQUIRE(got);
  CHECK(json::canonical((*got)["services"]) ==
        "[\"h5i.host.log/1\",\"h5i.host.evidence/1\",\"h5i.host.spawn/1\",\"h5i.host.clock/1\"]");  // cgroup was not asked for
}

TEST_CASE("evidence arrives with boundary and kind, and wrong evidence is refused to the plugin") {
  NothingLeft check;
  int seen = 0;
  HostEvents events;
  events.evidence = [&](const std::string& boundary, const std::string& kind, const Json& body) {
    seen++;
    CHECK(boundary == "NET");
    CHECK(kind == "seen");
    CHECK(body["lane"].string() == "box-claimed");  // a word of the body; the lane is the core's to stamp
  };
  auto host = started("probe:evidence", events);
  REQUIRE(host);
  auto d = host->probe();
  REQUIRE(d);
  CHECK((*d)["right"].boolean());
  CHECK(seen == 1);
}

TEST_CASE("the session's deadline and an interrupt end a verb early") {
  {
    NothingLeft check;
    auto host = started("probe:hang");
    REQUIRE(host);
    host->bound(monotonic_ns() + 50000000, -1);
    auto r = host->probe();
    REQUIRE(!r);
    CHECK(r.error().code == Errc::RUN_DEADLINE);
    CHECK(!host->alive());
  }
  NothingLeft check;
  auto host = started("verify:hang");
  REQUIRE(host);
  int p[2];
  REQUIRE(pipe2(p, O_CLOEXEC) == 0);
  UniqueFd reader(p[0]), writer(p[1]);
  REQUIRE(write(writer.get(), "x", 1) == 1);
  host->bound(INT64_MAX, reader.get());
  auto r = host->verify_exec(kRequest);
  REQUIRE(!r);
  CHECK(r.error().code == Errc::CANCELLED);
}

TEST_CASE("h5i-host refuses to run when no core started it") {
  std::string path = fixture::build_dir() + "/out/libexec/h5i/h5i-host";
  pid_t pid = fork();
  if (pid == 0) {
    for (int fd = 3; fd < 64; fd++) close(fd);
    execl(path.c_str(), "h5i-host", nullptr);
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 64);
}

TEST_CASE("a helper that somebody else could have written is not run") {
  char dir[] = "/tmp/h5i-helper-XXXXXX";
  REQUIRE(mkdtemp(dir) != nullptr);
  std::string path = std::string(dir) + "/x";
  { std::ofstream(path) << "x"; }
  chmod(path.c_str(), 0755);
  CHECK(open_helper(dir, "x"));
  chmod(path.c_str(), 0775);
  auto r = open_helper(dir, "x");
  REQUIRE(!r);
  CHECK(r.error().code == Errc::DENIED);
  CHECK(symlink("x", (std::string(dir) + "/link").c_str()) == 0);
  CHECK(!open_helper(dir, "link"));
  CHECK(!open_helper(dir, "missing"));
  unlink((std::string(dir) + "/link").c_str());
  unlink(path.c_str());
  rmdir(dir);
}
