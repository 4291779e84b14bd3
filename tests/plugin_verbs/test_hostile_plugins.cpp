// A plugin that lies, and plugins that are put where h5i might look: from the command line, as their victims would meet
// them.
#include <sys/stat.h>

#include "core/plugin/manifest.hpp"
#include "tests/plugin_verbs/prefix.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

bool listed(const Json& document, const std::string& name) {
  for (const Json& p : document["plugins"].array())
    if (p["name"].string() == name) return true;
  return false;
}

Ended make_box(const Prefix& p, const std::string& tier) {
  return p.h5i({"box", "create", "--new", "--name", "one", "--isolation", tier});
}

}  // namespace

TEST_CASE("a plugin whose enforcement does nothing is caught by the core before the program runs") {
  Prefix p;
  p.scratch().add("noop");
  std::string witness = p.root().string() + "/witness";
  // It says that everything was proved, so a box can be made with it.
  Ended made = make_box(p, "fixture.noop");
  INFO(made.out << made.err);
  REQUIRE(made.status == 0);
  Ended e = p.h5i({"box", "run", "one", "--", "/bin/sh", "-c", "echo ran >" + witness});
  CHECK(e.status == 125);
  CHECK(is_refusal(e.err, "tier.overclaim"));
  CHECK_FALSE(fs::exists(witness));
  // The refusal is in the box's log.
  CHECK(p.h5i({"box", "log", "one"}).out.find("tier.overclaim") != std::string::npos);
}

TEST_CASE("control: a plugin that claims nothing may run a program in a box made for it") {
  Prefix p;
  p.scratch().add("good");
  std::string witness = p.root().string() + "/witness";
  Ended made = make_box(p, "fixture.good");
  INFO(made.out << made.err);
  REQUIRE(made.status == 0);
  Ended e = p.h5i({"box", "run", "one", "--", "/bin/sh", "-c", "echo ran >" + witness});
  INFO(e.out << e.err);
  CHECK(e.status == 0);
  CHECK(fs::exists(witness));
}

TEST_CASE("a plugin that was swapped after the box was made is refused at the run, by digest") {
  Prefix p;
  std::string base = p.scratch().add("good");
  REQUIRE(make_box(p, "fixture.good").status == 0);
  write_file(base + ".so", read_file(base + ".so") + '\0');
  Ended e = p.h5i({"box", "run", "one", "--", "/bin/true"});
  CHECK(e.status == 125);
  CHECK(is_refusal(e.err, "plugin.digest"));
}

TEST_CASE("no variable adds a directory of plugins or a library to those that are believed") {
  Prefix p;
  p.scratch().add("good");
  Scratch planted;
  planted.add("noop");
  std::map<std::string, std::string> env;
  for (const char* name : {"H5I_PLUGIN_PATH", "H5I_PLUGINS", "H5I_HOME", "H5I_PREFIX", "LD_LIBRARY_PATH", "PWD"})
    env[name] = planted.plugins();
  Ended e = p.h5i({"plugin", "list", "--json"}, env);
  REQUIRE(e.status == 0);
  Json list = *json::parse(e.out);
  CHECK(listed(list, "fixture.good"));
  CHECK_FALSE(listed(list, "fixture.noop"));
}

TEST_CASE("a state directory that somebody else owns gives no trust, whatever its lock file pins") {
  if (geteuid() != 0) return;  // only root can make one here
  Prefix p;
  fs::create_directories(p.user_plugins());
  p.scratch().add("good", p.user_plugins());
  REQUIRE(p.h5i({"plugin", "trust", "fixture.good"}).status == 0);
  CHECK(p.h5i({"plugin", "verify", "fixture.good"}).status == 0);
  // As after `sudo` with the user's environment kept: root meets another's files.
  for (const char* part :
       {"", "/plugins.lock.json", "/plugins", "/plugins/fixture-good.so", "/plugins/fixture-good.plugin.yaml"}) {
    std::string path = p.home() + "/.local/state/h5i" + part;
    REQUIRE(chown(path.c_str(), 4242, 4242) == 0);
    Ended e = p.h5i({"plugin", "verify", "fixture-good"});
    INFO(path << ": " << e.out << e.err);
    CHECK(e.status == 1);
    CHECK(e.out.find("plugin.owner") != std::string::npos);
    REQUIRE(chown(path.c_str(), 0, 0) == 0);
  }
  CHECK(p.h5i({"plugin", "verify", "fixture.good"}).status == 0);
}
