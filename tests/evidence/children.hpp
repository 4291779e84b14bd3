// The same work in several processes at once.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "tests/support/catch.hpp"

namespace h5i::test {

// Each child is given its number; what it returns is its exit status, and must be 0.
template <class Work>
void in_children(int count, Work work) {
  std::vector<pid_t> children;
  for (int c = 0; c < count; c++) {
    pid_t p = fork();
    REQUIRE(p >= 0);
    if (p == 0) _exit(work(c));
    children.push_back(p);
  }
  for (pid_t p : children) {
    int status = 0;
    REQUIRE(waitpid(p, &status, 0) == p);
    CHECK(status == 0);
  }
}

}  // namespace h5i::test
