#include "tests/session_run/run_fixture.hpp"
#include "tests/support/slower.hpp"

using namespace h5i;
using namespace h5i::fixture;

namespace {

// I10: the process, the report and the receipt say one number, and the log holds that very receipt last.
void agrees(const Sandbox& s, const Ran& r, int expected) {
  INFO(json::canonical(r.report) << "\nstderr: " << r.err);
  CHECK(r.exit_status == expected);
  CHECK(r.report["exit_status"].integer(-1) == expected);
  auto all = s.records();
  REQUIRE(!all.empty());
  if (r.report["error"].is_object()) {
    CHECK(all.back()["kind"].string() == "run-refused");
    CHECK(all.back()["body"]["id"].string() == r.error());
    CHECK(all.back()["body"]["exit_status"].integer(-1) == expected);
  } else {
    CHECK(r.receipt()["exit_status"].integer(-1) == expected);
    auto receipts = s.records("receipt");
    REQUIRE(!receipts.empty());
    CHECK(json::canonical(receipts.back()["body"]) == json::canonical(r.receipt()));
  }
  auto verified = evidence::verify_chain(s.box() + "/log.jsonl");
  CHECK(verified);
  CHECK(!fs::exists(s.box() + "/live.json"));
  CHECK(s.processes() == 0);
}

}  // namespace

TEST_CASE("exit status, report and receipt of a run agree for every way in which a command ends") {
  Sandbox s;
  spill(s.box() + "/work/plain", "no program\n");
  spill(s.box() + "/work/bad-interpreter", "#!/no/such/interpreter\n");
  chmod((s.box() + "/work/bad-interpreter").c_str(), 0755);
  struct Case {
    std::vector<std::string> argv;
    int expected;
    const char* outcome;
    const char* reason;
  };
  for (const Case& c : {Case{{"true"}, 0, "exited", ""},
                        {{"false"}, 1, "exited", ""},
                        {sh("exit 3"), 3, "exited", ""},
                        {sh("exit 124"), 124, "exited", ""},
                        {sh("exit 255"), 255, "exited", ""},
                        {sh("kill -TERM $$"), 143, "signaled", ""},
                        {sh("kill -KILL $$"), 137, "signaled", ""},
                        {{"no-such-program"}, 127, "setup-failed", "exec.not-found"},
                        {{"./no-such-file"}, 127, "setup-failed", "exec.not-found"},
                        {{"./plain"}, 126, "setup-failed", "exec.not-executable"},
                        {{"./bad-interpreter"}, 127, "setup-failed", "exec.not-found"}}) {
    INFO(c.argv.back());
    Ran r = s.run(c.argv);
    agrees(s, r, c.expected);
    CHECK(r.outcome() == c.outcome);
    CHECK(r.reason() == c.reason);
  }
}

TEST_CASE("a run leaves the records of its steps, in order, and a receipt that names what ran under what") {
  Sandbox s;
  Ran r = s.run(sh("echo out; echo err >&2"));
  agrees(s, r, 0);
  CHECK(r.out == "out\n");
  CHECK(r.err == "err\n");
  std::vector<std::string> kinds;
  for (const Json& rec : s.records()) kinds.push_back(rec["kind"].string());
  CHECK(kinds == std::vector<std::string>{"run-requested", "plugin", "plan", "attested", "receipt"});
  const Json& receipt = r.receipt();
  CHECK(receipt["plugin"]["id"].string() == "fixture");
  CHECK(receipt["plugin"]["digest"].string() == sha256_hex(library_bytes("")));
  CHECK(receipt["policy_digest"].string().size() == 64);
  CHECK(receipt["effective_digest"].string().size() == 64);
  CHECK(receipt["not_enforced"].array().size() == 3);
  CHECK(receipt["attested"]["matches_plan"].boolean());
  CHECK(receipt["attested"]["observer"].string() == "core");
  CHECK(receipt["self_reported"]["proved_by"].string().size() == 64);
  CHECK(receipt["usage"]["wall_us"].integer() > 0);
  CHECK(receipt["output"]["stdout"]["bytes"].integer() == 4);
  auto blob = evidence::get_blob(s.box() + "/blobs", receipt["output"]["stdout"]["sha256"].string(), 1 << 20);
  REQUIRE(blob);
  CHECK(*blob == "out\n");
}

