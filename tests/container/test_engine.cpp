#include <unistd.h>

#include "engine.hpp"
#include "tests/support/catch.hpp"

using namespace h5i::container;

namespace {

EngineFacts whole() {
  EngineFacts f;
  f.uid = 1000;
  f.user = "u";
  f.podman = {"/usr/bin/podman", "podman version 4.3.1", ""};
  f.crun = {"/usr/bin/crun", "crun version 1.8.1", ""};
  f.newuidmap = {"/usr/bin/newuidmap", "", ""};
  f.newgidmap = {"/usr/bin/newgidmap", "", ""};
  f.uids = f.gids = {{100000, 65536}};
  return f;
}
// The ids of what is missing, and the evidence of the first.
std::string missing(const EngineFacts& f, std::string* evidence = nullptr) {
  std::string out;
  for (const Component& c : judge_engine(f)) {
    if (c.ok || !c.required) continue;
    if (out.empty() && evidence) *evidence = c.evidence;
    out += (out.empty() ? "" : " ") + c.id;
  }
  return out;
}

}  // namespace

TEST_CASE("each piece that rootless podman needs is missed by its name", "[container][engine]") {
  CHECK(missing(whole()).empty());
  auto without = [](auto change) {
    EngineFacts f = whole();
    change(f);
    return missing(f);
  };
  CHECK(without([](auto& f) { f.podman = {}; }) == "podman");
  CHECK(without([](auto& f) { f.podman.version = "podman version 3.4.4"; }) == "podman");
  CHECK(without([](auto& f) { f.podman.version = "docker version 20.1.0"; }).empty());  // what it calls itself proves nothing either way
  CHECK(without([](auto& f) { f.podman.version = "20"; }) == "podman");
  CHECK(without([](auto& f) { f.podman.fault = "/usr/local/bin/podman is not root's alone"; }) == "podman");
  CHECK(without([](auto& f) { f.crun = {}; }) == "crun");
  CHECK(without([](auto& f) { f.crun.version = "crun version 1.4"; }) == "crun");
  CHECK(without([](auto& f) { f.newuidmap = {}; }) == "newuidmap");
  CHECK(without([](auto& f) { f.newgidmap = {}; }) == "newgidmap");
  CHECK(without([](auto& f) { f.uids = {}; }) == "subordinate-ids");
  CHECK(without([](auto& f) { f.gids = {{100000, 65535}}; }) == "subordinate-ids");
  CHECK(without([](auto& f) { f.mapping = "newuidmap refused"; }) == "id-mapping");
}

TEST_CASE("rootful podman and docker are refused in words", "[container][engine]") {
  std::string words;
  EngineFacts f = whole();
  f.uid = 0;
  CHECK(missing(f, &words) == "rootless");
  CHECK(words.find("rootful podman is refused") != std::string::npos);
  f = whole();
  f.docker = true;
  CHECK(missing(f).empty());  // beside podman it is nobody's business
  f.podman = {};
  CHECK(missing(f, &words) == "podman");
  CHECK(words.find("docker is there and refused") != std::string::npos);
}

TEST_CASE("the tables of ranges are read as newuidmap reads them", "[container][engine]") {
  auto r = ranges_of("other:100000:65536\nu:300000:1000\n1000:500000:65536\nu:x:5\nu:5\n\nu:0:65536\nu:1:0\nu:4294967295:65536\nuu:7:7\n", "u", 1000);
  REQUIRE(r.size() == 2);
  CHECK(r[0].first == 500000);
  CHECK(r[1].count == 1000);
  CHECK(ranges_of("", "u", 1000).empty());
  CHECK(ranges_of(":1:65536\n", "", 7).empty());  // a user without a name has no line
  CHECK(at_least("podman version 4.3.1", 4, 3));
  CHECK(at_least("podman version 5.0", 4, 3));
  CHECK_FALSE(at_least("podman version 4.2.9", 4, 3));
  CHECK_FALSE(at_least("podman version 4", 4, 3));
  CHECK_FALSE(at_least("", 4, 3));
}

TEST_CASE("looking at this host says something of every piece", "[container][engine]") {
  EngineFacts f = read_engine();
  CHECK(f.uid == geteuid());
  for (const Component& c : judge_engine(f)) CHECK_FALSE(c.evidence.empty());
}
