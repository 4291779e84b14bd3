// The walker on real directories: one test for each kind that is refused, one for each that round-trips.
#include "core/gate/scan.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "core/base/ids.hpp"
#include "core/git/checkout.hpp"
#include "tests/git/scratch.hpp"

using namespace h5i;
using namespace h5i::gate;
using test::exists;
using test::write_file;

namespace {

// A repository, and its first commit checked out raw into a box's work tree.
struct Fixture {
  test::Scratch scratch;
  std::string source = scratch.path + "/repo", work_path = scratch.path + "/work";
  git::Tree base;
  git::States states;
  UniqueFd work;

  explicit Fixture(const std::function<void(const std::string&)>& prepare = {}) {
    test::make_repository(source);
    if (prepare) {
      prepare(source);
      test::git(source, {"add", "-A"});
      test::git(source, {"commit", "-qm", "prepared", "--allow-empty"});
    }
    git::Repository r = repo();
    auto commit = r.resolve_commit("HEAD", source + "/.git");
    REQUIRE(commit);
    auto info = r.commit(*commit);
    REQUIRE(info);
    auto tree = r.read_tree(info->tree);
    REQUIRE(tree);
    base = *tree;
    mkdir(work_path.c_str(), 0755);
    mkdir((work_path + "/.git").c_str(), 0755);
    auto fd = os::open_directory(work_path);
    REQUIRE(fd);
    work = std::move(*fd);
    auto made = git::checkout(r, base, work, (realtime_ns() / 1000000000 - 2) * 1000000000);
    if (!made) FAIL(made.error().what << ": " << made.error().evidence);
    states = *made;
  }
  git::Repository repo() const {
    auto r = git::Repository::open(source + "/.git");
    if (!r) FAIL(r.error().what << ": " << r.error().evidence);
    return std::move(*r);
  }
  std::string at(const std::string& p) const { return work_path + "/" + p; }
  Scanned scan_with(const std::function<void(ScanOptions&)>& tune = {}) const {
    git::Repository r = repo();
    ScanOptions o = box_scan(r, base, states);
    if (tune) tune(o);
    auto s = scan(work, o);
    if (!s) FAIL(s.error().what << ": " << s.error().evidence);
    return std::move(*s);
  }
  // The one violation that is expected, by rule and path.
  void refuses(Errc rule, const std::string& path, const std::function<void(ScanOptions&)>& tune = {}) const {
    Scanned s = scan_with(tune);
    bool found = false;
    for (const Violation& v : s.violations) {
      INFO(errc_id(v.rule) << " " << v.path << " " << v.detail);
      found = found || (v.rule == rule && v.path == path);
    }
    INFO(errc_id(rule) << " " << path << ", " << s.violations.size() << " violations, first: " << (s.violations.empty() ? "" : std::string(errc_id(s.violations[0].rule)) + " " + s.violations[0].path + " " + s.violations[0].detail));
    CHECK(found);
  }
  // The directories that are refused as repositories; nothing else may be.
  std::set<std::string> nested() const {
    std::set<std::string> out;
    for (const Violation& v : scan_with().violations) {
      INFO(errc_id(v.rule) << " " << v.path << " " << v.detail);
      CHECK(v.rule == Errc::GATE_NESTED_REPO);
      out.insert(v.path);
    }
    return out;
  }
  std::vector<git::Change> changes(const Scanned& s) const { return git::changes_between(base, s.tree); }
};

const git::Change* change_of(const std::vector<git::Change>& all, const std::string& path) {
  for (const git::Change& c : all)
    if (c.path == path) return &c;
  return nullptr;
}

}  // namespace

TEST_CASE("an untouched tree is the base, and nothing of it is read") {
  Fixture f;
  Scanned s = f.scan_with();
  CHECK(s.violations.empty());
  CHECK(s.tree == f.base);
  CHECK(s.files_read == 0);
  git::Repository r = f.repo();
  auto id = r.write_tree(s.tree);
  REQUIRE(id);
  CHECK(id->hex() == test::git(f.source, {"rev-parse", "HEAD^{tree}"}));
}

// ---- what round-trips

