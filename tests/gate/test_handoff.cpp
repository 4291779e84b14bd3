#include "core/gate/handoff.hpp"

#include "core/gate/deception.hpp"
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
  auto list = handoffs({gone, made}, {});
  REQUIRE(list.size() == 1);
  CHECK(list[0].path == ".envrc");
}

TEST_CASE("a tool's configuration is named in every spelling that the tool takes") {
  for (const char* path : {".lintstagedrc.js", ".lintstagedrc.mjs", "lefthook.yaml", ".lefthook.toml", "lefthook-local.yml", ".mise.local.toml", "mise.toml", ".env.local", "x/.env.production", ".yarnrc.yml", ".pre-commit-config.yaml",
                           "compose.override.yaml", "docker-compose.yml", "azure-pipelines-nightly.yml", ".prettierrc.cjs", ".stylelintrc.js", "vite.config.mts", "Gulpfile.babel.js", "Rakefile.rb", "Taskfile.dist.yml", ".gitlab-ci.yml",
                           "build.gradle.kts", "gradlew.bat", ".devcontainer.json", ".Rprofile", ".ghci", ".hg/hgrc", "x/.jj/repo/config.toml", "pylintrc", "a-gdb.py", ".clinerules/x.md", ".clinerules", "opencode.jsonc", ".vscode.", ".envrc ",
                           ".vs\xE2\x80\x8C" "code/tasks.json", "hook\xC5\xBF/x"}) {
    INFO(path);
    CHECK(hands_off(path));
  }
  for (const char* path : {".environment", "lefthook.cpp", "mise.cpp", "compose.go", "crush.rs", ".env.md", "src.js", "arc.ts", "gradlewx", "azure.yml", "taskfile.txt", "misery/x", "x.envrc"}) {
    INFO(path);
    CHECK_FALSE(hands_off(path));
  }
}

namespace {
std::vector<git::Change> changed(std::initializer_list<const char*> paths) {
  std::vector<git::Change> out;
  for (const char* p : paths) out.push_back({git::ChangeKind::MODIFIED, p, git::kFile, git::kFile, {}, {}});
  return out;
}
std::string kind_seen(const std::vector<Handoff>& all, const std::string& path) {
  for (const Handoff& h : all)
    if (h.path == path) return h.kind;
  return "";
}
}  // namespace

TEST_CASE("a directory of a tool is named when it is a link or a file itself") {
  for (const char* path : {".vscode", ".github/workflows", ".claude", ".cargo", "x/.githooks", ".clinerules"}) {
    INFO(path);
    CHECK(hands_off(path));
  }
  CHECK_FALSE(hands_off(".github"));
  CHECK_FALSE(hands_off("workflows"));
}

TEST_CASE("what a link shows under a tool's name is named, whatever it is called itself") {
  struct Row {
    std::map<std::string, std::string> links;
    const char* path;
    const char* kind;
  };
  for (const Row& r : std::initializer_list<Row>{
           {{{".vscode", "s"}}, "s/tasks.json", "editor"},
           {{{".github/workflows", "../ci"}}, "ci/x.txt", "ci"},
           {{{".github", "forge"}}, "forge/workflows/x.txt", "ci"},
           {{{".github", "forge"}, {"forge/workflows", "../plain"}}, "plain/x.txt", "ci"},
           {{{".github", "."}, {"workflows", "data"}}, "data/x.txt", "ci"},
           {{{".claude", "a"}, {"a", "b"}, {"b", "c/d"}}, "c/d/settings", "agent"},
           {{{"x/.cargo", "../y"}, {"y/deep", "../z"}}, "z/q/config", "build"},
           {{{".githooks", "."}}, "notes", "git-hook"},
           {{{"sub/.husky", ".."}}, "any/where", "git-hook"},
           {{{".VSCode", "s"}}, "s/x", "editor"},
           {{{"Makefile", "rules.txt"}}, "rules.txt", "build"},
           {{{"tools/pre-commit", "../check.sh"}}, "check.sh", "git-hook"},
           {{{".vscode/tasks.json", "../t.json"}}, "t.json", "editor"},
           {{{".envrc", "m"}, {"m", "n"}}, "n", "shell"},
           // The box turned a link on the way; what it shows now was there before.
           {{{".envrc", "m"}, {"m", "n"}}, "m", "shell"},
           {{{".vscode", "s"}, {"s", "third"}}, "s", "editor"},
           {{{".vscode", "a/s"}, {"a", "b"}}, "a", "editor"},
           {{{".vscode", "s"}, {"s/more", "../m"}, {"m", "n"}}, "m", "editor"},
           {{{".github", "f"}, {"f", "g"}, {"g/workflows", "../w"}, {"w", "v"}}, "w", "ci"},
           {{{".github", "f"}}, ".github", "ci"},
           {{{".github", "f"}, {"f", "g"}}, "f", "ci"},
       }) {
    INFO(r.path << " through " << r.links.begin()->first);
    auto list = handoffs(changed({r.path}), r.links);
    CHECK(kind_seen(list, r.path) == r.kind);
    REQUIRE_FALSE(list.empty());
    CHECK((list.back().why.find("seen as ") == 0 || list.back().why.find("it may show .github/workflows: ") == 0));
    CHECK(handoffs(changed({r.path}), {}).empty());      // Control: by its own name it is nothing.
    CHECK(handoffs(changed({"other/file"}), r.links).size() == (r.links.begin()->second == "." || r.links.begin()->second == ".." ? (kind_seen(list, r.path) == "ci" ? 0u : 1u) : 0u));
  }
  CHECK(handoffs(changed({"s/tasks.json"}), {{"vscode", "s"}}).empty());
  CHECK(handoffs(changed({"s-t/tasks.json"}), {{".vscode", "s"}}).empty());
  CHECK(handoffs(changed({"s/tasks.json"}), {{".vscode", "/s"}}).empty());
  CHECK(handoffs(changed({"s/tasks.json"}), {{".vscode", ".vscode"}}).empty());
  auto shown = handoffs(changed({"z/q/config"}), {{"x/.cargo", "../y"}, {"y/deep", "../z"}});
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].why.find("seen as x/.cargo/deep/q/config ") == 0);
}

TEST_CASE("many links to many places are looked through in a bounded time, and a cut is said") {
  std::map<std::string, std::string> links;
  std::vector<git::Change> changes;
  for (int i = 0; i < 300; i++) {
    std::string n = std::to_string(1000 + i), deep;
    for (int k = 0; k < 60; k++) deep += "d/";
    links["l" + n + "/.vscode"] = "../" + deep.substr(0, static_cast<size_t>(2 * (60 - i % 60)) - 1);
    links["l" + n + "/up"] = "..";
    for (int k = 0; k < 20; k++) changes.push_back({git::ChangeKind::ADDED, deep + n + "-" + std::to_string(k), 0, git::kFile, {}, {}});
  }
  auto list = handoffs(changes, links);
  REQUIRE(list.size() == 1001);
  CHECK(list.back().why.find("more than 1000") == 0);
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
