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
  CHECK(socket_name(2, 2, 1) == "inet dgram icmp");
  CHECK(socket_name(10, 3, 58) == "inet6 raw icmpv6");
  CHECK(socket_name(16, 3, 12) == "netlink raw netfilter");
  CHECK(socket_name(17, 3, 768) == "packet raw protocol 768");
  CHECK(socket_name(40, 1, 0) == "vsock stream");
  CHECK(socket_name(300, 9, UINT32_MAX) == "family 300 type 9 protocol 4294967295");
  CHECK(errno_name(EPERM) == "EPERM");
  CHECK(errno_name(ENOSYS) == "ENOSYS");
  CHECK(errno_name(99999) == "error 99999");
}
