#include "core/gate/ignore.hpp"

#include <map>

#include "tests/git/scratch.hpp"

using namespace h5i;
using namespace h5i::gate;

TEST_CASE("patterns match as gitignore says") {
  struct Row {
    const char* pattern;
    const char* path;
    bool directory, ignored;
  };
  for (const Row& r : std::initializer_list<Row>{{"*.o", "a.o", false, true}, {"*.o", "d/a.o", false, true}, {"/a", "d/a", false, false}, {"/a", "a", false, true}, {"d/", "d", true, true}, {"d/", "d", false, false},
                                                 {"a/b", "a/b", false, true}, {"a/b", "x/a/b", false, false}, {"**/b", "x/y/b", false, true}, {"a/**", "a/x/y", false, true}, {"a/**/z", "a/z", false, true},
                                                 {"a/**/z", "a/x/y/z", false, true}, {"a*b", "a/b", false, false}, {"[a-c]x", "bx", false, true}, {"[!a-c]x", "bx", false, false}, {"\\#a", "#a", false, true},
                                                 {"\\!a", "!a", false, true}, {"# a", " a", false, false}, {"a ", "a", false, true}, {"a\\ ", "a ", false, true}, {"?", "ab", false, false}, {"[[:digit:]]", "7", false, true}, {"[]]", "]", false, true}}) {
    IgnoreRules rules;
    rules.add("", r.pattern);
    INFO(r.pattern << " on " << r.path);
    CHECK(rules.ignored(r.path, r.directory) == r.ignored);
  }
}

TEST_CASE("the last rule wins and inner files are asked before outer ones") {
  IgnoreRules rules;
  rules.add("", "*.log\n!keep.log\n");
  CHECK(rules.ignored("x.log", false));
  CHECK_FALSE(rules.ignored("keep.log", false));
  rules.add("d", "keep.log\n");
  CHECK(rules.ignored("d/keep.log", false));
  CHECK_FALSE(rules.ignored("keep.log", false));
  rules.resize(2);
  CHECK_FALSE(rules.ignored("d/keep.log", false));
}

TEST_CASE("a hostile pattern ends") {
  IgnoreRules rules;
  std::string stars;
  for (int i = 0; i < 200; i++) stars += "*a";
  rules.add("", stars + "b");
  CHECK_FALSE(rules.ignored(std::string(2000, 'a'), false));
}

TEST_CASE("git check-ignore says the same") {
  test::Scratch s;
  test::git(s.path, {"init", "-q"});
  const std::string rules_text = "*.o\n/top\nbuild/\n!keep.o\ndoc/**/x\n**/deep\nfoo/*\n!foo/bar\nsp\\ ace\n[ab]*.c\n";
  test::write_file(s.path + "/.gitignore", rules_text);
  IgnoreRules rules;
  rules.add("", rules_text);
  std::vector<std::string> paths = {"a.o", "keep.o", "d/a.o", "d/keep.o", "top", "d/top", "doc/x", "doc/1/x", "doc/1/2/x", "deep", "q/deep", "foo/bar", "foo/baz", "sp ace", "a1.c", "c1.c", "plain"};
  for (const std::string& p : paths) test::write_file(s.path + "/" + p, "");
  for (const std::string& p : paths) {
    bool git_says = test::run_program("git", {"check-ignore", "-q", "--no-index", p}, s.path, test::git_environment(s.path)).status == 0;
    INFO(p);
    CHECK(rules.ignored(p, false) == git_says);
  }
}
