#include "core/plugin/loader.hpp"

#include <fcntl.h>

#include <functional>
#include <thread>

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

struct Opened {
  const h5i_plugin_entry* entry = nullptr;
  void* instance = nullptr;
  const h5i_tier* tier = nullptr;

  explicit Opened(const LoadedPlugin& p) : entry(p.entry) {}
  Opened(const Opened&) = delete;
  ~Opened() {
    if (instance) entry->close(instance);
  }

  Result<void> open() {
    static h5i_host host{};
    host.struct_size = sizeof host;
    host.get_interface = [](void*, h5i_str) -> const void* { return nullptr; };
    REQUIRE(entry->open(&host, &instance, nullptr) == H5I_OK);
    REQUIRE(instance != nullptr);
    tier = H5I_TRY(check_tier(entry->get_interface(instance, {H5I_TIER_INTERFACE, sizeof H5I_TIER_INTERFACE - 1})));
    return {};
  }
};

}  // namespace

TEST_CASE("a good plugin is mapped from its descriptor and every slot is there") {
  auto p = load_fixture("good");
  REQUIRE(p);
  Opened o(*p);
  REQUIRE(o.open());
  CHECK(o.tier->revision == 1);
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
  } cases[] = {{"missing-slot", Errc::PLUGIN_SLOT, "run"},
               {"short-tier", Errc::PLUGIN_ABI_SIZE, "16"},
               {"no-interface", Errc::PLUGIN_SLOT, "no such interface"}};
  for (const auto& c : cases) {
    auto p = load_fixture(c.fixture);
    REQUIRE(p);
    Opened o(*p);
    auto tier = o.open();
    REQUIRE_FALSE(tier);
    CHECK(tier.error().code == c.code);
    CHECK(tier.error().evidence.find(c.evidence) != std::string::npos);
  }
}

TEST_CASE("an exception in any verb stops at the boundary, says what it was, and leaves the instance usable") {
  auto sink = [](void*, h5i_str) -> h5i_status { return H5I_OK; };
  h5i_str request = {"{}", 2}, session = {"s", 1};
  using Call = std::function<h5i_status(const h5i_tier*, void*, h5i_error*)>;
  h5i_outcome outcome{};
  outcome.struct_size = sizeof outcome;
  const std::pair<const char*, Call> calls[] = {
      {"probe", [&](const h5i_tier* t, void* i, h5i_error* e) { return t->probe(i, sink, nullptr, e); }},
      {"verify",
       [&](const h5i_tier* t, void* i, h5i_error* e) { return t->verify_exec(i, request, sink, nullptr, e); }},
      {"plan", [&](const h5i_tier* t, void* i, h5i_error* e) { return t->plan(i, request, sink, nullptr, e); }},
      {"run", [&](const h5i_tier* t, void* i, h5i_error* e) { return t->run(i, request, &outcome, e); }},
      {"cleanup", [&](const h5i_tier* t, void* i, h5i_error* e) { return t->cleanup(i, session, e); }}};
  for (const auto& [verb, call] : calls) {
    INFO(verb);
    auto p = load_fixture(std::string("throw-") + verb);
    REQUIRE(p);
    Opened o(*p);
    REQUIRE(o.open());
    h5i_error e{};
    e.struct_size = sizeof e;
    CHECK(call(o.tier, o.instance, &e) == H5I_E_PLUGIN_EXCEPTION);
    CHECK(e.code == H5I_E_PLUGIN_EXCEPTION);
    CHECK(std::string(e.text, e.text_len) == "the fixture throws");
    // Control: another verb of the same instance does what it does.
    h5i_status other = std::string(verb) == "probe" ? o.tier->cleanup(o.instance, session, &e)
                                                    : o.tier->probe(o.instance, sink, nullptr, &e);
    CHECK(other == H5I_OK);
  }
  CHECK(outcome.status == H5I_OUTCOME_SETUP_FAILED);
  CHECK(outcome.reason == H5I_E_PLUGIN_EXCEPTION);
}

TEST_CASE("what is thrown and is no std::exception stops too") {
  auto p = load_fixture("throwint-probe");
  REQUIRE(p);
  Opened o(*p);
  REQUIRE(o.open());
  auto sink = [](void*, h5i_str) -> h5i_status { return H5I_OK; };
  CHECK(o.tier->probe(o.instance, sink, nullptr, nullptr) == H5I_E_PLUGIN_EXCEPTION);
}

TEST_CASE("the wrapper refuses a second thread, a call from inside a verb, and structs that are too short") {
  auto p = load_fixture("good");
  REQUIRE(p);
  Opened o(*p);
  REQUIRE(o.open());
  auto sink = [](void*, h5i_str) -> h5i_status { return H5I_OK; };
  h5i_status status = H5I_OK;
  std::thread([&] { status = o.tier->probe(o.instance, sink, nullptr, nullptr); }).join();
  CHECK(status == H5I_E_INTERNAL);
  struct Again {
    Opened* o;
    h5i_status inner;
  } again{&o, H5I_OK};
  auto reenter = [](void* context, h5i_str) -> h5i_status {
    auto* a = static_cast<Again*>(context);
    a->inner = a->o->tier->probe(
        a->o->instance, [](void*, h5i_str) -> h5i_status { return H5I_OK; }, nullptr, nullptr);
    return H5I_OK;
  };
  CHECK(o.tier->probe(o.instance, reenter, &again, nullptr) == H5I_OK);
  CHECK(again.inner == H5I_E_INTERNAL);
  h5i_outcome small{};
  small.struct_size = 8;
  CHECK(o.tier->run(o.instance, {"{}", 2}, &small, nullptr) == H5I_E_PLUGIN_ABI_SIZE);
  CHECK(o.tier->plan(o.instance, {"{", 1}, sink, nullptr, nullptr) == H5I_E_JSON);
  // A sink that refuses is an error of the verb, not a success.
  CHECK(o.tier->probe(
            o.instance, [](void*, h5i_str) -> h5i_status { return H5I_E_TOO_LARGE; }, nullptr, nullptr) ==
        H5I_E_TOO_LARGE);
  h5i_host old{};
  old.struct_size = 8;
  void* instance = nullptr;
  CHECK(p->entry->open(&old, &instance, nullptr) == H5I_E_PLUGIN_ABI_SIZE);
  CHECK(instance == nullptr);
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
