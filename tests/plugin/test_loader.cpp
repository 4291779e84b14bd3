#include "core/plugin/loader.hpp"

#include <fcntl.h>

#include "core/plugin/registry.hpp"
#include "tests/plugin/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::plugin;
using test::Scratch;

namespace {

Result<LoadedPlugin> load_fixture(const std::string& name) {
  Scratch s;
  s.add(name);
  Registry r = H5I_TRY(Registry::scan(s.settings()));
  PluginInfo info = H5I_TRY(r.find_tier("fixture." + name));
  VerifiedLibrary library = H5I_TRY(open_verified(info, geteuid()));
  return load(std::move(library.fd), {info.id, info.version, info.digest});
}

Error refusal(const std::string& name) {
  auto r = load_fixture(name);
  return r ? make_error(Errc::OK, "loaded") : r.error();
}

Result<const h5i_tier*> open_tier(const LoadedPlugin& p) {
  h5i_host host{};
  host.struct_size = sizeof host;
  host.get_interface = [](void*, h5i_str) -> const void* { return nullptr; };
  void* instance = nullptr;
  h5i_error e{};
  e.struct_size = sizeof e;
  REQUIRE(p.entry->open(&host, &instance, &e) == H5I_OK);
  REQUIRE(instance != nullptr);
  return check_tier(p.entry->get_interface(instance, {H5I_TIER_INTERFACE, sizeof H5I_TIER_INTERFACE - 1}));
}

}  // namespace

TEST_CASE("a good plugin is mapped from its descriptor and every slot is there") {
  auto p = load_fixture("good");
  REQUIRE(p);
  auto tier = open_tier(*p);
  REQUIRE(tier);
  CHECK((*tier)->revision == 1);
}

TEST_CASE("two plugins are two libraries") {
  auto a = load_fixture("good");
  REQUIRE(a);
  auto b = load_fixture("unavailable");
  REQUIRE(b);
  CHECK(a->entry != b->entry);
  CHECK(std::string(b->entry->id.ptr, b->entry->id.len) == "fixture.unavailable");
}

TEST_CASE("a descriptor number that named a mapped library before is refused, not answered with that library") {
  auto a = load_fixture("good");
  REQUIRE(a);
  int number = a->descriptor;
  close(number);
  Error e = refusal("unavailable");
  CHECK(e.code == Errc::PLUGIN_LOAD);
  CHECK(e.evidence == "/proc/self/fd/" + std::to_string(number) + " already names a mapped library");
  while (open("/dev/null", O_RDONLY | O_CLOEXEC) < number) continue;  // the number is not for the tests that follow
}

TEST_CASE("an entry that does not keep the ABI is refused before any function of it runs") {
  CHECK(refusal("wrong-size").code == Errc::PLUGIN_ABI_SIZE);
  CHECK(refusal("huge-size").code == Errc::PLUGIN_ABI_SIZE);
  CHECK(refusal("wrong-major").code == Errc::PLUGIN_ABI_MAJOR);
  CHECK(refusal("newer-host").code == Errc::PLUGIN_ABI_MAJOR);
  CHECK(refusal("other-id").code == Errc::PLUGIN_ID);
  Error slot = refusal("missing-entry-slot");
  CHECK(slot.code == Errc::PLUGIN_SLOT);
  CHECK(slot.evidence.find("close") != std::string::npos);
}

TEST_CASE("a tier that lacks a verb, is too short or is none is refused") {
  struct {
    const char* fixture;
    Errc code;
    const char* evidence;
  } cases[] = {{"missing-slot", Errc::PLUGIN_SLOT, "run"}, {"short-tier", Errc::PLUGIN_ABI_SIZE, "16"}, {"no-interface", Errc::PLUGIN_SLOT, "no such interface"}};
  for (const auto& c : cases) {
    auto p = load_fixture(c.fixture);
    REQUIRE(p);
    auto tier = open_tier(*p);
    REQUIRE_FALSE(tier);
    CHECK(tier.error().code == c.code);
    CHECK(tier.error().evidence.find(c.evidence) != std::string::npos);
  }
}

TEST_CASE("an exception in a verb stops at the boundary and says what it was") {
  auto p = load_fixture("throw-probe");
  REQUIRE(p);
  h5i_host host{};
  host.struct_size = sizeof host;
  void* instance = nullptr;
  h5i_error e{};
  e.struct_size = sizeof e;
  REQUIRE(p->entry->open(&host, &instance, &e) == H5I_OK);
  auto tier = check_tier(p->entry->get_interface(instance, {H5I_TIER_INTERFACE, sizeof H5I_TIER_INTERFACE - 1}));
  REQUIRE(tier);
  auto sink = [](void*, h5i_str) -> h5i_status { return H5I_OK; };
  CHECK((*tier)->probe(instance, sink, nullptr, &e) == H5I_E_PLUGIN_EXCEPTION);
  CHECK(e.code == H5I_E_PLUGIN_EXCEPTION);
  CHECK(std::string(e.text, e.text_len) == "the fixture throws");
  // Another verb of the same instance still works: the fence leaves nothing locked.
  CHECK((*tier)->cleanup(instance, {"s", 1}, &e) == H5I_OK);
  p->entry->close(instance);
}

TEST_CASE("bytes that are not those expected are not mapped") {
  Scratch s;
  s.add("good");
  auto r = Registry::scan(s.settings());
  REQUIRE(r);
  PluginInfo info = *r->find_tier("fixture.good");
  auto library = open_verified(info, geteuid());
  REQUIRE(library);
  auto loaded = load(std::move(library->fd), {info.id, info.version, PluginDigest(std::string(64, '0'))});
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == Errc::PLUGIN_DIGEST);
}

TEST_CASE("an entry whose bytes end early is not read past its end") {
  h5i_plugin_entry e{};
  e.struct_size = sizeof e;
  CHECK(check_entry(&e, 8, {"a", "1", {}}).error().code == Errc::PLUGIN_ABI_SIZE);
  CHECK(check_entry(&e, 2, {"a", "1", {}}).error().code == Errc::PLUGIN_ABI_SIZE);
}
