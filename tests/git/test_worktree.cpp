#include "core/git/worktree.hpp"

#include <signal.h>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "tests/git/scratch.hpp"

using namespace h5i;
using namespace h5i::git;
using test::write_file;

namespace {
struct Tree2 {
  test::Scratch s;
  std::string repo = s.path + "/r";
  Oid old_commit, new_commit;
  std::vector<Change> changes;
  Tree before;
  // The next commit: a.txt changed, dir/b.txt gone, dir replaced by a file, link -> file, new/x added.
  Tree2() {
    test::make_repository(repo);
    Repository r = open();
    old_commit = *r.resolve_commit("HEAD", repo + "/.git");
    before = *r.read_tree(r.commit(old_commit)->tree);
    Tree after;
    after.push_back({"a.txt", kFile, *r.write_blob("changed\n")});
    after.push_back({"dir", kFile, *r.write_blob("now a file\n")});
    after.push_back({"link", kFile, *r.write_blob("now a file too\n")});
    after.push_back({"new/x", kExecutable, *r.write_blob("new\n")});
    after.push_back({"run.sh", kExecutable, find_entry(before, "run.sh")->oid});
    new_commit = *r.write_commit(*r.write_tree(after), {old_commit}, {}, "next\n", 1700000001);
    changes = changes_between(before, after);
  }
  Repository open() const {
    auto r = Repository::open(repo + "/.git");
    if (!r) FAIL(r.error().what);
    return std::move(*r);
  }
  WorkTree at() const { return {repo + "/.git", repo}; }
  Result<void> move() const {
    Repository r = open();
    return move_branch(r, at(), {"refs/heads/main", old_commit, new_commit, changes, "test"}, {});
  }
  std::vector<std::string> dirty() const {
    Repository r = open();
    auto index = read_user_index(repo + "/.git");
    REQUIRE(index);
    auto d = dirty_paths(r, at(), *index, before);
    if (!d) FAIL(d.error().what);
    return *d;
  }
  bool untouched() const {
    return test::git(repo, {"rev-parse", "HEAD"}) == old_commit.hex() && test::read_file(repo + "/a.txt") != "changed\n" && test::exists(repo + "/dir/b.txt") && !test::exists(repo + "/new") && no_litter();
  }
  bool no_litter() const {
    auto dir = os::open_directory(repo + "/.git");
    auto entries = os::list_directory(*dir);
    for (const auto& e : *entries)
      if (e.name.rfind("h5i-apply", 0) == 0 || e.name == "index.lock") return false;
    return !test::exists(repo + "/.git/h5i/apply.json");
  }
};
}  // namespace

TEST_CASE("branch, index and files move together and git calls the result clean") {
  Tree2 t;
  CHECK(t.dirty().empty());
  auto moved = t.move();
  if (!moved) FAIL(moved.error().what << " " << moved.error().evidence);
  CHECK(test::git(t.repo, {"rev-parse", "HEAD"}) == t.new_commit.hex());
  CHECK(test::git(t.repo, {"status", "--porcelain"}) == "");
  CHECK(test::read_file(t.repo + "/dir") == "now a file\n");
  CHECK(test::exists(t.repo + "/new/x"));
  CHECK(t.no_litter());
  CHECK(test::git(t.repo, {"reflog", "-1", "--format=%gs", "main"}) == "test");
}

TEST_CASE("changes of the user's own are seen: edited, staged, deleted, conflicted, typed over") {
  Tree2 t;
  write_file(t.repo + "/a.txt", "mine\n");
  CHECK(t.dirty() == std::vector<std::string>{"a.txt"});
  test::git(t.repo, {"checkout", "a.txt"});
  write_file(t.repo + "/staged", "x");
  test::git(t.repo, {"add", "staged"});
  CHECK(t.dirty() == std::vector<std::string>{"staged"});
  test::git(t.repo, {"rm", "-qf", "staged"});
  unlink((t.repo + "/run.sh").c_str());
  CHECK(t.dirty() == std::vector<std::string>{"run.sh"});
  test::git(t.repo, {"checkout", "run.sh"});
  chmod((t.repo + "/a.txt").c_str(), 0755);
  CHECK(t.dirty() == std::vector<std::string>{"a.txt"});
  chmod((t.repo + "/a.txt").c_str(), 0644);
  write_file(t.repo + "/untracked", "x");
  CHECK(t.dirty().empty());
}

