#include "core/git/repository.hpp"

#include <sys/file.h>

#include "core/git/alternates.hpp"
#include "core/git/user_index.hpp"
#include "tests/git/scratch.hpp"

using namespace h5i;
using namespace h5i::git;
using test::write_file;

namespace {
Repository opened(const std::string& repo) {
  auto r = Repository::open(repo + "/.git");
  if (!r) FAIL(r.error().what << ": " << r.error().evidence);
  return std::move(*r);
}
Errc format_error(const std::string& repo) {
  auto r = check_format(repo + "/.git");
  return r ? Errc::OK : r.error().code;
}
}  // namespace

TEST_CASE("trees, commits and refs are read and written as git has them") {
  test::Scratch s;
  std::string repo = s.path + "/r", head = test::make_repository(repo);
  Repository r = opened(repo);
  auto id = r.resolve_commit("HEAD", repo + "/.git");
  REQUIRE(id);
  CHECK(id->hex() == head);
  CHECK(r.resolve_commit("main", repo + "/.git")->hex() == head);
  CHECK(r.resolve_commit("-x", repo + "/.git").error().code == Errc::GIT_REVISION);
  CHECK(r.resolve_commit("nothing", repo + "/.git").error().code == Errc::GIT_REVISION);
  auto tree = r.read_tree(r.commit(*id)->tree);
  REQUIRE(tree);
  REQUIRE(tree->size() == 4);
  CHECK(find_entry(*tree, "run.sh")->mode == kExecutable);
  CHECK(find_entry(*tree, "link")->mode == kLink);
  CHECK(*r.read_blob(find_entry(*tree, "dir/b.txt")->oid, 100) == "b\n");
  CHECK(r.read_blob(find_entry(*tree, "a.txt")->oid, 3).error().code == Errc::TOO_LARGE);
  CHECK(r.write_tree(*tree)->hex() == test::git(repo, {"rev-parse", "HEAD^{tree}"}));
  auto blob = r.write_blob("new\n");
  REQUIRE(blob);
  tree->push_back({"zz/new", kFile, *blob});
  auto t2 = r.write_tree(*tree);
  REQUIRE(t2);
  auto c2 = r.write_commit(*t2, {*id}, {"N", "n@example.org"}, "second\n", 1700000001);
  REQUIRE(c2);
  CHECK(test::git(repo, {"show", "--format=%an %s", "--name-only", c2->hex()}) == "N second\n\nzz/new");
  CHECK(r.set_ref("refs/heads/x", *c2, std::nullopt, {}, "t"));
  CHECK(r.set_ref("refs/heads/x", *id, std::nullopt, {}, "t").error().code == Errc::GIT_REF_CHANGED);
  CHECK(r.set_ref("refs/heads/x", *id, *id, {}, "t").error().code == Errc::GIT_REF_CHANGED);
  CHECK(r.set_ref("refs/heads/x", *id, *c2, {}, "t"));
  CHECK(r.remove_ref("refs/heads/x", *c2).error().code == Errc::GIT_REF_CHANGED);
  CHECK(r.remove_ref("refs/heads/x", *id));
  CHECK(r.remove_ref("refs/heads/x", *id));
  CHECK(r.descends(*c2, *id));
  CHECK_FALSE(r.descends(*id, *c2));
}

TEST_CASE("where a shallow clone ends, ancestors are told all the same") {
  test::Scratch s;
  std::string whole = s.path + "/r", repo = s.path + "/shallow";
  test::make_repository(whole);
  test::git(whole, {"commit", "-q", "--allow-empty", "-m", "second"});
  test::git(whole, {"clone", "-q", "--depth", "1", "file://" + whole, repo});
  Repository r = opened(repo);
  auto tip = r.resolve_commit("HEAD", repo + "/.git");
  REQUIRE(tip);
  auto info = r.commit(*tip);
  REQUIRE(info);
  REQUIRE(info->parents.size() == 1);
  REQUIRE_FALSE(r.commit(info->parents[0]));  // left out by the clone
  Identity who{"N", "n@example.org"};
  auto child = r.write_commit(info->tree, {*tip}, who, "child\n", 1700000001);
  REQUIRE(child);
  auto grandchild = r.write_commit(info->tree, {*child}, who, "grandchild\n", 1700000002);
  auto other = r.write_commit(info->tree, {}, who, "other\n", 1700000003);
  REQUIRE(grandchild);
  REQUIRE(other);
  CHECK(r.descends(*grandchild, *tip));
  CHECK(r.descends(*tip, info->parents[0]));
  CHECK_FALSE(r.descends(*tip, *grandchild));
  CHECK_FALSE(r.descends(*grandchild, *other));
}

