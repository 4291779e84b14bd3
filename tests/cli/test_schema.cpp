// The validator itself: a schema test is worth what its validator refuses.
#include "tests/support/catch.hpp"
#include "tests/support/schema.hpp"

using namespace h5i;
using h5i::test::schema_errors;

namespace {
bool accepts(const char* schema, const char* value) {
  auto s = json::parse(schema), v = json::parse(value);
  REQUIRE(s);
  REQUIRE(v);
  return schema_errors(std::string("."), *s, *v).empty();
}
}  // namespace

TEST_CASE("the validator accepts what fits and refuses what does not, for each keyword") {
  struct Row {
    const char *schema, *good, *bad;
  };
  for (const Row& r : std::initializer_list<Row>{
           {R"({"type":"integer"})", "3", "3.5"},
           {R"({"type":["string","null"]})", "null", "1"},
           {R"({"const":"a"})", R"("a")", R"("b")"},
           {R"({"enum":[1,2]})", "2", "3"},
           {R"({"pattern":"^[0-9a-f]{4}$"})", R"("00ff")", R"("00fg")"},
           {R"({"minLength":2})", R"("éé")", R"("é")"},
           {R"({"maxLength":1})", R"("é")", R"("éé")"},
           {R"({"minimum":1})", "1", "0"},
           {R"({"maximum":1})", "1", "2"},
           {R"({"required":["a"]})", R"({"a":1})", R"({"b":1})"},
           {R"({"properties":{"a":{"type":"string"}}})", R"({"a":"x"})", R"({"a":1})"},
           {R"({"properties":{"a":true},"additionalProperties":false})", R"({"a":1})", R"({"b":1})"},
           {R"({"additionalProperties":{"type":"integer"}})", R"({"a":1})", R"({"a":"1"})"},
           {R"({"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false})", R"({"xa":1})", R"({"ya":1})"},
           {R"({"items":{"type":"integer"}})", "[1,2]", R"([1,"2"])"},
           {R"({"minItems":1})", "[1]", "[]"},
           {R"({"maxItems":1})", "[1]", "[1,2]"},
           {R"({"uniqueItems":true})", "[1,2]", "[1,1]"},
           {R"({"allOf":[{"type":"integer"},{"minimum":2}]})", "2", "1"},
           {R"({"anyOf":[{"type":"integer"},{"type":"string"}]})", "1", "null"},
           {R"({"oneOf":[{"type":"integer"},{"minimum":5}]})", "1", "6"},
           {R"({"not":{"type":"integer"}})", "null", "1"},
           {R"({"if":{"type":"integer"},"then":{"minimum":5}})", R"("x")", "4"},
           {R"({"$ref":"#/definitions/n","definitions":{"n":{"type":"integer"}}})", "1", R"("1")"},
       }) {
    CAPTURE(r.schema);
    CHECK(accepts(r.schema, r.good));
    CHECK_FALSE(accepts(r.schema, r.bad));
  }
}

TEST_CASE("a keyword or reference that the validator does not know is an error, not a pass") {
  CHECK_FALSE(accepts(R"({"contains":{"type":"integer"}})", "[1]"));
  CHECK_FALSE(accepts(R"({"$ref":"#/definitions/none"})", "1"));
  CHECK_FALSE(accepts(R"({"$ref":"absent.json"})", "1"));
  CHECK_FALSE(accepts(R"({"$ref":"#"})", "1"));
}

TEST_CASE("the text of a verb is exactly one document and a newline") {
  CHECK(test::schema_errors_of_text("version", "{}\n{}\n").size() == 1);
  CHECK(test::schema_errors_of_text("absent-schema", "{}\n").size() == 1);
}
