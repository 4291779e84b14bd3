#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include <fstream>
#include <sstream>

#include "probe.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_test.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

const confined::Component* find(const std::vector<confined::Component>& list, std::string_view id) {
  for (const auto& c : list)
    if (id == c.id) return &c;
  return nullptr;
}

bool write_text(const char* path, const std::string& text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  return ok;
}

}  // namespace

KERNEL_TEST("probe finds every component here, with evidence, and leaves nothing", "[tiers][probe]") {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // as the host process is
  auto components = confined::probe_components(confined::read_facts(), k.root());
  for (const auto& c : components)
    if (c.required) KCHECK_SAYS(c.ok && !c.evidence.empty(), std::string(c.id) + ": " + c.evidence);
  KCHECK((find(components, "idmapped-mounts") != nullptr) == k.root());
  json::Value d = confined::probe_document(components);
  KCHECK(d["available"].boolean() && d["claims"].array().size() == 15 && d["missing"].array().empty());
}

KERNEL_TEST("a host without user namespaces is found out by trying, and nothing is claimed", "[tiers][probe]") {
  std::string uid_map = std::to_string(k.who().uid) + " " + std::to_string(k.who().uid) + " 1";
  KREQUIRE(unshare(CLONE_NEWUSER) == 0);
  KREQUIRE(write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", uid_map));
  KREQUIRE(write_text("/proc/sys/user/max_user_namespaces", "0"));
  auto components = confined::probe_components(confined::read_facts(), false);
  const auto* user = find(components, "user-namespace");
  KCHECK(user != nullptr && !user->ok && std::string(user->reason) == "tier.probe.missing");
  json::Value d = confined::probe_document(components);
  KCHECK(!d["available"].boolean() && d["claims"].array().empty() && !d["missing"].array().empty());
}

KERNEL_TEST("a covered /proc, as in a container, is found out by trying", "[tiers][probe]") {
  std::string uid_map = std::to_string(k.who().uid) + " " + std::to_string(k.who().uid) + " 1";
  KREQUIRE(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
  KREQUIRE(write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", uid_map));
  KREQUIRE(write_text("/proc/self/gid_map", uid_map));
  // Each of them: the kernel lets a new one be mounted as long as any is whole, and a build root on this machine has its own.
  std::ifstream mounts("/proc/self/mountinfo");
  std::vector<std::string> whole;
  for (std::string line, id, parent, device, root, at; std::getline(mounts, line);) {
    std::istringstream words(line);
    words >> id >> parent >> device >> root >> at;
    if (line.find(" - proc ") != std::string::npos && root == "/") whole.push_back(at);
  }
  KREQUIRE(!whole.empty());
  for (const std::string& at : whole) KREQUIRE(mount("tmpfs", (at + "/sys").c_str(), "tmpfs", 0, "size=64k") == 0);
  auto components = confined::probe_components(confined::read_facts(), false);
  const auto* pid = find(components, "pid-namespace");
  KCHECK(pid != nullptr && !pid->ok);
  const auto* user = find(components, "user-namespace");
  KCHECK(user != nullptr && user->ok);  // control: the rest is as before
}

TEST_CASE("the cgroup is no condition, but is said", "[tiers][probe]") {
  confined::HostFacts facts;
  facts.cgroup = json::Object{
      {"available", true}, {"base", "/sys/fs/cgroup/x"}, {"via", "delegated"}, {"controllers", json::Array{}}};
  std::vector<confined::Component> list = {{"cgroup", false, "none", "tier.probe.missing", false}};
  CHECK(confined::probe_document(list)["available"].boolean());
  list.push_back({"landlock", false, "none", "tier.probe.missing", true});
  CHECK_FALSE(confined::probe_document(list)["available"].boolean());
}