TEST_CASE("the environment is env.pass and env.set and the box's own three names, and nothing else") {
  Sandbox s;
  Ran r = s.run({"env"});
  agrees(s, r, 0);
  std::vector<std::string> names;
  std::istringstream in(r.out);
  for (std::string line; std::getline(in, line);) names.push_back(line.substr(0, line.find('=')));
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"CI", "H5I_BOX", "H5I_SESSION", "H5I_SPOOL", "KEPT", "PATH"});
}

TEST_CASE("what is refused before anything runs leaves a run-refused record with its id") {
  struct Case {
    const char* name;
    std::function<void(Sandbox&)> arrange;
    std::vector<std::string> argv;
    const char* id;
    int expected;
  };
  const Case cases[] = {
      {"tools", [](Sandbox& s) { s.set_profile([](Json& p) { p["tools"] = json::Array{"git", "make"}; }); }, {"/bin/true"}, "policy.tool", 125},
      {"no tools", [](Sandbox& s) { s.set_profile([](Json& p) { p["tools"] = json::Array{}; }); }, {"true"}, "policy.tool", 125},
      {"secrets", [](Sandbox& s) { s.set_profile([](Json& p) { p["secrets"] = json::Object{{"K", json::Object{}}}; }); }, {"true"}, "broker.absent", 125},
      {"auth", [](Sandbox& s) { s.set_profile([](Json& p) { p["auth"] = json::Array{json::Object{}}; }); }, {"true"}, "broker.absent", 125},
      {"no command", [](Sandbox&) {}, {}, "box.command-missing", 2},
      {"not UTF-8", [](Sandbox&) {}, {"echo", "\\xff"}, "", 0},  // the control of the next: plain text runs
      {"policy changed", [](Sandbox& s) {
         std::string p = read_file(s.box() + "/policy.resolved.json");
         p.replace(p.find("\"host\""), 6, "\"deny\"");
         spill(s.box() + "/policy.resolved.json", p);
       }, {"true"}, "policy.digest-mismatch", 125},
      {"plugin changed", [](Sandbox& s) {
         std::string path = s.root + "/lib/h5i/plugins/1/tier-fixture.so", b = read_file(path);
         b[b.size() / 2] = static_cast<char>(b[b.size() / 2] ^ 1);
         spill(path, b);
       }, {"true"}, "plugin.digest", 125},
      {"plugin absent", [](Sandbox& s) { fs::remove(s.root + "/lib/h5i/plugins/1/tier-fixture.plugin.yaml"); }, {"true"}, "tier.unknown", 125},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Sandbox s;
    c.arrange(s);
    Ran r = s.run(c.argv);
    agrees(s, r, c.expected);
    CHECK(r.error() == c.id);
  }
  // tools: control, a program of the list runs
  Sandbox s;
  s.set_profile([](Json& p) { p["tools"] = json::Array{"true"}; });
  agrees(s, s.run({"/bin/true"}), 0);
}

TEST_CASE("a plugin that fails in a verb ends the run with its reason, nothing runs, nothing is left") {
  struct Case {
    const char* act;
    const char* id;
  };
  for (const Case& c : {Case{"open:crash", "plugin.crashed"}, {"open:garbage", "plugin.protocol"},
                        {"plan:crash", "plugin.crashed"}, {"plan:hang", "plugin.hung"}, {"plan:garbage", "plugin.protocol"},
                        {"plan:exit", "plugin.crashed"}, {"plan:not-json", "plugin.protocol"}, {"plan:large", "input.invalid"},
                        {"probe:crash", "plugin.crashed"}, {"probe:hang", "plugin.hung"}, {"probe:length", "plugin.protocol"},
                        {"verify:crash", "plugin.crashed"}, {"verify:garbage", "plugin.protocol"}, {"verify:refuse", "tier.probe.missing"}}) {
    INFO(c.act);
    Sandbox s(c.act);
    Ran r = s.run(sh("echo ran > ran"));
    agrees(s, r, 125);
    CHECK(r.error() == c.id);
    CHECK(!fs::exists(s.box() + "/work/ran"));
  }
}

