// A repository whose configuration would run a marker program or show something else than what is there. Each case has a
// control: the git program, used as people use it, runs the marker.
#include "core/base/text.hpp"
#include "core/git/checkout.hpp"
#include "core/git/patch.hpp"
#include "core/git/user_index.hpp"
#include "core/git/worktree.hpp"
#include "tests/git/scratch.hpp"

using namespace h5i;
using namespace h5i::git;
using test::write_file;

namespace {
struct Hostile {
  test::Scratch s;
  std::string repo = s.path + "/r", marker = s.path + "/marker";
  Hostile() { test::make_repository(repo); }
  void config(const std::string& key, const std::string& value) { test::git(repo, {"config", key, value}); }
  std::string touch() const { return "touch " + marker + ";cat"; }
  bool fired() {
    bool f = test::exists(marker);
    unlink(marker.c_str());
    return f;
  }
  // Everything that h5i does to a repository: open, resolve, read, write, check out, look at the index, move the branch.
  void use() {
    auto r = Repository::open(repo + "/.git");
    if (!r) FAIL(r.error().what << " " << r.error().evidence);
    auto head = r->resolve_commit("HEAD", repo + "/.git");
    REQUIRE(head);
    auto info = r->commit(*head);
    Tree tree = *r->read_tree(info->tree);
    std::string out = s.path + "/out";
    test::make_directories(out);
    UniqueFd fd = std::move(*os::open_directory(out));
    REQUIRE(checkout(*r, tree, fd, 0));
    Tree after = tree;
    for (Entry& e : after)
      if (e.path == "a.txt") e.oid = *r->write_blob("next\n");
    auto commit = r->write_commit(*r->write_tree(after), {*head}, {}, "x", 0);
    REQUIRE(commit);
    REQUIRE(r->merge(info->tree, info->tree, *r->write_tree(after)));
    auto index = read_user_index(repo + "/.git");
    REQUIRE(index);
    REQUIRE(dirty_paths(*r, {repo + "/.git", repo}, *index, tree));
    for (const Change& c : changes_between(tree, after)) REQUIRE(patch_of(c, *r->read_blob(c.old_oid, 1000), *r->read_blob(c.new_oid, 1000), false));
    auto moved = move_branch(*r, {repo + "/.git", repo}, {"refs/heads/main", *head, *commit, changes_between(tree, after), "x"}, {});
    if (!moved) FAIL(moved.error().what << " " << moved.error().evidence);
  }
};
}  // namespace

TEST_CASE("filters, textconv, external diff and merge drivers of configuration and attributes never run") {
  Hostile h;
  write_file(h.repo + "/.gitattributes", "* filter=evil diff=evil merge=evil\n");
  test::git(h.repo, {"add", "-A"});
  test::git(h.repo, {"commit", "-qm", "attributes"});
  h.config("filter.evil.clean", h.touch());
  h.config("filter.evil.smudge", h.touch());
  h.config("filter.evil.process", h.touch());
  h.config("diff.evil.textconv", h.touch());
  h.config("diff.evil.command", h.touch());
  h.config("diff.external", h.touch());
  h.config("merge.evil.driver", h.touch());
  h.fired();
  h.use();
  CHECK_FALSE(h.fired());
  // Control.
  test::git(h.repo, {"config", "--unset", "filter.evil.process"});
  write_file(h.repo + "/c.txt", "x");
  test::run_program("git", {"add", "c.txt"}, h.repo, test::git_environment(h.repo));
  CHECK(h.fired());
}

TEST_CASE("hooks never run") {
  Hostile h;
  for (const char* hook : {"pre-commit", "post-commit", "post-checkout", "post-merge", "reference-transaction", "post-index-change", "update"})
    write_file(h.repo + "/.git/hooks/" + hook, "#!/bin/sh\ntouch " + h.marker + "\n", 0755);
  h.use();
  CHECK_FALSE(h.fired());
  test::git(h.repo, {"commit", "-q", "--allow-empty", "-m", "control"});
  CHECK(h.fired());
}

