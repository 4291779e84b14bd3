// diff, compare, propose, export: how work is looked at and how it leaves.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "core/base/unique_fd.hpp"
#include "tests/cli_repo/fixture.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {
void change(const User& u, const std::string& box) {
  write_file(u.work(box) + "/a.txt", "one\nTWO\nthree\n");
  write_file(u.work(box) + "/new.txt", "new\n");
  write_file(u.work(box) + "/Makefile", "all:\n\techo hi\n");
  unlink((u.work(box) + "/dir/b.txt").c_str());
  chmod((u.work(box) + "/run.sh").c_str(), 0644);
}
}  // namespace

TEST_CASE("diff shows what changed, what runs elsewhere, and nothing when nothing changed") {
  User u;
  u.create("fix");
  Json none = u.json({"box", "diff", "fix"});
  CHECK(none["files"].integer() == 0);
  CHECK(none["changes"].array().empty());
  change(u, "fix");
  Json d = u.json({"box", "diff", "fix"});
  CHECK(d["files"].integer() == 5);
  CHECK(d["added"].integer() == 4);
  CHECK(d["runs_on_your_side"].array().size() == 1);
  Ran text = u.run({"box", "diff", "fix"});
  CHECK(text.status == 0);
  CHECK(text.out.find("-two\n+TWO\n") != std::string::npos);
  CHECK(text.out.find("+\techo hi\n") != std::string::npos);  // tabs stay
  CHECK(text.out.find("will run on your side:\n  Makefile") != std::string::npos);
  CHECK(u.run({"box", "diff", "fix", "--names"}).out == "Makefile\na.txt\ndir/b.txt\nnew.txt\nrun.sh\n");
  CHECK(u.run({"box", "diff", "fix", "dir", "--names"}).out == "dir/b.txt\n");
  CHECK(u.run({"box", "diff", "fix", "--stat"}).out.find("modified  +1 -1  a.txt") != std::string::npos);
}

TEST_CASE("diff says what propose would refuse, a link that leaves too, and still shows where it leads") {
  User u;
  u.create("fix");
  CHECK(u.run({"box", "diff", "fix", "--names"}).err.empty());
  REQUIRE(symlink("/etc/passwd", (u.work("fix") + "/.env2").c_str()) == 0);
  Ran r = u.run({"box", "diff", "fix"});
  CHECK(r.status == 0);
  CHECK(r.out.find("the gate will refuse:\n  .env2  (gate.symlink-outside: ") != std::string::npos);
  CHECK(r.out.find("--keep-links") != std::string::npos);
  CHECK(r.out.find("+/etc/passwd") != std::string::npos);
  Json d = u.json({"box", "diff", "fix"});
  REQUIRE(d["violations"].array().size() == 1);
  CHECK(d["violations"].array()[0]["rule"].string() == "gate.symlink-outside");
  CHECK(d["changes"].array().size() == 1);
  for (const char* form : {"--names", "--raw"}) CHECK(u.run({"box", "diff", "fix", form}).err.find("the gate will refuse 1 path of this box") != std::string::npos);
  CHECK(u.refusal({"box", "propose", "fix"}) == "gate.symlink-outside");
}

TEST_CASE("a name of the base that is no UTF-8 is spelled as in the log, and told from a name that is spelled so") {
  User u;
  write_file(u.repo + "/b\xff", "x");
  write_file(u.repo + "/b\\xff", "x");
  git(u.repo, {"add", "-A"});
  git(u.repo, {"commit", "-qm", "names"});
  u.create("fix");
  write_file(u.work("fix") + "/b\xff", "changed");
  write_file(u.work("fix") + "/b\\xff", "changed");
  Ran r = u.run({"box", "diff", "fix", "--json"});
  CHECK(r.out.find("fffd") == std::string::npos);
  Json d = u.json({"box", "diff", "fix"});
  REQUIRE(d["changes"].array().size() == 2);
  for (const Json& c : d["changes"].array()) CHECK(c["path"].string() == "b\\xff");
  CHECK(d["changes"].array()[0]["path_hex"].is_null());
  CHECK(d["changes"].array()[1]["path_hex"].string() == "62ff");
}

TEST_CASE("what a link shows to a tool is named by diff and propose") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/s/tasks.json", "{}\n");
  REQUIRE(symlink("s", (u.work("fix") + "/.vscode").c_str()) == 0);
  CHECK(u.run({"box", "diff", "fix"}).out.find("s/tasks.json  (editor: seen as .vscode/tasks.json through the link .vscode") != std::string::npos);
  CHECK(u.json({"box", "propose", "fix"})["runs_on_your_side"].array().size() == 2);
}

