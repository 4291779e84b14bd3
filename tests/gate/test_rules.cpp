#include "core/gate/rules.hpp"

#include <sys/stat.h>

#include <map>

#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::gate;

TEST_CASE("every disguise of .git is seen") {
  for (const char* name : {".git", ".GIT", ".Git", ".giT", ".git.", ".git ", ".git. . ", ".git::$INDEX_ALLOCATION", ".git:stream", ".GIT::$Index_Allocation", "git~1", "GIT~1", "git~2", "git~12",
                           "a\\.git", ".git\\hooks", "..\\.git", ".g\xE2\x80\x8Cit", "\xE2\x80\x8F.git", ".git\xEF\xBB\xBF", ".g\xE2\x81\xAAit", ".gi\xE2\x80\xAAt", "x\\git~1", ".git .:x"}) {
    INFO(name);
    CHECK(disguised_git(name));
    auto v = check_name(name, std::string("dir/") + name, true);
    REQUIRE(v);
    CHECK(v->rule == Errc::GATE_DOTGIT);
  }
}

TEST_CASE("names that only look a little like .git pass") {
  for (const char* name : {".gitignore", ".gitattributes", ".github", "git", "git~", "git~a", ".gi", "x.git", ".git2", "dot.git", "git-1", ".git_", "\xC3\xA9.txt", "a b"}) {
    INFO(name);
    CHECK_FALSE(disguised_git(name));
    CHECK_FALSE(check_name(name, name, false));
  }
}

TEST_CASE("paths that leave, are absolute or empty are refused") {
  for (const char* path : {"", "/etc/passwd", "../x", "a/../../x", "a/..", "a//b", "./a", "a/.", "a/", "/"}) {
    INFO(path);
    auto v = check_path(path, true);
    REQUIRE(v);
    CHECK(v->rule == Errc::GATE_PATH);
  }
  CHECK_FALSE(check_path("a/b/c", false));
  CHECK_FALSE(check_path("..a/b..", false));
}

TEST_CASE("names that are too long or hold control characters are refused") {
  CHECK(check_name(std::string(256, 'a'), "p", false)->rule == Errc::GATE_NAME);
  CHECK_FALSE(check_name(std::string(255, 'a'), "p", false));
  CHECK(check_path(std::string(4097, 'a'), false)->rule == Errc::GATE_NAME);
  for (const char* name : {"a\nb", "a\x1b[31m", "a\tb", "\x7f", "a\rb", "\x01"}) CHECK(check_name(name, "p", true)->rule == Errc::GATE_NAME);
  CHECK(check_path(std::string("a\0b", 3), false)->rule == Errc::GATE_NAME);
}

TEST_CASE("a name that is no UTF-8 passes only when the base had it") {
  CHECK(check_name("caf\xE9", "caf\xE9", false)->rule == Errc::GATE_ENCODING);
  CHECK_FALSE(check_name("caf\xE9", "caf\xE9", true));
}

TEST_CASE("names with characters that hide, reorder or control pass only when the base had them") {
  for (const char* name : {"c1\xc2\x9bname", "next\xc2\x85line", "bidi\xE2\x80\xAEname", "iso\xE2\x81\xA6lated", "mark\xD8\x9C", "zero\xE2\x80\x8Bwidth", "join\xE2\x80\x8D", "soft\xC2\xADhyphen", "line\xE2\x80\xA8" "end", "bom\xEF\xBB\xBF",
                           "tag\xF3\xA0\x81\x81", "word\xE2\x81\xA0joiner", "note\xEF\xBF\xB9"}) {
    INFO(name);
    auto v = check_name(name, name, false);
    REQUIRE(v);
    CHECK(v->rule == Errc::GATE_NAME);
    CHECK(v->detail.find("\\u{") != std::string::npos);
    CHECK_FALSE(check_name(name, name, true));
    CHECK(check_path(std::string("d/") + name + "/f", false));
  }
  // Control: letters, marks and signs of any script.
  for (const char* name : {"\xC3\xA9t\xC3\xA9", "e\xCC\x81", "\xE4\xB8\xAD\xE6\x96\x87.txt", "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D", "\xD8\xB3\xD9\x84\xD8\xA7\xD9\x85", "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87",
                           "\xF0\x9F\x98\x80", "\xE2\x9D\xA4\xEF\xB8\x8F", "a\xC2\xA0" "b", "\xC5\xBF"}) {
    INFO(name);
    CHECK_FALSE(check_name(name, name, false));
  }
}

