// apply, rebase, abort, rm: what happens to the user's branch and to the box afterwards.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/cli_repo/fixture.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {
std::string head(const User& u) { return git(u.repo, {"rev-parse", "HEAD"}); }
}  // namespace

TEST_CASE("apply moves branch, index and files by fast-forward and leaves them clean") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/a.txt", "next\n");
  write_file(u.work("fix") + "/deep/er/x", "x\n", 0755);
  unlink((u.work("fix") + "/link").c_str());
  std::string before = head(u);
  CHECK(u.refusal({"box", "apply", "fix"}) == "cancelled");
  Ran asked = u.run({"box", "apply", "fix"}, "", "y\n");
  CHECK(asked.status == 1);  // standard input is no terminal
  CHECK(asked.out.find("modified  +1 -3  a.txt") != std::string::npos);
  CHECK(head(u) == before);
  Json a = u.json({"box", "apply", "fix", "--yes"});
  CHECK(a["how"].string() == "fast-forward");
  CHECK(a["before"].string() == before);
  CHECK(head(u) == a["commit"].string());
  CHECK(git(u.repo, {"status", "--porcelain"}) == "");
  CHECK(read_file(u.repo + "/a.txt") == "next\n");
  CHECK(exists(u.repo + "/deep/er/x"));
  CHECK_FALSE(exists(u.repo + "/link"));
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "box.state");
  CHECK(u.refusal({"box", "abort", "fix"}) == "box.state");
  CHECK(read_file(u.box("fix") + "/log.jsonl").find("\"kind\":\"applied\"") != std::string::npos);
}

TEST_CASE("a proposal that is in the branch already is not applied twice") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/new.txt", "box\n");
  u.json({"box", "propose", "fix"});
  git(u.repo, {"merge", "-q", "h5i/box/human/fix"});
  std::string before = head(u);
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "box.state");
  CHECK(head(u) == before);
  u.json({"box", "rm", "fix"});
}

TEST_CASE("the parts of a repository that two boxes bring are refused when they come together") {
  User u;
  u.create("one");
  u.create("two");
  write_file(u.work("one") + "/d/HEAD", "ref: refs/heads/main\n");
  write_file(u.work("two") + "/d/commondir", "../c\n");
  write_file(u.work("two") + "/plain", "x\n");
  u.json({"box", "apply", "one", "--yes"});
  std::string before = head(u);
  CHECK(u.refusal({"box", "apply", "two", "--yes"}) == "gate.nested-repository");
  CHECK(u.refusal({"box", "apply", "two", "--yes", "--patch"}) == "gate.nested-repository");
  CHECK(head(u) == before);
  CHECK_FALSE(exists(u.repo + "/d/commondir"));
  unlink((u.work("two") + "/d/commondir").c_str());  // Control.
  u.json({"box", "apply", "two", "--yes"});
}

TEST_CASE("apply of nothing is refused") {
  User u;
  u.create("fix");
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "git.no-changes");
}

TEST_CASE("apply merges when the parent moved, squashes with --patch, and names conflicts without changing anything") {
  User u;
  for (const char* n : {"merge", "patch", "conflict"}) u.create(n);
  write_file(u.work("merge") + "/new.txt", "from the box\n");
  write_file(u.work("patch") + "/squash.txt", "from the box\n");
  write_file(u.work("conflict") + "/a.txt", "box\n");
  write_file(u.repo + "/a.txt", "parent\n");
  git(u.repo, {"commit", "-qam", "parent moved"});
  Json m = u.json({"box", "apply", "merge", "--yes"});
  CHECK(m["how"].string() == "merge");
  CHECK(git(u.repo, {"rev-list", "--parents", "-1", "HEAD"}) == m["commit"].string() + " " + m["before"].string() + " " + m["proposal"].string());
  CHECK(read_file(u.repo + "/a.txt") == "parent\n");
  Json p = u.json({"box", "apply", "patch", "--patch", "--yes", "-m", "One commit"});
  CHECK(git(u.repo, {"rev-list", "--parents", "-1", "HEAD"}) == p["commit"].string() + " " + p["before"].string());
  CHECK(git(u.repo, {"show", "-s", "--format=%s"}) == "One commit");
  std::string before = head(u);
  Json c = u.json({"box", "apply", "conflict", "--yes"}, 1);
  CHECK(c["error"]["id"].string() == "git.conflict");
  CHECK(c["error"]["evidence"].string().find("a.txt") != std::string::npos);
  CHECK(head(u) == before);
  CHECK(git(u.repo, {"status", "--porcelain"}) == "");
}

