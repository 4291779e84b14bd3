// The verbs that only read and stop, on boxes that the test itself laid out: text, JSON against the schema, exit status.
#include <signal.h>
#include <unistd.h>

#include "core/evidence/log.hpp"
#include "core/session/live.hpp"
#include "tests/cli/fits.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

constexpr unsigned kChildLife = 60;  // seconds: a failed test leaves no process for ever

struct World {
  Scratch s;
  std::string boxes;
  World() {
    make_git_directory(s / "r/.git");
    std::filesystem::create_directories(s / "home");
    boxes = s / "r/.git/h5i/boxes";
  }
  Program h5i(std::vector<std::string> words) const {
    words.insert(words.begin(), "h5i");
    return Program{.argv = std::move(words), .env = {{"HOME", s / "home"}}, .cwd = s / "r"};
  }
  session::BoxPaths box(const std::string& agent, const std::string& slug) const {
    Json policy = json::Object{{"schema", "h5i.policy/1"}, {"tier", "process"}, {"profile", json::Object{{"name", "default"}}}};
    session::Manifest m = some_manifest(agent, slug);
    m.policy_digest = PolicyDigest(canonical_digest(policy));
    session::BoxPaths paths = make_box(boxes, m);
    write_file(paths.policy(), json::canonical(policy));
    add(paths, "created", json::Object{{"source", "test"}});
    return paths;
  }
  static void add(const session::BoxPaths& paths, const std::string& kind, Json body, evidence::Observer who = evidence::Observer::core()) {
    auto log = evidence::Log::open(paths.log());
    REQUIRE(log);
    evidence::Record r;
    r.observer = who;
    r.kind = kind;
    r.session = SessionId("01arz3ndektsv4rrffq69g5fav");
    r.body = std::move(body);
    REQUIRE(log->append(r));
  }
  static Json receipt(int code) {
    return json::Object{{"schema", "h5i.receipt/1"}, {"command", json::Array{Json("make"), Json("test")}},
                        {"effective_digest", std::string(64, 'e')}, {"exit_status", code},
                        {"outcome", json::Object{{"status", "exited"}, {"code", code}, {"reason", ""}, {"detail", ""}}}};
  }
};

Json parsed(const Ended& e) {
  auto v = json::parse(e.out);
  REQUIRE(v);
  return *v;
}

}  // namespace

TEST_CASE("each light verb's JSON fits its schema for success, refusal and empty") {
  World w;
  fits("box-ls", run(w.h5i({"box", "ls", "--json"})));
  CHECK(parsed(run(w.h5i({"box", "ls", "--json"})))["boxes"].array().empty());
  auto paths = w.box("human", "fix");
  for (const char* verb : {"status", "log", "inspect"}) {
    CAPTURE(verb);
    Ended fresh = run(w.h5i({"box", verb, "fix", "--json"}));
    CHECK(fresh.status == 0);
    fits(std::string("box-") + verb, fresh);
    Ended none = run(w.h5i({"box", verb, "none", "--json"}));
    CHECK(none.status == 1);
    fits(std::string("box-") + verb, none);
    CHECK(parsed(none)["error"]["id"].string() == "box.not-found");
    CHECK(none.err.empty());
  }
  World::add(paths, "receipt", World::receipt(3));
  for (const char* verb : {"status", "log", "inspect"}) fits(std::string("box-") + verb, run(w.h5i({"box", verb, "fix", "--json"})));
  Ended ls = run(w.h5i({"box", "ls", "--json"}));
  fits("box-ls", ls);
  CHECK(parsed(ls)["boxes"].array()[0]["last_run"]["exit_status"].integer() == 3);
  CHECK(parsed(run(w.h5i({"box", "status", "fix", "--json"})))["effective_digest"].string() == std::string(64, 'e'));
  Ended stop = run(w.h5i({"box", "stop", "fix", "--json"}));
  fits("box-stop", stop);
  CHECK(stop.status == 1);
  CHECK(parsed(stop)["error"]["id"].string() == "box.not-running");
  fits("version", run(w.h5i({"--version", "--json"})));
}

