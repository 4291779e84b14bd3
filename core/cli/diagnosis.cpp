#include "core/cli/diagnosis.hpp"

#include <cerrno>
#include <cstring>

namespace h5i::cli {
namespace {

using os::HostFacts;

Finding ok(std::string id, std::string evidence) { return {std::move(id), "ok", "", std::move(evidence), ""}; }

std::string trial_text(const os::NamespaceTrial& t) { return t.step + ": " + strerror(t.error); }

// Who forbids namespaces. The most specific cause first: a sysctl that says no explains an EPERM better than a filter
// that may have said it.
Finding user_namespace(const HostFacts& f) {
  const char* id = "user-namespace";
  const os::NamespaceTrial& t = f.user_namespace;
  if (t.ok) return ok(id, "made one with private mounts and its own /proc");
  Finding out{id, "missing", "", trial_text(t), ""};
  bool denied = t.error == EPERM || t.error == EACCES;
  if (f.max_user_namespaces == 0) {
    out.cause = "sysctl";
    out.evidence += "; user.max_user_namespaces is 0";
    out.remedy = "as root: sysctl user.max_user_namespaces=15000";
  } else if (t.step == "unshare" && t.error == ENOSPC) {
    out.cause = "sysctl";
    out.evidence +=
        "; user.max_user_namespaces is " + std::to_string(f.max_user_namespaces) + ", all in use or nested too deeply";
    out.remedy = "as root: raise user.max_user_namespaces";
  } else if (denied && f.unprivileged_userns_clone == 0 && f.uid != 0) {
    out.cause = "sysctl";
    out.evidence += "; kernel.unprivileged_userns_clone is 0";
    out.remedy = "as root: sysctl kernel.unprivileged_userns_clone=1";
  } else if (denied && f.apparmor_restrict_userns == 1 && f.uid != 0) {
    out.cause = "apparmor";
    out.evidence += "; kernel.apparmor_restrict_unprivileged_userns is 1";
    out.remedy =
        "as root: an AppArmor profile for h5i-host that has the rule 'userns,', or sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0";
  } else if (denied && !f.apparmor_profile.empty() && f.apparmor_profile != "unconfined") {
    out.cause = "apparmor";
    out.evidence += "; this process runs under the AppArmor profile " + f.apparmor_profile;
    out.remedy = "start h5i outside that profile; for a container: --security-opt apparmor=unconfined";
  } else if (t.step == "proc" && denied && f.in_container) {
    out.cause = "outer-mounts";
    out.evidence += "; parts of /proc are hidden here (" + f.container_hint + ")";
    out.remedy =
        "start the outer container with an unmasked /proc: --security-opt systempaths=unconfined, or --security-opt "
        "unmask=ALL";
  } else if (denied && f.seccomp_mode == 2) {
    out.cause = "outer-filter";
    out.evidence += "; this process is already under a system-call filter" +
                    (f.in_container ? " (" + f.container_hint + ")" : std::string());
    out.remedy =
        "start the outer container with a filter that lets unshare, clone and mount pass, for example --security-opt "
        "seccomp=unconfined";
  } else if (t.step == "unshare" && (t.error == ENOSYS || t.error == EINVAL)) {
    out.cause = "kernel";
    out.evidence += "; this kernel has no user namespaces";
    out.remedy = "use a kernel with CONFIG_USER_NS, CONFIG_PID_NS and CONFIG_NET_NS";
  } else {
    out.cause = "unknown";
    out.remedy = "h5i box probe shows each component; report the output of h5i box doctor --json";
  }
  return out;
}

Finding landlock(const HostFacts& f) {
  if (f.landlock_abi > 0) return ok("landlock", "ABI " + std::to_string(f.landlock_abi));
  Finding out{"landlock", "missing", "", "landlock_create_ruleset: " + std::string(strerror(f.landlock_error)), ""};
  if (f.landlock_error == EOPNOTSUPP) {
    out.cause = "boot";
    out.remedy = "add landlock to the lsm= list of the kernel's command line";
  } else if (f.landlock_error == EPERM && f.seccomp_mode == 2) {
    out.cause = "outer-filter";
    out.remedy = "start the outer container with a filter that knows the Landlock calls";
  } else {
    out.cause = "kernel";
    out.remedy = "use a kernel with CONFIG_SECURITY_LANDLOCK (5.13 or newer)";
  }
  return out;
}

Finding seccomp(const HostFacts& f) {
  if (f.seccomp_filter && f.seccomp_notify) return ok("seccomp", "filters and user notification");
  if (f.seccomp_filter)
    return {"seccomp", "missing", "kernel", "filters, but no user notification", "use a kernel of 5.0 or newer"};
  return {"seccomp", "missing", "kernel", "no system-call filters", "use a kernel with CONFIG_SECCOMP_FILTER"};
}

Finding cgroup(const HostFacts& f) {
  const char* id = "cgroup";
  if (f.cgroup_delegated) return ok(id, f.cgroup + ", a group of our own could be made in " + f.cgroup_base);
  Finding out{id, "limited", "",
              f.cgroup + ": " + (f.cgroup_reason.empty() ? "no group of our own could be made" : f.cgroup_reason), ""};
  std::string then = "; until then `supervised` is refused, and `process` holds limits by rlimits, per process, and says so in the receipt";
  if (f.cgroup == "v1" || f.cgroup == "hybrid") {
    out.cause = "cgroup-v1";
    out.remedy = "boot with systemd.unified_cgroup_hierarchy=1 (cgroup v2 alone)" + then;
  } else if (f.cgroup == "none") {
    out.cause = "no-cgroup";
    out.remedy = "mount cgroup2 on /sys/fs/cgroup" + then;
  } else if (f.in_container) {
    out.cause = "outer-container";
    out.remedy =
        "give the outer container a cgroup namespace with write access (--cgroupns=private, writable /sys/fs/cgroup)" +
        then;
  } else {
    out.cause = "not-delegated";
    out.remedy = "have a service manager of your own (systemd --user with a bus, as dbus-user-session and a login bring it), or run h5i in a "
                 "service with Delegate=yes" + then;
  }
  return out;
}

Finding subordinate_ids(const HostFacts& f) {
  const char* id = "subordinate-ids";
  if (f.uid == 0) return ok(id, "not needed by root");
  if (f.subuid && f.subgid) return ok(id, "ranges in /etc/subuid and /etc/subgid");
  std::string missing = f.subuid ? "/etc/subgid" : f.subgid ? "/etc/subuid" : "/etc/subuid and /etc/subgid";
  return {
      id, "limited", "no-range", "no range for uid " + std::to_string(f.uid) + " in " + missing,
      "as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER; only tiers with images need it"};
}

Finding memfd(const HostFacts& f) {
  if (f.memfd_noexec < 2)
    return ok("executable-memfd", f.memfd_noexec < 0 ? "this kernel does not restrict it"
                                                     : "vm.memfd_noexec is " + std::to_string(f.memfd_noexec));
  return {"executable-memfd", "limited", "sysctl", "vm.memfd_noexec is 2",
          "install h5i as root so that its helpers need no private copy, or as root: sysctl vm.memfd_noexec=1"};
}

Finding directories(const HostFacts& f) {
  if (!f.state_home)
    return {"directories", "limited", "no-home", "neither XDG_STATE_HOME nor HOME is an absolute path", "set HOME"};
  return ok("directories",
            f.runtime_dir ? "home and runtime directory" : "home; without XDG_RUNTIME_DIR the state directory is used");
}

}  // namespace

std::vector<Finding> diagnose(const HostFacts& f) {
  return {user_namespace(f), landlock(f), seccomp(f), cgroup(f), subordinate_ids(f), memfd(f), directories(f)};
}

std::string host_line(const HostFacts& f) {
  std::string modules;
  for (const std::string& m : f.security_modules) modules += (modules.empty() ? "" : " ") + m;
  return "Linux " + f.kernel + " " + f.machine + ", security modules " +
         (f.security_modules_known ? modules : "unknown (securityfs is not mounted)") + ", Landlock " +
         (f.landlock_abi > 0 ? "ABI " + std::to_string(f.landlock_abi) : "none") + ", uid " + std::to_string(f.uid);
}

}  // namespace h5i::cli
