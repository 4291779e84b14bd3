#include <sys/syscall.h>

#include <cerrno>

#include "core/os/syscall_name.hpp"
#include "tests/support/catch.hpp"

using namespace h5i::os;

TEST_CASE("system calls and errors have their names") {
  CHECK(syscall_name(SYS_mount) == "mount");
  CHECK(syscall_name(SYS_read) == "read");
  CHECK(syscall_name(SYS_clone3) == "clone3");
  CHECK(syscall_name(999999) == "system call 999999");
  CHECK(errno_name(EPERM) == "EPERM");
  CHECK(errno_name(ENOSYS) == "ENOSYS");
  CHECK(errno_name(99999) == "error 99999");
}