TEST_CASE("text of a box cannot drive the terminal; --raw is for pipes") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/evil.txt", "\x1b[2J\x1b]0;title\x07\ngood\rbad\nif (a \xE2\x80\xAE) {\nzero\xE2\x80\x8Bwidth\n" + std::string(20000, 'x') + "\n");
  write_file(u.work("fix") + "/\xE2\x80\xAEname.txt", "x\n");
  Ran r = u.run({"box", "diff", "fix"});
  CHECK(r.status == 0);
  for (const char* raw : {"\x1b", "\x07", "\r", "\xE2\x80\xAE", "\xE2\x80\x8B"}) CHECK(r.out.find(raw) == std::string::npos);
  CHECK(r.out.find("\\x1b[2J") != std::string::npos);
  CHECK(r.out.find("reads differently than it is:") != std::string::npos);
  CHECK(r.out.find("evil.txt:3") != std::string::npos);
  CHECK(r.out.size() < 20000);
  CHECK(u.json({"box", "diff", "fix"})["reads_differently"].array().size() >= 4);
  CHECK(u.run({"box", "diff", "fix", "--raw"}).out.find("\x1b[2J") != std::string::npos);
}

TEST_CASE("propose makes the commit from the files, not from the box's index, commits or refs") {
  User u;
  u.create("fix");
  Json nothing = u.json({"box", "propose", "fix"});
  CHECK(nothing["changes"].integer() == 0);
  CHECK(nothing["commit"].is_null());
  change(u, "fix");
  std::string git_dir = "--git-dir=" + u.box("fix") + "/git", tree = "--work-tree=" + u.work("fix");
  git(u.work("fix"), {git_dir, tree, "update-index", "--skip-worktree", "a.txt"});
  git(u.work("fix"), {git_dir, tree, "update-index", "--assume-unchanged", "run.sh"});
  git(u.work("fix"), {git_dir, tree, "commit", "-qm", "box's own", "--allow-empty"});
  Json p = u.json({"box", "propose", "fix", "-m", "Subject\n\nBody"});
  CHECK(p["changes"].integer() == 5);
  std::string commit = p["commit"].string();
  CHECK(git(u.repo, {"rev-parse", "h5i/box/human/fix"}) == commit);
  CHECK(git(u.repo, {"rev-parse", commit + "^"}) == git(u.repo, {"rev-parse", "main"}));
  CHECK(git(u.repo, {"show", "-s", "--format=%an %s", commit}) == "Owner Subject");
  CHECK(git(u.repo, {"show", commit + ":a.txt"}) == "one\nTWO\nthree");
  CHECK(git(u.repo, {"diff", "--name-status", "main", commit}) == "A\tMakefile\nM\ta.txt\nD\tdir/b.txt\nA\tnew.txt\nM\trun.sh");
  CHECK(u.json({"box", "propose", "fix"})["again"].boolean());
  write_file(u.work("fix") + "/more", "more\n");
  Json second = u.json({"box", "propose", "fix"});
  CHECK(second["commit"].string() != commit);
  CHECK(git(u.repo, {"rev-parse", second["commit"].string() + "^"}) == git(u.repo, {"rev-parse", "main"}));
}

TEST_CASE("a violation fails the whole proposal, names each path and is recorded") {
  User u;
  u.create("fix");
  change(u, "fix");
  REQUIRE(mkfifo((u.work("fix") + "/pipe").c_str(), 0644) == 0);
  REQUIRE(symlink("/etc/passwd", (u.work("fix") + "/leak").c_str()) == 0);
  Ran r = u.run({"box", "propose", "fix"});
  CHECK(r.status == 1);
  CHECK(r.err.find("pipe: gate.special-file") != std::string::npos);
  CHECK(r.err.find("leak: gate.symlink-outside") != std::string::npos);
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 3);
  std::string log = read_file(u.box("fix") + "/log.jsonl");
  CHECK(log.find("\"kind\":\"violation\"") != std::string::npos);
  CHECK(log.find("\"path\":\"leak\"") != std::string::npos);
  CHECK(git(u.repo, {"rev-parse", "h5i/box/human/fix"}) == git(u.repo, {"rev-parse", "main"}));
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "gate.symlink-outside");
  CHECK(u.refusal({"box", "export", "fix", "--output", u.home + "/out"}) == "gate.symlink-outside");
  CHECK_FALSE(exists(u.home + "/out"));
  unlink((u.work("fix") + "/pipe").c_str());
  CHECK(u.refusal({"box", "propose", "fix"}) == "gate.symlink-outside");
  CHECK(u.json({"box", "propose", "fix", "--keep-links"})["changes"].integer() == 6);
}