TEST_CASE("apply refuses a dirty tree, another branch, and an untracked file in the way; nothing changes") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/new.txt", "box\n");
  write_file(u.repo + "/a.txt", "mine\n");
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "git.dirty");
  CHECK(read_file(u.repo + "/a.txt") == "mine\n");
  git(u.repo, {"checkout", "a.txt"});
  git(u.repo, {"checkout", "-qb", "other"});
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "git.wrong-branch");
  git(u.repo, {"checkout", "-q", "main"});
  write_file(u.repo + "/new.txt", "untracked and mine\n");
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "git.dirty");
  CHECK(read_file(u.repo + "/new.txt") == "untracked and mine\n");
  unlink((u.repo + "/new.txt").c_str());
  write_file(u.repo + "/.git/index.lock", "");
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "busy");
  unlink((u.repo + "/.git/index.lock").c_str());
  git(u.repo, {"update-ref", "refs/heads/h5i/box/human/fix", "HEAD"});
  CHECK(u.refusal({"box", "apply", "fix", "--yes"}) == "git.ref-changed");
}

TEST_CASE("apply works in a linked work tree") {
  User u;
  git(u.repo, {"worktree", "add", "-q", "-b", "other", u.home + "/linked"});
  u.create("fix", {}, u.home + "/linked");
  write_file(u.work("fix") + "/new.txt", "box\n");
  u.json({"box", "apply", "fix", "--yes"}, 0, u.home + "/linked");
  CHECK(read_file(u.home + "/linked/new.txt") == "box\n");
  CHECK(git(u.home + "/linked", {"status", "--porcelain"}) == "");
  CHECK(git(u.repo, {"status", "--porcelain"}) == "");
}

TEST_CASE("of boxes with one base that apply at once, each is whole or refused") {
  User u;
  const int kBoxes = 6;
  for (int i = 0; i < kBoxes; i++) {
    std::string n = "b" + std::to_string(i);
    u.create(n);
    write_file(u.work(n) + "/" + n + ".txt", n + "\n");
  }
  std::vector<pid_t> children;
  for (int i = 0; i < kBoxes; i++) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      // Busy is an answer; whoever gets it asks again.
      for (int attempt = 0; attempt < 200; attempt++) {
        Ran r = u.run({"box", "apply", "b" + std::to_string(i), "--yes"});
        if (r.status == 0) _exit(0);
        if (r.err.find("[busy]") == std::string::npos) _exit(2);
        usleep(20000);
      }
      _exit(3);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  CHECK(git(u.repo, {"status", "--porcelain"}) == "");
  for (int i = 0; i < kBoxes; i++) CHECK(read_file(u.repo + "/b" + std::to_string(i) + ".txt") == "b" + std::to_string(i) + "\n");
  git(u.repo, {"fsck", "--strict"});
}

TEST_CASE("rebase brings the work onto the parent's head, or names conflicts and changes nothing") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/new.txt", "box\n");
  CHECK(u.json({"box", "rebase", "fix"})["changed"].integer() == 0);
  write_file(u.repo + "/a.txt", "parent\n");
  git(u.repo, {"commit", "-qam", "parent moved"});
  Json r = u.json({"box", "rebase", "fix"});
  CHECK(r["base_commit"].string() == head(u));
  CHECK(read_file(u.work("fix") + "/a.txt") == "parent\n");
  CHECK(read_file(u.work("fix") + "/new.txt") == "box\n");
  CHECK(u.json({"box", "diff", "fix"})["files"].integer() == 1);
  CHECK(git(u.work("fix"), {"--git-dir=" + u.box("fix") + "/git", "--work-tree=" + u.work("fix"), "status", "--porcelain"}) == "?? new.txt");
  write_file(u.work("fix") + "/a.txt", "box\n");
  write_file(u.repo + "/a.txt", "parent again\n");
  git(u.repo, {"commit", "-qam", "parent moved again"});
  CHECK(u.refusal({"box", "rebase", "fix"}) == "git.conflict");
  CHECK(read_file(u.work("fix") + "/a.txt") == "box\n");
  u.json({"box", "propose", "fix"});
  CHECK(u.refusal({"box", "rebase", "fix"}) == "box.state");
}

TEST_CASE("a rebase that was killed is completed by the next verb") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/new.txt", "box\n");
  std::string work_tree = u.json({"box", "propose", "fix"})["tree"].string();
  write_file(u.repo + "/a.txt", "parent\n");
  write_file(u.repo + "/late.txt", "late\n");
  git(u.repo, {"add", "-A"});
  git(u.repo, {"commit", "-qm", "parent moved"});
  std::string merged = git(u.repo, {"merge-tree", "--write-tree", "main", "h5i/box/human/fix"});
  // As left by a death after one file was removed and another half written.
  unlink((u.work("fix") + "/a.txt").c_str());
  write_file(u.work("fix") + "/late.txt", "la");
  write_file(u.box("fix") + "/rebase.json", json::canonical(json::Object{{"schema", "h5i.rebase/1"}, {"work_tree", work_tree}, {"merged_tree", merged}, {"onto", head(u)}}));
  Json d = u.json({"box", "diff", "fix"});
  CHECK(d["base_commit"].string() == head(u));
  CHECK(d["files"].integer() == 1);
  CHECK(read_file(u.work("fix") + "/a.txt") == "parent\n");
  CHECK(read_file(u.work("fix") + "/late.txt") == "late\n");
  CHECK_FALSE(exists(u.box("fix") + "/rebase.json"));
}