TEST_CASE("a plugin that fails in run is named in the receipt, and the box does not outlive it") {
  struct Case {
    const char* act;
    const char* outcome;
    const char* reason;
    bool may_have_started;
  };
  for (const Case& c : {Case{"run:crash", "host-lost", "plugin.crashed", false}, {"run:exit", "host-lost", "plugin.crashed", false},
                        {"run:garbage", "host-lost", "plugin.protocol", false}, {"run:length", "host-lost", "plugin.protocol", false},
                        {"run:refuse", "setup-failed", "tier.probe.missing", false},
                        {"run:after-start-crash", "host-lost", "plugin.crashed", true},
                        {"run:after-start-exit", "host-lost", "plugin.crashed", true},
                        {"run:after-start-garbage", "host-lost", "plugin.protocol", true},
                        {"run:after-other-plan", "violation", "tier.attest-mismatch", false}}) {
    INFO(c.act);
    Sandbox s(c.act);
    Ran r = s.run(sh("echo ran > ran; sleep 60"));
    agrees(s, r, 125);
    CHECK(r.outcome() == c.outcome);
    CHECK(r.reason() == c.reason);
    if (!c.may_have_started) CHECK(!fs::exists(s.box() + "/work/ran"));
    CHECK(r.wall_ms < 30000);
  }
}

TEST_CASE("a plugin that dies at the moment its box starts is its own crash, whoever sees what first") {
  for (const char* act : {"run:after-start-crash", "run:after-start-exit"}) {
    Sandbox s(act);
    for (int round = 0; round < 50; round++) {
      INFO(act << " " << round);
      Ran r = s.run(sh("sleep 60"));
      CHECK(r.exit_status == 125);
      if (round % 10 == 0) agrees(s, r, 125);
      CHECK(r.outcome() == "host-lost");
      CHECK(r.reason() == "plugin.crashed");
    }
  }
}

TEST_CASE("what the spawner saw decides the outcome, and a plugin that says something else is recorded") {
  for (const char* act : {"run:after-lie", "run:after-crash"}) {
    INFO(act);
    Sandbox s(act);
    Ran r = s.run(sh("exit 7"));
    agrees(s, r, 7);
    CHECK(s.records("plugin-disagrees").size() == 1);
  }
  Sandbox s("run:after-second");
  Ran r = s.run(sh("echo x >> ran"));
  agrees(s, r, 0);
  CHECK(read_file(s.box() + "/work/ran") == "x\n");
}

TEST_CASE("the deadline kills every process of the box and is 124") {
  Sandbox s;
  s.set_profile([](Json& p) { p["resources"]["wall"] = 1; });
  Ran r = s.run(sh("trap '' TERM; sleep 77 & setsid sleep 77 & echo started; wait; sleep 77"));
  agrees(s, r, 124);
  CHECK(r.outcome() == "timeout");
  CHECK(r.reason() == "run.deadline");
  CHECK(r.out == "started\n");
  CHECK(r.wall_ms < 5000);
  CHECK(s.records("killed").size() == 1);
  // control: a short command under the same deadline ends by itself
  agrees(s, s.run({"true"}), 0);
}

TEST_CASE("a reader that never reads, or that is gone, does not hold up the deadline") {
  Sandbox s;
  s.set_profile([](Json& p) { p["resources"]["wall"] = 1; });
  Ran r = s.run(sh("yes"), json::Object{}, {}, "/dev/null", false);
  agrees(s, r, 124);
  CHECK(r.wall_ms < 6000);
}