TEST_CASE("each refusal of the gate has three lines, its id and status 1") {
  struct Row {
    const char* id;
    std::function<void(const std::string&)> make;
  };
  auto linked = [](const std::string& target, const std::string& path) { REQUIRE(symlink(target.c_str(), path.c_str()) == 0); };
  const std::vector<Row> rows = {
      {"gate.dotgit", [](const std::string& w) { write_file(w + "/git~1", "x"); }},
      {"gate.dotgit", [](const std::string& w) { write_file(w + "/d/.GIT/config", "x"); }},
      {"gate.nested-repository", [](const std::string& w) { git(w, {"init", "-q", "sub"}); }},
      {"gate.nested-repository", [](const std::string& w) { write_file(w + "/d/HEAD", "ref: refs/heads/main\n"); write_file(w + "/d/commondir", "../c\n"); }},
      {"gate.symlink-outside", [&](const std::string& w) { linked("../../x", w + "/dir/up"); }},
      {"gate.special-file", [](const std::string& w) { REQUIRE(mkfifo((w + "/f").c_str(), 0644) == 0); }},
      {"gate.hardlink-outside", [](const std::string& w) { REQUIRE(link((w + "/../manifest.json").c_str(), (w + "/m").c_str()) == 0); }},
      {"gate.set-id", [](const std::string& w) { write_file(w + "/s", "x", 04755); }},
      {"gate.name", [](const std::string& w) { write_file(w + "/a\nb", "x"); }},
      {"gate.name", [](const std::string& w) { write_file(w + "/bidi\xE2\x80\xAEname", "x"); }},
      {"gate.encoding", [](const std::string& w) { write_file(w + "/a\xff", "x"); }},
      {"gate.limit", [](const std::string& w) { std::string p = w; for (int i = 0; i < 130; i++) p += "/d"; write_file(p + "/x", "x"); }},
      {"git.redirected", [](const std::string& w) { write_file(w + "/.git/HEAD", "ref: x\n"); }},
  };
  User u;
  int n = 0;
  for (const Row& row : rows) {
    std::string name = "b" + std::to_string(n++);
    u.create(name);
    row.make(u.work(name));
    Ran r = u.run({"box", "propose", name});
    INFO(row.id << ": " << r.err);
    CHECK(r.status == 1);
    CHECK(r.err.find("[" + std::string(row.id) + "]\n  because: ") != std::string::npos);
    CHECK(r.err.find("\n  see: ") != std::string::npos);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 3);
    CHECK(u.refusal({"box", "propose", name}) == row.id);
  }
}

TEST_CASE("a file that is written to while propose reads it fails the whole proposal, in three lines") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/quiet.txt", "quiet\n");
  std::string path = u.work("fix") + "/growing.bin";
  write_file(path, std::string(32 << 20, 'x'));
  std::string branch = git(u.repo, {"rev-parse", "h5i/box/human/fix"});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    UniqueFd f(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    for (size_t i = 0; !stop && f; i++) {
      (void)!pwrite(f.get(), i % 2 ? "a" : "b", 1, static_cast<off_t>(i % (32 << 20)));
      usleep(200);
    }
  });
  std::string id = u.refusal({"box", "propose", "fix"});
  stop = true;
  writer.join();
  CHECK(id == "gate.changed-while-read");
  CHECK(git(u.repo, {"rev-parse", "h5i/box/human/fix"}) == branch);
  CHECK(u.json({"box", "propose", "fix"})["changes"].integer() == 2);  // the control: at rest it passes
}

TEST_CASE("a file that goes while propose reads fails the whole proposal, named in its three lines") {
  User u;
  u.create("fix");
  const std::string w = u.work("fix");
  for (int i = 0; i < 200; i++) write_file(w + "/" + std::to_string(i), "x");  // there is time between the list and the look
  std::atomic<bool> stop{false};
  std::thread turning([&] {
    while (!stop) {
      UniqueFd(open((w + "/goes.txt").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)).reset();
      usleep(50);
      unlink((w + "/goes.txt").c_str());
    }
  });
  Ran r;
  for (int i = 0; i < 200 && r.err.find("goes.txt: gate.vanished") == std::string::npos; i++) r = u.run({"box", "propose", "fix", "-q"});
  stop = true;
  turning.join();
  INFO(r.err);
  CHECK(r.status == 1);
  CHECK(r.err.find("gate.vanished") != std::string::npos);
  CHECK(r.err.find("\n  because: ") != std::string::npos);
  CHECK(r.err.find("\n  see: ") != std::string::npos);
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 3);
}

TEST_CASE("what propose may not read fails the whole proposal, in three lines") {
  User u;
  u.create("fix");
  std::string shut = u.work("fix") + "/shut.txt";
  write_file(shut, "x", 0);
  std::vector<std::string> propose = {"box", "propose", "fix"};
  Ran r;
  if (geteuid() == 0) {  // root without the right to read what is not its own to read
    std::vector<std::string> words = {"--bounding-set=-dac_override,-dac_read_search", u.program};
    words.insert(words.end(), propose.begin(), propose.end());
    r = run_program("/usr/bin/setpriv", words, u.repo, u.environment(), "");
  } else {
    r = u.run(propose);
  }
  INFO(r.err);
  CHECK(r.status == 1);
  CHECK(is_refusal(r.err, "gate.path"));
  CHECK(chmod(shut.c_str(), 0644) == 0);
  CHECK(u.run(propose).status == 0);  // the control
}

