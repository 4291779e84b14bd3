// Group A: the surface of system calls.
#include "tests/adversary/cases.hpp"

namespace h5i::adversary {

std::vector<Case> cases_of_calls() {
  return {
      {.id = "A01",
       .what = "io_uring does without the system calls that a filter watches",
       .must = "P",
       .right = "ENOSYS, so that runtimes fall back; counted",
       .tries = {refused("sys io_uring_setup 4 b:256", "ENOSYS")}},
      {.id = "A06",
       .what = "a nested user namespace gives every capability over itself",
       .must = "P",
       .right = "EPERM, counted; ENOSYS by clone3",
       .tries = {refused("sys unshare 0x10000000", "EPERM")}},
      {.id = "B21",
       .what = "metadata of files that are only granted for reading",
       .must = "P",
       .claim = "fs.write",
       .right = "EROFS from the mount, since Landlock alone does not look at metadata",
       .tries = {held("sys chmod s:{file} 0600", {"EROFS"}, "wide")}},
  };
}

}  // namespace h5i::adversary