TEST_CASE("rebase does not write over a file of the box that no merge has seen") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/.gitignore", "late.txt\n");
  write_file(u.work("fix") + "/late.txt", "the box's own\n");
  write_file(u.repo + "/late.txt", "late\n");
  git(u.repo, {"add", "-A"});
  git(u.repo, {"commit", "-qm", "parent moved"});
  CHECK(u.refusal({"box", "rebase", "fix"}) == "git.conflict");
  CHECK(read_file(u.work("fix") + "/late.txt") == "the box's own\n");
}

TEST_CASE("abort gives a box up, rm keeps unapplied work unless forced, and evidence stays") {
  User u;
  u.create("fix");
  write_file(u.work("fix") + "/new.txt", "box\n");
  CHECK(u.json({"box", "abort", "fix"})["before"].string() == "created");
  CHECK(u.json({"box", "abort", "fix"})["before"].string() == "aborted");
  CHECK(u.refusal({"box", "propose", "fix"}) == "box.state");
  CHECK(u.refusal({"box", "rm", "fix"}) == "box.unapplied-changes");
  CHECK(exists(u.work("fix") + "/new.txt"));
  Json r = u.json({"box", "rm", "fix", "--force"});
  CHECK_FALSE(exists(u.box("fix")));
  CHECK(read_file(r["evidence"].string() + "/log.jsonl").find("\"kind\":\"aborted\"") != std::string::npos);
  CHECK(git(u.repo, {"for-each-ref", "refs/heads/h5i", "refs/h5i/base"}) == "");
  CHECK(u.refusal({"box", "diff", "fix"}) == "box.not-found");
  // The name is free again, and the evidence of both stays apart.
  u.create("fix");
  Json second = u.json({"box", "rm", "fix"});
  CHECK(second["evidence"].string() != r["evidence"].string());
  u.create("done");
  write_file(u.work("done") + "/new.txt", "box\n");
  u.json({"box", "apply", "done", "--yes"});
  u.json({"box", "rm", "done"});
  CHECK(read_file(u.repo + "/new.txt") == "box\n");
}

TEST_CASE("what a killed create or rm left is cleared by the next one, and the name is free") {
  User u;
  for (int delay = 0; delay < 12; delay++) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      std::vector<std::string> env = u.environment();
      std::vector<char*> envp;
      for (std::string& e : env) envp.push_back(e.data());
      envp.push_back(nullptr);
      int null = open("/dev/null", O_RDWR);
      for (int fd : {0, 1, 2}) dup2(null, fd);
      if (chdir(u.repo.c_str()) != 0) _exit(1);
      std::string program = u.program.substr(0, u.program.rfind("/bin/")) + "/libexec/h5i/h5i-repo";
      execle(program.c_str(), program.c_str(), "box", "create", "--name", "fix", "--isolation", "workspace", nullptr, envp.data());
      _exit(1);
    }
    usleep(static_cast<useconds_t>(delay) * 15000);
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    if (!exists(u.box("fix") + "/manifest.json")) u.create("fix");
    Ran removed = u.run({"box", "rm", "fix"});
    INFO(removed.err);
    CHECK(removed.status == 0);
    CHECK(git(u.repo, {"for-each-ref", "refs/heads/h5i", "refs/h5i/base"}) == "");
    CHECK(run_program("find", {u.repo + "/.git/h5i/boxes", "-name", ".new*", "-o", "-name", ".gone*"}, u.home, u.environment()).out == "");
  }
  // A removal that died after its first step.
  u.create("fix");
  u.create("other");
  REQUIRE(rename(u.box("fix").c_str(), (u.repo + "/.git/h5i/boxes/human/.gone.fix.01m8n3nc2z2dq7v31gvx8q5acw").c_str()) == 0);
  u.json({"box", "diff", "other"});
  CHECK_FALSE(exists(u.repo + "/.git/h5i/boxes/human/.gone.fix.01m8n3nc2z2dq7v31gvx8q5acw"));
  CHECK(git(u.repo, {"for-each-ref", "refs/heads/h5i/box/human/fix"}) == "");
  u.create("fix");
}

TEST_CASE("rm removes what a hostile box leaves: unreadable, deep and linked") {
  User u;
  u.create("fix");
  make_directories(u.work("fix") + "/locked/in");
  write_file(u.work("fix") + "/locked/in/x", "x");
  chmod((u.work("fix") + "/locked/in").c_str(), 0);
  chmod((u.work("fix") + "/locked").c_str(), 0);
  write_file(u.home + "/outside/keep", "keep\n");
  REQUIRE(symlink((u.home + "/outside").c_str(), (u.work("fix") + "/out").c_str()) == 0);
  // Deeper than any path that a system call takes.
  REQUIRE(run_program("python3", {"-c", "import os\nos.chdir('" + u.work("fix") + "')\nfor i in range(3000):\n  os.mkdir('d'*100); os.chdir('d'*100)\n"}, u.home, u.environment()).status == 0);
  u.json({"box", "rm", "fix", "--force"});
  CHECK_FALSE(exists(u.box("fix")));
  CHECK(read_file(u.home + "/outside/keep") == "keep\n");
}
