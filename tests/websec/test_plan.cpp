// What a plan says, and how far it is.
#include "plugins/websec-http/plan/plan.hpp"
#include "plugins/websec-http/plan/progress.hpp"
#include "plugins/websec-http/plan/uniform.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

json::Value line(uint64_t seq, const char* kind, json::Value body, const char* lane = "engine-claimed") { return json::Object{{"seq", seq}, {"kind", kind}, {"lane", lane}, {"body", std::move(body)}}; }
json::Value sent(const char* experiment, int input) { return json::Object{{"experiment", experiment}, {"input", input}}; }
json::Value ended(uint64_t of, int status, const char* location = nullptr) {
  json::Value out = json::Object{{"of", of}, {"status", status}, {"ended", "complete"}};
  if (location) out["location"] = location;
  return out;
}

}  // namespace

TEST_CASE("a plan reads back as itself, with inputs of any bytes") {
  std::string every;
  for (int i = 0; i < 256; i++)
    if (i != '\n' && i != '\r') every += static_cast<char>(i);
  auto p = parse_plan(R"({"schema":"h5i.websec-plan/1","name":"n-1","request":{"url":"http://a.test/","method":"PUT","headers":["A: b"],"body":"x"},"edits":["query.id={{input}}","header.X=<{{input}}{{input}}>"],"as":["bob"],
    "rate":"100/min","follow":3,"parallel":32,"timeout_s":5,"max_errors":7,"lenient":true,"insecure":false,"reuse":true,"stop_on":["uniform"]})",
                      every + "\r\n\nlast");
  REQUIRE(p.ok());
  CHECK(p->inputs == std::vector<std::string>{every, "", "last"});
  CHECK(p->size() == 3);
  auto inputs = read_inputs(plan_inputs(*p));
  REQUIRE(inputs.ok());
  CHECK(*inputs == p->inputs);
  auto again = parse_plan(json::canonical(plan_document(*p)), std::string("a"));
  REQUIRE(again.ok());
  CHECK(json::canonical(plan_document(*again)) == json::canonical(plan_document(*p)));
  auto edits = edits_with(*p, "{{input}}");
  REQUIRE(edits.ok());
  CHECK((*edits)[1].value == "<{{input}}{{input}}>");  // what was put in is not looked at again
  CHECK(edit_name("query.id=a=b") == "query.id");
  CHECK(edit_name("json.$['a=b']=c") == "json.$['a=b']");
  CHECK(edit_name("+header.A=") == "+header.A");
  CHECK(edit_name("-cookie.sid") == "-cookie.sid");
  for (const char* bad : {"6", "6g\n", "6A\n", "616\n"}) CHECK_FALSE(read_inputs(bad).ok());
  auto m = parse_plan(R"({"matrix":[4,9],"as":["a","none"]})");
  REQUIRE(m.ok());
  CHECK(m->size() == 4);
}

