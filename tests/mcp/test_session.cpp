// The conversation: what is asked before its time, in no form, twice, too often.
#include "core/mcp/session.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::mcp;

namespace {

struct Client {
  Session session{"1.2.3"};
  std::vector<Json> running;
  Session::Step raw(const std::string& line) { return session.take(line, running); }
  Json ask(const std::string& line) {
    Session::Step s = raw(line);
    if (s.say.empty()) return {};
    CHECK(s.say.ends_with("}\n"));
    CHECK(s.say.find('\n') == s.say.size() - 1);
    auto v = json::parse(s.say.substr(0, s.say.size() - 1));
    REQUIRE(v);
    CHECK((*v)["jsonrpc"].string() == "2.0");
    return *v;
  }
  void begin() { (void)ask(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}})"); }
};

std::string call(const std::string& id, const std::string& params) { return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/call","params":)" + params + "}"; }

}  // namespace

TEST_CASE("a client is told which revision is spoken, and its own where that is one of ours") {
  for (const auto& [asked, said] : {std::pair{"2025-06-18", "2025-06-18"}, {"2024-11-05", "2024-11-05"}, {"2099-01-01", "2025-06-18"}, {"", "2025-06-18"}}) {
    Client c;
    Json a = c.ask(std::string(R"({"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":")") + asked + "\"}}");
    CHECK(a["id"].string() == "x");
    CHECK(a["result"]["protocolVersion"].string() == said);
    CHECK(a["result"]["serverInfo"]["version"].string() == "1.2.3");
    CHECK(a["result"]["capabilities"]["tools"].is_object());
  }
}

TEST_CASE("before initialize there is nothing but ping; after it the tools") {
  Client c;
  CHECK(c.ask(R"({"jsonrpc":"2.0","id":1,"method":"ping"})")["result"].is_object());
  CHECK(c.ask(R"({"jsonrpc":"2.0","id":2,"method":"tools/list"})")["error"]["code"].integer() == -32600);
  CHECK_FALSE(c.raw(call("3", R"({"name":"box_list"})")).begin);
  c.begin();
  CHECK(c.ask(R"({"jsonrpc":"2.0","id":4,"method":"tools/list"})")["result"]["tools"].array().size() == 8);
  auto step = c.raw(call("5", R"({"name":"box_run","arguments":{"box":"b","command":["true"]}})"));
  REQUIRE(step.begin);
  CHECK(step.say.empty());
  CHECK(step.begin->id.integer() == 5);
  CHECK(step.begin->words == std::vector<std::string>{"box", "run", "--json", "b", "--", "true"});
}

TEST_CASE("what is no message is answered as one, and no notification is") {
  Client c;
  c.begin();
  struct Row {
    const char* line;
    int code;
  };
  for (const Row& r : {Row{"{", -32700}, {"\xff\xfe", -32700}, {"nonsense", -32700}, {"[]", -32600}, {"1", -32600}, {"null", -32600}, {R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", -32600}, {R"({"id":1,"method":"ping"})", -32600},
                       {R"({"jsonrpc":"1.0","id":1,"method":"ping"})", -32600}, {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", -32600}, {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", -32600}, {R"({"jsonrpc":"2.0","id":1})", -32600},
                       {R"({"jsonrpc":"2.0","id":1,"method":7})", -32600}, {R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})", -32601}, {R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})", -32700},
                       {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"box_apply","arguments":{"box":"b"}}})", -32602}, {R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})", -32602},
                       {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]})", -32602}}) {
    INFO(r.line);
    Json a = c.ask(r.line);
    CHECK(a["error"]["code"].integer() == r.code);
    CHECK(!a["error"]["message"].string().empty());
  }
  CHECK(c.ask(std::string(100'000, '[').c_str())["error"]["code"].integer() == -32700);
  for (const char* silent : {"", "  \r", R"({"jsonrpc":"2.0","method":"notifications/initialized"})", R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"box_list"}})", R"({"jsonrpc":"2.0","id":9,"result":{}})", R"({"jsonrpc":"2.0","method":"notifications/cancelled"})"}) {
    auto step = c.raw(silent);
    CHECK((step.say.empty() && !step.begin && !step.cancel));
  }
  CHECK(c.raw(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}})").cancel->string() == "a");
}

TEST_CASE("arguments that a tool does not take are its refusal, not a fault of the protocol") {
  Client c;
  c.begin();
  Json a = c.ask(call("1", R"({"name":"box_run","arguments":{"box":"--x","command":["true"]}})"));
  CHECK(a["result"]["isError"].boolean());
  CHECK(a["result"]["content"].array()[0]["text"].string().starts_with("refused: argument box"));
}

TEST_CASE("an id is one call at a time, and there are only so many") {
  Client c;
  c.begin();
  c.running = {7};
  CHECK(c.ask(call("7", R"({"name":"box_list"})"))["error"]["code"].integer() == -32600);
  CHECK(c.raw(call("\"7\"", R"({"name":"box_list"})")).begin);
  for (int i = 0; i < 7; i++) c.running.push_back(100 + i);
  CHECK(c.ask(call("8", R"({"name":"box_list"})"))["error"]["code"].integer() == -32000);
}

TEST_CASE("how a verb ended is what the client is told") {
  Client c;
  auto said = [&](const char* tool, Ended e) { return *json::parse(c.session.answer(Call{3, tool, {}, {}}, e)); };
  Json ran = said("box_run", {.status = 3, .out = R"({"exit_status":3,"origin":"command","stdout":{"bytes":0},"stderr":{"bytes":0}})", .err = {}, .shown = {}, .not_begun = {}});
  CHECK(ran["id"].integer() == 3);
  CHECK_FALSE(ran["result"]["isError"].boolean(true));
  CHECK(ran["result"]["structuredContent"]["exit_status"].integer() == 3);
  CHECK(said("box_run", {.status = 125, .out = R"({"exit_status":125,"origin":"h5i"})", .err = {}, .shown = {}, .not_begun = {}})["result"]["isError"].boolean());
  Json no = said("box_status", {.status = 1, .out = R"({"error":{"id":"box.not-found","what":"w"}})", .err = {}, .shown = {}, .not_begun = {}});
  CHECK(no["result"]["isError"].boolean());
  CHECK(no["result"]["structuredContent"]["error"]["id"].string() == "box.not-found");
  CHECK(said("box_list", {.status = 1, .out = "{}", .err = {}, .shown = {}, .not_begun = {}})["result"]["isError"].boolean());
  CHECK_FALSE(said("box_list", {.status = 0, .out = "{}", .err = {}, .shown = {}, .not_begun = {}})["result"]["isError"].boolean(true));
  for (const Ended& e : {Ended{.status = 0, .out = "", .err = "why\x1b", .shown = {}, .not_begun = {}}, Ended{.status = -1, .out = "{", .err = {}, .shown = {}, .not_begun = {}}, Ended{.status = 0, .out = "{}", .err = {}, .cut = true, .shown = {}, .not_begun = {}}, Ended{.out = {}, .err = {}, .shown = {}, .not_begun = "fork: no"}, Ended{.status = 0, .out = "[]", .err = {}, .shown = {}, .not_begun = {}}}) {
    Json a = said("box_diff", e);
    CHECK(a["result"]["isError"].boolean());
    CHECK(a["result"]["content"].array()[0]["text"].string().find('\x1b') == std::string::npos);
    CHECK(!a["result"]["content"].array()[0]["text"].string().empty());
  }
}
