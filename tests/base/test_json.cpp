#include <cmath>
#include <cstring>

#include "core/base/json.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;

static std::string canon(std::string_view text) {
  auto v = parse_json(text, "test");
  return v ? json::canonical(*v) : "error: " + v.error().evidence;
}
static double bits(uint64_t u) {
  double d;
  memcpy(&d, &u, 8);
  return d;
}

TEST_CASE("numbers are written as ECMAScript writes them") {
  struct { uint64_t in; const char* out; } rows[] = {
      {0x0000000000000000, "0"}, {0x8000000000000000, "0"}, {0x0000000000000001, "5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"}, {0x4340000000000000, "9007199254740992"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"}, {0x44b52d02c7e14af6, "1e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"}, {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"}, {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"}, {0xbecbf647612f3696, "-0.0000033333333333333333"}};
  for (auto& r : rows) CHECK(json::canonical(Json(bits(r.in))) == r.out);
}

TEST_CASE("keys sort by UTF-16 code units") {
  CHECK(canon("{\"\\ufb33\":1,\"\\ud83d\\ude00\":2,\"\\u20ac\":3,\"a\":4,\"\\r\":5,\"1\":6,\"\\u0080\":7}") ==
        "{\"\\r\":5,\"1\":6,\"a\":4,\"\xc2\x80\":7,\"\xe2\x82\xac\":3,\"\xf0\x9f\x98\x80\":2,\"\xef\xac\xb3\":1}");
}

TEST_CASE("what is not strict JSON is refused with its offset") {
  for (const char* bad : {"", "{", "[1,]", "{\"a\":1,}", "01", "1.", ".5", "+1", "nul", "\"\\x\"", "\"\\ud800\"",
                          "\"\\udc00\"", "\"\x01\"", "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "{\"a\":1,\"a\":2}",
                          "1 2", "NaN", "1e999", "9223372036854775808", "{a:1}", "'a'", "[1}", "\"abc"}) {
    INFO(bad);
    auto r = parse_json(bad, "test");
    REQUIRE_FALSE(r);
    CHECK(r.error().id() == "json.invalid");
  }
  CHECK_FALSE(parse_json(std::string(100, '['), "test"));
  CHECK_FALSE(parse_json("[1]", "test", 2));
}

TEST_CASE("duplicate keys are found beyond the linear range") {
  std::string s = "{";
  for (int i = 0; i < 500; i++) s += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  CHECK_FALSE(parse_json(s + "\"k250\":0}", "test"));
  auto v = parse_json(s + "\"k500\":0}", "test");
  REQUIRE(v);
  CHECK((*v)["k499"].integer() == 499);
}

TEST_CASE("a canonical document is its own canonical form") {
  for (const char* t : {"null", "true", "[]", "{}", "[1,\"\\u001f\\\\\\\"\",{\"a\":[]}]", "{\"a\":{\"b\":-5}}"}) {
    std::string once = canon(t);
    CHECK(canon(once) == once);
  }
}
