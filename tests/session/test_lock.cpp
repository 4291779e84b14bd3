#include <signal.h>
#include <sys/wait.h>

#include "core/session/index.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;
using namespace h5i::test;

TEST_CASE("the second to ask for a lock is told by whom it is held, and gets it when the holder was killed") {
  Scratch s;
  BoxPaths paths = make_box(s / "boxes", some_manifest("human", "fix"));
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t holder = fork();
  if (holder == 0) {
    auto lock = BoxLock::acquire(paths, "box run");
    char byte = lock ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  REQUIRE(byte == 'y');
  auto busy = BoxLock::acquire(paths, "box diff");
  REQUIRE_FALSE(busy);
  CHECK(busy.error().code == Errc::BOX_BUSY);
  CHECK(busy.error().what.find("human/fix") != std::string::npos);
  CHECK(busy.error().evidence.find(std::to_string(holder)) != std::string::npos);
  CHECK(busy.error().evidence.find("box run") != std::string::npos);
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  CHECK(BoxLock::acquire(paths, "box diff"));
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("a lock ends with its object") {
  Scratch s;
  BoxPaths paths = make_box(s / "boxes", some_manifest("human", "fix"));
  {
    auto lock = BoxLock::acquire(paths, "box run");
    REQUIRE(lock);
    CHECK(BoxLock::acquire(paths, "box run").error().code == Errc::BOX_BUSY);
  }
  CHECK(BoxLock::acquire(paths, "box run"));
}

TEST_CASE("a lock ends with its object even while a child still has the descriptor") {
  Scratch s;
  BoxPaths paths = make_box(s / "boxes", some_manifest("human", "fix"));
  pid_t child = 0;
  {
    auto lock = BoxLock::acquire(paths, "box run");
    REQUIRE(lock);
    child = fork();
    if (child == 0) {
      alarm(60);
      for (;;) pause();
    }
  }
  CHECK(BoxLock::acquire(paths, "box run"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_CASE("a lock of a box that is not there says so, and a link in its place is refused") {
  Scratch s;
  CHECK(BoxLock::acquire(BoxPaths{s / "boxes/human/none"}, "box run").error().code == Errc::BOX_NOT_FOUND);
  BoxPaths paths = make_box(s / "boxes", some_manifest("human", "fix"));
  write_file(s / "victim", "text");
  std::filesystem::create_symlink(s / "victim", paths.lock());
  CHECK_FALSE(BoxLock::acquire(paths, "box run"));
  CHECK(read_file(s / "victim") == "text");
}

TEST_CASE("the index keeps each repository once, survives parallel writers, and drops those that are gone") {
  Scratch s;
  UserDirs dirs;
  dirs.state = s / "state";
  std::vector<pid_t> writers;
  for (int i = 0; i < 8; i++) {
    std::string repository = s / ("r" + std::to_string(i) + "/.git");
    std::filesystem::create_directories(repository);
    pid_t pid = fork();
    if (pid == 0) _exit(remember_repository(dirs, repository) && remember_repository(dirs, repository) ? 0 : 1);
    writers.push_back(pid);
  }
  for (pid_t pid : writers) {
    int status = 1;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  auto known = known_repositories(dirs);
  REQUIRE(known);
  CHECK(known->size() == 8);
  std::filesystem::remove_all(s / "r3");
  CHECK(known_repositories(dirs)->size() == 7);
  write_file(dirs.state + "/repositories.json", "[");
  CHECK_FALSE(known_repositories(dirs));
}

TEST_CASE("a private directory is closed to others and never taken from somebody else") {
  Scratch s;
  mode_t old = umask(0);
  REQUIRE(make_private_directory(s / "a/b/c"));
  umask(old);
  struct stat st{};
  for (const char* part : {"a", "a/b", "a/b/c"}) {
    REQUIRE(stat((s / part).c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0700);
  }
  chmod((s / "a/b/c").c_str(), 0755);
  REQUIRE(make_private_directory(s / "a/b/c"));
  REQUIRE(stat((s / "a/b/c").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
  if (geteuid() == 0) {
    REQUIRE(chown((s / "a/b/c").c_str(), 65533, 65533) == 0);
    CHECK(make_private_directory(s / "a/b/c").error().code == Errc::DENIED);
  } else {
    CHECK(make_private_directory("/etc").error().code == Errc::DENIED);
  }
  CHECK_FALSE(make_private_directory("relative"));
}
