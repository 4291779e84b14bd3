// Copies of the process tier, each with one protection removed. Each must be refused by the core before a program runs, or
// reported by the suite by name; the table says which, and with which words.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/adversary/world.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text_file.hpp"

using namespace h5i;
namespace fs = std::filesystem;

namespace {

constexpr unsigned kOther = 65533;

// An installation of its own, with the mutated library in the place of the tier's.
class Installation {
 public:
  explicit Installation(const std::string& mutation) {
    char name[] = "/tmp/h5i-mutant-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    root_ = name;
    chmod(root_.c_str(), 0755);
    std::string build = getenv("H5I_BUILD_DIR"), out = build + "/out";
    for (const char* d : {"/bin", "/libexec/h5i", "/lib/h5i/plugins/1"}) fs::create_directories(root_ + d);
    for (const char* f : {"/bin/h5i", "/libexec/h5i/h5i-host", "/libexec/h5i/h5i-init", "/libexec/h5i/h5i-canary", "/libexec/h5i/h5i-policy",
                          "/libexec/h5i/h5i-repo", "/libexec/h5i/h5i-evidence"})
      if (link((out + f).c_str(), (root_ + f).c_str()) != 0) fs::copy_file(out + f, root_ + f);
    if (mutation == "a descriptor left open") {  // not a plan's doing: this one is the spawner's
      fs::remove(root_ + "/libexec/h5i/h5i-host");
      fs::copy_file(build + "/tests/adversary/mutants/h5i-host-leaky", root_ + "/libexec/h5i/h5i-host");
    }
    std::string library = test::read_file(build + "/tests/adversary/mutants/tier-mutant.so");
    size_t at = library.find("@H5I-MUTATION@");
    REQUIRE(at != std::string::npos);
    REQUIRE(mutation.size() < 64);
    library.replace(at, 64, mutation + std::string(64 - mutation.size(), '\0'));
    auto manifest = json::parse(test::read_file(out + "/lib/h5i/plugins/1/tier-process.plugin.yaml"));
    REQUIRE(manifest);
    (*manifest)["sha256"] = sha256_hex(library);
    (*manifest)["size"] = library.size();
    std::string dir = root_ + "/lib/h5i/plugins/1/";
    std::ofstream(dir + "tier-process.so", std::ios::binary) << library;
    std::ofstream(dir + "tier-process.plugin.yaml", std::ios::binary) << json::canonical(*manifest) << "\n";
  }
  Installation(const Installation&) = delete;
  Installation& operator=(const Installation&) = delete;
  ~Installation() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  std::string h5i() const { return root_ + "/bin/h5i"; }
  std::string plugins() const { return root_ + "/lib/h5i/plugins/1/"; }

