// What a kernel may lack, each proved by the kernel's own answer to a question that needs no right.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>

#include "core/os/syscall_name.hpp"
#include "tests/adversary/cases.hpp"
#include "tests/adversary/world.hpp"

namespace h5i::adversary {
namespace {

// 0 when there is such a socket.
int answer(int family, int type, int protocol) {
  int fd = socket(family, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

}  // namespace

Missing address_family(int family) {
  return {"the address family (EAFNOSUPPORT by socket)", [=](const World&) {
            for (int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_PACKET})
              if (answer(family, type, 0) != EAFNOSUPPORT) return false;
            return true;
          }};
}

Missing socket_kind(int family, int type, int protocol) {
  return {"the kind of socket (EPROTONOSUPPORT, ESOCKTNOSUPPORT, EAFNOSUPPORT or ENODEV by socket)", [=](const World&) {
            int e = answer(family, type, protocol);
            return e == EPROTONOSUPPORT || e == ESOCKTNOSUPPORT || e == EAFNOSUPPORT || e == ENODEV;
          }};
}

Missing file_of_kernel(const std::string& path) {
  return {"the file (ENOENT by access)", [=](const World&) { return access(path.c_str(), F_OK) != 0 && errno == ENOENT; }};
}

Missing system_call(const std::string& name) {
  return {"the system call (ENOSYS by it)", [=](const World&) {
            constexpr uint32_t kLast = 1024;
            uint32_t n = 0;
            if (isdigit(static_cast<unsigned char>(name[0]))) n = static_cast<uint32_t>(std::stoul(name, nullptr, 0));
            else while (n < kLast && os::syscall_name(n) != name) n++;
            // No pointer is good and no descriptor is open, so that a call that is there does nothing.
            return n != kLast && syscall(static_cast<long>(n), -1L, -1L, -1L, -1L, -1L, -1L) == -1 && errno == ENOSYS;
          }};
}

Missing loadable_modules() {
  return {"loadable modules (ENOSYS by delete_module)", [](const World&) { return syscall(SYS_delete_module, "h5i_none", 0) != 0 && errno == ENOSYS; }};
}

Missing attributes_of_users() {
  return {"attributes of users on this file system (EOPNOTSUPP by setxattr)", [](const World& w) {
            return setxattr((w.home() + "/out").c_str(), "user.h5i", "x", 1, 0) != 0 && errno == EOPNOTSUPP;
          }};
}

}  // namespace h5i::adversary
