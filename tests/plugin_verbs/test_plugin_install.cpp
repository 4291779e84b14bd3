#include <sys/stat.h>

#include "core/plugin/manifest.hpp"
#include "tests/plugin_verbs/prefix.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// An author's directory: a fixture's library, and a manifest as a person would write it.
struct Author {
  Scratch s;
  std::string base;
  Json manifest;
  explicit Author(const std::string& fixture = "good") {
    base = s.path() + "/mine";
    fs::copy_file(Scratch::fixture(fixture).string() + ".so", base + ".so");
    manifest = *json::parse(read_file(Scratch::fixture(fixture).string() + ".plugin.yaml"));
    manifest["library"] = "mine.so";
  }
  void write_yaml(const std::string& extra = "") const {
    auto list = [&](const char* key) {
      std::string out;
      for (const Json& v : manifest[key].array()) out += (out.empty() ? "" : ", ") + v.string();
      return "[" + out + "]";
    };
    std::string text = "# written by hand\nschema: h5i.plugin/1\nid: " + manifest["id"].string() +
                       "\nkind: tier\nversion: 1.0.0\nlibrary: mine.so\n" + "sha256: \"" + manifest["sha256"].string() +
                       "\"\nsize: " + std::to_string(manifest["size"].integer()) +
                       "\nplatform: " + manifest["platform"].string() +
                       "\nabi: { kind: stable, major: 1, minor: 0 }\ninterfaces: [h5i.tier/1]\nhost_services: " +
                       list("host_services") + "\nlanes: [host-observed]\nneeds: " + list("needs") +
                       "\nclaims: []\nposture: |-\n  A fixture.\nmaintainers: [me]\npackage: mine\n" + extra;
    write_file(base + ".plugin.yaml", text);
  }
};

std::string error_id(const Json& document) { return document["error"]["id"].string(); }

}  // namespace

TEST_CASE("a plugin with a manifest in YAML is installed in canonical form, and is not trusted by that") {
  Prefix p;
  Author a;
  a.write_yaml();
  Json done = p.json({"plugin", "install", a.base + ".so"}, 0);
  CHECK(done["trust"].string() == "none");
  CHECK(done["manifest"].string() == p.user_plugins() + "/fixture.good.plugin.yaml");
  std::string bytes = read_file(done["manifest"].string());
  CHECK(plugin::parse_manifest(bytes, "installed"));
  Json list = p.json({"plugin", "list"}, 0);
  REQUIRE(list["plugins"].array().size() == 1);
  CHECK(list["plugins"].array()[0]["reason"]["id"].string() == "plugin.untrusted");
  p.json({"plugin", "trust", "fixture.good"}, 0);
  CHECK(p.json({"plugin", "verify"}, 0)["ok"].boolean());
  CHECK(p.json({"box", "probe", "--tier", "fixture.good"}, 0)["tiers"].array()[0]["state"].string() == "available");
  // The same again: its digest is pinned already.
  CHECK(p.json({"plugin", "install", a.base + ".plugin.yaml"}, 0)["trust"].string() == "pinned");
  struct stat st {};
  REQUIRE(stat(p.user_plugins().c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0700);
}

TEST_CASE("another library under a pinned id is installed untrusted") {
  Prefix p;
  Author a;
  a.write_yaml();
  p.json({"plugin", "install", a.base + ".so"}, 0);
  p.json({"plugin", "trust", "fixture.good"}, 0);
  std::string bytes = read_file(a.base + ".so") + '\0';
  write_file(a.base + ".so", bytes);
  a.manifest["sha256"] = sha256_hex(bytes);
  a.manifest["size"] = bytes.size();
  a.write_yaml();
  CHECK(p.json({"plugin", "install", a.base + ".so"}, 0)["trust"].string() == "none");
  CHECK(p.h5i({"plugin", "verify", "fixture.good"}).status == 1);
}

TEST_CASE("install refuses what the loader would refuse, and copies nothing") {
  Prefix p;
  auto refused = [&](const Author& a, const std::string& id) {
    Json e = p.json({"plugin", "install", a.base + ".so"}, 1);
    CHECK(error_id(e) == id);
    CHECK(p.json({"plugin", "list"}, 0)["plugins"].array().empty());
    CHECK(is_refusal(p.h5i({"plugin", "install", a.base + ".so"}).err, id));
  };
  {
    Author a;
    a.write_yaml("extra: 1\n");
    refused(a, "plugin.manifest");
  }
  {
    Author a;
    a.write_yaml();
    write_file(a.base + ".so", read_file(a.base + ".so") + "x");
    refused(a, "plugin.digest");
  }
  {
    Author a("rpath");
    a.write_yaml();
    refused(a, "plugin.lint");
  }
  {
    Author a("second-symbol");
    a.write_yaml();
    refused(a, "plugin.exports");
  }
  {
    Author a;
    a.manifest["platform"] = "linux-riscv64";
    a.write_yaml();
    refused(a, "tier.platform");
  }
}

TEST_CASE("a manifest may not point outside its directory, nor use what YAML hides things in") {
  Prefix p;
  Author a;
  a.write_yaml();
  std::string good = read_file(a.base + ".plugin.yaml");
  auto with = [&](const std::string& from, const std::string& to) {
    std::string t = good;
    t.replace(t.find(from), from.size(), to);
    write_file(a.base + ".plugin.yaml", t);
    return error_id(p.json({"plugin", "install", a.base + ".so"}, 1));
  };
  CHECK(with("library: mine.so", "library: ../../mine.so") == "plugin.manifest");
  CHECK(with("library: mine.so", "library: /usr/lib/x.so") == "plugin.manifest");
  CHECK(with("claims: []", "claims: &a []") == "policy.parse");
  CHECK(with("claims: []", "claims: !!seq []") == "policy.parse");
  CHECK(with("claims: []", "claims: []\nclaims: []") == "policy.parse");
  CHECK(with("claims: []", "claims: ~") == "plugin.manifest");
}

TEST_CASE("a file that is not there is not found, and a directory is not a plugin") {
  Prefix p;
  CHECK(error_id(p.json({"plugin", "install", p.home() + "/absent.so"}, 1)) == "not-found");
  fs::create_directories(p.home() + "/d.plugin.yaml");
  CHECK(error_id(p.json({"plugin", "install", p.home() + "/d.plugin.yaml"}, 1)) == "input.invalid");
  CHECK(p.h5i({"plugin", "install"}).status == 2);
}