TEST_CASE("what is no plan is refused by the member that is wrong") {
  const std::string good = R"("replay":1,"edits":["query.id={{input}}"],"inputs":["a"])";
  REQUIRE(parse_plan("{" + good + "}").ok());
  for (const std::string& bad : {std::string(""), std::string("{}"), "[" + good + "]", "{" + good + ",\"x\":1}", "{" + good + ",\"replay\":1}", "{" + good + ",\"request\":{\"url\":\"http://a/\"}}", "{" + good + ",\"matrix\":[1]}", "{" + good + ",\"schema\":\"h5i.websec-plan/2\"}",
                                 "{" + good + ",\"parallel\":33}", "{" + good + ",\"parallel\":0}", "{" + good + ",\"parallel\":1.5}", "{" + good + ",\"follow\":-1}", "{" + good + ",\"rate\":\"1\"}", "{" + good + ",\"name\":\"../x\"}", "{" + good + ",\"as\":[\"a\",\"b\"]}",
                                 "{" + good + ",\"as\":\"a\"}", "{" + good + ",\"stop_on\":[\"never\"]}", "{" + good + ",\"lenient\":1}", "{" + good + ",\"max_errors\":0}", std::string(R"({"replay":1,"edits":["query.id=1"],"inputs":["a"]})"),
                                 std::string(R"({"replay":1,"edits":["query.{{input}}=1"],"inputs":["a"]})"), std::string(R"({"replay":1,"edits":["body=@x","query.id={{input}}"],"inputs":["a"]})"), std::string(R"({"replay":1,"edits":["query.id={{input}}"]})"),
                                 std::string(R"({"replay":0,"edits":["query.id={{input}}"],"inputs":["a"]})"), std::string(R"({"matrix":[1]})"), std::string(R"({"matrix":[],"as":["a"]})"), std::string(R"({"matrix":[1],"as":["a"],"inputs":["a"]})"),
                                 std::string(R"({"request":{"method":"GET"},"edits":["query.id={{input}}"],"inputs":["a"]})"), std::string(R"({"request":{"url":"http://a/","more":1},"edits":["query.id={{input}}"],"inputs":["a"]})")}) {
    CAPTURE(bad);
    auto p = parse_plan(bad);
    REQUIRE_FALSE(p.ok());
    CHECK(p.error().code == H5I_E_INVALID);
  }
  CHECK_FALSE(parse_plan("{" + good + "}", std::string("a\n")).ok());  // two lists of inputs
  std::string many;
  for (size_t i = 0; i <= kMostInputs; i++) many += "a\n";
  CHECK_FALSE(parse_plan(R"({"replay":1,"edits":["query.id={{input}}"]})", many).ok());
  CHECK_FALSE(parse_plan(R"({"replay":1,"edits":["query.id={{input}}"]})", std::string(kLongestInput + 1, 'a')).ok());
}

TEST_CASE("how far a plan is, its lines say: what has one is not sent again") {
  Progress p("e", 1);
  p.record(line(1, "experiment", json::Object{{"name", "e"}}));
  p.record(line(2, "send", sent("e", 1)));
  p.record(line(3, "outcome", ended(2, 200)));
  p.record(line(4, "send", sent("e", 2)));  // killed
  p.record(line(5, "send", sent("e", 3)));
  p.record(line(6, "outcome", ended(5, 302, "/a")));  // its next hop has no line
  p.record(line(7, "send", sent("e", 4)));
  p.record(line(8, "outcome", ended(7, 302, "/a")));
  p.record(line(9, "send", sent("e", 4)));
  p.record(line(10, "outcome", ended(9, 302, "/b")));  // no more hops than asked for
  p.record(line(11, "experiment-refused", json::Object{{"experiment", "e"}, {"input", 5}, {"why", "scope"}}));
  p.record(line(12, "send", sent("e", 6)));
  p.record(line(13, "outcome", ended(12, 302, "/a")));
  p.record(line(14, "experiment-refused", json::Object{{"experiment", "e"}, {"input", 6}, {"why", "scope"}}));
  p.record(line(15, "send", sent("e", 7)));
  p.record(line(16, "outcome", ended(15, 302, "/a")));
  p.record(line(17, "send", sent("e", 7)));  // killed in its second hop
  // Of others, and what a box says.
  p.record(line(18, "send", sent("other", 8)));
  p.record(line(19, "send", sent("e", 9), "box-claimed"));
  p.record(line(20, "outcome", ended(4, 200), "box-claimed"));
  p.record(line(21, "send", sent("e", 0)));
  using Kind = InputState::Kind;
  auto inputs = p.inputs();
  CHECK(p.sends() == 8);
  CHECK(inputs.size() == 7);
  CHECK(inputs[1].kind == Kind::COMPLETE);
  CHECK(inputs[2].kind == Kind::UNKNOWN);
  CHECK(inputs[3].kind == Kind::STARTED);
  CHECK(inputs[4].kind == Kind::COMPLETE);
  CHECK(inputs[5].kind == Kind::REFUSED);
  CHECK(inputs[6].kind == Kind::REFUSED);
  CHECK(inputs[7].kind == Kind::UNKNOWN);
}

TEST_CASE("thirty answers in a row that cannot be told apart are one fact") {
  Uniform u;
  for (int i = 1; i < 30; i++) CHECK_FALSE(u.add(403, std::to_string(i)));
  CHECK(u.add(403, "x"));
  CHECK_FALSE(u.add(403, "y"));  // said once
  Uniform bodies;
  for (int i = 1; i < 60; i++) CHECK_FALSE(bodies.add(200, std::to_string(i)));
  for (int i = 1; i < 30; i++) CHECK_FALSE(bodies.add(200, "same"));
  CHECK(bodies.add(200, "same"));
  Uniform broken;
  for (int i = 1; i < 30; i++) broken.add(404, "");
  CHECK_FALSE(broken.add(0, ""));
  CHECK_FALSE(broken.add(404, ""));
  Uniform none;
  for (int i = 0; i < 100; i++) CHECK_FALSE(none.add(0, ""));
}
