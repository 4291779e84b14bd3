#include <sys/stat.h>

#include "core/plugin/manifest.hpp"
#include "core/plugin/pins.hpp"
#include "core/plugin/registry.hpp"
#include "tests/plugin/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::plugin;
using test::Scratch;

namespace fs = std::filesystem;

namespace {

Registry scan(const Scratch& s) {
  auto r = Registry::scan(s.settings());
  REQUIRE(r);
  return std::move(*r);
}

Errc why(const Registry& r, const std::string& name) {
  auto p = r.find(name);
  if (!p) return p.error().code;
  return p->refused ? p->refused->code : Errc::OK;
}

Pin pin_of(const Scratch& s, const std::string& id) {
  auto p = scan(s).find(id);
  REQUIRE(p);
  return {p->digest, p->version, "2026-01-01T00:00:00.000Z"};
}

}  // namespace

TEST_CASE("a plugin of the system directory is usable and its bytes verify") {
  Scratch s;
  s.add("good");
  auto p = scan(s).find_tier("fixture.good");
  REQUIRE(p);
  CHECK(p->trust == Trust::SYSTEM);
  CHECK(p->package == "h5i-fixture");
  auto v = open_verified(*p, geteuid());
  REQUIRE(v);
  CHECK(v->digest == p->digest);
  // Here the runner owns the file, so what is loaded must be a copy that nobody can change.
  CHECK(v->sealed_copy);
  CHECK(*sha256_fd_hex(v->fd.get()) == p->digest.value);
  CHECK(write(v->fd.get(), "x", 1) == -1);
}

TEST_CASE("what is copied and sealed stays what it was when the owner rewrites the file") {
  Scratch s;
  std::string base = s.add("good");
  auto p = scan(s).find_tier("fixture.good");
  REQUIRE(p);
  auto v = open_verified(*p, geteuid());
  REQUIRE(v);
  test::write_file(base + ".so", "rewritten in place");
  CHECK(*sha256_fd_hex(v->fd.get()) == p->digest.value);
}

TEST_CASE("a library that changed after its manifest was written is refused by digest") {
  Scratch s;
  std::string base = s.add("good");
  std::string bytes = test::read_file(base + ".so");
  bytes[bytes.size() / 2] ^= 1;
  test::write_file(base + ".so", bytes);
  Registry r = scan(s);
  auto p = r.find_tier("fixture.good");
  REQUIRE(p);  // a scan reads no library
  CHECK(open_verified(*p, geteuid()).error().code == Errc::PLUGIN_DIGEST);
  r.verify_bytes();
  CHECK(why(r, "fixture.good") == Errc::PLUGIN_DIGEST);
}

TEST_CASE("a manifest's size must be the library's") {
  Scratch s;
  std::string base = s.add("good");
  Json m = *parse_json(test::read_file(base + ".plugin.yaml"), "m");
  m["size"] = m["size"].integer() + 1;
  test::write_file(base + ".plugin.yaml", manifest_bytes(m));
  auto p = scan(s).find_tier("fixture.good");
  REQUIRE(p);
  CHECK(open_verified(*p, geteuid()).error().code == Errc::PLUGIN_DIGEST);
}

TEST_CASE("a bad plugin is listed with its reason and hides no good one") {
  Scratch s;
  s.add("good");
  s.add("unavailable");
  s.add("overclaim");
  s.add("wrong-size");
  test::write_file(s.plugins() + "/fixture-unavailable.plugin.yaml", "id: [unclosed");
  chmod((s.plugins() + "/fixture-overclaim.so").c_str(), 0666);
  fs::remove(s.plugins() + "/fixture-wrong-size.so");
  fs::create_symlink("fixture-good.so", s.plugins() + "/fixture-wrong-size.so");
  fs::create_symlink("fixture-good.plugin.yaml", s.plugins() + "/linked.plugin.yaml");
  Registry r = scan(s);
  CHECK(r.plugins().size() == 5);
  CHECK(r.find_tier("fixture.good"));
  CHECK(why(r, "fixture-unavailable") == Errc::PLUGIN_MANIFEST);
  CHECK(why(r, "fixture.overclaim") == Errc::PLUGIN_OWNER);
  CHECK(why(r, "fixture.wrong-size") == Errc::PLUGIN_OWNER);
  CHECK(why(r, "linked") == Errc::PLUGIN_OWNER);
}