TEST_CASE("refused and unchanged: something untracked is in the way") {
  {
    Tree2 t;
    write_file(t.repo + "/new/x", "mine\n");
    auto r = t.move();
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Errc::GIT_DIRTY);
    CHECK(test::read_file(t.repo + "/new/x") == "mine\n");
    CHECK(test::git(t.repo, {"rev-parse", "HEAD"}) == t.old_commit.hex());
  }
  {
    Tree2 t;
    write_file(t.repo + "/dir/mine", "mine\n");
    CHECK(t.move().error().code == Errc::GIT_DIRTY);
    CHECK(t.untouched());
  }
}

TEST_CASE("refused and unchanged: a parent directory is a link, the index is locked, the branch moved, a file changed") {
  {
    Tree2 t;
    test::make_directories(t.s.path + "/outside");
    REQUIRE(symlink((t.s.path + "/outside").c_str(), (t.repo + "/new").c_str()) == 0);
    auto r = t.move();
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Errc::GIT_DIRTY);  // the link itself is what is in the way
    CHECK_FALSE(test::exists(t.s.path + "/outside/x"));
  }
  {
    Tree2 t;
    write_file(t.repo + "/.git/index.lock", "");
    CHECK(t.move().error().code == Errc::BUSY);
    CHECK(test::exists(t.repo + "/.git/index.lock"));
  }
  {
    Tree2 t;
    test::git(t.repo, {"commit", "-q", "--allow-empty", "-m", "meanwhile"});
    CHECK(t.move().error().code == Errc::GIT_REF_CHANGED);
    CHECK(t.no_litter());
    CHECK(test::git(t.repo, {"status", "--porcelain"}) == "");
  }
  {
    Tree2 t;
    write_file(t.repo + "/a.txt", "mine\n");
    CHECK(t.move().error().code == Errc::GIT_DIRTY);
    CHECK(t.no_litter());
    CHECK(test::read_file(t.repo + "/a.txt") == "mine\n");
  }
}