TEST_CASE("h5i env is another name for h5i box") {
  World w;
  w.box("human", "fix");
  CHECK(run(w.h5i({"env", "ls", "--names"})).out == "human/fix\n");
  CHECK(run(w.h5i({"env", "status", "fix", "--json"})).out == run(w.h5i({"box", "status", "fix", "--json"})).out);
}

TEST_CASE("a box that cannot be read is a row that says so, and hides no other") {
  World w;
  w.box("human", "good");
  auto bad = w.box("human", "bad");
  write_file(bad.manifest(), "{}");
  Ended ls = run(w.h5i({"box", "ls", "--json"}));
  fits("box-ls", ls);
  REQUIRE(parsed(ls)["boxes"].array().size() == 2);
  CHECK(parsed(ls)["boxes"].array()[0]["state"].string() == "unreadable");
  Ended text = run(w.h5i({"box", "ls"}));
  CHECK(text.out.find("unreadable") != std::string::npos);
  CHECK(text.out.find("human/good") != std::string::npos);
  CHECK(is_refusal(run(w.h5i({"box", "status", "bad"})).err, "box.manifest"));
}

TEST_CASE("a policy that was changed after create is said, and inspect refuses to show it as the box's") {
  World w;
  auto paths = w.box("human", "fix");
  write_file(paths.policy(), R"({"schema":"h5i.policy/1","tier":"workspace","profile":{"name":"default"}})");
  Ended status = run(w.h5i({"box", "status", "fix"}));
  CHECK(status.status == 1);
  CHECK(is_refusal(status.err, "policy.digest-mismatch"));
  Ended json = run(w.h5i({"box", "status", "fix", "--json"}));
  fits("box-status", json);
  CHECK_FALSE(parsed(json)["policy_intact"].boolean(true));
  Ended inspect = run(w.h5i({"box", "inspect", "fix"}));
  CHECK(inspect.status == 1);
  CHECK(is_refusal(inspect.err, "policy.digest-mismatch"));
}

TEST_CASE("terminal sequences that a box left in its records move no cursor in any view, and the bytes stay in JSON") {
  World w;
  auto paths = w.box("human", "fix");
  std::string hostile = "\x1b]52;c;aGk=\x07\x1b[2K\rOK\x1b[6n \xc2\x9b" "31m \xe2\x80\xae\xf3\xa0\x80\xa1 two\nlines";
  Json receipt = World::receipt(0);
  receipt["command"] = json::Array{Json(hostile)};
  World::add(paths, "note", json::Object{{"text", hostile}}, evidence::Observer::box());
  World::add(paths, "receipt", receipt);
  Json manifest = *json::parse(read_file(paths.manifest()));
  manifest["profile"] = hostile;
  write_file(paths.manifest(), json::canonical(manifest));
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{
           {"box", "ls"}, {"box", "status", "fix"}, {"box", "log", "fix"}, {"box", "inspect", "fix"}, {"box", "log", "fix", "--json"},
           {"box", "ls", "--json"}, {"box", "status", "fix", "--json"}, {"box", "inspect", "fix", "--json"}}) {
    CAPTURE(words);
    Ended e = run(w.h5i(words));
    CHECK(e.status == 0);
    std::string all = e.out + e.err;
    CHECK(all.find('\x1b') == std::string::npos);
    CHECK(all.find('\x07') == std::string::npos);
    CHECK(all.find('\r') == std::string::npos);
    CHECK(all.find("\xc2\x9b") == std::string::npos);
    CHECK(all.find("\xe2\x80\xae") == std::string::npos);
    CHECK(all.find("\xf3\xa0\x80\xa1") == std::string::npos);
  }
  Ended log = run(w.h5i({"box", "log", "fix", "--kind", "note", "--json"}));
  CHECK(parsed(log)["records"].array()[0]["body"]["text"].string() == hostile);
  Ended text = run(w.h5i({"box", "log", "fix", "--kind", "note"}));
  CHECK(std::count(text.out.begin(), text.out.end(), '\n') == 1);
  CHECK(text.out.find("box-claimed") != std::string::npos);
}