TEST_CASE("added, changed, renamed, deleted, empty, executable, linked and non-ASCII paths make the tree that git makes") {
  Fixture f;
  write_file(f.at("new.txt"), "new\n");
  write_file(f.at("a.txt"), "changed\n");
  REQUIRE(rename(f.at("dir/b.txt").c_str(), f.at("dir/c.txt").c_str()) == 0);
  REQUIRE(unlink(f.at("run.sh").c_str()) == 0);
  write_file(f.at("empty"), "");
  write_file(f.at("tool"), "#!/bin/sh\n", 0755);
  REQUIRE(symlink("dir/c.txt", f.at("inside").c_str()) == 0);
  write_file(f.at("\xC3\xBC/\xE4\xB8\xAD.txt"), "x");
  write_file(f.at("deep/1/2/3/4/x"), "x");
  write_file(f.at("crlf.txt"), "a\r\nb\r\n");
  Scanned s = f.scan_with();
  REQUIRE(s.violations.empty());
  auto changes = f.changes(s);
  CHECK(change_of(changes, "new.txt")->kind == git::ChangeKind::ADDED);
  CHECK(change_of(changes, "a.txt")->kind == git::ChangeKind::MODIFIED);
  CHECK(change_of(changes, "dir/b.txt")->kind == git::ChangeKind::DELETED);
  CHECK(change_of(changes, "run.sh")->kind == git::ChangeKind::DELETED);
  CHECK(change_of(changes, "tool")->new_mode == git::kExecutable);
  CHECK(change_of(changes, "inside")->new_mode == git::kLink);
  CHECK(change_of(changes, "empty") != nullptr);
  git::Repository r = f.repo();
  REQUIRE(store(f.work, s, f.base, r));
  auto id = r.write_tree(s.tree);
  REQUIRE(id);
  // The git program, told to convert nothing, makes the same tree of the same directory.
  std::string other = f.scratch.path + "/other.git";
  test::git(f.scratch.path, {"init", "-q", "--bare", other});
  test::git(f.scratch.path, {"-c", "core.autocrlf=false", "--git-dir=" + other, "--work-tree=" + f.work_path, "add", "-A"});
  CHECK(id->hex() == test::git(f.scratch.path, {"--git-dir=" + other, "write-tree"}));
}

TEST_CASE("a change of the executable bit alone is a change of mode") {
  Fixture f;
  REQUIRE(chmod(f.at("a.txt").c_str(), 0755) == 0);
  Scanned s = f.scan_with();
  auto changes = f.changes(s);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].kind == git::ChangeKind::MODE);
}

TEST_CASE("a change that keeps size and modification time is seen") {
  Fixture f;
  struct stat st{};
  REQUIRE(stat(f.at("a.txt").c_str(), &st) == 0);
  int fd = open(f.at("a.txt").c_str(), O_WRONLY);
  REQUIRE(pwrite(fd, "ONE", 3, 0) == 3);
  timespec times[2] = {st.st_atim, st.st_mtim};
  REQUIRE(futimens(fd, times) == 0);
  close(fd);
  CHECK(change_of(f.changes(f.scan_with()), "a.txt") != nullptr);
}

TEST_CASE("an unchanged submodule round-trips; changed, moved, filled and new ones are refused") {
  auto with_submodule = [](const std::string& repo) {
    test::git(repo, {"update-index", "--add", "--cacheinfo", "160000,1234567890123456789012345678901234567890,sub"});
    test::git(repo, {"commit", "-qm", "submodule"});
    mkdir((repo + "/sub").c_str(), 0755);  // as git leaves it when it is not initialised; without it `add -A` drops the entry
  };
  {
    Fixture f(with_submodule);
    Scanned s = f.scan_with();
    CHECK(s.violations.empty());
    CHECK(s.tree == f.base);
    CHECK(git::find_entry(s.tree, "sub")->mode == git::kGitlink);
  }
  {
    Fixture f(with_submodule);
    rmdir(f.at("sub").c_str());
    f.refuses(Errc::GATE_GITLINK, "sub");
  }
  {
    Fixture f(with_submodule);
    rmdir(f.at("sub").c_str());
    write_file(f.at("sub"), "a file");
    f.refuses(Errc::GATE_GITLINK, "sub");
  }
  {
    Fixture f(with_submodule);
    write_file(f.at("sub/x"), "content");
    f.refuses(Errc::GATE_GITLINK, "sub");
  }
  {
    Fixture f(with_submodule);
    REQUIRE(rename(f.at("sub").c_str(), f.at("moved").c_str()) == 0);
    f.refuses(Errc::GATE_GITLINK, "sub");
  }
}

TEST_CASE("hard links among files of the tree pass, also to an ignored one") {
  Fixture f([](const std::string& repo) { write_file(repo + "/.gitignore", "out/\n"); });
  REQUIRE(link(f.at("a.txt").c_str(), f.at("second.txt").c_str()) == 0);
  CHECK(f.scan_with().violations.empty());
  mkdir(f.at("out").c_str(), 0755);
  REQUIRE(link(f.at("a.txt").c_str(), f.at("out/third").c_str()) == 0);
  CHECK(f.scan_with().violations.empty());
}

