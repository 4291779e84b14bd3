#include "core/plugin/manifest.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::plugin;

namespace {

Json good() {
  return json::Object{{"schema", "h5i.plugin/1"},
                      {"id", "com.example.my"},
                      {"kind", "tier"},
                      {"version", "1.0.0"},
                      {"library", "my.so"},
                      {"sha256", std::string(64, 'a')},
                      {"size", 1000},
                      {"platform", this_platform()},
                      {"abi", json::Object{{"kind", "stable"}, {"major", 1}, {"minor", 0}}},
                      {"interfaces", json::Array{"h5i.tier/1"}},
                      {"host_services", json::Array{"h5i.host.spawn/1"}},
                      {"lanes", json::Array{"host-observed"}},
                      {"needs", json::Array{"libseccomp.so.2"}},
                      {"claims", json::Array{"fs.read"}},
                      {"posture", "Confines files."},
                      {"maintainers", json::Array{"Somebody <s@example.com>"}},
                      {"package", "h5i-tier-my"}};
}

Errc refused_with(const char* key, Json value) {
  Json m = good();
  m[key] = std::move(value);
  auto r = check_manifest(m, "test");
  return r ? Errc::OK : r.error().code;
}

}  // namespace

TEST_CASE("a complete manifest in canonical form is accepted, with and without its newline") {
  std::string bytes = manifest_bytes(good());
  REQUIRE(parse_manifest(bytes, "test"));
  REQUIRE(parse_manifest(bytes.substr(0, bytes.size() - 1), "test"));
}

TEST_CASE("a manifest that is YAML, pretty or not canonical is refused in words that name plugin install") {
  std::string canonical = manifest_bytes(good());
  for (const std::string& text : {std::string("schema: h5i.plugin/1\nid: my\n"), json::pretty(good()), canonical + "\n",
                                  " " + canonical, std::string()}) {
    auto r = parse_manifest(text, "test");
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Errc::PLUGIN_MANIFEST);
    CHECK(r.error().next.find("h5i plugin install") != std::string::npos);
  }
}

TEST_CASE("every field is required") {
  const Json all = good();
  for (const auto& [key, value] : all.object()) {
    Json m = good();
    m.make_object().erase(key);
    auto r = check_manifest(m, "test");
    INFO(key);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Errc::PLUGIN_MANIFEST);
    CHECK(r.error().evidence.find(key) == 0);
  }
}

TEST_CASE("an unknown key is refused") {
  Json m = good();
  m["sha265"] = "x";
  auto r = check_manifest(m, "test");
  REQUIRE_FALSE(r);
  CHECK(r.error().evidence == "unknown key sha265");
}

TEST_CASE("a field of another form is refused") {
  CHECK(refused_with("schema", "h5i.plugin/2") == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("kind", "shell") == Errc::PLUGIN_MANIFEST);
  for (const char* id : {"", "A", "a/b", "../a", "a..b", "a b", "-a", "\xc3\xa9"})
    CHECK(refused_with("id", id) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("id", std::string(65, 'a')) == Errc::PLUGIN_MANIFEST);
  for (const char* library : {"", "x", "../my.so", "/usr/lib/my.so", "dir/my.so", ".my.so", "my.so.1", "my.so\n"})
    CHECK(refused_with("library", library) == Errc::PLUGIN_MANIFEST);
  for (const char* needs : {"/tmp/evil.so", "$ORIGIN/evil.so", "", "evil"})
    CHECK(refused_with("needs", json::Array{needs}) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("sha256", std::string(63, 'a')) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("sha256", std::string(64, 'A')) == Errc::PLUGIN_MANIFEST);
  for (long long size : {0LL, -1LL, 1LL << 40}) CHECK(refused_with("size", size) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("size", "1000") == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("interfaces", json::Array{}) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("interfaces", json::Array{"h5i.websec/1"}) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("interfaces", "h5i.tier/1") == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("lanes", json::Array{"core"}) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("posture", "a\nb") == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("posture", "\x1b[31mred") == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("posture", std::string(501, 'a')) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("claims", json::Array(65, Json("fs.read"))) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("claims", json::Array{1}) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("package", "h5i; rm") == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("posture", "") == Errc::OK);
  CHECK(refused_with("claims", json::Array{}) == Errc::OK);
}

TEST_CASE("another major version, a draft and another platform are told apart from a broken manifest") {
  CHECK(refused_with("abi", json::Object{{"kind", "stable"}, {"major", 2}, {"minor", 0}}) == Errc::PLUGIN_ABI_MAJOR);
  CHECK(refused_with("abi", json::Object{{"kind", "unstable"}, {"major", 1}, {"minor", 0}}) == Errc::PLUGIN_ABI_MAJOR);
  CHECK(refused_with("abi", json::Object{{"kind", "stable"}, {"major", 1}}) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("abi", json::Object{{"kind", "stable"}, {"major", 1}, {"minor", -1}}) == Errc::PLUGIN_MANIFEST);
  CHECK(refused_with("platform", "linux-riscv64") == Errc::TIER_PLATFORM);
}

TEST_CASE("a manifest larger than the limit is refused before it is parsed") {
  auto r = parse_manifest(std::string(kMaxManifestBytes + 1, ' '), "test");
  REQUIRE_FALSE(r);
  CHECK(r.error().evidence.find("65536") != std::string::npos);
}