TEST_CASE("hostile and long names are refused in three lines, with exit status 2") {
  World w;
  w.box("human", "fix");
  for (const std::string& name : {std::string(".."), std::string("../../x"), std::string("/etc"), std::string("a\x1b[2J"), std::string("A/B"),
                                  std::string(200, 'a'), std::string("a/") + std::string(100000, 'b')})
    for (const char* verb : {"status", "log", "inspect", "stop"}) {
      CAPTURE(verb, name.size());
      Ended e = run(w.h5i({"box", verb, name}));
      CHECK(e.status == 2);
      CHECK(is_refusal(e.err, "box.name"));
      CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 3);
      CHECK(e.err.find('\x1b') == std::string::npos);
      CHECK(e.err.size() < 20000);
    }
}

TEST_CASE("a slug that several boxes have is refused with the candidates") {
  World w;
  w.box("human", "fix");
  w.box("claude", "fix");
  Ended e = run(w.h5i({"box", "status", "fix"}));
  CHECK(e.status == 2);
  CHECK(is_refusal(e.err, "box.ambiguous"));
  CHECK(e.err.find("claude/fix, human/fix") != std::string::npos);
  CHECK(run(w.h5i({"box", "status", "claude/fix"})).status == 0);
}

TEST_CASE("filters of ls and log keep what they name") {
  World w;
  auto paths = w.box("human", "fix");
  w.box("claude", "other");
  CHECK(run(w.h5i({"box", "ls", "--names", "--agent", "claude"})).out == "claude/other\n");
  CHECK(run(w.h5i({"box", "ls", "--names", "--state", "idle"})).out.empty());
  CHECK(run(w.h5i({"box", "ls", "--names", "--state", "created"})).out == "claude/other\nhuman/fix\n");
  Ended wrong = run(w.h5i({"box", "ls", "--state", "asleep"}));
  CHECK(wrong.status == 2);
  CHECK(is_refusal(wrong.err, "usage"));
  for (int i = 0; i < 5; i++) World::add(paths, "receipt", World::receipt(i));
  Json last = parsed(run(w.h5i({"box", "log", "fix", "--last", "2", "--json"})));
  REQUIRE(last["records"].array().size() == 2);
  CHECK(last["records"].array()[1]["body"]["exit_status"].integer() == 4);
  CHECK(last["omitted"].integer() == 4);
  CHECK(parsed(run(w.h5i({"box", "log", "fix", "--kind", "created", "--json"})))["records"].array().size() == 1);
  CHECK(parsed(run(w.h5i({"box", "log", "fix", "--session", "none", "--json"})))["records"].array().empty());
  for (const char* bad : {"0", "-1", "x", "99999999999999999999", ""}) {
    Ended e = run(w.h5i({"box", "log", "fix", std::string("--last=") + bad}));
    CHECK(e.status == 2);
    CHECK(is_refusal(e.err, "usage"));
  }
}