TEST_CASE("a command whose reader goes away ends as in any pipeline, and a closed stdout is no place to write to") {
  Sandbox s;
  Ran r = s.start({"/bin/sh", "-c", s.root + "/bin/h5i box run --status-fd 9 test -- yes | head -1"}, {}, "/dev/null", true);
  CHECK(r.out == "y\n");
  CHECK(r.report["exit_status"].integer() == 128 + SIGPIPE);
  CHECK(r.wall_ms < 30000);

  r = s.start({"/bin/sh", "-c", "exec " + s.root + "/bin/h5i box run --status-fd 9 test -- sh -c 'echo lost; echo seen >&2' >&-"}, {}, "/dev/null", true);
  CHECK(r.exit_status == 0);
  CHECK(r.out.empty());
  CHECK(r.err == "seen\n");
  auto receipts = s.records("receipt");
  REQUIRE(receipts.size() == 2);
  CHECK(receipts[1]["body"]["output"]["stdout"]["bytes"].integer() == 5);
  CHECK(evidence::verify_chain(s.box() + "/log.jsonl"));  // and nothing of the output landed in the log
}

TEST_CASE("output beyond the limit is shown and counted, not kept, and takes no memory") {
  Sandbox s;
  s.set_profile([](Json& p) { p["resources"]["output"] = 1000; });
  Ran r = s.run(sh("head -c 20000000 /dev/zero | tr '\\0' a; echo tail >&2"));
  agrees(s, r, 0);
  CHECK(r.out.size() == 20000000);
  const Json& o = r.receipt()["output"];
  CHECK(o["stdout"]["bytes"].integer() == 20000000);
  CHECK(o["stdout"]["captured"].integer() == 1000);
  CHECK(o["stdout"]["truncated"].boolean());
  CHECK(o["stderr"]["bytes"].integer() == 5);
}

TEST_CASE("a hundred megabytes of output do not grow h5i") {
  Sandbox s;
  const size_t bytes = 100'000'000 / test::kSlower;
  Ran r = s.run(sh("head -c " + std::to_string(bytes) + " /dev/zero"));
  agrees(s, r, 0);
  CHECK(r.out.size() == bytes);
  if (test::kSlower == 1) CHECK(r.max_rss_kib < 48 * 1024);  // a sanitizer keeps what was freed
}

TEST_CASE("audit.capture decides what is kept: always, on failure, never") {
  auto kept = [](const char* mode, const char* script) {
    Sandbox s;
    s.set_profile([](Json&) {}, mode);
    Ran r = s.run(sh(script));
    CHECK(r.receipt()["output"]["stdout"]["sha256"].string() == sha256_hex("x\n"));
    return r.receipt()["output"]["stdout"]["blob"].boolean();
  };
  CHECK(kept("all", "echo x"));
  CHECK(!kept("signal", "echo x"));
  CHECK(kept("signal", "echo x; exit 1"));
  CHECK(!kept("none", "echo x; exit 1"));
}

TEST_CASE("a credential in output and arguments is redacted before it is shown or kept") {
  Sandbox s;
  std::string token = "ghp_" + std::string(36, 'a');
  Ran r = s.run(sh("echo token " + token));
  agrees(s, r, 0);
  CHECK(r.out.find(token) == std::string::npos);
  CHECK(r.out.find("token") == 0);
  CHECK(read_file(s.box() + "/log.jsonl").find(token) == std::string::npos);
  auto blob = evidence::get_blob(s.box() + "/blobs", r.receipt()["output"]["stdout"]["sha256"].string(), 1 << 20);
  REQUIRE(blob);
  CHECK(blob->find(token) == std::string::npos);
  CHECK(!r.receipt()["redactions"].object().empty());
}

TEST_CASE("standard input reaches the command, from a file and from nothing") {
  Sandbox s;
  spill(s.root + "/input", std::string(300000, 'i'));
  Ran r = s.run({"wc", "-c"}, json::Object{}, {}, s.root + "/input");
  agrees(s, r, 0);
  CHECK(r.out == "300000\n");
  CHECK(s.run({"wc", "-c"}).out == "0\n");
}