TEST_CASE("a packed ref goes from the file that holds it, and every other byte of the file stays") {
  test::Scratch s;
  std::string repo = s.path + "/r", file = repo + "/.git/packed-refs", lock = file + ".lock";
  test::make_repository(repo);
  for (const char* name : {"refs/heads/a", "refs/heads/a-b", "refs/heads/b"}) test::git(repo, {"update-ref", name, "HEAD"});
  test::git(repo, {"tag", "-a", "-m", "m", "annotated"});
  test::git(repo, {"pack-refs", "--all"});
  test::git(repo, {"update-ref", "refs/heads/b", test::git(repo, {"commit-tree", "-m", "later", "HEAD^{tree}"})});
  Repository r = opened(repo);
  auto packed = [&] { return test::read_file(file); };
  std::string all = packed(), line = test::git(repo, {"rev-parse", "refs/heads/a"}) + " refs/heads/a\n";
  REQUIRE(all.find(line) != std::string::npos);
  CHECK(r.remove_ref("refs/heads/a", std::nullopt));
  CHECK_FALSE(*r.ref("refs/heads/a"));
  CHECK(packed() == all.substr(0, all.find(line)) + all.substr(all.find(line) + line.size()));
  // Loose and packed: the old value does not come back.
  CHECK(r.remove_ref("refs/heads/b", std::nullopt));
  CHECK_FALSE(*r.ref("refs/heads/b"));
  // With the peeled value that follows it.
  CHECK(r.remove_ref("refs/tags/annotated", std::nullopt));
  CHECK(packed().find('^') == std::string::npos);
  CHECK(packed().find(" refs/heads/a-b\n") != std::string::npos);
  CHECK(packed().find(" refs/heads/main\n") != std::string::npos);
  test::git(repo, {"fsck", "--strict"});

  // Another program's lock is waited for and stays, also when it is empty; so does that of an h5i that lives.
  all = packed();
  for (const char* content : {"", "# pack-refs with: peeled fully-peeled sorted \n"}) {
    write_file(lock, content);
    auto refused = r.remove_ref("refs/heads/a-b", std::nullopt);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::BUSY);
    CHECK(test::read_file(lock) == content);
  }
  write_file(lock, "h5i refs\n");
  int held = open(lock.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(flock(held, LOCK_EX) == 0);
  CHECK(r.remove_ref("refs/heads/a-b", std::nullopt).error().code == Errc::BUSY);
  CHECK(packed() == all);
  // That of a dead one does not, nor what it was writing.
  close(held);
  write_file(repo + "/.git/.packed-refs." + std::string(26, 'a'), "half");
  CHECK(r.remove_ref("refs/heads/a-b", std::nullopt));
  CHECK(access(lock.c_str(), F_OK) != 0);
  CHECK(access((repo + "/.git/.packed-refs." + std::string(26, 'a')).c_str(), F_OK) != 0);
  CHECK(packed().find("refs/heads/a-b") == std::string::npos);
  test::git(repo, {"pack-refs", "--all"});
}

TEST_CASE("a three-way merge takes both sides or names the conflicts") {
  test::Scratch s;
  std::string repo = s.path + "/r";
  test::make_repository(repo);
  Repository r = opened(repo);
  auto base = r.commit(*r.resolve_commit("HEAD", repo + "/.git"))->tree;
  auto edited = [&](const std::string& path, const std::string& text) {
    Tree t = *r.read_tree(base);
    for (Entry& e : t)
      if (e.path == path) e.oid = *r.write_blob(text);
    return *r.write_tree(t);
  };
  Oid a = edited("a.txt", "ONE\ntwo\nthree\n"), b = edited("dir/b.txt", "B\n"), c = edited("a.txt", "uno\ntwo\nthree\n");
  auto clean = r.merge(base, a, b);
  REQUIRE(clean);
  CHECK(clean->conflicts.empty());
  CHECK(*r.read_blob(find_entry(clean->tree, "a.txt")->oid, 100) == "ONE\ntwo\nthree\n");
  CHECK(*r.read_blob(find_entry(clean->tree, "dir/b.txt")->oid, 100) == "B\n");
  auto conflict = r.merge(base, a, c);
  REQUIRE(conflict);
  CHECK(conflict->conflicts == std::vector<std::string>{"a.txt"});
}

TEST_CASE("formats that libgit2 would misread are refused by name") {
  test::Scratch s;
  std::string repo = s.path + "/r";
  test::make_repository(repo);
  CHECK(format_error(repo) == Errc::OK);
  auto with = [&](const std::vector<std::string>& config, Errc expected) {
    std::string saved = test::read_file(repo + "/.git/config");
    for (size_t i = 0; i < config.size(); i += 2) test::git(repo, {"config", config[i], config[i + 1]});
    INFO(config[0]);
    CHECK(format_error(repo) == expected);
    write_file(repo + "/.git/config", saved);
  };
  with({"core.repositoryformatversion", "2"}, Errc::GIT_UNSUPPORTED);
  with({"core.repositoryformatversion", "1", "extensions.refStorage", "reftable"}, Errc::GIT_UNSUPPORTED);
  with({"core.repositoryformatversion", "1", "extensions.objectFormat", "sha256"}, Errc::GIT_UNSUPPORTED);
  with({"core.repositoryformatversion", "1", "extensions.somethingNew", "true"}, Errc::GIT_UNSUPPORTED);
  with({"core.repositoryformatversion", "1", "extensions.partialClone", "origin"}, Errc::GIT_PARTIAL);
  with({"remote.origin.promisor", "true"}, Errc::GIT_PARTIAL);
  with({"core.repositoryformatversion", "1", "extensions.worktreeConfig", "true"}, Errc::OK);
  with({"core.repositoryformatversion", "1", "extensions.objectFormat", "sha1"}, Errc::OK);
  write_file(repo + "/.git/objects/pack/pack-x.promisor", "");
  CHECK(format_error(repo) == Errc::GIT_PARTIAL);
}

