#include "core/gate/handoff.hpp"

#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::gate;

TEST_CASE("files that other tools run are named at any depth, whatever their case") {
  struct Row {
    const char* path;
    const char* kind;
  };
  for (const Row& r : std::initializer_list<Row>{{"a/b/c/d/.vscode/tasks.json", "editor"}, {".github/workflows/ci.yml", "ci"}, {"x/.envrc", "shell"}, {"Makefile", "build"}, {"sub/MAKEFILE", "build"}, {"package.json", "package-script"},
                                                 {".claude/settings.json", "agent"}, {"deep/AGENTS.md", "agent"}, {".gitmodules", "git"}, {"sub/.gitattributes", "git"}, {".h5i/env.yaml", "policy"}, {"tools/post-checkout", "git-hook"},
                                                 {"hooks/pre-commit", "git-hook"}, {"x/Dockerfile.dev", "container"}, {"vite.config.ts", "build"}, {"conftest.py", "build"}, {"cmake/a.cmake", "build"}, {".cargo/config.toml", "build"}}) {
    INFO(r.path);
    auto h = hands_off(r.path);
    REQUIRE(h);
    CHECK(h->kind == r.kind);
  }
  for (const char* path : {"src/main.cpp", "docs/makefile.md", "a/hooks.txt", "README.md", "vscode/tasks.json"}) {
    INFO(path);
    CHECK_FALSE(hands_off(path));
  }
}

TEST_CASE("only what was added or changed is handed off") {
  git::Change gone{git::ChangeKind::DELETED, "Makefile", git::kFile, 0, {}, {}}, made{git::ChangeKind::ADDED, ".envrc", 0, git::kFile, {}, {}};
  auto list = handoffs({gone, made});
  REQUIRE(list.size() == 1);
  CHECK(list[0].path == ".envrc");
}

TEST_CASE("tricks in .gitmodules are named with their lines") {
  CHECK(submodule_warnings("[submodule \"a\"]\n\tpath = a\n\turl = https://example.org/a\n").empty());
  CHECK(submodule_warnings("[submodule \"a\"]\n\turl = -upload-pack=x\n\tupdate = !touch x\n\tpath = ../x\n\tpath = a\r\n\turl = ext::sh -c x\n").size() == 5);
}

TEST_CASE("text that reads differently than it runs is found, ordinary text is not") {
  CHECK(deceptions("int a;\r\n\xC3\xA9t\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87\n\ttab\n").empty());
  CHECK(deceptions("plain \xD0\xBF\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82 words\n").empty());
  auto bidi = deceptions("a\nif (x \xE2\x80\xAE) {\n");
  REQUIRE(bidi.size() == 1);
  CHECK(bidi[0].line == 2);
  CHECK(deceptions("zero\xE2\x80\x8Bwidth\n").size() == 1);
  CHECK(deceptions("p\xD0\xB0ypal\n").size() == 1);  // Cyrillic a
  CHECK(deceptions("good\rbad\n").size() == 1);
  CHECK(deceptions("esc\x1b[2K\n").size() == 1);
  CHECK(deceptions("\xEF\xBB\xBF" "bom at the beginning\n").empty());
}
