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

TEST_CASE("a hostile pattern costs no more than the product of the lengths, and all rules together have a limit") {
  std::string stars;
  for (int i = 0; i < 200; i++) stars += "*a";
  auto steps_of = [](const std::string& pattern, const std::string& text) {
    uint64_t steps = 1'000'000'000;
    CHECK_FALSE(wildmatch(pattern, text, steps));
    return 1'000'000'000 - steps;
  };
  CHECK(steps_of(stars + "b", std::string(2000, 'a')) < 10'000);
  CHECK(steps_of("*" + std::string(200, 'a') + "b", std::string(2000, 'a')) < 500'000);
  std::string deep, crossing;
  for (int i = 0; i < 100; i++) deep += "a/", crossing += "**/*a*/";
  CHECK(steps_of(crossing + "b", deep + "a") < 100'000);
  IgnoreRules rules(1000);
  rules.add("", stars + "b");
  CHECK_FALSE(rules.exhausted());
  CHECK_FALSE(rules.ignored(std::string(2000, 'a'), false));
  CHECK(rules.exhausted());
  IgnoreRules many;
  std::string lines;
  for (size_t i = 0; i <= kMaxIgnoreRules; i++) lines += "a\n";
  many.add("", lines.substr(2));
  CHECK_FALSE(many.exhausted());
  many.add("", "a\n");
  CHECK(many.exhausted());
}

TEST_CASE("git check-ignore says the same") {
  test::Scratch s;
  test::git(s.path, {"init", "-q"});
  const std::string rules_text = "*.o\n/top\nbuild/\n!keep.o\ndoc/**/x\n**/deep\nfoo/*\n!foo/bar\nsp\\ ace\n[ab]*.c\n***/three\nleft**/right\n/q**/r\n";
  test::write_file(s.path + "/.gitignore", rules_text);
  IgnoreRules rules;
  rules.add("", rules_text);
  std::vector<std::string> paths = {"a.o", "keep.o", "d/a.o", "d/keep.o", "top", "d/top", "doc/x", "doc/1/x", "doc/1/2/x", "deep", "q/deep", "foo/bar", "foo/baz", "sp ace", "a1.c", "c1.c", "plain", "three", "u/v/three", "left/right", "leftx/y/right", "q/r", "qx/y/r", "xq/r"};
  for (const std::string& p : paths) test::write_file(s.path + "/" + p, "");
  for (const std::string& p : paths) {
    bool git_says = test::run_program("git", {"check-ignore", "-q", "--no-index", p}, s.path, test::git_environment(s.path)).status == 0;
    INFO(p);
    CHECK(rules.ignored(p, false) == git_says);
  }
}

TEST_CASE("git check-ignore says the same of random patterns") {
  test::Scratch s;
  test::git(s.path, {"init", "-q"});
  uint32_t seed = 20240607;
  auto random = [&seed](uint32_t n) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
  };
  const std::vector<std::string> parts = {"a", "b", "a", "b", "*", "*", "**", "**/", "/**/", "/**", "***", "/", "/", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[a/b]", "[[:alpha:]]", "[[:nope:]]", "[a", "[[:b]", "[\\a]", "\\", "\\a", "\\*", "\\/", "-", "!", " ", "#", ".", "*/"};
  const std::vector<std::string> files = {"a", "b", "ab", "ba", "c", "a-", "*", "-", "a b", "a ", "[a", "!", "!a", "#", "#a", ".", "d/a", "d/b", "d/ab", "a.d/a", "a.d/b/a", "a.d/b/b/a", "b.d/a/b", "b.d/ab/ba/c", "ab.d/c", "aa.d/b"};
  std::vector<std::string> paths, patterns;
  const int kCases = 250;
  for (int i = 0; i < kCases; i++) {
    std::string pattern, dir = "case" + std::to_string(i);
    for (uint32_t lines = 1 + random(3); lines > 0; lines--) {
      if (random(4) == 0) pattern += random(2) ? "!" : "/";
      for (uint32_t k = 1 + random(6); k > 0; k--) pattern += parts[random(static_cast<uint32_t>(parts.size()))];
      if (random(5) == 0) pattern += "/";
      pattern += random(8) ? "\n" : "\r\n";
    }
    test::write_file(s.path + "/" + dir + "/.gitignore", pattern);
    patterns.push_back(pattern);
    for (const std::string& f : files) {
      if (f == ".") continue;
      paths.push_back(dir + "/" + f);
    }
  }
  std::string input;
  for (const std::string& p : paths) input += p + '\0';
  std::string said = test::run_program("git", {"check-ignore", "-z", "--stdin", "--no-index"}, s.path, test::git_environment(s.path), input).out;
  std::map<std::string, bool> git_says;
  for (size_t i = 0; i < said.size();) {
    size_t end = said.find('\0', i);
    git_says[said.substr(i, end - i)] = true;
    i = end + 1;
  }
  CHECK(git_says.size() > 400);
  CHECK(git_says.size() < paths.size() - 500);
  size_t wrong = 0;
  std::string list;
  for (int i = 0; i < kCases; i++) {
    IgnoreRules rules;
    std::string dir = "case" + std::to_string(i);
    rules.add(dir, patterns[static_cast<size_t>(i)]);
    for (const std::string& f : files) {
      if (f == ".") continue;
      bool ours = false;  // as the walk asks: parents first
      for (size_t slash = f.find('/'); !ours && slash != std::string::npos; slash = f.find('/', slash + 1)) ours = rules.ignored(dir + "/" + f.substr(0, slash), true);
      ours = ours || rules.ignored(dir + "/" + f, false);
      if (ours == git_says.count(dir + "/" + f) > 0) continue;
      if (++wrong <= 5) list += std::string("git says ") + (ours ? "no" : "yes") + " of '" + f + "' by:\n" + patterns[static_cast<size_t>(i)];
    }
  }
  INFO(list);
  CHECK(wrong == 0);
}