TEST_CASE("a signal to h5i reaches the command; a second one kills the box") {
  Sandbox s;
  Ran r = s.run(sh("trap 'echo got; exit 5' TERM; echo up; while :; do sleep 0.05; done"), json::Object{},
                [](pid_t pid) { kill(pid, SIGTERM); });
  agrees(s, r, 5);
  CHECK(r.out == "up\ngot\n");
  CHECK(s.records("killed").size() == 1);
  r = s.run(sh("trap '' TERM INT; echo up; while :; do sleep 0.05; done"), json::Object{},
            [](pid_t pid) {
              kill(pid, SIGINT);
              usleep(200000);
              kill(pid, SIGTERM);
            });
  agrees(s, r, 143);
  CHECK(r.outcome() == "cancelled");
}

TEST_CASE("what the box staged is taken as box-claimed, within limits, and nothing is followed") {
  Sandbox s;
  spill(s.root + "/secret", "{\"secret\":true}");
  std::string spool = s.box() + "/spool";
  Ran r = s.run(sh("cd $H5I_SPOOL; echo '{\"claim\":1,\"lane\":\"host-observed\"}' > a.json; ln -s " + s.root +
                   "/secret link.json; mkfifo pipe.json; echo '[1]' > list.json; mkdir -p d/e; head -c 70000 /dev/zero > big.json; "
                   "ln a.json hard.json; echo '{}' > z.json"));
  agrees(s, r, 0);
  auto claimed = s.records("box-claimed");
  REQUIRE(claimed.size() == 1);
  CHECK(claimed[0]["lane"].string() == "box-claimed");
  CHECK(claimed[0]["observer"].string() == "box");
  CHECK(claimed[0]["body"]["name"].string() == "z.json");
  CHECK(s.records("spool-refused").size() == 7);  // a and hard are one file with two names
  CHECK(read_file(s.box() + "/log.jsonl").find("\"secret\"") == std::string::npos);
  CHECK(fs::is_empty(spool));
  CHECK(read_file(s.root + "/secret") == "{\"secret\":true}");

  r = s.run(sh("cd $H5I_SPOOL; i=0; while [ $i -lt 250 ]; do echo '{}' > $i; i=$((i+1)); done"));
  agrees(s, r, 0);
  CHECK(s.records("box-claimed").size() == 201);
}

TEST_CASE("verify_exec runs once for the same policy, plugin, boot and user, and again when one differs") {
  Sandbox s;
  auto proof = [&] {
    Ran r = s.run({"true"});
    agrees(s, r, 0);
    return r.receipt()["self_reported"]["proof"].string();
  };
  CHECK(proof() == "this run");
  CHECK(proof() == "cached");
  s.set_profile([](Json& p) { p["env"]["set"]["NEW"] = "1"; });  // another name in the environment: another digest
  CHECK(proof() == "this run");
  s.set_act("cleanup:hang");  // other bytes of the plugin
  CHECK(proof() == "this run");
  CHECK(proof() == "cached");
  for (const auto& e : fs::recursive_directory_iterator(s.root + "/home/.cache"))
    if (e.is_regular_file()) chmod(e.path().c_str(), 0666);  // somebody else could have written it
  CHECK(proof() == "this run");
}

