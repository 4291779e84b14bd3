#include <sys/stat.h>

#include "core/plugin/manifest.hpp"
#include "tests/plugin_verbs/prefix.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

const Json& plugin_of(const Json& document, const std::string& name) {
  static const Json kNone;
  for (const Json& p : document["plugins"].array())
    if (p["name"].string() == name) return p;
  return kNone;
}

// "plugin.digest" of a refusal in JSON.
std::string error_id(const Json& document) { return document["error"]["id"].string(); }

}  // namespace

TEST_CASE("plugin list without any plugin says so, and names the packages of our tiers") {
  Prefix p;
  Json list = p.json({"plugin", "list"}, 0);
  CHECK(list["plugins"].array().empty());
  CHECK(list["not_installed"].array().size() == 6);
  Ended e = p.h5i({"plugin", "list"});
  CHECK(e.out.find("no plugin is installed") == 0);
  CHECK(e.out.find("(package h5i-tier-process)") != std::string::npos);
}

TEST_CASE("plugin list shows usable and refused ones, each with its reason") {
  Prefix p;
  p.scratch().add("good");
  p.scratch().add("overclaim");
  std::string damaged = p.scratch().add("unavailable");
  write_file(damaged + ".so", read_file(damaged + ".so") + "x");
  chmod((p.scratch().plugins() + "/fixture-overclaim.so").c_str(), 0666);
  Json list = p.json({"plugin", "list"}, 0);
  CHECK(plugin_of(list, "fixture.good")["state"].string() == "usable");
  CHECK(plugin_of(list, "fixture.good")["trust"].string() == "system");
  CHECK(plugin_of(list, "fixture.overclaim")["reason"]["id"].string() == "plugin.owner");
  CHECK(plugin_of(list, "fixture.unavailable")["reason"]["id"].string() == "plugin.digest");
  Ended e = p.h5i({"plugin", "list"});
  CHECK(e.status == 0);
  CHECK(e.out.find("refused  plugin.owner: ") != std::string::npos);
}

TEST_CASE("a hostile file name or text of a manifest cannot move the cursor") {
  Prefix p;
  write_file(p.scratch().plugins() + "/a\x1b]0;x\x07\n.plugin.yaml", "x");
  Ended e = p.h5i({"plugin", "list"});
  CHECK(e.out.find('\x1b') == std::string::npos);
  CHECK(e.out.find("\\x1b") != std::string::npos);
  p.json({"plugin", "list"}, 0);
}

TEST_CASE("plugin inspect shows manifest and library, of an id, a file name and a path") {
  Prefix p;
  std::string base = p.scratch().add("good");
  for (const std::string& name : {std::string("fixture.good"), std::string("fixture-good"), base + ".plugin.yaml"}) {
    Json i = p.json({"plugin", "inspect", name}, 0);
    CHECK(i["manifest"]["id"].string() == "fixture.good");
    REQUIRE(i["library"]["exports"].array().size() == 1);
    CHECK(i["library"]["exports"].array()[0].string() == "h5i_plugin_entry_v1");
    CHECK(i["library"]["sha256"] == i["manifest"]["sha256"]);
  }
  CHECK(p.h5i({"plugin", "inspect", "fixture.good"}).out.find("exports   h5i_plugin_entry_v1") != std::string::npos);
  CHECK(error_id(p.json({"plugin", "inspect", "absent"}, 1)) == "not-found");
  write_file(base + ".plugin.yaml", "schema: h5i.plugin/1\n");
  Json bad = p.json({"plugin", "inspect", base + ".plugin.yaml"}, 1);
  CHECK(error_id(bad) == "plugin.manifest");
  CHECK(bad["error"]["next"].string().find("h5i plugin install") == 0);
  CHECK(is_refusal(p.h5i({"plugin", "inspect", base + ".plugin.yaml"}).err, "plugin.manifest"));
}

TEST_CASE("plugin verify answers by its exit status") {
  Prefix p;
  CHECK(p.json({"plugin", "verify"}, 0)["ok"].boolean());
  std::string base = p.scratch().add("good");
  CHECK(p.json({"plugin", "verify"}, 0)["ok"].boolean());
  CHECK(p.json({"plugin", "verify", "fixture.good"}, 0)["ok"].boolean());
  CHECK(error_id(p.json({"plugin", "verify", "absent"}, 1)) == "not-found");
  write_file(base + ".so", "not a library");
  CHECK_FALSE(p.json({"plugin", "verify"}, 1)["ok"].boolean());
  CHECK(p.h5i({"plugin", "verify", "fixture.good"}).status == 1);
}