TEST_CASE("20,000 changed files pass") {
  Fixture f;
  for (int i = 0; i < 20000; i++) {
    std::string dir = f.at("many/" + std::to_string(i / 500));
    if (i % 500 == 0) test::make_directories(dir);
    int fd = open((dir + "/" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0644);
    std::string text = "file " + std::to_string(i) + "\n";
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(fd);
  }
  Scanned s = f.scan_with();
  CHECK(s.violations.empty());
  CHECK(f.changes(s).size() == 20000);
  git::Repository r = f.repo();
  REQUIRE(store(f.work, s, f.base, r));
  auto id = r.write_tree(s.tree);
  REQUIRE(id);
  CHECK(test::git(f.source, {"ls-tree", "-r", "--name-only", id->hex(), "many/39/"}).find("many/39/19999") != std::string::npos);
}

TEST_CASE("ignored new files stay behind, an ignore rule hides no change of a tracked one") {
  Fixture f;
  write_file(f.at(".gitignore"), "*\n");
  write_file(f.at("a.txt"), "changed\n");
  write_file(f.at("dir/b.txt"), "changed\n");
  write_file(f.at("hidden.txt"), "x");
  Scanned s = f.scan_with();
  auto changes = f.changes(s);
  CHECK(change_of(changes, "a.txt") != nullptr);
  CHECK(change_of(changes, "dir/b.txt") != nullptr);
  CHECK(change_of(changes, "hidden.txt") == nullptr);
  CHECK(s.ignored_count == 2);  // the rule file itself and hidden.txt
}

TEST_CASE("private paths and untouched placeholders are hidden; a filled placeholder is a change") {
  Fixture f;
  write_file(f.at("node_modules/x/.git/HEAD"), "x");
  write_file(f.at("secret.env"), "");
  write_file(f.at("other.env"), "");
  auto tune = [](ScanOptions& o) {
    o.private_paths = {"node_modules"};
    o.placeholders = {"secret.env", "other.env"};
  };
  Scanned s = f.scan_with(tune);
  CHECK(s.violations.empty());
  CHECK(f.changes(s).empty());
  CHECK(s.hidden.size() == 3);
  write_file(f.at("other.env"), "leak");
  CHECK(f.changes(f.scan_with(tune)).size() == 1);
}

TEST_CASE("what the base has below a private path stays as it was") {
  Fixture f;
  write_file(f.at("dir/b.txt"), "scribble");
  Scanned s = f.scan_with([](ScanOptions& o) { o.private_paths = {"dir"}; });
  CHECK(s.tree == f.base);
}

// ---- what is refused

TEST_CASE("refused: .git at the top that is not the empty directory of h5i") {
  {
    Fixture f;
    write_file(f.at(".git/config"), "[core]\n\tfsmonitor = touch /tmp/marker\n");
    f.refuses(Errc::GIT_REDIRECTED, ".git");
  }
  {
    Fixture f;
    rmdir(f.at(".git").c_str());
    write_file(f.at(".git"), "gitdir: /home/u/other/.git\n");
    f.refuses(Errc::GIT_REDIRECTED, ".git");
  }
  {
    Fixture f;
    rmdir(f.at(".git").c_str());
    REQUIRE(symlink("/tmp", f.at(".git").c_str()) == 0);
    f.refuses(Errc::GIT_REDIRECTED, ".git");
  }
  {
    Fixture f;
    rmdir(f.at(".git").c_str());
    f.refuses(Errc::GIT_REDIRECTED, ".git");
  }
}

TEST_CASE("refused: .git below the top, in disguise, as file and as directory") {
  Fixture f;
  write_file(f.at("sub/.git/HEAD"), "ref: refs/heads/main\n");
  f.refuses(Errc::GATE_NESTED_REPO, "sub");
  write_file(f.at("ptr/.git"), "gitdir: ../x\n");
  f.refuses(Errc::GATE_NESTED_REPO, "ptr");
  write_file(f.at("d1/.GIT/config"), "x");
  f.refuses(Errc::GATE_DOTGIT, "d1/.GIT");
  write_file(f.at("git~1"), "x");
  f.refuses(Errc::GATE_DOTGIT, "git~1");
  write_file(f.at("d2/.git::$INDEX_ALLOCATION"), "x");
  f.refuses(Errc::GATE_DOTGIT, "d2/.git::$INDEX_ALLOCATION");
  write_file(f.at("d3/.g\xE2\x80\x8Cit"), "x");
  f.refuses(Errc::GATE_DOTGIT, "d3/.g\xE2\x80\x8Cit");
  write_file(f.at("x\\.git"), "x");
  f.refuses(Errc::GATE_DOTGIT, "x\\.git");
  write_file(f.at("d4/.git."), "x");
  f.refuses(Errc::GATE_DOTGIT, "d4/.git.");
}

TEST_CASE("refused: a nested repository made by git itself, bare ones too") {
  Fixture f;
  test::git(f.work_path, {"init", "-q", "a/b/c/d/e"});
  f.refuses(Errc::GATE_NESTED_REPO, "a/b/c/d/e");
  test::git(f.work_path, {"init", "-q", "--bare", "bare"});
  f.refuses(Errc::GATE_NESTED_REPO, "bare");
}

namespace {
// A directory that git takes for a repository although no `.git` is in it; `common` holds what a work tree's own does not.
void write_repository(const std::string& at, const std::string& common = "") {
  const std::string& rest = common.empty() ? at : common;
  write_file(at + "/HEAD", "ref: refs/heads/main\n");
  write_file(rest + "/objects/k", "");
  write_file(rest + "/refs/heads/.keep", "");
  write_file(rest + "/config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[alias]\n\tst = !touch ran\n");
}
bool git_takes_it(const std::string& dir) { return test::run_program("git", {"rev-parse", "--git-dir"}, dir, test::git_environment(dir)).status == 0; }
}  // namespace

TEST_CASE("refused: what git takes for a repository without .git, with its objects and configuration in it or elsewhere") {
  {
    Fixture f;
    write_repository(f.at("docs/g"), f.at("common"));
    write_file(f.at("docs/g/commondir"), "../../common\n");
    rmdir(f.at(".git").c_str());
    CHECK(git_takes_it(f.at("docs/g")));  // the danger is real
    mkdir(f.at(".git").c_str(), 0755);
    f.refuses(Errc::GATE_NESTED_REPO, "docs/g");
  }
  {
    Fixture f;
    write_repository(f.at("bare"));
    f.refuses(Errc::GATE_NESTED_REPO, "bare");
  }
  Fixture f;
  std::set<std::string> bad;
  for (const char* beside : {"commondir", "objects/x", "refs/x", "config", "gitdir", "objects", "CONFIG", "Refs/x", "common~1", "con\xEF\xAC\x81g", "object\xC5\xBF/x", "config.", "refs ", "config:stream"}) {
    std::string d = "d" + std::to_string(bad.size()), alone = "alone-" + d;
    write_file(f.at(d + "/HEAD"), "ref: refs/heads/main\n");
    write_file(f.at(d + "/" + beside), "x");
    write_file(f.at(alone + "/" + beside), "x");  // Control: without HEAD it is a name like any other.
    bad.insert(d);
  }
  for (const char* head : {"head", "Head", "HEAD.", "HEAD ", "HEAD::$DATA"}) {
    std::string d = "d" + std::to_string(bad.size());
    write_file(f.at(d + "/" + head), "x");
    write_file(f.at(d + "/config"), "x");
    bad.insert(d);
  }
  write_file(f.at("alone-head/HEAD"), "ref: refs/heads/main\n");
  CHECK(f.nested() == bad);
}

TEST_CASE("refused: parts of a repository in directories that some file system takes for one, and as links") {
  Fixture f;
  std::set<std::string> bad;
  auto made = [&](const char* head, const char* beside, const char* where) {
    std::string d = "p" + std::to_string(bad.size()) + "/";
    write_file(f.at(d + head), "ref: refs/heads/main\n");
    write_file(f.at(d + beside), "x");
    bad.insert(d + where);
  };
  made("docs/G/HEAD", "docs/g/commondir", "docs/G");
  made("v./HEAD", "v/config", "v.");
  made("\xC3\x89/HEAD", "e\xCC\x81/config", "\xC3\x89");
  made("w\\HEAD", "w/config", "w");
  made("w\\HEAD", "w\\config", "w");
  for (const char* part : {"HEAD", "objects", "refs", "config"}) {
    std::string v = std::string("v-") + part;
    write_file(f.at(v + "/HEAD"), "ref: refs/heads/main\n");
    if (part == std::string("HEAD")) write_file(f.at(v + "/objects/k"), "");
    else write_file(f.at("elsewhere-" + v + "/k"), "");
    if (part == std::string("HEAD")) REQUIRE(rename(f.at(v + "/HEAD").c_str(), f.at("elsewhere-" + v).c_str()) == 0);
    REQUIRE(symlink(("../elsewhere-" + v).c_str(), f.at(v + "/" + part).c_str()) == 0);
    bad.insert(v);
  }
  // git reads the text of such a link, it need not lead anywhere.
  write_file(f.at("dangling/config"), "x");
  REQUIRE(symlink("refs/heads/main", f.at("dangling/HEAD").c_str()) == 0);
  bad.insert("dangling");
  // Control: the names in different directories, a directory called HEAD.
  write_file(f.at("a/HEAD"), "x");
  write_file(f.at("b/config"), "x");
  write_file(f.at("c/HEAD/x"), "x");
  write_file(f.at("c/config"), "x");
  write_file(f.at("d/HEADER"), "x");
  write_file(f.at("d/config"), "x");
  write_file(f.at("e/HEAD"), "x");
  write_file(f.at("e/x/config"), "x");
  CHECK(f.nested() == bad);
}

TEST_CASE("a repository that the base holds passes while its parts and what it would run are the same") {
  struct Row {
    const char* directory;
    std::function<void(const std::string&)> make;
  };
  auto remove_below = [](const std::string& at, const std::string& path) {
    auto dir = os::open_directory(at);
    REQUIRE(dir);
    REQUIRE(os::remove_tree(*dir, path));
  };
  const std::vector<Row> rows = {
      {"fx", [](const std::string& w) { write_file(w + "/fx/config", "[core]\n\tpager = touch ran\n"); }},
      {"fx", [](const std::string& w) { write_file(w + "/fx/HEAD", "ref: refs/heads/other\n"); }},
      {"fx", [](const std::string& w) { unlink((w + "/fx/config").c_str()); }},
      {"fx", [](const std::string& w) { write_file(w + "/fx/commondir", "../w/common\n"); }},
      {"fx", [](const std::string& w) { write_file(w + "/fx/config.worktree", "x"); }},
      {"fx", [](const std::string& w) { write_file(w + "/fx/hooks/pre-push", "x"); }},
      {"fx", [](const std::string& w) { write_file(w + "/fx/hooks/post-checkout", "x"); }},
      {"fx", [&](const std::string& w) { remove_below(w, "fx/objects"); REQUIRE(symlink("../w", (w + "/fx/objects").c_str()) == 0); }},
      {"w/g", [](const std::string& w) { write_file(w + "/w/common/config", "[core]\n\tpager = touch ran\n"); }},
      {"w/g", [](const std::string& w) { write_file(w + "/w/common/hooks/pre-push", "x"); }},
      {"l", [](const std::string& w) { write_file(w + "/real-config", "[core]\n\tpager = touch ran\n"); }},
      {"lone", [](const std::string& w) { write_file(w + "/lone/commondir", "../w/common\n"); }},
      {"lone", [](const std::string& w) { write_file(w + "/lone/objects/k", ""); write_file(w + "/lone/refs/k", ""); }},
      // Controls: what a test of such a repository would change.
      {nullptr, [](const std::string& w) { write_file(w + "/fx/refs/heads/new", "x"); write_file(w + "/fx/objects/k", "changed"); write_file(w + "/fx/description", "x"); }},
      {nullptr, [](const std::string& w) { write_file(w + "/w/g/index", "x"); write_file(w + "/w/common/objects/k", "changed"); }},
      {nullptr, [](const std::string& w) { write_file(w + "/lone/HEAD", "ref: refs/heads/main\n"); }},
  };
  Fixture f([&](const std::string& repo) {
    for (size_t i = 0; i < rows.size(); i++) {
      std::string at = repo + "/r" + std::to_string(i);
      write_repository(at + "/fx");
      write_file(at + "/fx/hooks/post-checkout", "#!/bin/sh\n");
      write_repository(at + "/w/g", at + "/w/common");
      write_file(at + "/w/g/commondir", "../common\n");
      write_repository(at + "/l");
      REQUIRE(rename((at + "/l/config").c_str(), (at + "/real-config").c_str()) == 0);
      REQUIRE(symlink("../real-config", (at + "/l/config").c_str()) == 0);
      write_file(at + "/lone/HEAD", "no reference\n");
    }
  });
  CHECK(f.scan_with().violations.empty());
  std::set<std::string> bad;
  for (size_t i = 0; i < rows.size(); i++) {
    std::string at = "r" + std::to_string(i);
    rows[i].make(f.at(at));
    if (rows[i].directory) bad.insert(at + "/" + rows[i].directory);
  }
  CHECK(f.nested() == bad);
}

TEST_CASE("two trees that pass alone and make a repository together are refused together") {
  Fixture f;
  git::Repository r = f.repo();
  git::Oid blob = *r.write_blob("x");
  git::Tree before = f.base, merged;
  before.push_back({"z/HEAD", git::kFile, blob});
  merged = before;
  CHECK(nested_repositories(r, merged, before).empty());
  merged.insert(merged.end() - 1, {"z/COMMONDIR", git::kFile, blob});
  auto bad = nested_repositories(r, merged, before);
  REQUIRE(bad.size() == 1);
  CHECK(bad[0].path == "z");
  CHECK(nested_repositories(r, merged, merged).empty());  // Control: the user's side has it already.
}

TEST_CASE("refused: a link that leaves, absolute, by steps, and through another link") {
  Fixture f;
  REQUIRE(symlink("/etc/passwd", f.at("abs").c_str()) == 0);
  f.refuses(Errc::GATE_SYMLINK_OUT, "abs");
  REQUIRE(symlink("../../x", f.at("dir/up").c_str()) == 0);
  f.refuses(Errc::GATE_SYMLINK_OUT, "dir/up");
  test::make_directories(f.at("x/y"));
  test::make_directories(f.at("e"));
  REQUIRE(symlink("../../e", f.at("x/y/d").c_str()) == 0);
  REQUIRE(symlink("x/y/d/../../o", f.at("twice").c_str()) == 0);
  f.refuses(Errc::GATE_SYMLINK_OUT, "twice");
  REQUIRE(symlink(".git/hooks", f.at("hooks").c_str()) == 0);
  f.refuses(Errc::GATE_DOTGIT, "hooks");
  Scanned kept = f.scan_with([](ScanOptions& o) { o.keep_links = true; });
  CHECK(kept.violations.size() == 1);  // the one into .git is never kept
  CHECK(change_of(f.changes(kept), "abs")->new_mode == git::kLink);
}

TEST_CASE("a link that left already in the base passes while it is the same, and not when another link turns it") {
  Fixture f([](const std::string& repo) {
    REQUIRE(symlink("/usr/share/x", (repo + "/old").c_str()) == 0);
    test::make_directories(repo + "/p/q/r");
    write_file(repo + "/p/q/r/keep", "");
    REQUIRE(symlink("p/q/r/../../../a.txt", (repo + "/through").c_str()) == 0);
  });
  CHECK(f.scan_with().violations.empty());
  unlink(f.at("p/q/r/keep").c_str());
  rmdir(f.at("p/q/r").c_str());
  REQUIRE(symlink("..", f.at("p/q/r").c_str()) == 0);
  f.refuses(Errc::GATE_SYMLINK_OUT, "through");
}

TEST_CASE("refused: fifo, socket, device") {
  Fixture f;
  REQUIRE(mkfifo(f.at("fifo").c_str(), 0644) == 0);
  f.refuses(Errc::GATE_SPECIAL, "fifo");
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un addr{};
  addr.sun_family = AF_UNIX;
  std::string path = f.at("sock");
  REQUIRE(path.size() < sizeof addr.sun_path);
  strcpy(addr.sun_path, path.c_str());
  REQUIRE(bind(s, reinterpret_cast<sockaddr*>(&addr), sizeof addr) == 0);
  close(s);
  f.refuses(Errc::GATE_SPECIAL, "sock");
  if (geteuid() == 0 && mknod(f.at("null").c_str(), S_IFCHR | 0600, 0x103) == 0) f.refuses(Errc::GATE_SPECIAL, "null");
}

TEST_CASE("refused: a hard link whose other name is outside") {
  Fixture f;
  write_file(f.scratch.path + "/outside-secret", "secret");
  REQUIRE(link((f.scratch.path + "/outside-secret").c_str(), f.at("alias").c_str()) == 0);
  f.refuses(Errc::GATE_HARDLINK, "alias");
  // Control: once the outside name is gone it is an ordinary file.
  unlink((f.scratch.path + "/outside-secret").c_str());
  CHECK(f.scan_with().violations.empty());
}

TEST_CASE("refused: set-user-id and set-group-id files") {
  Fixture f;
  write_file(f.at("suid"), "x");
  REQUIRE(chmod(f.at("suid").c_str(), 04755) == 0);
  f.refuses(Errc::GATE_SETID, "suid");
  write_file(f.at("sgid"), "x");
  REQUIRE(chmod(f.at("sgid").c_str(), 02755) == 0);
  f.refuses(Errc::GATE_SETID, "sgid");
}

TEST_CASE("refused: names with control characters and names that are no UTF-8 unless the base had them") {
  Fixture f([](const std::string& repo) { write_file(repo + "/caf\xE9", "latin"); });
  CHECK(f.scan_with().violations.empty());
  write_file(f.at("caf\xE9"), "changed");
  CHECK(f.scan_with().violations.empty());
  write_file(f.at("n\xE9w"), "x");
  f.refuses(Errc::GATE_ENCODING, "n\xE9w");
  write_file(f.at("new\nline"), "x");
  f.refuses(Errc::GATE_NAME, "new\nline");
  write_file(f.at("esc\x1b[31m"), "x");
  f.refuses(Errc::GATE_NAME, "esc\x1b[31m");
  write_file(f.at("bidi\xE2\x80\xAEname"), "x");
  f.refuses(Errc::GATE_NAME, "bidi\xE2\x80\xAEname");
  write_file(f.at("c1\xC2\x9bname/x"), "x");
  f.refuses(Errc::GATE_NAME, "c1\xC2\x9bname");
}

TEST_CASE("refused: more than the limits on files, bytes, one file and depth") {
  Fixture f;
  write_file(f.at("x1"), std::string(1000, 'x'));
  write_file(f.at("x2"), std::string(1000, 'y'));
  f.refuses(Errc::GATE_LIMIT, "x2", [](ScanOptions& o) { o.limits.bytes = 1500; });
  f.refuses(Errc::GATE_LIMIT, "x1", [](ScanOptions& o) { o.limits.file_bytes = 999; });
  write_file(f.at("1/2/3/4/5/x"), "x");
  f.refuses(Errc::GATE_LIMIT, "1/2/3/4", [](ScanOptions& o) { o.limits.depth = 3; });
  Scanned s = f.scan_with([](ScanOptions& o) { o.limits.files = 3; });
  CHECK(std::any_of(s.violations.begin(), s.violations.end(), [](const Violation& v) { return v.rule == Errc::GATE_LIMIT; }));
}

TEST_CASE("refused: rules and links of the tree that make the scan walk longer than its limits") {
  {
    Fixture f;
    std::string rules;
    for (int i = 0; i < 5000; i++) rules += "*a*a*a*a*a*a*a*a*a*a*a*a*b\n";
    write_file(f.at(".gitignore"), rules);
    for (int i = 0; i < 20; i++) write_file(f.at(std::string(200, 'a') + std::to_string(i)), "");
    // A hostile file of that size is no trouble.
    int64_t start = monotonic_ns();
    CHECK(f.scan_with().violations.empty());
    CHECK(monotonic_ns() - start < 20'000'000'000);
    Scanned s = f.scan_with([](ScanOptions& o) { o.limits.ignore_steps = 1'000'000; });
    REQUIRE(s.violations.size() == 1);
    CHECK(s.violations[0].rule == Errc::GATE_LIMIT);
    CHECK(s.violations[0].detail.find("ignore rules") != std::string::npos);
  }
  {
    Fixture f;
    write_file(f.at("deep/.gitignore"), std::string(900'000, '\n'));
    CHECK(f.scan_with().violations.empty());
    f.refuses(Errc::GATE_LIMIT, "deep/.gitignore", [](ScanOptions& o) { o.limits.ignore_steps = 100'000; });
  }
  {
    Fixture f;
    for (int i = 0; i < 20; i++) REQUIRE(symlink("dir/../dir/../dir/../dir/b.txt", f.at("l" + std::to_string(i)).c_str()) == 0);
    CHECK(f.scan_with().violations.empty());
    Scanned s = f.scan_with([](ScanOptions& o) { o.limits.link_steps = 100; });
    REQUIRE(s.violations.size() == 1);
    CHECK(s.violations[0].rule == Errc::GATE_LIMIT);
  }
}

TEST_CASE("each of many bad paths is named") {
  Fixture f;
  for (int i = 0; i < 50; i++) REQUIRE(mkfifo(f.at("f" + std::to_string(i)).c_str(), 0644) == 0);
  CHECK(f.scan_with().violations.size() == 50);
}

TEST_CASE("refused: a file that changes or vanishes between the look and the copy") {
  Fixture f;
  write_file(f.at("new.txt"), "before\n");
  Scanned s = f.scan_with();
  write_file(f.at("new.txt"), "after!\n");
  git::Repository r = f.repo();
  auto stored = store(f.work, s, f.base, r);
  REQUIRE_FALSE(stored);
  CHECK(stored.error().code == Errc::GATE_CHANGED);
  unlink(f.at("new.txt").c_str());
  CHECK_FALSE(store(f.work, s, f.base, r));
}

TEST_CASE("refused by their own names: what vanished, what was written to, and what became a link while the tree was read") {
  Fixture f;
  write_file(f.at("d/one.txt"), "one\n");
  write_file(f.at("e.txt"), "two\n");
  write_file(f.scratch.path + "/outside/one.txt", "one\n");
  // The scan asks for each file whether it is known, just before it reads it: there the box acts.
  auto at_the_look = [](const std::string& file, const std::function<void()>& act) {
    return [file, act](ScanOptions& o) {
      o.known = [file, act](const std::string& path, const struct stat&) -> std::optional<git::Oid> {
        if (path == file) act();
        return std::nullopt;
      };
    };
  };
  f.refuses(Errc::GATE_CHANGED, "e.txt", at_the_look("e.txt", [&] { write_file(f.at("e.txt"), "longer than it was\n"); }));
  f.refuses(Errc::GATE_VANISHED, "e.txt", at_the_look("e.txt", [&] { unlink(f.at("e.txt").c_str()); }));
  write_file(f.at("e.txt"), "two\n");
  f.refuses(Errc::GATE_SYMLINK_PARENT, "d/one.txt", at_the_look("e.txt", [&] {
              rename(f.at("d").c_str(), (f.scratch.path + "/aside").c_str());
              (void)!symlink((f.scratch.path + "/outside").c_str(), f.at("d").c_str());
            }));
  // The control: nothing moves, nothing is refused.
  unlink(f.at("d").c_str());
  rename((f.scratch.path + "/aside").c_str(), f.at("d").c_str());
  CHECK(f.scan_with(at_the_look("e.txt", [] {})).violations.empty());
}

TEST_CASE("a directory that is swapped for a link while the tree is read never leads outside") {
  Fixture f;
  write_file(f.scratch.path + "/outside/secret.txt", "SECRET");
  for (int i = 0; i < 40; i++) write_file(f.at("d/" + std::to_string(i) + "/secret.txt"), "mine");
  git::Oid secret = git::blob_id("SECRET");
  std::atomic<bool> stop{false};
  std::thread attacker([&] {
    while (!stop) {
      rename(f.at("d/7").c_str(), f.at("d/aside").c_str());
      (void)!symlink((f.scratch.path + "/outside").c_str(), f.at("d/7").c_str());
      unlink(f.at("d/7").c_str());
      rename(f.at("d/aside").c_str(), f.at("d/7").c_str());
    }
  });
  bool noticed = false;
  for (int i = 0; i < 200; i++) {
    Scanned s = f.scan_with();
    noticed = noticed || !s.violations.empty();
    for (const git::Entry& e : s.tree) REQUIRE(e.oid != secret);
  }
  stop = true;
  attacker.join();
  CHECK(noticed);
}

TEST_CASE("a file that is replaced all the time fails the scan or yields one whole version") {
  Fixture f;
  std::string a(200000, 'a'), b(200000, 'b');
  write_file(f.at("big"), a);
  std::string aside = f.scratch.path + "/aside";
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (bool flip = false; !stop; flip = !flip) {
      write_file(aside, flip ? a : b);
      rename(aside.c_str(), f.at("big").c_str());
    }
  });
  for (int i = 0; i < 50; i++) {
    Scanned s = f.scan_with();
    if (!s.violations.empty()) continue;
    const git::Entry* e = git::find_entry(s.tree, "big");
    REQUIRE(e);
    CHECK((e->oid == git::blob_id(a) || e->oid == git::blob_id(b)));
  }
  stop = true;
  writer.join();
}

// A write(2) that was begun before the first look and ends after the last moves no time stamp between them; that nothing
// runs in the box is what excludes it (the lock and the empty pid namespace), not this.
TEST_CASE("a file that is written to all the time does not pass unnoticed") {
  Fixture f;
  std::string text(200000, 'a');
  write_file(f.at("big"), text);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    int fd = open(f.at("big").c_str(), O_WRONLY);
    while (!stop) (void)!pwrite(fd, text.data(), text.size(), 0);
    close(fd);
  });
  int noticed = 0;
  for (int i = 0; i < 2000 && noticed == 0; i++) noticed += !f.scan_with().violations.empty();  // the writer may not have had its turn yet
  stop = true;
  writer.join();
  CHECK(noticed > 0);
}