TEST_CASE("after a kill at any moment the next look makes all old or all new") {
  int old_seen = 0, new_seen = 0;
  for (int delay = 0; delay < 40; delay++) {
    Tree2 t;
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      (void)t.move().ok();
      _exit(0);
    }
    timespec pause{0, delay * 400'000};
    nanosleep(&pause, nullptr);
    kill(pid, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    Repository r = t.open();
    auto done = finish_interrupted(r);
    if (!done) FAIL(done.error().what << " " << done.error().evidence);
    // A lock of git's own that nobody holds any more: what a user would remove.
    if (!test::exists(t.repo + "/.git/h5i/apply.json")) unlink((t.repo + "/.git/index.lock").c_str());
    std::string head = test::git(t.repo, {"rev-parse", "HEAD"});
    CHECK(test::git(t.repo, {"status", "--porcelain", "-uno"}) == "");
    if (head == t.old_commit.hex()) old_seen++;
    if (head == t.new_commit.hex()) new_seen++;
  }
  CHECK(old_seen + new_seen == 40);
}

TEST_CASE("what a user changed after a death is not overwritten by finishing") {
  Tree2 t;
  REQUIRE(t.move());
  // As if the death had come before a.txt was put in place, and the user had edited it since.
  Repository r = t.open();
  std::string staging = t.repo + "/.git/h5i-apply.01jd0000000000000000000000";
  test::make_directories(staging);
  write_file(staging + "/0", "changed\n");
  write_file(t.repo + "/a.txt", "the user's own\n");
  json::Array ops;
  ops.push_back(json::Object{{"path", "YS50eHQ="}, {"remove", false}, {"staged", "0"}, {"old_mode", 0100644}, {"old_oid", find_entry(t.before, "a.txt")->oid.hex()}});
  auto b64 = [](const std::string& v) { return base64(v); };
  write_file(t.repo + "/.git/h5i/apply.json",
             json::canonical(json::Object{{"schema", "h5i.apply/1"}, {"work_dir", b64(t.repo)}, {"git_dir", b64(t.repo + "/.git")}, {"staging", b64(staging)}, {"branch", b64("refs/heads/main")},
                                          {"old", t.old_commit.hex()}, {"new", t.new_commit.hex()}, {"ops", std::move(ops)}}));
  REQUIRE(finish_interrupted(r));
  CHECK(test::read_file(t.repo + "/a.txt") == "the user's own\n");
  CHECK(t.no_litter());
}

namespace {
// What a death left, as move_branch() writes it: the branch has moved, `a.txt` is not yet in place.
struct Interrupted : Tree2 {
  std::string work_dir, git_dir, staging, branch = "refs/heads/main", path = "a.txt", staged = "0", content = "changed\n";
  bool remove = false;
  int64_t old_mode = 0100644;
  explicit Interrupted(bool linked = false) {
    work_dir = linked ? s.path + "/linked" : repo;
    git_dir = linked ? repo + "/.git/worktrees/linked" : repo + "/.git";
    if (linked) {
      test::git(repo, {"checkout", "-q", "--detach"});
      test::git(repo, {"worktree", "add", "-q", work_dir, "main"});
    }
    staging = git_dir + "/h5i-apply.01jd0000000000000000000000";
    test::git(repo, {"update-ref", "refs/heads/main", new_commit.hex()});
  }
  Result<void> finish() {
    if (!staging.empty() && !test::exists(staging)) {
      test::make_directories(staging);
      chmod(staging.c_str(), 0700);
    }
    if (!staged.empty()) write_file(staging + "/" + staged, content);
    json::Array ops;
    ops.push_back(json::Object{{"path", base64(path)}, {"remove", remove}, {"staged", staged}, {"old_mode", old_mode}, {"old_oid", find_entry(before, "a.txt")->oid.hex()}});
    write_file(repo + "/.git/h5i/apply.json",
               json::canonical(json::Object{{"schema", "h5i.apply/1"}, {"work_dir", base64(work_dir)}, {"git_dir", base64(git_dir)}, {"staging", base64(staging)},
                                            {"branch", base64(branch)}, {"old", old_commit.hex()}, {"new", new_commit.hex()}, {"ops", std::move(ops)}}));
    Repository r = open();
    return finish_interrupted(r);
  }
};
}  // namespace

TEST_CASE("a record of an interrupted apply is followed only where h5i itself could have written it") {
  for (bool linked : {false, true}) {  // control
    INFO("linked " << linked);
    Interrupted t(linked);
    auto done = t.finish();
    if (!done) FAIL(done.error().what << " " << done.error().evidence);
    CHECK(test::read_file(t.work_dir + "/a.txt") == "changed\n");
    CHECK(t.no_litter());
  }
  struct Case {
    const char* name;
    const char* why;
    void (*change)(Interrupted&);
  };
  const Case cases[] = {
      {"another directory as work tree", "work_dir is not", [](Interrupted& t) { t.work_dir = t.s.path + "/home"; t.path = ".bash_login"; t.old_mode = 0; }},
      {"a directory whose .git leads elsewhere", "work_dir is not", [](Interrupted& t) {
         t.work_dir = t.s.path + "/home";
         write_file(t.work_dir + "/.git", "gitdir: " + t.s.path + "/home/elsewhere\n");
         test::make_directories(t.s.path + "/home/elsewhere");
       }},
      {"a folder of the work tree", "work_dir is not", [](Interrupted& t) { t.work_dir = t.repo + "/dir"; t.path = "b.txt"; }},
      {"another repository's git directory", "git_dir is not", [](Interrupted& t) {
         test::make_repository(t.s.path + "/home");
         t.git_dir = t.s.path + "/home/.git";
         t.work_dir = t.s.path + "/home";
         t.staging = t.git_dir + "/h5i-apply.01jd0000000000000000000000";
       }},
      {"a git directory beside the linked ones", "git_dir is not", [](Interrupted& t) {
         t.work_dir = t.s.path + "/home";
         t.git_dir = t.repo + "/.git/other";
         test::make_directories(t.git_dir);
         write_file(t.work_dir + "/.git", "gitdir: " + t.git_dir + "\n");
         t.staging = t.git_dir + "/h5i-apply.01jd0000000000000000000000";
       }},
      {"a staging folder of another name", "no folder that an apply makes", [](Interrupted& t) { t.staging = t.repo + "/.git/stg"; }},
      {"a staging folder below another", "no folder that an apply makes", [](Interrupted& t) { t.staging = t.repo + "/.git/h5i-apply.01jd000000000/000000000000"; }},
      {"a staging folder outside", "no folder that an apply makes", [](Interrupted& t) { t.staging = t.s.path + "/home/h5i-apply.01jd0000000000000000000000"; }},
      {"a staging folder that others may fill", "not this user's own", [](Interrupted& t) {
         test::make_directories(t.staging);
         chmod(t.staging.c_str(), 0777);
       }},
      {"a path upwards", "an operation names", [](Interrupted& t) { t.path = "../home/x"; t.old_mode = 0; }},
      {"an absolute path", "an operation names", [](Interrupted& t) { t.path = t.s.path + "/home/x"; t.old_mode = 0; }},
      {"a path into .git", "an operation names", [](Interrupted& t) { t.path = ".git/hooks/post-checkout"; t.old_mode = 0; }},
      {"a path into .GIT below", "an operation names", [](Interrupted& t) { t.path = "dir/.GIT/config"; t.old_mode = 0; }},
      {"an empty path", "an operation names", [](Interrupted& t) { t.path = ""; }},
      {"a new file of another name", "a new file's name", [](Interrupted& t) { t.staged = "index"; }},
      {"a mode of no file", "a mode that no file has", [](Interrupted& t) { t.old_mode = 040000; }},
      {"a branch upwards", "branch is none", [](Interrupted& t) { t.branch = "refs/heads/../../config"; }},
      {"no branch", "branch is none", [](Interrupted& t) { t.branch = "HEAD"; }},
      {"content that is not the commit's", "is not what the commit", [](Interrupted& t) { t.content = "forged\n"; }},
      {"a new file that the commit has not", "is not what the commit", [](Interrupted& t) { t.path = "forged"; t.old_mode = 0; }},
      {"a removal of what the commit has", "is not what the commit", [](Interrupted& t) { t.staged = ""; t.remove = true; }},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Interrupted t;
    std::string home = t.s.path + "/home", index = test::read_file(t.repo + "/.git/index"), config = test::read_file(t.repo + "/.git/config");
    test::make_directories(home);
    c.change(t);
    auto done = t.finish();
    REQUIRE_FALSE(done);
    CHECK(done.error().code == Errc::CORRUPT);
    INFO(done.error().evidence);
    CHECK(done.error().evidence.find(c.why) != std::string::npos);
    CHECK_FALSE(test::exists(home + "/.bash_login"));
    CHECK_FALSE(test::exists(home + "/x"));
    CHECK(test::read_file(home + "/a.txt") != t.content);
    CHECK_FALSE(test::exists(t.repo + "/forged"));
    CHECK_FALSE(test::exists(t.repo + "/.git/hooks/post-checkout"));
    CHECK(test::read_file(t.repo + "/a.txt") != t.content);
    CHECK(test::exists(t.repo + "/a.txt"));
    CHECK(test::exists(t.repo + "/dir/b.txt"));
    CHECK(test::read_file(t.repo + "/.git/index") == index);
    CHECK(test::read_file(t.repo + "/.git/config") == config);
    CHECK(test::exists(t.repo + "/.git/h5i/apply.json"));
  }
}

TEST_CASE("one at a time") {
  Tree2 t;
  auto first = ApplyLock::acquire(t.repo + "/.git");
  REQUIRE(first);
  CHECK(ApplyLock::acquire(t.repo + "/.git").error().code == Errc::BUSY);
}