TEST_CASE("modes: special files and set-id bits are refused, exec bits are not") {
  CHECK_FALSE(check_mode(S_IFREG | 0755, "p"));
  CHECK_FALSE(check_mode(S_IFLNK | 0777, "p"));
  CHECK_FALSE(check_mode(S_IFDIR | 02755, "p"));
  CHECK(check_mode(S_IFREG | 04755, "p")->rule == Errc::GATE_SETID);
  CHECK(check_mode(S_IFREG | 02755, "p")->rule == Errc::GATE_SETID);
  for (unsigned kind : {S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK}) CHECK(check_mode(kind | 0644, "p")->rule == Errc::GATE_SPECIAL);
}

namespace {
LinkLeads leads(const std::string& path, const std::map<std::string, std::string>& links) {
  return resolve_link(path, links.at(path), [&](const std::string& p) -> std::optional<std::string> {
    auto it = links.find(p);
    return it == links.end() ? std::nullopt : std::optional<std::string>(it->second);
  });
}
}  // namespace

TEST_CASE("links are followed as the kernel follows them") {
  CHECK(leads("a", {{"a", "b"}}) == LinkLeads::INSIDE);
  CHECK(leads("d/a", {{"d/a", "../b"}}) == LinkLeads::INSIDE);
  CHECK(leads("a", {{"a", "../b"}}) == LinkLeads::OUTSIDE);
  CHECK(leads("a", {{"a", "/etc/passwd"}}) == LinkLeads::OUTSIDE);
  CHECK(leads("a", {{"a", "x/../../b"}}) == LinkLeads::OUTSIDE);
  CHECK(leads("a", {{"a", "."}}) == LinkLeads::INSIDE);
  // Written out, x/y/d/../../o stays inside; d leads to the top, so it does not.
  CHECK(leads("l", {{"l", "x/y/d/../../o"}, {"x/y/d", "../../e"}}) == LinkLeads::OUTSIDE);
  CHECK(leads("l", {{"l", "m"}, {"m", "n"}, {"n", "/x"}}) == LinkLeads::OUTSIDE);
  CHECK(leads("l", {{"l", "m"}, {"m", "l"}}) == LinkLeads::LOOP);
  CHECK(leads("l", {{"l", ".git/config"}}) == LinkLeads::GIT);
  CHECK(leads("l", {{"l", "d/../.GIT/hooks"}}) == LinkLeads::GIT);
}

TEST_CASE("a link ends at a place without links, within a number of steps") {
  std::map<std::string, std::string> links = {{"a", "d/b"}, {"d/b", "../e"}, {"e", "x/./y"}};
  auto target_of = [&](const std::string& p) -> std::optional<std::string> {
    auto it = links.find(p);
    return it == links.end() ? std::nullopt : std::optional<std::string>(it->second);
  };
  uint64_t steps = 100;
  LinkEnd end = follow_link("a", "d/b", target_of, steps);
  CHECK(end.leads == LinkLeads::INSIDE);
  CHECK(end.path == "x/y");
  CHECK(steps == 93);
  CHECK(follow_link("q/up", "..", target_of, steps).path.empty());
  steps = 6;
  CHECK(follow_link("a", "d/b", target_of, steps).leads == LinkLeads::LOOP);
  CHECK(steps == 0);
}

TEST_CASE("a link that leaves is kept only on request, one into .git never") {
  auto none = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  CHECK(check_link("a", "../x", false, none)->rule == Errc::GATE_SYMLINK_OUT);
  CHECK_FALSE(check_link("a", "../x", true, none));
  CHECK(check_link("a", ".git/hooks", true, none)->rule == Errc::GATE_DOTGIT);
  CHECK(check_link(".gitmodules", "x", true, none)->rule == Errc::GATE_DOTGIT);
  CHECK(check_link("sub/.gitattributes", "x", true, none)->rule == Errc::GATE_DOTGIT);
  CHECK_FALSE(check_link("a", "b/c", false, none));
}

TEST_CASE("a hostile tree is refused before it is checked out") {
  git::Tree tree;
  for (const char* p : {"../out", ".git/config", "a/.GIT/x", "ok.txt"}) tree.push_back({p, git::kFile, {}});
  tree.push_back({"dev", 0020000, {}});
  CHECK(check_tree(tree).size() == 4);
}
