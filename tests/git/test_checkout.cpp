#include "core/base/ids.hpp"
#include "core/git/checkout.hpp"

#include "core/git/alternates.hpp"
#include "core/git/private_git.hpp"
#include "tests/git/scratch.hpp"

using namespace h5i;
using namespace h5i::git;
using test::write_file;

namespace {
struct Checked {
  test::Scratch s;
  std::string repo = s.path + "/r", box = s.path + "/box", work = box + "/work";
  Tree tree;
  States states;
  Oid head;
  UniqueFd box_fd, work_fd;
  explicit Checked(const std::function<void(const std::string&)>& prepare = {}) {
    test::make_repository(repo);
    if (prepare) {
      prepare(repo);
      test::git(repo, {"add", "-A"});
      test::git(repo, {"commit", "-qm", "prepared"});
    }
    test::make_directories(work + "/.git");
    box_fd = std::move(*os::open_directory(box));
    work_fd = std::move(*os::open_directory(work));
    auto r = Repository::open(repo + "/.git");
    REQUIRE(r);
    head = *r->resolve_commit("HEAD", repo + "/.git");
    tree = *r->read_tree(r->commit(head)->tree);
    auto made = checkout(*r, tree, work_fd, (realtime_ns() / 1000000000 - 2) * 1000000000);
    if (!made) FAIL(made.error().what << " " << made.error().evidence);
    states = *made;
  }
  void private_git(bool copy = false, bool shallow = false) {
    auto r = Repository::open(repo + "/.git");
    PrivateGit g;
    g.branch = "refs/heads/h5i/box/a/s";
    g.head = head;
    if (copy) g.copy_from = &*r, g.shallow = shallow;
    else g.object_dirs = *object_directories(repo + "/.git/objects");
    g.excluded = excluded;
    g.user_name = "a \"quoted\"";
    g.user_email = "a@box.invalid";
    auto done = write_private_git(box_fd, box, g, tree, states);
    if (!done) FAIL(done.error().what << " " << done.error().evidence);
  }
  std::vector<std::string> excluded;
  std::string in_box(std::vector<std::string> args) {
    args.insert(args.begin(), {"--git-dir=" + box + "/git", "--work-tree=" + work});
    return test::git(work, args);
  }
};
}  // namespace

TEST_CASE("the box's git does not look at denied and private names, and at no other of their kind") {
  Checked c;
  c.excluded = {".env", "a b/k*y", "#note"};
  c.private_git();
  test::make_directories(c.work + "/a b");
  for (const char* name : {"/.env", "/a b/k*y", "/a b/kxy", "/#note", "/a b/.env"}) write_file(c.work + name, "x");
  std::string status = c.in_box({"-c", "core.quotePath=false", "status", "--porcelain", "-uall"});
  CHECK(status.find("\"a b/.env\"") != std::string::npos);
  CHECK(status.find("\"a b/kxy\"") != std::string::npos);
  CHECK(status.find("k*y") == std::string::npos);
  CHECK(status.find("?? .env") == std::string::npos);
  CHECK(status.find("#note") == std::string::npos);
}

TEST_CASE("content goes in raw: no end-of-line, ident or filter conversion") {
  Checked c([](const std::string& repo) {
    write_file(repo + "/.gitattributes", "*.crlf -text\n");
    write_file(repo + "/x.crlf", "a\r\nb\r\n");
    test::git(repo, {"add", "-A"});
    test::git(repo, {"commit", "-qm", "raw"});
    write_file(repo + "/.gitattributes", "*.crlf -text\n*.lf text eol=crlf\n*.id ident\n*.f filter=evil\n");
    write_file(repo + "/y.lf", "a\nb\n");
    write_file(repo + "/z.id", "$Id$\n");
    write_file(repo + "/w.f", "plain\n");
    test::git(repo, {"config", "filter.evil.smudge", "touch " + repo + "/../marker"});
  });
  CHECK(test::read_file(c.work + "/x.crlf") == "a\r\nb\r\n");
  CHECK(test::read_file(c.work + "/y.lf") == "a\nb\n");
  CHECK(test::read_file(c.work + "/z.id") == "$Id$\n");
  CHECK_FALSE(test::exists(c.s.path + "/marker"));
  // Control: git's own checkout of the same tree runs the filter.
  unlink((c.repo + "/w.f").c_str());
  test::git(c.repo, {"checkout", "w.f"});
  CHECK(test::exists(c.s.path + "/marker"));
}

TEST_CASE("the private repository is clean, has the history and takes a commit") {
  Checked c;
  c.private_git();
  CHECK(c.in_box({"status", "--porcelain"}) == "");
  CHECK(c.in_box({"symbolic-ref", "HEAD"}) == "refs/heads/h5i/box/a/s");
  CHECK(c.in_box({"log", "--format=%s"}) == "first");
  // Clean by the index's times alone: no file has to be opened.
  CHECK(c.in_box({"diff-files", "--name-only"}) == "");
  write_file(c.work + "/a.txt", "changed\n");
  CHECK(c.in_box({"status", "--porcelain"}) == " M a.txt");
  c.in_box({"-c", "user.useConfigOnly=true", "commit", "-qam", "inside"});
  CHECK(test::git(c.repo, {"log", "--all", "--format=%s"}) == "first");
}

TEST_CASE("the private repository works when it is bound at .git") {
  Checked c;
  c.private_git();
  rmdir((c.work + "/.git").c_str());
  REQUIRE(rename((c.box + "/git").c_str(), (c.work + "/.git").c_str()) == 0);
  CHECK(test::git(c.work, {"status", "--porcelain"}) == "");
  CHECK(test::git(c.work, {"fsck"}).find("error") == std::string::npos);
}

