// Runs a program of the build tree as a user would, in a home of the test's own.
#pragma once
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/evidence/scratch.hpp"
#include "tests/support/catch.hpp"

namespace h5i::test {

struct Ran {
  int status = -1;  // exit status, or -signal
  std::string out, err;
};

inline std::string build_dir() {
  const char* d = getenv("H5I_BUILD_DIR");
  REQUIRE(d);
  return d;
}
inline std::string source_dir() {
  const char* d = getenv("H5I_SOURCE_DIR");
  REQUIRE(d);
  return d;
}

inline Ran run(std::vector<std::string> words, const std::string& home, const std::string& cwd) {
  std::string out = home + "/.out", err = home + "/.err";
  pid_t p = fork();
  REQUIRE(p >= 0);
  if (p == 0) {
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    std::string h = "HOME=" + home, path = "PATH=/usr/bin:/bin";
    char* env[] = {h.data(), path.data(), nullptr};
    if (chdir(cwd.c_str()) != 0) _exit(99);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    execve(argv[0], argv.data(), env);
    _exit(98);
  }
  int st = 0;
  REQUIRE(waitpid(p, &st, 0) == p);
  return {WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st), read_file(out), read_file(err)};
}

}  // namespace h5i::test
