#include "core/os/beneath.hpp"
#include "core/session/placeholders.hpp"
#include "core/session/sweep.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;
using namespace h5i::test;

namespace {
Json plan_with(const std::vector<std::pair<std::string, std::string>>& mounts) {
  Json p = json::Object{{"mounts", json::Array{}}};
  for (const auto& [kind, target] : mounts) p["mounts"].push(json::Object{{"kind", kind}, {"target", target}});
  return p;
}
}  // namespace

TEST_CASE("names that a plan masks and that are not there are found, with their parents", "[session]") {
  Scratch s;
  write_file(s / "work/there", "x");
  std::filesystem::create_directories(s / "work/a");
  Json plan = plan_with({{"mask", s / "work/there"}, {"mask", s / "work/a/b/key"}, {"mask", "/proc/kcore"}, {"bind", s / "work/none"},
                         {"mask", s / "workshop/x"}});
  CHECK(names_to_be_made(plan, s / "work") == std::vector<std::string>{"a/b", "a/b/key"});
}

TEST_CASE("names outside the work tree are those below what is granted for writing where it is", "[session]") {
  Scratch s;
  for (const char* d : {"work/own", "open", "read", "far"}) std::filesystem::create_directories(s / d);
  write_file(s / "open/there", "");
  Json plan = plan_with({{"mask", s / "work/key"}, {"mask", s / "work/own/key"}, {"mask", s / "open/late/name"}, {"mask", s / "open/there"}, {"mask", s / "read/late"},
                         {"mask", s / "far/late"}, {"mask", s / "none/late"}});
  auto grant = [&](const std::string& source, const std::string& target, const char* flag) {
    plan["mounts"].push(json::Object{{"kind", "bind"}, {"source", source}, {"target", target}, {"flags", json::Array{flag}}});
  };
  grant(s / "work", s / "work", "nosuid");
  grant(s / "work/own", s / "work/own", "nosuid");
  grant(s / "open", s / "open", "nosuid");
  grant(s / "read", s / "read", "ro");
  grant(s / "open", s / "far", "nosuid");
  auto names = names_to_be_made_outside(plan, s / "work");
  CHECK(names == std::vector<std::string>{s / "open/late", s / "open/late/name"});
  write_file(s / "open/late/name", "");
  CHECK(remove_placeholders_outside(names) == std::vector<std::string>{s / "open/late/name", s / "open/late"});
  CHECK(std::filesystem::exists(s / "open/there"));
}

TEST_CASE("placeholders are removed while they are empty, never through a link", "[session]") {
  Scratch s;
  write_file(s / "work/a/b/key", "");
  write_file(s / "work/filled", "text");
  write_file(s / "work/used/file", "x");
  write_file(s / "outside/key", "");
  std::filesystem::create_directory_symlink(s / "outside", s / "work/link");
  auto work = os::open_directory(s / "work");
  REQUIRE(work);
  auto removed = remove_placeholders(*work, {"a", "a/b", "a/b/key", "filled", "used", "link/key", "never"});
  CHECK(removed == std::vector<std::string>{"a/b/key", "a/b", "a"});
  CHECK(std::filesystem::exists(s / "work/filled"));
  CHECK(std::filesystem::exists(s / "work/used/file"));
  CHECK(std::filesystem::exists(s / "outside/key"));
}

TEST_CASE("the sweep removes what a killed run left in the work tree", "[session]") {
  Scratch s;
  Manifest m = some_manifest("human", "fix");  // knows the placeholder a/.env
  m.state = BoxState::RUNNING;
  BoxEntry box{m.name, make_box(s / "boxes", m)};
  write_file(box.paths.work() + "/a/.env", "");
  write_file(box.paths.work() + "/a/kept", "");
  Live live;
  live.session = *new_session_id();
  live.verb = "box run";
  live.started = rfc3339(realtime_ns());
  live.boot = boot_id();
  live.tier = "process";
  REQUIRE(write_live(box.paths, live).ok());
  auto swept = sweep_box(box, {});
  REQUIRE(swept.ok());
  REQUIRE(swept->has_value());
  CHECK((*swept)->removed == std::vector<std::string>{"work/a/.env"});
  CHECK(std::filesystem::exists(box.paths.work() + "/a/kept"));
}
