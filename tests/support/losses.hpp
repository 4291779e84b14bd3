// A kernel that lacks one of what the supervised tier is made of: a filter that refuses the calls by which it would be used.
#pragma once
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace h5i::test {

// A call that is refused with `error` where the argument, masked, has the value.
struct Refuse {
  int number, argument;
  uint32_t mask, value;
  int error;
};

inline bool install(const std::vector<Refuse>& rules) {
  std::vector<sock_filter> f;
  for (const Refuse& r : rules) {
    f.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(r.number), 0, 4));
    f.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(r.argument))));
    f.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, r.mask));
    f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r.value, 0, 1));
    f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(r.error)));
  }
  f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program{static_cast<unsigned short>(f.size()), f.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

struct Loss {
  const char* component;
  std::vector<Refuse> rules;  // empty: it is no call that makes it
};
inline const std::vector<Loss>& losses() {
  static const std::vector<Loss> kLosses = {
      {"user-namespace", {{SYS_unshare, 0, CLONE_NEWUSER, CLONE_NEWUSER, EPERM}, {SYS_clone, 0, CLONE_NEWUSER, CLONE_NEWUSER, EPERM}, {SYS_clone3, 0, 0, 0, ENOSYS}}},
      {"network-namespace", {{SYS_unshare, 0, CLONE_NEWNET, CLONE_NEWNET, EPERM}, {SYS_clone, 0, CLONE_NEWNET, CLONE_NEWNET, EPERM}, {SYS_clone3, 0, 0, 0, ENOSYS}}},
      {"nftables", {{SYS_socket, 2, ~0u, NETLINK_NETFILTER, EPROTONOSUPPORT}}},
      {"seccomp-user-notification", {{SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_FILTER_FLAG_NEW_LISTENER, EINVAL}}},
      {"seccomp-user-notification", {{SYS_seccomp, 0, ~0u, SECCOMP_GET_NOTIF_SIZES, EINVAL}}},
      {"seccomp-filter", {{SYS_seccomp, 0, ~0u, SECCOMP_SET_MODE_FILTER, EINVAL}, {SYS_prctl, 0, ~0u, PR_SET_SECCOMP, EINVAL}}},
      {"landlock", {{SYS_landlock_create_ruleset, 0, 0, 0, ENOSYS}}},
      {"no-new-privs", {{SYS_prctl, 0, ~0u, PR_SET_NO_NEW_PRIVS, EINVAL}}},
      {"cgroup-v2-delegation", {}},
  };
  return kLosses;
}

}  // namespace h5i::test