TEST_CASE("a kept result that does not hold, or that others could have put there, is no result") {
  Sandbox s;
  auto proof = [&] {
    Ran r = s.run({"true"});
    agrees(s, r, 0);
    return r.receipt()["self_reported"]["proof"].string();
  };
  auto change = [&](const std::string& kind, const std::function<void(Json&)>& f) {
    int changed = 0;
    for (const auto& e : fs::recursive_directory_iterator(s.root + "/home/.cache")) {
      if (!e.is_regular_file() || !e.path().filename().string().starts_with(kind)) continue;
      auto v = json::parse(read_file(e.path()));
      REQUIRE(v);
      f((*v)["document"]);
      spill(e.path(), json::canonical(*v));
      changed++;
    }
    CHECK(changed > 0);
  };
  CHECK(proof() == "this run");
  CHECK(proof() == "cached");
  change("verify-", [](Json& d) { d = json::Object{{"forged", "by the box"}, {"ok", false}}; });
  CHECK(proof() == "this run");
  CHECK(proof() == "cached");
  change("verify-", [](Json& d) { d["ok"] = false; });
  CHECK(proof() == "this run");
  change("verify-", [](Json&) {});  // control: written again as it was
  CHECK(proof() == "cached");
  change("probe-", [](Json& d) { d["available"] = false; });
  agrees(s, s.run({"true"}), 0);  // looked at again, and it is there
  change("probe-", [](Json& d) {
    CHECK(d["available"].boolean());
    d = json::Object{{"forged", true}};
  });
  agrees(s, s.run({"true"}), 0);
  change("probe-", [](Json& d) { CHECK(d["available"].boolean()); });
  CHECK(proof() == "cached");
  chmod((s.root + "/home/.cache").c_str(), 0777);  // somebody else could have put another h5i there
  CHECK(proof() == "this run");
  chmod((s.root + "/home/.cache").c_str(), 0700);
  CHECK(proof() == "cached");
}

TEST_CASE("a box runs one command at a time") {
  Sandbox s;
  Ran second;
  Ran first = s.run(sh("echo up; sleep 1.5"), json::Object{}, [&](pid_t) {
    Sandbox* same = &s;
    auto lock = session::BoxLock::acquire(session::BoxPaths{same->box()}, "test");
    REQUIRE(!lock);
    CHECK(lock.error().code == Errc::BOX_BUSY);
  });
  agrees(s, first, 0);
  CHECK(first.out == "up\n");
}

TEST_CASE("after kill -9 of h5i no process of the box is left") {
  Sandbox s;
  Ran r = s.run(sh("sleep 88 & setsid sleep 88 & echo up; wait"), json::Object{}, [](pid_t pid) { kill(pid, SIGKILL); });
  CHECK(r.exit_status == 1000 + SIGKILL);
  for (int i = 0; i < 100 && s.processes() > 0; i++) usleep(50000);
  CHECK(s.processes() == 0);
  CHECK(fs::exists(s.box() + "/live.json"));  // what the next command's sweep starts from
  Ran next = s.run({"true"});
  CHECK(next.exit_status == 0);
}

TEST_CASE("whichever process of ours is killed, the run says so, nothing of the box is left, and the next run works") {
  for (bool confined : {false, true})
    for (const char* role : {"host", "spawner", "init", "workload"}) {
      if (!confined && std::string(role) == "init") continue;  // the fixture's plan has none
      INFO(role << (confined ? " at process" : " unconfined"));
      Sandbox s;
      if (confined) s.use_process_tier();
      CHECK(s.run({"true"}).exit_status == 0);  // control, and the proof is cached now
      bool killed = false;
      Ran r = s.run(sh("sleep 66 & sleep 66 & echo up; wait"), json::Object{}, [&](pid_t) {
        pid_t pid = 0;
        for (int i = 0; i < 200 && pid == 0; i++, usleep(50000)) {
          auto live = json::parse(read_file(s.box() + "/live.json"));
          if (live)
            for (const Json& p : (*live)["processes"].array())
              if (p["role"].string() == role) pid = static_cast<pid_t>(p["pid"].integer());
        }
        REQUIRE(pid > 1);
        killed = kill(pid, SIGKILL) == 0;
      });
      CHECK(killed);
      bool of_box = std::string(role) == "workload" || std::string(role) == "init";
      agrees(s, r, of_box ? 137 : 125);
      CHECK(r.outcome() == (of_box ? "signaled" : "host-lost"));
      CHECK(s.run({"true"}).exit_status == 0);
    }
}

TEST_CASE("the process tier's account and the spawner's are one, however a command ends") {
  Sandbox s;
  s.use_process_tier();
  spill(s.box() + "/work/plain", "no program\n");
  for (const auto& [argv, expected] : {std::pair{std::vector<std::string>{"true"}, 0}, {sh("exit 3"), 3}, {sh("kill -9 $$"), 137},
                                       {{"no-such-program"}, 127}, {{"./plain"}, 126}}) {
    INFO(argv.back());
    agrees(s, s.run(argv), expected);
  }
  CHECK(s.records("plugin-disagrees").empty());
  CHECK(s.records("attested").size() == 5);
}

