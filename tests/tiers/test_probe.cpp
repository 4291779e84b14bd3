#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "core/nft/uplink.hpp"
#include "probe.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_test.hpp"
#include "tests/support/losses.hpp"

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

KERNEL_TEST("the way out that is said is the one that h5i-net takes, with its version", "[tiers][probe]") {
  auto components = confined::probe_components(confined::read_facts(), k.root(), confined::kSupervised);
  const auto* uplink = find(components, "uplink");
  KREQUIRE(uplink != nullptr && !uplink->required);
  auto taken = nft::UplinkSearch("any").found();
  if (taken) KCHECK_SAYS(uplink->ok && uplink->evidence == taken->path + ": " + taken->version, uplink->evidence);
  else KCHECK_SAYS(!uplink->ok && uplink->evidence.find("slirp4netns") != std::string::npos, uplink->evidence);
  if (!k.root() || !taken) return;
  // Without the first the other is said, without both neither; where others stand is this test's own.
  KREQUIRE(unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  for (const char* program : {"/usr/bin/slirp4netns", "/usr/bin/passt"}) {
    if (access(program, X_OK) != 0) continue;
    KREQUIRE(mount("/dev/null", program, nullptr, MS_BIND, nullptr) == 0);
    taken = nft::UplinkSearch("any").found();
    components = confined::probe_components(confined::read_facts(), true, confined::kSupervised);
    uplink = find(components, "uplink");
    KCHECK_SAYS(uplink->ok == static_cast<bool>(taken) && (!taken || uplink->evidence == taken->path + ": " + taken->version), uplink->evidence);
  }
  KCHECK_SAYS(!uplink->ok && uplink->evidence.find("neither slirp4netns nor pasta") == 0, uplink->evidence);
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

KERNEL_TEST("whatever supervised needs is named when it is taken away, and without it nothing is claimed", "[tiers][probe]") {
  confined::HostFacts facts = confined::read_facts();
  facts.cgroup = *json::parse(R"({"available":true,"base":"/b","via":"delegated","controllers":["memory","pids","cpu"],"reason":""})");
  for (const Loss& loss : losses()) {
    int p[2];
    KREQUIRE(pipe2(p, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
      confined::HostFacts here = facts;
      if (loss.rules.empty()) here.cgroup["controllers"] = json::Array{"memory"};
      if (!loss.rules.empty() && !install(loss.rules)) _exit(9);
      json::Value d = confined::probe_document(confined::probe_components(here, k.root(), confined::kSupervised), confined::kSupervised);
      std::string text = json::canonical(json::Object{{"available", d["available"]}, {"missing", d["missing"]}, {"claims", d["claims"]}});
      _exit(write(p[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 8);
    }
    close(p[1]);
    std::string text(16384, 0);
    ssize_t n = read(p[0], text.data(), text.size());
    close(p[0]);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    int status = 0;
    waitpid(pid, &status, 0);
    auto d = json::parse(text);
    std::string what = std::string(loss.component) + ": " + text + " status " + std::to_string(status);
    KCHECK_SAYS(d && !(*d)["available"].boolean() && (*d)["claims"].array().empty(), what);
    bool named = false;
    if (d)
      for (const json::Value& m : (*d)["missing"].array()) named = named || m.string() == loss.component;
    KCHECK_SAYS(named, what);
  }
  // The control, as far as this machine and user go: none of the eight is missing.
  json::Value whole = confined::probe_document(confined::probe_components(facts, k.root(), confined::kSupervised), confined::kSupervised);
  for (const json::Value& m : whole["missing"].array())
    for (const Loss& loss : losses()) KCHECK_SAYS(m.string() != loss.component, m.string());
}
