#include <sys/wait.h>

#include <cerrno>

#include "core/cli/diagnosis.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::cli;
using os::HostFacts;

namespace {

// An ordinary user's host on which nothing is missing.
HostFacts good() {
  HostFacts f;
  f.kernel = "6.1.0";
  f.machine = "x86_64";
  f.security_modules = {"capability", "landlock"};
  f.security_modules_known = true;
  f.uid = 1000;
  f.landlock_abi = 2;
  f.seccomp_filter = f.seccomp_notify = true;
  f.user_namespace = {true, "", 0};
  f.cgroup = "v2";
  f.cgroup_delegated = true;
  f.cgroup_base = "/sys/fs/cgroup/user.slice/x";
  f.subuid = f.subgid = f.state_home = f.runtime_dir = true;
  return f;
}

Finding of(const HostFacts& f, const std::string& id) {
  for (const Finding& x : diagnose(f))
    if (x.id == id) return x;
  FAIL("no finding " << id);
  return {};
}

HostFacts denied(const char* step, int error) {
  HostFacts f = good();
  f.user_namespace = {false, step, error};
  return f;
}

}  // namespace

TEST_CASE("on a host that lacks nothing every finding is ok and none has a remedy") {
  for (const Finding& f : diagnose(good())) {
    INFO(f.id);
    CHECK(f.state == "ok");
    CHECK(f.remedy.empty());
    CHECK_FALSE(f.evidence.empty());
  }
}

TEST_CASE(
    "a denied user namespace is AppArmor, a sysctl, an outer filter, hidden mounts or the kernel, and never another") {
  HostFacts apparmor = denied("tmpfs", EACCES);
  apparmor.apparmor_restrict_userns = 1;
  CHECK(of(apparmor, "user-namespace").cause == "apparmor");
  CHECK(of(apparmor, "user-namespace").remedy.find("apparmor_restrict_unprivileged_userns=0") != std::string::npos);

  HostFacts profile = denied("unshare", EPERM);
  profile.apparmor_profile = "docker-default (enforce)";
  CHECK(of(profile, "user-namespace").cause == "apparmor");
  CHECK(of(profile, "user-namespace").evidence.find("docker-default") != std::string::npos);

  HostFacts sysctl = denied("unshare", EPERM);
  sysctl.unprivileged_userns_clone = 0;
  CHECK(of(sysctl, "user-namespace").cause == "sysctl");
  CHECK(of(sysctl, "user-namespace").remedy.find("unprivileged_userns_clone=1") != std::string::npos);

  HostFacts none = denied("unshare", ENOSPC);
  none.max_user_namespaces = 0;
  CHECK(of(none, "user-namespace").remedy.find("max_user_namespaces") != std::string::npos);

  HostFacts filter = denied("unshare", EPERM);
  filter.seccomp_mode = 2;
  filter.in_container = true;
  filter.container_hint = "/.dockerenv";
  CHECK(of(filter, "user-namespace").cause == "outer-filter");
  CHECK(of(filter, "user-namespace").remedy.find("seccomp=unconfined") != std::string::npos);

  HostFacts masked = denied("proc", EPERM);
  masked.seccomp_mode = 2;
  masked.in_container = true;
  CHECK(of(masked, "user-namespace").cause == "outer-mounts");

  CHECK(of(denied("unshare", EINVAL), "user-namespace").cause == "kernel");
  HostFacts unknown = denied("id map", EIO);
  CHECK(of(unknown, "user-namespace").cause == "unknown");
  CHECK_FALSE(of(unknown, "user-namespace").remedy.empty());
}

TEST_CASE("a sysctl that binds ordinary users only is not blamed for root") {
  HostFacts f = denied("unshare", EPERM);
  f.uid = 0;
  f.unprivileged_userns_clone = 0;
  f.apparmor_restrict_userns = 1;
  f.seccomp_mode = 2;
  CHECK(of(f, "user-namespace").cause == "outer-filter");
}

TEST_CASE("Landlock that is switched off at boot is told apart from one that is not built in or is filtered") {
  HostFacts f = good();
  f.landlock_abi = 0;
  f.landlock_error = EOPNOTSUPP;
  CHECK(of(f, "landlock").cause == "boot");
  f.landlock_error = ENOSYS;
  CHECK(of(f, "landlock").cause == "kernel");
  f.landlock_error = EPERM;
  f.seccomp_mode = 2;
  CHECK(of(f, "landlock").cause == "outer-filter");
  CHECK(of(f, "landlock").state == "missing");
}

TEST_CASE("cgroup v1, no delegation and an outer container have different remedies, and limit rather than forbid") {
  HostFacts f = good();
  f.cgroup_delegated = false;
  CHECK(of(f, "cgroup").cause == "not-delegated");
  CHECK(of(f, "cgroup").remedy.find("Delegate=yes") != std::string::npos);
  f.in_container = true;
  CHECK(of(f, "cgroup").cause == "outer-container");
  f.cgroup = "hybrid";
  CHECK(of(f, "cgroup").cause == "cgroup-v1");
  f.cgroup = "none";
  CHECK(of(f, "cgroup").cause == "no-cgroup");
  CHECK(of(f, "cgroup").state == "limited");
}

TEST_CASE("missing subordinate ids name the file and the command, and are root's no concern") {
  HostFacts f = good();
  f.subgid = false;
  CHECK(of(f, "subordinate-ids").state == "limited");
  CHECK(of(f, "subordinate-ids").evidence.find("/etc/subgid") != std::string::npos);
  CHECK(of(f, "subordinate-ids").remedy.find("usermod") != std::string::npos);
  f.uid = 0;
  CHECK(of(f, "subordinate-ids").state == "ok");
  CHECK(os::has_subordinate_range("# c\nalice:100000:65536\n", "alice", 1000));
  CHECK(os::has_subordinate_range("1000:100000:65536", "alice", 1000));
  CHECK_FALSE(os::has_subordinate_range("alice:100000:0\n", "alice", 1000));
  CHECK_FALSE(os::has_subordinate_range("malice:100000:65536\nalice:1\n", "alice", 1000));
}

TEST_CASE("a host without a home directory or with vm.memfd_noexec=2 is told so") {
  HostFacts f = good();
  f.state_home = false;
  f.memfd_noexec = 2;
  CHECK(of(f, "directories").cause == "no-home");
  CHECK(of(f, "executable-memfd").cause == "sysctl");
}

TEST_CASE("the facts of this very host can be read, and reading them leaves no child") {
  HostFacts f = os::host_facts();
  CHECK_FALSE(f.kernel.empty());
  CHECK(f.uid == geteuid());
  CHECK((f.user_namespace.ok || !f.user_namespace.step.empty()));
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
  CHECK(host_line(f).find(f.kernel) != std::string::npos);
}