TEST_CASE("a plugin in the user's directory goes from refused to pinned to refused to gone") {
  Prefix p;
  fs::create_directories(p.user_plugins());
  p.scratch().add("good", p.user_plugins());
  CHECK(plugin_of(p.json({"plugin", "list"}, 0), "fixture.good")["reason"]["id"].string() == "plugin.untrusted");
  Json pinned = p.json({"plugin", "trust", "fixture.good"}, 0);
  CHECK(pinned["trust"].string() == "pinned");
  Json list = p.json({"plugin", "list"}, 0);
  CHECK(plugin_of(list, "fixture.good")["state"].string() == "usable");
  CHECK(plugin_of(list, "fixture.good")["trust"].string() == "pinned");
  CHECK(plugin_of(list, "fixture.good")["digest"] == pinned["digest"]);
  p.json({"plugin", "untrust", "fixture.good"}, 0);
  CHECK(error_id(p.json({"plugin", "untrust", "fixture.good"}, 1)) == "not-found");
  CHECK(plugin_of(p.json({"plugin", "list"}, 0), "fixture.good")["reason"]["id"].string() == "plugin.untrusted");
  p.json({"plugin", "trust", "fixture.good"}, 0);
  p.json({"plugin", "remove", "fixture.good"}, 0);
  CHECK(p.json({"plugin", "list"}, 0)["plugins"].array().empty());
  CHECK(fs::is_empty(p.user_plugins()));
  // Its pin went with it: the same bytes put back are not trusted.
  p.scratch().add("good", p.user_plugins());
  CHECK(plugin_of(p.json({"plugin", "list"}, 0), "fixture.good")["state"].string() == "refused");
}

TEST_CASE("trust is refused for bytes that are not what the manifest says, or not built as a plugin") {
  Prefix p;
  fs::create_directories(p.user_plugins());
  std::string base = p.scratch().add("good", p.user_plugins());
  write_file(base + ".so", read_file(base + ".so") + "x");
  CHECK(error_id(p.json({"plugin", "trust", "fixture.good"}, 1)) == "plugin.digest");
  p.scratch().add("rpath", p.user_plugins());
  Json lint = p.json({"plugin", "trust", "fixture.rpath"}, 1);
  CHECK(error_id(lint) == "plugin.lint");
  CHECK(lint["error"]["evidence"].string().find("RPATH") != std::string::npos);
  CHECK(is_refusal(p.h5i({"plugin", "trust", "fixture.rpath"}).err, "plugin.lint"));
  CHECK(error_id(p.json({"plugin", "trust", "absent"}, 1)) == "not-found");
}

TEST_CASE("a new library under a pinned id needs trust again, and can get it") {
  Prefix p;
  fs::create_directories(p.user_plugins());
  std::string base = p.scratch().add("good", p.user_plugins());
  p.json({"plugin", "trust", "fixture.good"}, 0);
  // Another build of it: one byte more at the end of the file, and a manifest that is true about it.
  std::string bytes = read_file(base + ".so") + '\0';
  Json m = *json::parse(read_file(base + ".plugin.yaml"));
  m["sha256"] = sha256_hex(bytes);
  m["size"] = bytes.size();
  write_file(base + ".so", bytes);
  write_file(base + ".plugin.yaml", plugin::manifest_bytes(m));
  CHECK(plugin_of(p.json({"plugin", "list"}, 0), "fixture.good")["reason"]["id"].string() == "plugin.digest");
  p.json({"plugin", "trust", "fixture.good"}, 0);
  CHECK(plugin_of(p.json({"plugin", "list"}, 0), "fixture.good")["state"].string() == "usable");
}

TEST_CASE("a system plugin is not this verb's to remove, and is not pinned") {
  Prefix p;
  std::string base = p.scratch().add("good");
  Json e = p.json({"plugin", "remove", "fixture.good"}, 1);
  CHECK(error_id(e) == "denied");
  CHECK(e["error"]["next"].string().find("h5i-fixture") != std::string::npos);
  CHECK(fs::exists(base + ".so"));
  CHECK(error_id(p.json({"plugin", "trust", "fixture.good"}, 1)) == "not-found");
  CHECK(error_id(p.json({"plugin", "untrust", "fixture.good"}, 1)) == "not-found");
}

TEST_CASE("without a home there is no user's directory: trust is refused by name of the variable, list works") {
  Prefix p;
  Ended e = run(
      Program{.argv = {(p.root() / "bin/h5i").string(), "plugin", "trust", "x"}, .env = {}, .cwd = p.root().string()});
  CHECK(e.status == 1);
  CHECK(e.err.find("[home.missing]") != std::string::npos);
  CHECK(e.err.find("HOME") != std::string::npos);
  CHECK(run(Program{.argv = {(p.root() / "bin/h5i").string(), "plugin", "list"}, .env = {}, .cwd = p.root().string()})
            .status == 0);
}