TEST_CASE("a repository with worktreeConfig can be opened") {
  test::Scratch s;
  std::string repo = s.path + "/r", head = test::make_repository(repo);
  test::git(repo, {"config", "core.repositoryformatversion", "1"});
  test::git(repo, {"config", "extensions.worktreeConfig", "true"});
  CHECK(opened(repo).resolve_commit("HEAD", repo + "/.git")->hex() == head);
}

TEST_CASE("a SHA-256 repository made by git is refused in words") {
  test::Scratch s;
  test::git(s.path, {"init", "-q", "--object-format=sha256", "r"});
  auto r = Repository::open(s.path + "/r/.git");
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Errc::GIT_UNSUPPORTED);
}

TEST_CASE("a repository of somebody else needs safe.directory") {
  test::Scratch s;
  std::string repo = s.path + "/r";
  test::make_repository(repo);
  UserConfig user;
  user.files = {s.path + "/gitconfig"};
  unsigned stranger = geteuid() + 1;
  CHECK(check_owner(repo + "/.git", repo, geteuid(), -1, user));
  CHECK(check_owner(repo + "/.git", repo, stranger, -1, user).error().code == Errc::GIT_OWNER);
  write_file(s.path + "/gitconfig", "[safe]\n\tdirectory = " + repo + "\n");
  CHECK(check_owner(repo + "/.git", repo, stranger, -1, user));
  write_file(s.path + "/gitconfig", "[safe]\n\tdirectory = " + repo + "\n\tdirectory =\n");
  CHECK_FALSE(check_owner(repo + "/.git", repo, stranger, -1, user));
  write_file(s.path + "/gitconfig", "[safe]\n\tdirectory = " + s.path + "/*\n");
  CHECK(check_owner(repo + "/.git", repo, stranger, -1, user));
}

TEST_CASE("the name on commits is the repository's, then the user's, then h5i") {
  test::Scratch s;
  std::string repo = s.path + "/r";
  test::make_repository(repo);
  write_file(s.path + "/gitconfig", "[user]\n\tname = User <x>\n\temail = user@example.org\n");
  UserConfig user;
  user.files = {s.path + "/gitconfig", s.path + "/missing"};
  CHECK(commit_identity(repo + "/.git", user)->name == "Owner");
  test::git(repo, {"config", "--unset", "user.name"});
  CHECK(commit_identity(repo + "/.git", user)->name == "User x");
  CHECK(commit_identity("", UserConfig{})->name == "h5i");
}

TEST_CASE("chained alternates are each listed, a missing one is refused") {
  test::Scratch s;
  std::string a = s.path + "/a", b = s.path + "/b", c = s.path + "/c";
  test::make_repository(a);
  test::git(s.path, {"clone", "-q", "--shared", a, b});
  test::git(s.path, {"clone", "-q", "--shared", b, c});
  auto dirs = object_directories(c + "/.git/objects");
  REQUIRE(dirs);
  CHECK(std::find(dirs->begin(), dirs->end(), a + "/.git/objects") != dirs->end());
  CHECK(dirs->front() == c + "/.git/objects");
  CHECK(dirs->size() == 3);
  rename(a.c_str(), (a + "-moved").c_str());
  CHECK_FALSE(object_directories(c + "/.git/objects"));
}

TEST_CASE("the user's index vouches for files as git does") {
  test::Scratch s;
  std::string repo = s.path + "/r";
  test::make_repository(repo);
  timespec old[2] = {{1700000000, 0}, {1700000000, 0}};
  REQUIRE(utimensat(AT_FDCWD, (repo + "/a.txt").c_str(), old, 0) == 0);
  test::git(repo, {"update-index", "--refresh"});
  auto index = read_user_index(repo + "/.git");
  REQUIRE(index);
  CHECK(index->entries.size() == 4);
  struct stat st{};
  REQUIRE(stat((repo + "/a.txt").c_str(), &st) == 0);
  CHECK(index->vouches(*index->find("a.txt"), st));
  write_file(repo + "/a.txt", "other and longer\n");
  REQUIRE(stat((repo + "/a.txt").c_str(), &st) == 0);
  CHECK_FALSE(index->vouches(*index->find("a.txt"), st));
}