TEST_CASE("files that are no manifests, and hidden ones, are not looked at") {
  Scratch s;
  s.add("good");
  test::write_file(s.plugins() + "/.hidden.plugin.yaml", "x");
  test::write_file(s.plugins() + "/notes.yaml", "x");
  test::write_file(s.plugins() + "/.plugin.yaml", "x");
  CHECK(scan(s).plugins().size() == 1);
}

TEST_CASE("the same id twice refuses both, and names both files") {
  Scratch s;
  std::string first = s.add("good");
  for (const char* end : {".so", ".plugin.yaml"}) fs::copy_file(first + end, s.plugins() + "/second" + end);
  Registry r = scan(s);
  REQUIRE(r.plugins().size() == 2);
  for (const PluginInfo& p : r.plugins()) {
    REQUIRE(p.refused);
    CHECK(p.refused->code == Errc::PLUGIN_DUPLICATE);
    CHECK(p.refused->evidence.find("second.plugin.yaml") != std::string::npos);
    CHECK(p.refused->evidence.find("fixture-good.plugin.yaml") != std::string::npos);
  }
  CHECK(r.find_tier("fixture.good").error().code == Errc::TIER_REFUSED);
}

TEST_CASE("an untrusted plugin with a system plugin's id takes nothing away from it") {
  Scratch s;
  s.add("good");
  s.add("good", s.state());
  Registry r = scan(s);
  REQUIRE(r.plugins().size() == 2);
  auto p = r.find_tier("fixture.good");
  REQUIRE(p);
  CHECK(p->trust == Trust::SYSTEM);
}

TEST_CASE("a plugin of the user's directory is refused until its digest is pinned") {
  Scratch s;
  s.add("good", s.state());
  Registry before = scan(s);
  CHECK(why(before, "fixture.good") == Errc::PLUGIN_UNTRUSTED);
  auto refused = before.find_tier("fixture.good");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::TIER_REFUSED);
  CHECK(refused.error().evidence.find("plugin.untrusted") == 0);
  CHECK(refused.error().remedy() == "h5i plugin trust fixture.good");
  CHECK(open_verified(*before.find("fixture.good"), geteuid()).error().code == Errc::PLUGIN_UNTRUSTED);

  REQUIRE(save_pins(s.lock(), {{"fixture.good", pin_of(s, "fixture.good")}}));
  auto p = scan(s).find_tier("fixture.good");
  REQUIRE(p);
  CHECK(p->trust == Trust::PINNED);
  CHECK(open_verified(*p, geteuid()));
}

TEST_CASE("a pin holds one digest: another library under the same id is refused") {
  Scratch s;
  s.add("good", s.state());
  Pin pin = pin_of(s, "fixture.good");
  pin.digest = PluginDigest(std::string(64, '0'));
  REQUIRE(save_pins(s.lock(), {{"fixture.good", pin}}));
  CHECK(why(scan(s), "fixture.good") == Errc::PLUGIN_DIGEST);
}

