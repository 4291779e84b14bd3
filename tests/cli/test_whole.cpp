// The main job from end to end, at the confining tier, as root and as an ordinary user; the verbs against a running and a
// killed box; a terminal; collecting what is over.
#include <fcntl.h>
#include <sys/file.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <utime.h>

#include "core/cli/parse.hpp"
#include "tests/cli/fits.hpp"
#include "tests/cli/project.hpp"
#include "tests/support/lines.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

std::string changed(std::string text, size_t at) {
  text[at] = text[at] == 'a' ? 'b' : 'a';
  return text;
}

}  // namespace

TEST_CASE("every verb of the tables is there, its help is the table's, and its JSON has a schema") {
  Scratch home;
  for (const cli::Command& c : cli::all_commands()) {
    CAPTURE(c.noun, c.verb, c.executable);
    auto with = [&](std::vector<std::string> more) {
      std::vector<std::string> words = {"h5i", c.noun};
      if (!c.verb.empty()) words.push_back(c.verb);
      words.insert(words.end(), more.begin(), more.end());
      return run(Program{.argv = std::move(words), .env = {{"HOME", home.path()}}});
    };
    Ended help = with({"--help"});
    CHECK(help.status == 0);
    CHECK(help.out == cli::help_of(c));
    Ended unknown = with({"--no-such-option-of-any"});
    CHECK(unknown.status == c.usage_status);
    CHECK(is_refusal(unknown.err, "usage"));
    Ended json = with({"--json", "--no-such-option-of-any"});
    CHECK(json.status == c.usage_status);
    fits(c.verb.empty() ? c.noun : c.noun + "-" + c.verb, json);
  }
  CHECK(std::filesystem::is_empty(home.path()));
}

TEST_CASE("supervised is had with all that it needs, or refused by the name of what is missing, and never becomes another tier") {
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Project p(uid);
    std::filesystem::create_directories(p / "r/.h5i");
    write_file(p / "r/.h5i/env.yaml", "profiles:\n  net: { extends: default, isolation: supervised, net: { egress: [\"198.51.100.7:443\"] } }\n");
    give(p / "r/.h5i", uid);
    p.git("add -A && git commit -qm policy");
    Ended probed = run(p.h5i({"box", "probe", "--tier", "supervised", "--json"}));
    Json probe = parse_json(probed.out, "probe") ? *parse_json(probed.out, "probe") : Json();
    CAPTURE(probed.out, probed.err);
    std::string missing;
    const char* kComponents[] = {"user-namespace", "network-namespace", "nftables", "seccomp-user-notification", "landlock", "seccomp-filter", "cgroup-v2-delegation", "no-new-privs"};
    for (const char* component : kComponents) CHECK(probed.out.find(std::string("\"") + component + "\"") != std::string::npos);
    for (const std::vector<std::string>& words : {std::vector<std::string>{"--isolation", "supervised"}, {"--profile", "net"}}) {
      std::vector<std::string> create = {"box", "create", "--name", "s"};
      create.insert(create.end(), words.begin(), words.end());
      Ended e = run(p.h5i(create));
      CAPTURE(e.out, e.err);
      if (e.status == 0) {
        CHECK(e.out.find("tier supervised") != std::string::npos);
        p.ok({"box", "rm", "s"});
        continue;
      }
      CHECK(is_refusal(e.err, "tier.probe.missing"));
      CHECK(e.err.find("because: missing ") != std::string::npos);
      CHECK(p.ok({"box", "ls"}).out.find("human/s") == std::string::npos);
    }
    // Without being named it is one that lost, with its reason; what won is printed.
    Ended any = p.ok({"box", "create", "--name", "any"});
    CHECK(any.out.find("(from auto)") != std::string::npos);
    CHECK((any.out.find("tier supervised") != std::string::npos || any.out.find("skipped supervised: ") != std::string::npos));
  }
}