TEST_CASE("without shared objects the box holds only what its commit reaches") {
  Checked c([](const std::string& repo) {
    write_file(repo + "/secret", "old secret\n");
    test::git(repo, {"add", "-A"});
    test::git(repo, {"commit", "-qm", "with secret"});
    unlink((repo + "/secret").c_str());
    write_file(repo + "/n", "n");
  });
  c.private_git(true, true);
  CHECK_FALSE(test::exists(c.box + "/git/objects/info/alternates"));
  CHECK(c.in_box({"status", "--porcelain"}) == "");
  CHECK(c.in_box({"log", "--format=%s"}) == "prepared");
  std::string secret = test::git(c.repo, {"rev-parse", "HEAD^:secret"});
  CHECK(test::run_program("git", {"--git-dir=" + c.box + "/git", "cat-file", "-e", secret}, c.work, test::git_environment(c.s.path)).status != 0);
}

TEST_CASE("a large tree is written whole and in order, and one missing object fails it wherever it stands") {
  constexpr int kFiles = 3000;  // several shares for each of several threads, and folders across their borders
  Checked c;
  auto r = Repository::open(c.repo + "/.git");
  Tree tree;
  for (int i = 0; i < kFiles; i++) {
    char path[64];
    snprintf(path, sizeof path, "d%02d/e%02d/f%04d", i / 400, i / 70, i);
    tree.push_back({path, i % 7 == 0 ? kExecutable : kFile, *r->write_blob("content " + std::to_string(i % 100))});
  }
  std::string work = c.s.path + "/large";
  test::make_directories(work);
  UniqueFd fd = std::move(*os::open_directory(work));
  auto states = checkout(*r, tree, fd, 5'000'000'000);
  REQUIRE(states);
  REQUIRE(states->size() == tree.size());
  bool same = true;
  for (int i = 0; i < kFiles; i++) {
    const FileState& s = (*states)[static_cast<size_t>(i)];
    const Entry& e = tree[static_cast<size_t>(i)];
    struct stat st{};
    same = same && lstat((work + "/" + e.path).c_str(), &st) == 0 && s.path == e.path && s.oid == e.oid && s.inode == st.st_ino && st.st_mtime == 5 &&
           ((st.st_mode & 0100) != 0) == (i % 7 == 0) && test::read_file(work + "/" + e.path) == "content " + std::to_string(i % 100);
  }
  CHECK(same);

  for (int missing : {0, 257, kFiles / 2, kFiles - 1}) {
    INFO(missing);
    Tree broken = tree;
    broken[static_cast<size_t>(missing)].oid = *Oid::from_hex(std::string(40, 'd'));
    std::string other = c.s.path + "/broken" + std::to_string(missing);
    test::make_directories(other);
    UniqueFd to = std::move(*os::open_directory(other));
    auto made = checkout(*r, broken, to, 0);
    REQUIRE_FALSE(made);
    CHECK(made.error().what.find(std::string(40, 'd')) != std::string::npos);
  }
}

TEST_CASE("a tree with paths that leave is not written") {
  Checked c;
  auto r = Repository::open(c.repo + "/.git");
  Oid blob = *r->write_blob("x");
  for (const char* path : {"../out", ".git/config", "a/../../out", "/abs", "a//b", "d/.GIT/x", ""}) {
    INFO(path);
    CHECK_FALSE(checkout(*r, {{path, kFile, blob}}, c.work_fd, 0));
  }
  CHECK_FALSE(test::exists(c.box + "/out"));
  CHECK(test::read_file(c.work + "/.git/config") == "");
}

TEST_CASE("writing never goes through a link that the box put in place of a directory") {
  Checked c;
  test::make_directories(c.s.path + "/outside");
  REQUIRE(rename((c.work + "/dir").c_str(), (c.work + "/gone").c_str()) == 0);
  REQUIRE(symlink((c.s.path + "/outside").c_str(), (c.work + "/dir").c_str()) == 0);
  auto r = Repository::open(c.repo + "/.git");
  Oid blob = *r->write_blob("x");
  States states = c.states;
  CHECK_FALSE(update_checkout(*r, {{ChangeKind::ADDED, "dir/new", 0, kFile, {}, blob}}, c.work_fd, 0, states));
  CHECK_FALSE(test::exists(c.s.path + "/outside/new"));
}

TEST_CASE("states survive a save, a flipped byte is noticed, fresh ones are not trusted") {
  Checked c;
  int64_t later = realtime_ns() + 1'000'000'000;
  REQUIRE(save_states(c.box_fd, c.states, later));
  auto loaded = load_states(c.box_fd);
  REQUIRE(loaded);
  REQUIRE(loaded->size() == c.states.size());
  struct stat st{};
  REQUIRE(lstat((c.work + "/a.txt").c_str(), &st) == 0);
  CHECK(unchanged(*find_state(*loaded, "a.txt"), st));
  REQUIRE(save_states(c.box_fd, c.states, ctime_ns(st)));
  CHECK_FALSE(unchanged(*find_state(*load_states(c.box_fd), "a.txt"), st));
  std::string bytes = test::read_file(c.box + "/" + kStateFile);
  bytes[bytes.size() / 2] ^= 1;
  write_file(c.box + "/" + kStateFile, bytes);
  CHECK(load_states(c.box_fd).error().code == Errc::CORRUPT);
}