TEST_CASE("the lock file is private, replaced whole, and believed only when nobody else could write it") {
  Scratch s;
  s.add("good", s.state());
  REQUIRE(save_pins(s.lock(), {{"fixture.good", pin_of(s, "fixture.good")}}));
  struct stat st {};
  REQUIRE(stat(s.lock().c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0600);
  CHECK(scan(s).find_tier("fixture.good"));
  chmod(s.lock().c_str(), 0666);
  CHECK(why(scan(s), "fixture.good") == Errc::PLUGIN_OWNER);
  chmod(s.lock().c_str(), 0600);
  for (const char* text : {"", "{}", "{\"pins\":{},\"schema\":\"h5i.plugin-lock/2\"}",
                           "{\"pins\":{\"../x\":{}},\"schema\":\"h5i.plugin-lock/1\"}"}) {
    test::write_file(s.lock(), text);
    CHECK(why(scan(s), "fixture.good") == Errc::PLUGIN_MANIFEST);
  }
  auto pins = load_pins(s.path() + "/state/absent", {geteuid()});
  REQUIRE(pins);
  CHECK(pins->empty());
}

TEST_CASE("a directory that others may write is listed and nothing of it is used") {
  Scratch s;
  s.add("good");
  chmod(s.plugins().c_str(), 0777);
  Registry r = scan(s);
  REQUIRE(r.plugins().size() == 1);
  CHECK(r.plugins()[0].id.empty());
  CHECK(why(r, "fixture-good") == Errc::PLUGIN_OWNER);
}

TEST_CASE("as root a plugin that is not root's is refused") {
  if (geteuid() != 0) return;
  Scratch s;
  std::string base = s.add("good");
  REQUIRE(chown((base + ".so").c_str(), 4242, 4242) == 0);
  CHECK(why(scan(s), "fixture.good") == Errc::PLUGIN_OWNER);
}

TEST_CASE("a tier that is not there is not installed, unknown or refused, and says which") {
  Scratch s;
  s.add("good");
  Registry r = scan(s);
  auto absent = r.find_tier("supervised");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == Errc::TIER_NOT_INSTALLED);
  CHECK(absent.error().what.find("not installed") != std::string::npos);
  CHECK(absent.error().evidence.find("h5i-tier-supervised") != std::string::npos);
  auto unknown = r.find_tier("suprevised");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == Errc::TIER_UNKNOWN);
  CHECK(unknown.error().evidence.find("fixture.good") != std::string::npos);
  test::write_file(s.plugins() + "/tier-process.plugin.yaml", "not a manifest");
  auto refused = scan(s).find_tier("process");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::TIER_REFUSED);
  CHECK(refused.error().evidence.find("plugin.manifest") == 0);
}

TEST_CASE("a refused manifest that still says its id is found by that id") {
  Scratch s;
  std::string base = s.add("good");
  Json m = *parse_json(test::read_file(base + ".plugin.yaml"), "m");
  m["abi"]["major"] = 2;
  test::write_file(base + ".plugin.yaml", manifest_bytes(m));
  auto r = scan(s).find_tier("fixture.good");
  REQUIRE_FALSE(r);
  CHECK(r.error().evidence.find("plugin.abi-major") == 0);
}

TEST_CASE("the host's list of directories is one absolute path a line") {
  CHECK(host_directories("# ours\n/opt/h5i/plugins/ \n\nrelative\n/srv/p\r\n/\n").size() == 2);
  CHECK(host_directories("/opt/a\n/opt/b") == std::vector<std::string>{"/opt/a", "/opt/b"});
  CHECK(host_directories("").empty());
}

TEST_CASE("the list of directories comes from this executable and the user's state, from no other variable") {
  setenv("XDG_STATE_HOME", "/somewhere/state", 1);
  setenv("H5I_PLUGIN_PATH", "/planted", 1);
  setenv("LD_LIBRARY_PATH", "/planted", 1);
  auto s = Settings::of_this_process();
  REQUIRE(s);
  CHECK(s->state_directory == "/somewhere/state/h5i/plugins");
  CHECK(s->lock_file == "/somewhere/state/h5i/plugins.lock.json");
  for (const Directory& d : s->directories) CHECK(d.path.find("planted") == std::string::npos);
  REQUIRE(s->directories.size() >= 2);
  CHECK(s->directories[0].path.ends_with("/lib/h5i/plugins/1"));
  CHECK(s->directories[1].trust == Trust::PINNED);
}
