// What this host is, in facts that a person can check: for `box probe` and `box doctor`. Reads files and tries a
// namespace in a forked child; changes nothing and leaves nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace h5i::os {

// A user namespace tried for real: up to which step it came and with which errno it stopped.
struct NamespaceTrial {
  bool ok = false;
  std::string step;  // "unshare", "id map", "private mounts", "tmpfs", "proc"; empty when ok
  int error = 0;
};

struct HostFacts {
  std::string kernel, machine;                // uname: release, machine
  std::vector<std::string> security_modules;  // empty when they cannot be read
  bool security_modules_known = false;
  uint32_t uid = 0;
  int landlock_abi = 0;    // 0: none
  int landlock_error = 0;  // ENOSYS: not built in; EOPNOTSUPP: switched off at boot
  bool seccomp_filter = false, seccomp_notify = false;
  int seccomp_mode = 0;           // of this process: 2 means that somebody filters us already
  bool no_new_privs = false;      // of this process already
  NamespaceTrial user_namespace;  // with mount and pid namespace
  // Sysctls that forbid unprivileged namespaces, by name; -1 when the file does not exist.
  long unprivileged_userns_clone = -1, max_user_namespaces = -1, apparmor_restrict_userns = -1, memfd_noexec = -1;
  std::string apparmor_profile;   // of this process; empty: none
  std::string cgroup;             // "v2", "hybrid", "v1", "none"
  bool cgroup_delegated = false;  // a group of our own could be made (by trial, removed again)
  std::string cgroup_base, cgroup_reason;
  bool in_container = false;  // a file or variable that container engines leave says so
  std::string container_hint;
  bool subuid = false, subgid = false;           // a range for this user is delegated
  bool state_home = false, runtime_dir = false;  // a state directory can be named; XDG_RUNTIME_DIR is set
};

HostFacts host_facts();

// Whether a line of /etc/subuid or /etc/subgid delegates a range to the user. Pure.
bool has_subordinate_range(const std::string& text, const std::string& user, uint32_t uid);

}  // namespace h5i::os