TEST_CASE("fsmonitor, hooksPath and included configuration never run a program") {
  Hostile h;
  write_file(h.s.path + "/monitor", "#!/bin/sh\ntouch " + h.marker + "\n", 0755);
  write_file(h.s.path + "/hooks/reference-transaction", "#!/bin/sh\ntouch " + h.marker + "\n", 0755);
  write_file(h.s.path + "/included", "[core]\n\tfsmonitor = " + h.s.path + "/monitor\n\thooksPath = " + h.s.path + "/hooks\n\tsshCommand = touch " + h.marker + "\n\teditor = touch " + h.marker + "\n\tpager = touch " + h.marker + "\n");
  h.config("include.path", h.s.path + "/included");
  h.use();
  CHECK_FALSE(h.fired());
  test::run_program("git", {"status"}, h.repo, test::git_environment(h.repo));
  CHECK(h.fired());
}

TEST_CASE("core.worktree points nowhere") {
  Hostile h;
  test::make_directories(h.s.path + "/elsewhere");
  write_file(h.s.path + "/elsewhere/a.txt", "theirs\n");
  h.config("core.worktree", h.s.path + "/elsewhere");
  h.use();
  CHECK(test::read_file(h.s.path + "/elsewhere/a.txt") == "theirs\n");
  CHECK(test::read_file(h.repo + "/a.txt") == "next\n");
  // Control: git itself looks there.
  CHECK(test::git(h.repo, {"rev-parse", "--show-toplevel"}) == h.s.path + "/elsewhere");
}

TEST_CASE("replace refs and grafts show nothing else than what is there") {
  Hostile h;
  std::string good = test::git(h.repo, {"rev-parse", "HEAD"});
  write_file(h.repo + "/a.txt", "evil\n");
  test::git(h.repo, {"commit", "-qam", "evil"});
  std::string evil = test::git(h.repo, {"rev-parse", "HEAD"});
  test::git(h.repo, {"replace", evil, good});
  write_file(h.repo + "/.git/info/grafts", evil + " " + good + " " + good + "\n");
  auto r = Repository::open(h.repo + "/.git");
  REQUIRE(r);
  auto info = r->commit(*Oid::from_hex(evil));
  REQUIRE(info);
  CHECK(info->summary == "evil");
  CHECK(info->parents.size() == 1);
  CHECK(*r->read_blob(find_entry(*r->read_tree(info->tree), "a.txt")->oid, 100) == "evil\n");
  // Control: git shows the replacement.
  CHECK(test::git(h.repo, {"show", "-s", "--format=%s", evil}) == "first");
}

TEST_CASE("configuration of user and system is not searched") {
  Hostile h;
  // A replacement of URLs in ~/.gitconfig would send a fetch elsewhere; nothing of it is read by the library.
  write_file(h.s.path + "/home/.gitconfig", "[core]\n\tbare = notabool\n[extensions]\n\tpartialClone = x\n");
  setenv("HOME", (h.s.path + "/home").c_str(), 1);
  CHECK(Repository::open(h.repo + "/.git"));
}

TEST_CASE("a configuration that is a fifo is refused, not waited for") {
  Hostile h;
  unlink((h.repo + "/.git/config").c_str());
  REQUIRE(mkfifo((h.repo + "/.git/config").c_str(), 0644) == 0);
  auto r = Repository::open(h.repo + "/.git");
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Errc::GIT_UNSUPPORTED);
}

TEST_CASE("a tree that names a path twice or holds .git is refused") {
  Hostile h;
  std::string blob = test::git(h.repo, {"rev-parse", "HEAD:a.txt"});
  std::string raw;
  std::string id;
  REQUIRE(unhex(blob, &id));
  raw = "100644 a" + std::string(1, '\0') + id + "100644 a" + std::string(1, '\0') + id;
  write_file(h.s.path + "/tree", raw);
  std::string tree = test::git(h.repo, {"hash-object", "-t", "tree", "--literally", "-w", h.s.path + "/tree"});
  auto r = Repository::open(h.repo + "/.git");
  CHECK(r->read_tree(*Oid::from_hex(tree)).error().code == Errc::CORRUPT);
}