TEST_CASE("stop asks, and kills what does not end within the grace") {
  World w;
  auto paths = w.box("human", "fix");
  for (bool stubborn : {false, true}) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    pid_t core = fork();
    if (core == 0) {
      alarm(kChildLife);
      signal(SIGTERM, stubborn ? SIG_IGN : SIG_DFL);  // not what the test program does with it
      auto lock = session::BoxLock::acquire(paths, "box run");
      session::Live live;
      live.session = *new_session_id();
      live.verb = "box run";
      live.started = rfc3339(realtime_ns());
      live.boot = boot_id();
      live.processes = {{"core", getpid(), session::process_start(getpid())}};
      bool ok = lock && session::write_live(paths, live);
      if (write(ready[1], ok ? "y" : "n", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    REQUIRE(byte == 'y');
    close(ready[0]);
    close(ready[1]);
    Ended status = run(w.h5i({"box", "status", "fix", "--json"}));
    fits("box-status", status);
    CHECK(parsed(status)["running"]["pid"].integer() == core);
    Ended e = run(w.h5i({"box", "stop", "fix", "--grace", stubborn ? "0" : "10", "--json"}));
    CHECK(e.status == 0);
    fits("box-stop", e);
    CHECK(parsed(e)["how"].string() == (stubborn ? "killed" : "cancelled"));
    CHECK(wait_for(core, 10) == 1000 + (stubborn ? SIGKILL : SIGTERM));
    CHECK(run(w.h5i({"box", "stop", "fix"})).status == 1);
  }
  for (const char* bad : {"-1", "x", "3601", "1.5"}) CHECK(run(w.h5i({"box", "stop", "fix", std::string("--grace=") + bad})).status == 2);
}

TEST_CASE("the next command sweeps what a killed run left, and says so") {
  World w;
  auto paths = w.box("human", "fix");
  pid_t left = fork();
  if (left == 0) {
    alarm(kChildLife);
    for (;;) pause();
  }
  session::Live live;
  live.session = *new_session_id();
  live.verb = "box run";
  live.started = rfc3339(realtime_ns());
  live.boot = boot_id();
  live.processes = {{"workload", left, session::process_start(left)}};
  REQUIRE(session::write_live(paths, live));
  Ended e = run(w.h5i({"box", "ls"}));
  CHECK(e.status == 0);
  CHECK(e.err.find("swept") != std::string::npos);
  CHECK(wait_for(left, 10) == 1000 + SIGKILL);
  CHECK(run(w.h5i({"box", "ls"})).err.empty());
  CHECK(parsed(run(w.h5i({"box", "log", "fix", "--kind", "sweep", "--json"})))["records"].array().size() == 1);
}

TEST_CASE("output that did not arrive is not a success") {
  World w;
  w.box("human", "fix");
  Program full = w.h5i({"box", "ls"});
  full.out_to = "/dev/full";
  Ended e = run(full);
  CHECK(e.status == 1);
  CHECK(e.err.find("standard output: ") != std::string::npos);
  Program closed = w.h5i({"box", "ls"});
  closed.closed = {1};
  e = run(closed);
  CHECK(e.status == 1);
  CHECK(e.err.find("standard output: ") != std::string::npos);
  for (std::vector<int> fds : std::vector<std::vector<int>>{{0}, {2}, {0, 2}}) {
    Program p = w.h5i({"box", "ls", "--names"});
    p.closed = fds;
    e = run(p);
    CHECK(e.status == 0);
    CHECK(e.out == "human/fix\n");
  }
  Program all = w.h5i({"box", "ls"});
  all.closed = {0, 1, 2};
  CHECK(run(all).status == 1);
}

TEST_CASE("a reader that goes away ends a verb quietly") {
  World w;
  auto paths = w.box("human", "fix");
  for (int i = 0; i < 40; i++) World::add(paths, "note", json::Object{{"text", std::string(5000, 'x')}});
  Ended e = run(Program{.argv = {"/bin/sh", "-c", h5i_path() + " box log fix --json | head -c 10; " + h5i_path() + " box log fix --json 2>&1 >&- | cat"},
                        .env = {{"HOME", w.s / "home"}}, .cwd = w.s / "r"});
  CHECK(e.out.compare(0, 10, "{\"box\":\"hu") == 0);
  CHECK(e.err.empty());
}

TEST_CASE("no home is a refusal that names the variable") {
  World w;
  Program p = w.h5i({"box", "ls"});
  p.env.clear();
  Ended e = run(p);
  CHECK(e.status == 1);
  CHECK(is_refusal(e.err, "home.missing"));
  CHECK(e.err.find("XDG_CONFIG_HOME") != std::string::npos);
}

TEST_CASE("wrong usage exits 2 with the nearest known word, in text and in JSON") {
  World w;
  struct Row {
    std::vector<std::string> words;
    const char* near;
  };
  for (const Row& r : std::vector<Row>{{{"bxo", "ls"}, "box"}, {{"box", "sattus", "x"}, "status"}, {{"box", "ls", "--jsno"}, "--json"}, {{"--versoin"}, "--version"}}) {
    CAPTURE(r.words);
    Ended e = run(w.h5i(r.words));
    CHECK(e.status == 2);
    CHECK(is_refusal(e.err, "usage"));
    CHECK(e.err.find(std::string("did you mean ") + r.near + "?") != std::string::npos);
    auto with = r.words;
    with.push_back("--json");
    Ended j = run(w.h5i(with));
    CHECK(j.status == 2);
    fits("error", j);
    CHECK(j.err.empty());
  }
  // The word that is wrong is the one that is named.
  for (const Row& r : std::vector<Row>{{{"-q", "box", "ls"}, "unknown option -q ["},
                                       {{"--quiet", "box", "ls"}, "unknown option --quiet ["},
                                       {{"--json", "box", "ls"}, "nothing follows --json, found box ["},
                                       {{"--version", "box"}, "nothing follows --version, found box ["},
                                       {{"--version", "--quiet"}, "unknown option --quiet ["},
                                       {{"--json"}, "no noun was given ["}}) {
    CAPTURE(r.words);
    Ended e = run(w.h5i(r.words));
    CHECK(e.status == 2);
    const bool json = r.words[0] == "--json";
    if (json) fits("error", e);
    else CHECK(is_refusal(e.err, "usage"));
    std::string near = r.near;
    if (json) near = near.substr(0, near.size() - 2);
    CHECK((json ? e.out : e.err).find(near) != std::string::npos);
  }
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{}, {"box"}, {"box", "status"}, {"box", "status", "a", "b"}, {""}, {"--"}}) {
    CAPTURE(words);
    Ended e = run(w.h5i(words));
    CHECK(e.status == 2);
    CHECK(is_refusal(e.err, "usage"));
  }
}

