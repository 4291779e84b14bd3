// A temporary directory, files in it, and the git program: tests alone run it, to make repositories and to judge results.
#pragma once
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/os/beneath.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::test {

struct Scratch {
  std::string path;
  Scratch() {
    char name[] = "/tmp/h5i-repo-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Scratch() {
    auto parent = os::open_directory("/tmp");
    if (parent) (void)os::remove_tree(*parent, path.substr(5)).ok();
  }
  Scratch(const Scratch&) = delete;
};

inline void make_directories(const std::string& path) {
  for (size_t i = 1; i <= path.size(); i++)
    if (i == path.size() || path[i] == '/') mkdir(path.substr(0, i).c_str(), 0755);
}
inline void write_file(const std::string& path, const std::string& bytes, mode_t mode = 0644) {
  make_directories(path.substr(0, path.rfind('/')));
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  REQUIRE(out.good());
  REQUIRE(chmod(path.c_str(), mode) == 0);
}
inline bool exists(const std::string& path) {
  struct stat st{};
  return lstat(path.c_str(), &st) == 0;
}

struct Ran {
  int status = -1;
  std::string out, err;
};

// Runs a program with exactly this environment, waits, returns what it wrote.
inline Ran run_program(const std::string& program, const std::vector<std::string>& args, const std::string& cwd, const std::vector<std::string>& env,
                       const std::string& input = "") {
  char out_name[] = "/tmp/h5i-out-XXXXXX", err_name[] = "/tmp/h5i-err-XXXXXX", in_name[] = "/tmp/h5i-in-XXXXXX";
  int out = mkostemp(out_name, O_CLOEXEC), err = mkostemp(err_name, O_CLOEXEC), in = mkostemp(in_name, O_CLOEXEC);
  REQUIRE((out >= 0 && err >= 0 && in >= 0));
  REQUIRE(write(in, input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  lseek(in, 0, SEEK_SET);
  std::vector<char*> argv, envp;
  argv.push_back(const_cast<char*>(program.c_str()));
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  for (const std::string& e : env) envp.push_back(const_cast<char*>(e.c_str()));
  envp.push_back(nullptr);
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    if (chdir(cwd.c_str()) != 0) _exit(120);
    execvpe(program.c_str(), argv.data(), envp.data());
    _exit(121);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  Ran r;
  r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  r.out = read_file(out_name);
  r.err = read_file(err_name);
  for (int fd : {out, err, in}) close(fd);
  for (const char* n : {out_name, err_name, in_name}) unlink(n);
  return r;
}

inline std::vector<std::string> git_environment(const std::string& home) {
  return {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsync", "GIT_CONFIG_VALUE_0=none", "LC_ALL=C", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=C",
          "GIT_COMMITTER_EMAIL=c@example.org", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000"};
}
// Fails the test when git does.
inline std::string git(const std::string& cwd, const std::vector<std::string>& args) {
  Ran r = run_program("git", args, cwd, git_environment(cwd));
  INFO("git " << (args.empty() ? "" : args[0]) << ": " << r.err);
  REQUIRE(r.status == 0);
  while (!r.out.empty() && r.out.back() == '\n') r.out.pop_back();
  return r.out;
}
// A repository with one commit on main: a.txt, run.sh (executable), link -> a.txt, dir/b.txt.
inline std::string make_repository(const std::string& path) {
  make_directories(path);
  git(path, {"init", "-q", "-b", "main"});
  git(path, {"config", "user.name", "Owner"});
  git(path, {"config", "user.email", "owner@example.org"});
  write_file(path + "/a.txt", "one\ntwo\nthree\n");
  write_file(path + "/run.sh", "#!/bin/sh\necho hi\n", 0755);
  write_file(path + "/dir/b.txt", "b\n");
  REQUIRE(symlink("a.txt", (path + "/link").c_str()) == 0);
  git(path, {"add", "-A"});
  git(path, {"commit", "-qm", "first"});
  return git(path, {"rev-parse", "HEAD"});
}

}  // namespace h5i::test
