#include "core/base/ids.hpp"

#include <set>

#include "tests/support/catch.hpp"

using namespace h5i;

TEST_CASE("box names are agent/slug and nothing else") {
  auto n = BoxName::parse("fix", "human");
  REQUIRE(n);
  CHECK(n->str() == "human/fix");
  CHECK(BoxName::parse("Claude/fix-1.2_x", "human"));
  for (const char* bad : {"", "/", "a/", "/a", "a/b/c", "a/B", "a/..", "a/x..y", "a/.x", "-x", "a/x.lock", "a/x\n", "a/x y",
                          "a/x.", "../x", "a/x\x1b[0m", "a/é"}) {
    INFO(bad);
    auto r = BoxName::parse(bad, "human");
    REQUIRE_FALSE(r);
    CHECK(r.error().id() == "box.name");
  }
  CHECK_FALSE(BoxName::parse("a/" + std::string(65, 'x'), "human"));
  CHECK(BoxName::parse("a/" + std::string(64, 'x'), "human"));
}

TEST_CASE("session ids are unique and sort by time") {
  std::set<std::string> all;
  for (int i = 0; i < 1000; i++) {
    auto id = new_session_id();
    REQUIRE(id);
    CHECK(id->str().size() == 26);
    all.insert(id->str());
  }
  CHECK(all.size() == 1000);
}

TEST_CASE("times are RFC 3339 in UTC") {
  CHECK(rfc3339(0) == "1970-01-01T00:00:00.000Z");
  CHECK(rfc3339(1796000000123456789LL) == "2026-11-30T00:53:20.123Z");
}

TEST_CASE("every error id is unique and found again by its number and its id") {
  std::set<std::string_view> ids;
  std::set<int> numbers;
#define H5I_ERROR(NAME, NUMBER, ID, CLASS, REMEDY)   \
  CHECK(ids.insert(ID).second);                      \
  CHECK(numbers.insert(NUMBER).second);              \
  CHECK(errc_from_number(NUMBER) == Errc::NAME);     \
  CHECK(errc_from_id(ID) == Errc::NAME);
#include "h5i/errors.def"
#undef H5I_ERROR
}