TEST_CASE("a shell has a terminal of its own, no deadline, and leaves one record with its status") {
  Sandbox s;
  s.set_profile([](Json& p) { p["resources"]["wall"] = 1; });
  spill(s.root + "/typed", "test -t 0 && test -t 1 && echo is-a-$((40+2))-terminal\nsleep 2\nexit 6\n");
  Ran r = s.run({"sh", "-i"}, json::Object{{"shell", true}}, {}, s.root + "/typed");
  agrees(s, r, 6);
  CHECK(r.out.find("is-a-42-terminal") != std::string::npos);
  CHECK(r.receipt()["shell"].boolean());
  CHECK(!r.receipt()["output"]["stdout"]["blob"].boolean());
  CHECK(r.receipt()["output"]["stdout"]["captured"].integer() == 0);
  CHECK(s.records("receipt").size() == 1);

  r = s.run({"sh", "-i"}, json::Object{{"shell", true}, {"record", true}}, {}, s.root + "/typed");
  agrees(s, r, 6);
  CHECK(r.receipt()["output"]["stdout"]["captured"].integer() > 0);

  // the end of input ends the shell
  spill(s.root + "/typed", "echo bye\n");
  r = s.run({"sh", "-i"}, json::Object{{"shell", true}}, {}, s.root + "/typed");
  agrees(s, r, 0);
}

TEST_CASE("the command line, its JSON, its status descriptor and the receipt say the same number") {
  struct Case {
    const char* act;
    std::vector<std::string> command;
    int expected;
    const char* origin;
    const char* id;  // of the refusal or failure; "" when the command decided
  };
  for (const Case& c : {Case{"", {"true"}, 0, "command", ""},
                        {"", sh("exit 125"), 125, "command", ""},
                        {"", sh("exit 42"), 42, "command", ""},
                        {"", sh("kill -SEGV $$"), 139, "command", ""},
                        {"", {"no-such-program"}, 127, "h5i", "exec.not-found"},
                        {"", sh("sleep 9"), 124, "h5i", "run.deadline"},
                        {"plan:crash", {"true"}, 125, "h5i", "plugin.crashed"},
                        {"run:after-other-plan", {"true"}, 125, "h5i", "tier.attest-mismatch"},
                        {"run:crash", {"true"}, 125, "h5i", "plugin.crashed"}}) {
    INFO(c.act << " " << c.command.back());
    Sandbox s(c.act);
    s.set_profile([](Json& p) { p["resources"]["wall"] = 2; });
    for (bool json : {true, false}) {
      std::vector<std::string> words = {"box", "run", "--status-fd", "9", "test"};
      if (json) words.insert(words.begin() + 2, "--json");
      words.push_back("--");
      words.insert(words.end(), c.command.begin(), c.command.end());
      Ran r = s.cli(words);
      INFO(r.out << r.err);
      CHECK(r.exit_status == c.expected);
      CHECK(r.report["schema"].string() == "h5i.status/1");
      CHECK(r.report["exit_status"].integer(-1) == c.expected);
      CHECK(r.report["origin"].string() == c.origin);
      CHECK(r.report["error"]["id"].string() == c.id);
      auto last = s.records();
      REQUIRE(!last.empty());
      CHECK((last.back()["kind"].string() == "receipt" || last.back()["kind"].string() == "run-refused"));
      CHECK(last.back()["body"]["exit_status"].integer(-1) == c.expected);
      if (json) {
        auto out = json::parse(r.out);
        REQUIRE(out);
        if (!(*out)["receipt"].is_null()) CHECK((*out)["exit_status"].integer(-1) == c.expected);
        CHECK((*out)["error"]["id"].string() == c.id);
      } else if (*c.id) {
        CHECK(r.err.find(std::string("[") + c.id + "]") != std::string::npos);
      }
    }
  }
}