TEST_CASE("a .git that somebody wrote outside the box is never read") {
  User u;
  u.create("fix");
  std::string marker = u.home + "/marker";
  write_file(u.work("fix") + "/.git/config", "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch " + marker + "\n");
  write_file(u.work("fix") + "/.git/HEAD", "ref: refs/heads/main\n");
  CHECK(u.refusal({"box", "propose", "fix"}) == "git.redirected");
  CHECK_FALSE(exists(marker));
}

TEST_CASE("a box in use is busy") {
  User u;
  u.create("fix");
  int fd = open((u.box("fix") + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(flock(fd, LOCK_EX | LOCK_NB) == 0);
  for (const char* verb : {"diff", "propose", "abort", "rm", "rebase"}) CHECK(u.refusal({"box", verb, "fix"}) == "box.busy");
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "box.busy");
  CHECK(u.refusal({"box", "export", "fix", "--output", u.home + "/out"}) == "box.busy");
  close(fd);
  u.json({"box", "diff", "fix"});
}

TEST_CASE("an export applies with git apply --index, and carries report, log and key") {
  User u;
  u.create("fix");
  change(u, "fix");
  std::string binary("\0\1\2", 3);
  for (int i = 0; i < 3000; i++) binary += static_cast<char>(i * 7);
  write_file(u.work("fix") + "/bin.dat", binary);
  REQUIRE(symlink("a.txt", (u.work("fix") + "/second").c_str()) == 0);
  write_file(u.work("fix") + "/pipe|and`tick`<b>.txt", "x\n");
  std::string out = u.home + "/out";
  Json e = u.json({"box", "export", "fix", "--output", out});
  CHECK(e["changes"].integer() == 8);
  git(u.home, {"clone", "-q", u.repo, "clone"});
  git(u.home + "/clone", {"apply", "--index", out + "/patch.diff"});
  CHECK(git(u.home + "/clone", {"write-tree"}) == u.json({"box", "propose", "fix"})["tree"].string());
  std::string report = read_file(out + "/report.md");
  CHECK(report.find("Will run on your side") != std::string::npos);
  CHECK(report.find("Makefile") != std::string::npos);
  CHECK(report.find("<b>") == std::string::npos);
  CHECK(exists(out + "/log.jsonl"));
  CHECK(exists(out + "/policy.resolved.json"));
  if (e["sealed"].boolean()) {
    CHECK(exists(out + "/log.jsonl.seal"));
    CHECK(exists(out + "/host.pub"));
    CHECK(git(u.repo, {"ls-tree", "--name-only", "refs/h5i/log/human/fix"}) == "host.pub\nlog.jsonl.seal");
  }
  // No half-made folders beside it.
  CHECK(run_program("sh", {"-c", "ls -A " + u.home + " | grep -c '^\\.out' || true"}, u.home, u.environment()).out == "0\n");
  CHECK(u.refusal({"box", "export", "fix", "--output", out}) == "exists");
  write_file(out + "/stray", "x");
  u.json({"box", "export", "fix", "--output", out, "--force"});
  CHECK_FALSE(exists(out + "/stray"));
  CHECK(u.refusal({"box", "export", "fix"}, "", 2) == "usage");
  CHECK(u.refusal({"box", "export", "fix", "--output", u.box("fix") + "/x"}, "", 2) == "usage");
}

TEST_CASE("compare names what differs between two boxes and who changed it") {
  User u;
  u.create("x");
  u.create("y");
  CHECK(u.json({"box", "compare", "x", "y"})["differ"].integer() == 0);
  write_file(u.work("x") + "/a.txt", "x\n");
  write_file(u.work("y") + "/a.txt", "y\n");
  write_file(u.work("x") + "/same", "same\n");
  write_file(u.work("y") + "/same", "same\n");
  write_file(u.work("y") + "/only", "y\n");
  Json c = u.json({"box", "compare", "x", "y"});
  CHECK(c["differ"].integer() == 2);
  CHECK(c["same_change"].integer() == 1);
  CHECK(c["paths"].array()[0]["changed_by"].string() == "both");
  CHECK(c["paths"].array()[1]["changed_by"].string() == "second");
  CHECK(u.refusal({"box", "compare", "x", "x"}, "", 2) == "usage");
  CHECK(u.refusal({"box", "compare", "x", "nothing"}) == "box.not-found");
}