TEST_CASE("the main job: box, run, diff, proposal, apply, export, verified log") {
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Project p(uid);
    p.create("fix");
    Ended made = p.ok({"box", "run", "fix", "--", "make"});
    CHECK(made.out.find("cc -o hello hello.c") != std::string::npos);
    p.ok({"box", "run", "fix", "--", "sh", "-c", "rm hello; echo '/* fixed */' >> hello.c; git add -A; git -c user.name=x -c user.email=y commit -qm inside; git log --oneline | wc -l"});
    Ended diff = p.ok({"box", "diff", "fix"});
    CHECK(diff.out.find("+/* fixed */") != std::string::npos);
    p.ok({"box", "propose", "fix", "--message", "Fix hello"});
    CHECK(one_json(p.ok({"box", "status", "fix", "--json"}).out)["state"].string() == "proposed");
    p.ok({"box", "export", "fix", "--output", p / "out"});
    for (const char* name : {"patch.diff", "report.md", "receipt.json"}) CHECK(std::filesystem::exists(p / (std::string("out/") + name)));
    p.ok({"box", "apply", "fix", "--yes"});
    CHECK(read_file(p / "r/hello.c").find("/* fixed */") != std::string::npos);
    CHECK(p.git("status --porcelain").out.empty());
    CHECK(one_json(p.ok({"box", "status", "fix", "--json"}).out)["state"].string() == "applied");
    for (const char* verb : {"status", "log", "inspect"}) fits(std::string("box-") + verb, p.ok({"box", verb, "fix", "--json"}));
    fits("box-ls", p.ok({"box", "ls", "--json"}));
    CHECK(p.ok({"box", "inspect", "fix"}).out.find("enforced") != std::string::npos);
    p.ok({"log", "seal", "fix"});
    p.ok({"log", "verify", "fix"});
  }
}

TEST_CASE("a copied log that was changed is not verified, and the first bad record is named") {
  Project p(users().back());
  p.create("one");
  p.create("two");
  p.ok({"box", "run", "one", "--", "true"});
  p.ok({"box", "run", "two", "--", "true"});
  p.ok({"log", "seal", "one"});
  std::string whole = read_file(p.paths("one").log()), seal = read_file(p.paths("one").log() + ".seal");
  auto lines = lines_of(whole);
  REQUIRE(lines.size() > 4);
  auto verify = [&](const std::string& text, int status, const std::string& named) {
    write_file(p / "copy/log.jsonl", text);
    write_file(p / "copy/log.jsonl.seal", seal);
    give(p / "copy", p.uid());
    Ended e = p.ok({"log", "verify", p / "copy/log.jsonl"}, status);
    CAPTURE(e.err, e.out);
    CHECK((e.err + e.out).find(named) != std::string::npos);
  };
  verify(whole, 0, "verified");  // the control
  verify(changed(whole, lines[0].size() + 1 + lines[1].size() / 2), 1, "record ");
  auto cut = lines;
  cut.pop_back();
  verify(joined(cut), 1, "");
  auto swapped = lines;
  std::swap(swapped[2], swapped[3]);
  verify(joined(swapped), 1, "record 2");
  auto foreign = lines;
  foreign[3] = lines_of(read_file(p.paths("two").log()))[3];
  verify(joined(foreign), 1, "record 3");
}

TEST_CASE("while a box runs, the verbs that would touch it say who holds it") {
  Project p(users().back());
  p.create("fix");
  pid_t pid = start(p.h5i({"box", "run", "fix", "--", "sh", "-c", "echo x >> hello.c; echo ready; sleep 60"}), p / "out.txt", p / "err.txt");
  REQUIRE(soon([&] { return read_file(p / "out.txt") == "ready\n"; }));
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{"box", "diff", "fix"}, {"box", "propose", "fix"}, {"box", "apply", "fix", "--yes"},
                                                                               {"box", "rebase", "fix"}, {"box", "abort", "fix"}, {"box", "rm", "fix"}}) {
    CAPTURE(words);
    Ended e = p.ok(words, 1);
    CHECK(is_refusal(e.err, "box.busy"));
    CHECK(e.err.find(std::to_string(pid)) != std::string::npos);
  }
  p.ok({"box", "stop", "fix"});
  CHECK(wait_for(pid, 20) == 143);
  CHECK(p.ok({"box", "diff", "fix"}).out.find("+x") != std::string::npos);
}

