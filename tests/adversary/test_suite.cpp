// The table at both tiers of this tree, as root and as an ordinary user.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/adversary/world.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;

namespace {

constexpr unsigned kOther = 65533;  // an ordinary user without an account

adversary::Target target(const std::string& tier, unsigned uid) {
  std::string build = getenv("H5I_BUILD_DIR");
  return {.h5i = build + "/out/bin/h5i", .tier = tier, .attack = build + "/tests/adversary/h5i-attack", .uid = uid};
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

void run_as(const std::string& tier, unsigned uid) {
  adversary::Report report = adversary::run(target(tier, uid), only());
  for (const std::string& failure : report.failures()) FAIL_CHECK(tier << " as " << uid << ": " << failure);
  printf("%s as %u: %zu findings, %zu controls, %zu without one here\n", tier.c_str(), uid, report.findings.size(), report.controls,
         report.without_control);
  if (getenv("H5I_ADVERSARY_SHOW"))
    for (const auto& f : report.findings) printf("  %s %s: %s: %s\n", f.id.c_str(), f.place.c_str(), f.act.c_str(), f.words.c_str());
  CHECK(report.findings.size() > 0);
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