 private:
  std::string root_;
};

struct Mutant {
  std::string name;
  std::string caught;              // words of the refusal, or the id of the case
  std::vector<std::string> cases;  // what the suite is asked when the core refuses nothing
  bool root_only = false;
};

// How the tier was found out: the refusal's words, or the suite's findings.
std::string fate(const Mutant& m, unsigned uid) {
  Installation in(m.name);
  std::string build = getenv("H5I_BUILD_DIR");
  adversary::Target t{.h5i = in.h5i(), .tier = "process", .attack = build + "/tests/adversary/h5i-attack", .uid = uid};
  {
    adversary::World w(t);
    std::string why;
    adversary::Place box = w.box("attack", &why);
    if (!box.inside()) return "create: " + why;
    adversary::Ran r = box.tries({{"sleep", "0"}});
    if (r.status != 0) return "run: " + r.err;
  }
  if (m.cases.empty()) return "ran, and nobody looked";
  std::string out;
  for (const std::string& failure : adversary::run(t, m.cases).failures()) out += "case " + failure + "\n";
  return out.empty() ? "not found out" : out;
}

const std::vector<Mutant>& mutants() {
  const std::string unheld = "tier process does not hold ", overclaim = "[tier.overclaim]", attest = "[tier.attest-mismatch]";
  static const std::vector<Mutant> all = {
      // verify_exec, with the host's own test program under the very plan
      {"no Landlock", "a mounted file that no Landlock rule names", {}},
      {"Landlock handles one right", "a mounted file that no Landlock rule names", {}},
      {"Landlock opens all", "a mounted file that no Landlock rule names", {}},
      {"no seccomp", "a user namespace of its own", {}},
      {"seccomp allows all", "a user namespace of its own", {}},
      {"seccomp of another policy", unheld + "net.unix", {}},
      {"no pid namespace", "a process outside, in /proc", {}},
      {"no network namespace", unheld + "net.mode", {}},
      {"new privileges possible", "a mounted file that no Landlock rule names", {}},
      {"a file of proc not masked", "a file of /proc that shows the whole machine", {}},
      {"no limits", "gave no limit; what the plan has for it", {}},
      {"limits too high", "what the plan has for it", {}},
      {"another user", "did not run as", {}, true},
      // the core: what the plan cannot keep, and what it sees from outside
      {"mounts not locked", "nothing in the plan locks its mounts", {}},
      {"capabilities kept", "the plan keeps capabilities", {}},
      {"in secret no Landlock", "the spawner executes another plan", {}},
      {"in secret mounts not locked", "[tier.attest-mismatch]", {}},
      {"in secret one more variable", "the spawner executes another plan", {}},
      {"in secret no limits", attest, {}},
      {"denied names not masked", "fs.deny is claimed, the plan does not mask", {}},
      {"read grants writable", "fs.write is claimed, the plan makes", {}},
      {"a folder besides the grants", "fs.read is claimed, the plan shows", {}},
      {"a device besides the harmless", "/dev/kmsg", {}},
      {"one more variable", "env is claimed, the plan sets LD_PRELOAD", {}},
      {"another program", "the plan would run another program", {}},
      // the suite, by the name of the case
      {"no ipc namespace", "case B18", {"B18"}},
      {"no uts namespace", "case B09 confined: hostname", {"B09"}},
      {"no cgroup namespace", "case B07 confined: cgroup-path", {"B07"}},
      {"proc sys writable", "case B09 confined: writable-mount /proc/sys", {"B09"}},
      {"mounts honour set-id", "case B19 confined: loose-mount", {"B19"}},
#if defined(__x86_64__)
      {"a descriptor left open", "would stay open in the program", {}},
#endif
  };
  return all;
}

}  // namespace

TEST_CASE("of each copy of the tier with one protection removed it is said who catches it", "[adversary][mutants]") {
  for (unsigned uid : geteuid() == 0 ? std::vector<unsigned>{0, kOther} : std::vector<unsigned>{0})
    for (const Mutant& m : mutants()) {
      if (m.root_only && (uid != 0 || geteuid() != 0)) continue;
      std::string found = fate(m, uid);
      if (getenv("H5I_ADVERSARY_SHOW")) printf("%s as %u: %.300s\n", m.name.c_str(), uid, found.c_str());
      CAPTURE(m.name, uid, found);
      CHECK(found.find(m.caught) != std::string::npos);
    }
}

TEST_CASE("a tier from outside is tried with the cases of what it claims, and one that claims more is found out", "[adversary][mutants]") {
  Installation in("nothing");
  std::string build = getenv("H5I_BUILD_DIR");
  for (const char* end : {".so", ".plugin.yaml"})
    fs::copy_file(build + "/tests/adversary/mutants/tier-template" + end, in.plugins() + "tier-template" + end);
  adversary::Target t{.h5i = in.h5i(), .tier = "org.example.template", .attack = build + "/tests/adversary/h5i-attack", .uid = geteuid() == 0 ? kOther : 0};
  t.claims = {"env.pass", "env.set"};  // as its manifest says
  adversary::Report report = adversary::run(t);
  CHECK(report.findings.size() >= 2);
  for (const std::string& failure : report.failures()) FAIL_CHECK(failure);
  // What it does not claim it does not hold, and the suite would see that.
  t.claims = {"fs.write"};
  CHECK(adversary::run(t, {"A33"}).failures().size() > 10);
}

TEST_CASE("control: the same copy with nothing removed is as good as the tier", "[adversary][mutants]") {
  std::string found = fate({"nothing", "", {"A01", "B21"}}, geteuid() == 0 ? kOther : 0);
  CHECK(found == "not found out");
}
