// Patches held against `git apply --index`.
#include "core/git/patch.hpp"

#include "tests/git/scratch.hpp"

using namespace h5i;
using namespace h5i::git;
using test::write_file;

TEST_CASE("a patch of every kind applies with git apply --index and gives the same tree") {
  test::Scratch s;
  std::string repo = s.path + "/r";
  test::make_repository(repo);
  std::string binary("\0\1\2binary\xff", 10);
  for (int i = 0; i < 5000; i++) binary += static_cast<char>(i * 31 % 251);
  write_file(repo + "/bin", binary);
  write_file(repo + "/with space.txt", "x\n");
  write_file(repo + "/quote\"d.txt", "x\n");
  write_file(repo + "/gone.bin", binary);
  write_file(repo + "/turns", "file\n");
  write_file(repo + "/nonl", "no newline");
  test::git(repo, {"update-index", "--add", "--cacheinfo", "160000,1234567890123456789012345678901234567890,sub"});
  test::git(repo, {"add", "-A", ":!sub"});
  test::git(repo, {"commit", "-qm", "base"});
  auto r = Repository::open(repo + "/.git");
  REQUIRE(r);
  auto commit = r->commit(*r->resolve_commit("HEAD", repo + "/.git"));
  Tree before = *r->read_tree(commit->tree), after = before;
  auto set = [&](const std::string& path, uint32_t mode, const std::string& bytes) {
    std::erase_if(after, [&](const Entry& e) { return e.path == path; });
    if (mode) after.push_back({path, mode, *r->write_blob(bytes)});
  };
  binary[100] ^= 1;
  set("bin", kFile, binary);
  set("gone.bin", 0, "");
  set("new.bin", kFile, std::string("\0x", 2) + binary);
  set("a.txt", kFile, "one\nTWO\nthree\n");
  set("run.sh", kFile, "#!/bin/sh\necho hi\n");
  set("dir/b.txt", kExecutable, "b changed\n");
  set("link", kLink, "dir/b.txt");
  set("turns", kLink, "a.txt");
  set("with space.txt", kFile, "y\n");
  set("quote\"d.txt", kFile, "y\n");
  set("\xC3\xBC\xE4\xB8\xAD.txt", kFile, "unicode\n");
  set("empty", kFile, "");
  set("nonl", kFile, "still no newline");
  set("crlf", kFile, "a\r\nb\r\n");
  set("deep/1/2/x", kFile, "x\n");
  std::sort(after.begin(), after.end());
  std::string patch;
  for (const Change& c : changes_between(before, after)) {
    auto text = [&](const Oid& id, uint32_t mode) { return mode ? *r->read_blob(id, 1 << 20) : std::string(); };
    auto p = patch_of(c, text(c.old_oid, c.old_mode), text(c.new_oid, c.new_mode), true);
    REQUIRE(p);
    patch += p->text;
  }
  write_file(s.path + "/p.diff", patch);
  test::git(repo, {"checkout", "-q", "-f", "main"});
  test::Ran applied = test::run_program("git", {"apply", "--index", s.path + "/p.diff"}, repo, test::git_environment(repo));
  INFO(applied.err << "\n" << patch.substr(0, 3000));
  REQUIRE(applied.status == 0);
  CHECK(test::git(repo, {"write-tree"}) == r->write_tree(after)->hex());
  CHECK(test::read_file(repo + "/bin") == binary);
}

TEST_CASE("without the bytes a binary file is only named") {
  Change c{ChangeKind::ADDED, "x", 0, kFile, {}, blob_id(std::string("\0\1", 2))};
  auto p = patch_of(c, "", std::string("\0\1", 2), false);
  REQUIRE(p);
  CHECK(p->binary);
  CHECK(p->text.find("Binary files /dev/null and b/x differ") != std::string::npos);
}

TEST_CASE("base 85 is git's") {
  CHECK(base85(std::string("\0\0\0\0", 4)) == "00000");
  CHECK(base85("\xff\xff\xff\xff") == "|NsC0");
}