TEST_CASE("every option that stands before a noun is in the help, and is taken") {
  World w;
  std::string help = run(w.h5i({"--help"})).out;
  for (const char* o : {"--version", "-h, --help", "--json", "--generate-man DIR", "--generate-completion SHELL"}) {
    CAPTURE(o);
    CHECK(help.find(std::string("  ") + o) != std::string::npos);
  }
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{
           {"--version"}, {"--version", "--json"}, {"--json", "--version"}, {"--help"}, {"-h"}, {"--generate-completion", "bash"}}) {
    CAPTURE(words);
    CHECK(run(w.h5i(words)).status == 0);
  }
}

TEST_CASE("a verb whose executable is not installed says that, which is not the same as unknown") {
  World w;
  Scratch prefix;
  std::filesystem::create_directories(prefix / "bin");
  std::filesystem::copy_file(h5i_path(), prefix / "bin/h5i");
  Program p = w.h5i({"key", "show"});
  p.argv[0] = prefix / "bin/h5i";
  Ended e = run(p);
  CHECK(e.status == 1);
  CHECK(is_refusal(e.err, "not-found"));
  CHECK(e.err.find("h5i-evidence") != std::string::npos);
  CHECK(e.err.find("not installed") != std::string::npos);
  p.argv = {prefix / "bin/h5i", "--help"};
  CHECK(run(p).out.find("key show") == std::string::npos);
}

TEST_CASE("an executable beside h5i that somebody else could have written is not started") {
  World w;
  Scratch prefix;
  std::filesystem::create_directories(prefix / "bin");
  std::filesystem::create_directories(prefix / "libexec/h5i");
  std::filesystem::copy_file(h5i_path(), prefix / "bin/h5i");
  std::filesystem::copy_file("/bin/echo", prefix / "libexec/h5i/h5i-evidence");
  Program p = w.h5i({"key", "show"});
  p.argv[0] = prefix / "bin/h5i";
  Ended control = run(p);
  CHECK(control.status == 0);
  CHECK(control.out == "key show\n");
  chmod((prefix / "libexec/h5i/h5i-evidence").c_str(), 0777);
  Ended e = run(p);
  CHECK(e.status == 1);
  CHECK(is_refusal(e.err, "denied"));
  std::filesystem::rename(prefix / "libexec/h5i/h5i-evidence", prefix / "elsewhere");
  std::filesystem::create_symlink(prefix / "elsewhere", prefix / "libexec/h5i/h5i-evidence");
  chmod((prefix / "elsewhere").c_str(), 0755);
  CHECK_FALSE(run(p).status == 0);
}
