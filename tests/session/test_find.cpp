#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;
using namespace h5i::test;

namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* old = getenv(name);
    if (old) old_ = old;
    if (value)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Variable() {
    if (old_)
      setenv(name_, old_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("a repository is found from any folder below it") {
  Scratch s;
  make_git_directory(s / "r/.git");
  std::filesystem::create_directories(s / "r/a/b");
  auto at = find_repository(s / "r/a/b");
  REQUIRE(at);
  CHECK(at->git_dir == s / "r/.git");
  CHECK(at->common_dir == at->git_dir);
  CHECK(at->work_dir == s / "r");
}

TEST_CASE("a linked work tree leads to the common directory") {
  Scratch s;
  make_git_directory(s / "r/.git");
  write_file(s / "r/.git/worktrees/w/HEAD", "ref: refs/heads/w\n");
  write_file(s / "r/.git/worktrees/w/commondir", "../..\n");
  write_file(s / "r/.git/worktrees/w/gitdir", s.path() + "/w/.git\n");
  write_file(s / "w/.git", "gitdir: " + s.path() + "/r/.git/worktrees/w\n");
  auto at = find_repository(s / "w");
  REQUIRE(at);
  CHECK(at->git_dir == s / "r/.git/worktrees/w");
  CHECK(at->common_dir == s / "r/.git");
  CHECK(at->work_dir == s / "w");
}

TEST_CASE("a .git that leads to a repository which does not know it is refused") {
  Scratch s;
  make_git_directory(s / "r/.git");
  write_file(s / "r/.git/worktrees/w/HEAD", "ref: refs/heads/w\n");
  write_file(s / "r/.git/worktrees/w/commondir", "../..\n");
  write_file(s / "r/.git/worktrees/w/gitdir", s.path() + "/elsewhere/.git\n");
  auto refused = [&](const std::string& where) {
    auto at = find_repository(s / where);
    return !at && at.error().code == Errc::GIT_REDIRECTED;
  };
  write_file(s / "w/.git", "gitdir: " + s.path() + "/r/.git/worktrees/w\n");
  CHECK(refused("w"));
  write_file(s / "main/.git", "gitdir: " + s.path() + "/r/.git\n");
  CHECK(refused("main"));
  std::filesystem::create_directories(s / "link");
  std::filesystem::create_symlink(s / "r/.git", s / "link/.git");
  CHECK(refused("link"));
  make_git_directory(s / "own/.git");
  write_file(s / "own/.git/commondir", s.path() + "/r/.git\n");
  CHECK(refused("own"));
}

TEST_CASE("an empty .git, a dangling pointer and a pointer to nonsense are no repository") {
  Scratch s;
  make_git_directory(s / "outer/.git");
  std::filesystem::create_directories(s / "outer/in/.git");
  auto passed_over = find_repository(s / "outer/in");  // an empty .git is what a box's work tree has on the host
  REQUIRE(passed_over);
  CHECK(passed_over->work_dir == s / "outer");
  write_file(s / "dangling/.git", "gitdir: /nowhere\n");
  CHECK(find_repository(s / "dangling").error().code == Errc::GIT_NO_REPOSITORY);
  write_file(s / "nonsense/.git", "hello\n");
  CHECK(find_repository(s / "nonsense").error().code == Errc::GIT_NO_REPOSITORY);
  write_file(s / "long/.git", "gitdir: " + std::string(100000, 'x'));
  CHECK_FALSE(find_repository(s / "long"));
  CHECK(find_repository(s / "absent").error().code == Errc::GIT_NO_REPOSITORY);
}

TEST_CASE("a bare repository has no work tree") {
  Scratch s;
  make_git_directory(s / "bare.git");
  auto at = find_repository(s / "bare.git");
  REQUIRE(at);
  CHECK(at->work_dir.empty());
}

TEST_CASE("boxes are listed in order, and what is not a box hides none") {
  Scratch s;
  make_git_directory(s / "r/.git");
  UserDirs dirs;
  dirs.state = s / "state";
  std::string boxes = s / "r/.git/h5i/boxes";
  make_box(boxes, some_manifest("human", "b"));
  make_box(boxes, some_manifest("agent", "a"));
  make_box(dirs.state + "/boxes", some_manifest("human", "detached"));
  make_box(dirs.state + "/boxes", some_manifest("human", "b"));  // the repository's own wins
  std::filesystem::create_directories(boxes + "/human/half-made");
  std::filesystem::create_directories(boxes + "/..bad/x");
  write_file(boxes + "/stray", "");
  write_file(boxes + "/human/stray", "");
  std::filesystem::create_directory_symlink(boxes + "/human/b", boxes + "/human/link");
  auto list = list_boxes(s / "r", dirs);
  REQUIRE(list);
  REQUIRE(list->size() == 3);
  CHECK((*list)[0].name.str() == "agent/a");
  CHECK((*list)[1].name.str() == "human/b");
  CHECK((*list)[1].paths.dir == boxes + "/human/b");
  CHECK((*list)[2].name.str() == "human/detached");
  CHECK(list_boxes(s.path(), dirs)->size() == 2);  // outside the repository: the detached ones
}

TEST_CASE("a box is found by its name, by its slug when that is enough, and candidates are listed when it is not") {
  Scratch s;
  make_git_directory(s / "r/.git");
  UserDirs dirs;
  dirs.state = s / "state";
  std::string boxes = s / "r/.git/h5i/boxes";
  make_box(boxes, some_manifest("human", "fix"));
  make_box(boxes, some_manifest("claude", "fix"));
  make_box(boxes, some_manifest("human", "only"));
  CHECK(find_box("only", s / "r", dirs)->name.str() == "human/only");
  CHECK(find_box("claude/fix", s / "r", dirs)->name.agent == "claude");
  auto ambiguous = find_box("fix", s / "r", dirs);
  REQUIRE_FALSE(ambiguous);
  CHECK(ambiguous.error().code == Errc::BOX_AMBIGUOUS);
  CHECK(ambiguous.error().evidence == "claude/fix, human/fix");
  CHECK(find_box("none", s / "r", dirs).error().code == Errc::BOX_NOT_FOUND);
  CHECK(find_box("claude/only", s / "r", dirs).error().code == Errc::BOX_NOT_FOUND);
}

TEST_CASE("hostile names of boxes are refused before anything is looked up") {
  Scratch s;
  UserDirs dirs;
  dirs.state = s / "state";
  for (const std::string& name : {std::string(".."), std::string("../../etc"), std::string("a/b/c"), std::string("/etc/passwd"), std::string("a b"),
                                  std::string("-x"), std::string("A"), std::string("x.lock"), std::string("a..b"), std::string("\x1b[2J"),
                                  std::string("h\xc3\xa9"), std::string("a\0b", 3), std::string(200, 'a'), std::string("")}) {
    auto r = find_box(name, s.path(), dirs);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Errc::BOX_NAME);
    CHECK(r.error().what.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a user without a home is told which variable would help") {
  Variable home("HOME", nullptr), config("XDG_CONFIG_HOME", nullptr), state("XDG_STATE_HOME", "/s"), cache("XDG_CACHE_HOME", nullptr),
      runtime("XDG_RUNTIME_DIR", nullptr);
  auto r = UserDirs::from_environment();
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Errc::NO_HOME);
  CHECK(r.error().remedy() == "set HOME, or XDG_CONFIG_HOME");
  {
    Variable relative("HOME", "not/absolute");
    CHECK(UserDirs::from_environment().error().code == Errc::NO_HOME);
  }
  {
    Variable given("HOME", "/h");
    auto dirs = UserDirs::from_environment();
    REQUIRE(dirs);
    CHECK(dirs->config == "/h/.config/h5i");
    CHECK(dirs->state == "/s/h5i");
    CHECK(dirs->cache == "/h/.cache/h5i");
    CHECK(dirs->runtime == "/s/h5i/run");
  }
  Variable all_config("XDG_CONFIG_HOME", "/c"), all_cache("XDG_CACHE_HOME", "/k");
  CHECK(UserDirs::from_environment());
}

TEST_CASE("a home of three hundred characters works") {
  Scratch s;
  std::string home = s.path();
  while (home.size() < 300) home += "/" + std::string(60, 'd');
  Variable given("HOME", home.c_str()), state("XDG_STATE_HOME", nullptr), config("XDG_CONFIG_HOME", nullptr), cache("XDG_CACHE_HOME", nullptr);
  auto dirs = UserDirs::from_environment();
  REQUIRE(dirs);
  std::filesystem::create_directories(home);
  CHECK(make_private_directory(dirs->state));
  make_box(dirs->state + "/boxes", some_manifest("human", std::string(64, 'n')));
  CHECK(find_box(std::string(64, 'n'), s.path(), *dirs));
}