TEST_CASE("after a killed run the next verb sweeps, whichever it is") {
  for (const char* tier : {"workspace", "process"}) {
    CAPTURE(tier);
    Project p(users().back());
    p.create("fix", tier);
    std::string mark = "4731" + std::to_string(getpid());
    for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{"box", "diff", "fix"}, {"box", "propose", "fix"}, {"box", "status", "fix"}, {"box", "rm", "fix", "--force"}}) {
      CAPTURE(words);
      pid_t pid = start(p.h5i({"box", "run", "fix", "--", "sh", "-c", "echo x >> hello.c; echo ready; sleep " + mark}), p / "out.txt", p / "err.txt");
      REQUIRE(soon([&] { return read_file(p / "out.txt") == "ready\n"; }));
      kill(pid, SIGKILL);
      wait_for(pid, 10);
      p.ok(words);
      CHECK(processes_with("sleep" + std::string(1, '\0') + mark).empty());
    }
  }
}

TEST_CASE("a shell has a terminal of its own, job control, and leaves one record") {
  for (uid_t uid : users())
    for (const char* tier : {"workspace", "process"}) {
      CAPTURE(uid, tier);
      Project p(uid);
      p.create("fix", tier);
      int master = -1;
      pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
      if (pid == 0) {
        alarm(60);
        Program q = p.h5i({"box", "shell", "fix", "--", "sh", "-c", "test -t 0 && test -t 1 && echo terminal; tty; stty size >/dev/null && echo sized; read line; echo got $line; exit 11"});
        if (q.uid != 0 && (setresgid(q.uid, q.uid, q.uid) != 0 || setresuid(q.uid, q.uid, q.uid) != 0)) _exit(121);
        setenv("HOME", q.env["HOME"].c_str(), 1);
        if (chdir(q.cwd.c_str()) != 0) _exit(122);
        std::vector<char*> argv;
        for (std::string& w : q.argv) argv.push_back(w.data());
        argv.push_back(nullptr);
        execv(h5i_path().c_str(), argv.data());
        _exit(123);
      }
      std::string out;
      char buffer[4096];
      ssize_t n;
      bool typed = false;
      while ((n = read(master, buffer, sizeof buffer)) > 0) {
        out.append(buffer, static_cast<size_t>(n));
        if (!typed && out.find("sized") != std::string::npos) {
          typed = write(master, "words\n", 6) == 6;
        }
      }
      close(master);
      CHECK(wait_for(pid, 20) == 11);
      CAPTURE(out);
      CHECK(out.find("tier " + std::string(tier)) != std::string::npos);  // says where one is, and no more than holds
      CHECK((out.find("no network") != std::string::npos) == (std::string(tier) == "process"));
      CHECK(out.find("terminal") != std::string::npos);
      CHECK(out.find("got words") != std::string::npos);
      Json log = one_json(p.ok({"box", "log", "fix", "--kind", "receipt", "--json"}).out);
      REQUIRE(log["records"].array().size() == 1);
      CHECK(log["records"].array()[0]["body"]["shell"].boolean());
      CHECK(log["records"].array()[0]["body"]["exit_status"].integer() == 11);
      CHECK_FALSE(log["records"].array()[0]["body"]["output"]["stdout"]["blob"].boolean(true));  // nothing was kept
    }
}

TEST_CASE("box shell in JSON fits its schema for success, refusal and empty") {
  Project p(users().back());
  fits("box-shell", p.ok({"box", "shell", "fix", "--json"}, 125));
  p.create("fix");
  fits("box-shell", p.ok({"box", "shell", "fix", "--json", "--", "sh", "-c", "exit 3"}, 3));
  fits("box-shell", p.ok({"box", "shell", "--json"}, 2));
}

