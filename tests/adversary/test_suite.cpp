// The table at both tiers of this tree, as root and as an ordinary user.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/adversary/cases.hpp"
#include "tests/adversary/world.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;

namespace {

constexpr unsigned kOther = 65533;  // an ordinary user without an account

adversary::Target target(const std::string& tier, unsigned uid) {
  std::string build = getenv("H5I_BUILD_DIR");
  const char* attack = getenv("H5I_ADVERSARY_ATTACK");
  return {.h5i = build + "/out/bin/h5i", .tier = tier, .attack = attack ? attack : build + "/tests/adversary/h5i-attack", .uid = uid};
}

std::vector<std::string> only() {
  std::vector<std::string> out;
  const char* text = getenv("H5I_ADVERSARY_ONLY");  // ids with commas between, to look at a few
  for (std::string rest = text ? text : ""; !rest.empty();) {
    size_t comma = rest.find(',');
    out.push_back(rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return out;
}

void run_through(const adversary::Target& t) {
  adversary::Report report = adversary::run(t, only());
  for (const std::string& failure : report.failures()) FAIL_CHECK(t.tier << " as " << t.uid << ": " << failure);
  printf("%s as %u: %s", t.tier.c_str(), t.uid, report.counts().c_str());
  CHECK(report.findings.size() > 0);
}
void run_as(const std::string& tier, unsigned uid) { run_through(target(tier, uid)); }

std::string said(const char* name) {
  const char* value = getenv(name);
  INFO(name << " is not set");
  REQUIRE(value != nullptr);
  return value;
}

}  // namespace

TEST_CASE("what the cases act on is gone afterwards, processes too", "[adversary]") {
  std::string home;
  {
    adversary::World w(target("process", geteuid() == 0 ? kOther : 0));
    home = w.home();
    CHECK_FALSE(adversary::processes_with(home).empty());
    CHECK(w.changed().empty());
  }
  CHECK(adversary::processes_with(home).empty());
  CHECK(access(home.c_str(), F_OK) != 0);
}

TEST_CASE("bare namespaces are a user's own, with every right in them and none outside", "[adversary]") {
  adversary::World w(target("process", geteuid() == 0 ? kOther : 0));
  const std::vector<std::vector<std::string>> acts = {{"sys", "sethostname", "s:bare", "4"}, {"hostname", "bare"}, {"become", "0"}, {"sys", "fsopen", "s:tmpfs", "0"},
                                                      {"sys", "getsid", "{victim}"}, {"connect", "tcp", "127.0.0.1", "{port}"}, {"unix", "stream", "{agent}"},
                                                      {"sys", "settimeofday", "0", "0"}};
  CHECK(w.outside(adversary::Ground::bare).tries(acts).answers == adversary::Answers{"did", "did", "did", "did", "ESRCH", "ECONNREFUSED", "did", "EPERM"});
  CHECK(w.outside().tries(acts).answers == adversary::Answers{"EPERM", "ENOENT", "EPERM", "EPERM", "did", "did", "did", "EPERM"});
  char name[65] = {};
  gethostname(name, sizeof name - 1);
  CHECK(std::string(name) != "bare");
}
TEST_CASE("what a kernel lacks is proved by asking it, and nothing that it has is", "[adversary]") {
  adversary::World w(target("process", geteuid() == 0 ? kOther : 0));
  struct {
    adversary::Missing what;
    bool missing;
  } const cases[] = {{adversary::address_family(1), false},           {adversary::address_family(13), true},  // of NetBEUI, which Linux never had
                     {adversary::socket_kind(2, 1, 6), false},        {adversary::socket_kind(2, 1, 255), true},
                     {adversary::system_call("openat"), false},       {adversary::system_call("1000"), true},
                     {adversary::file_of_kernel("/proc/keys"), false}, {adversary::file_of_kernel("/proc/h5i-none"), true},
                     {adversary::file_of_kernel("/proc/keys/x"), false}};
  for (const auto& c : cases) {
    INFO(c.what.interface);
    CHECK(c.what.proved(w) == c.missing);
  }
  CHECK(adversary::loadable_modules().proved(w) == (access("/proc/modules", F_OK) != 0));
}
TEST_CASE("process stops every case that it must, tried by root", "[adversary]") {
  if (geteuid() == 0) run_as("process", 0);
}
TEST_CASE("process stops every case that it must, tried by an ordinary user", "[adversary]") {
  run_as("process", geteuid() == 0 ? kOther : 0);
}
TEST_CASE("workspace stops what it must and says that it confines nothing, tried by root", "[adversary]") {
  if (geteuid() == 0) run_as("workspace", 0);
}
TEST_CASE("workspace stops what it must and says that it confines nothing, tried by an ordinary user", "[adversary]") {
  run_as("workspace", geteuid() == 0 ? kOther : 0);
}

// In a guest that has a delegated cgroup and stands for the internet (tests/vm/supervised_world.sh), by root or by the user whom root names.
TEST_CASE("supervised stops every case that it must", "[.][supervised]") {
  const char* uid = getenv("H5I_ADVERSARY_UID");
  run_as("supervised", uid ? static_cast<unsigned>(atoi(uid)) : 0);
}

// For a tier of somebody else: its installation, its id and what it claims are said in the environment.
TEST_CASE("a given tier stops every case of what it claims", "[.][given]") {
  for (unsigned uid : geteuid() == 0 ? std::vector<unsigned>{0, kOther} : std::vector<unsigned>{0}) {
    adversary::Target t = target(said("H5I_ADVERSARY_TIER"), uid);
    t.h5i = said("H5I_ADVERSARY_H5I");
    std::istringstream words(said("H5I_ADVERSARY_CLAIMS"));
    for (std::string claim; words >> claim;) t.claims.push_back(claim);
    run_through(t);
  }
}