TEST_CASE("gc removes what is over and nothing else") {
  Project p(users().back());
  fits("box-gc", p.ok({"box", "gc", "--json"}));
  for (const char* name : {"applied", "aborted", "open"}) {
    p.create(name);
    p.ok({"box", "run", name, "--", "sh", "-c", std::string("echo ") + name + " > new-" + name});
  }
  p.ok({"box", "apply", "applied", "--yes"});
  p.ok({"box", "abort", "aborted"});
  std::string half = p / "r/.git/h5i/boxes/human/.new.x.01arz3ndektsv4rrffq69g5fav", young = p / "r/.git/h5i/boxes/human/.new.y.01arz3ndektsv4rrffq69g5fav";
  write_file(half + "/work/file", "text");
  write_file(young + "/work/file", "text");
  write_file(young + "/lock", "");
  give(p / "r/.git/h5i", p.uid());
  int creator = open((young + "/lock").c_str(), O_RDWR | O_CLOEXEC);  // as a create that still works
  REQUIRE(flock(creator, LOCK_EX | LOCK_NB) == 0);
  utimbuf old{time(nullptr) - 7200, time(nullptr) - 7200};
  REQUIRE(utime(half.c_str(), &old) == 0);
  Ended dry = p.ok({"box", "gc", "--dry-run", "--json"});
  fits("box-gc", dry);
  CHECK(one_json(dry.out)["removed"].array().size() == 3);
  CHECK(std::filesystem::exists(half));
  CHECK(std::filesystem::exists(p.paths("applied").work()));
  Ended gc = p.ok({"box", "gc", "--json"});
  fits("box-gc", gc);
  CHECK(one_json(gc.out)["removed"].array().size() == 3);
  CHECK_FALSE(std::filesystem::exists(half));
  CHECK(std::filesystem::exists(young));
  close(creator);
  CHECK(p.ok({"box", "ls", "--names"}).out == "human/open\n");
  CHECK(std::filesystem::exists(p.paths("open").work() + "/new-open"));
  CHECK(std::filesystem::exists(p / "r/.git/h5i/evidence/human/applied/log.jsonl"));
  CHECK(std::filesystem::exists(p / "r/.git/h5i/evidence/human/aborted/log.jsonl"));
  CHECK(one_json(p.ok({"box", "gc", "--json"}).out)["removed"].array().empty());
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{"--evidence"}, {"--older-than", "1d"}, {"--evidence", "--older-than", "x"},
                                                                               {"--evidence", "--older-than", "-1d"}, {"--evidence", "--older-than", "5"}}) {
    words.insert(words.begin(), {"box", "gc"});
    CAPTURE(words);
    CHECK(is_refusal(p.ok(words, 2).err, "usage"));
  }
  p.ok({"box", "gc", "--evidence", "--older-than", "1d"});
  CHECK(std::filesystem::exists(p / "r/.git/h5i/evidence/human/applied/log.jsonl"));
  REQUIRE(utime((p / "r/.git/h5i/evidence/human/applied/log.jsonl").c_str(), &old) == 0);
  Ended evidence = p.ok({"box", "gc", "--evidence", "--older-than", "1h", "--json"});
  fits("box-gc", evidence);
  CHECK_FALSE(std::filesystem::exists(p / "r/.git/h5i/evidence/human/applied"));
  CHECK(std::filesystem::exists(p / "r/.git/h5i/evidence/human/aborted/log.jsonl"));
}

TEST_CASE("gc --all finds the repositories in which boxes were made") {
  Project p(users().back());
  p.create("done");
  p.ok({"box", "abort", "done"});
  Program elsewhere = p.h5i({"box", "gc", "--json"});
  elsewhere.cwd = "/";
  CHECK(one_json(run(elsewhere).out)["removed"].array().empty());
  elsewhere.argv.push_back("--all");
  CHECK(one_json(run(elsewhere).out)["removed"].array().size() == 1);
}
