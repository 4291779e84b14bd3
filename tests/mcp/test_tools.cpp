// Which command line a call is, and that no argument becomes another word than it is.
#include "core/mcp/tools.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::mcp;

namespace {

std::string words(const char* tool, const char* arguments) {
  auto parsed = json::parse(arguments);
  REQUIRE(parsed);
  auto line = command_line(tool, *parsed);
  if (!line) return "[" + std::string(line.error().id()) + "] " + line.error().what + ": " + line.error().evidence;
  std::string out;
  for (const std::string& w : *line) out += (out.empty() ? "" : " ") + (w.find(' ') == std::string::npos ? w : "'" + w + "'");
  return out;
}

bool refused(const std::string& said) { return said.starts_with("["); }

}  // namespace

TEST_CASE("a call is the verb of its name, with --json") {
  CHECK(words("box_list", "{}") == "box ls --json");
  CHECK(words("box_list", R"({"agent":"claude","state":"idle"})") == "box ls --json --agent=claude --state=idle");
  CHECK(words("box_create", "{}") == "box create --json");
  CHECK(words("box_create", R"({"name":"fix","agent":"x","from":"HEAD~1","profile":"p","isolation":"process","new":false,"with_changes":true})") ==
        "box create --json --name=fix --agent=x --from=HEAD~1 --profile=p --isolation=process --with-changes");
  CHECK(words("box_run", R"({"box":"fix","command":["sh","-c","echo a b","--json","-v"],"cwd":"src"})") == "box run --json --cwd=src fix -- sh -c 'echo a b' --json -v");
  CHECK(words("box_run", R"({"box":"fix","command":["--help"]})") == "box run --json fix -- --help");
  CHECK(words("box_status", R"({"box":"a/b"})") == "box status --json a/b");
  CHECK(words("box_diff", R"({"box":"fix","paths":["a.c","b.c"],"stat":true})") == "box diff --json --stat fix a.c b.c");
  CHECK(words("box_compare", R"({"box":"a","other":"b"})") == "box compare --json a b");
  CHECK(words("box_propose", R"({"box":"fix","message":"--yes\nsecond line"})") == "box propose --json '--message=--yes\nsecond line' fix");
  CHECK(words("box_inspect", R"({"box":"fix"})") == "box inspect --json fix");
  CHECK(reading_line("box_diff", {"box", "diff", "--json", "--stat", "fix"}) == std::vector<std::string>{"box", "diff", "--stat", "fix"});
  CHECK(reading_line("box_run", {"box", "run", "--json", "fix"}).empty());
}

TEST_CASE("what is not what the tool takes is refused, with its name") {
  struct Row {
    const char *tool, *arguments, *word;
  };
  for (const Row& r : {Row{"box_run", R"({"box":"-v","command":["true"]})", "box"}, {"box_run", R"({"box":"","command":["true"]})", "box"}, {"box_run", R"({"box":"a"})", "command"}, {"box_run", R"({"box":"a","command":[]})", "command"},
                       {"box_run", R"({"box":"a","command":"true"})", "command"}, {"box_run", R"({"box":"a","command":["true",1]})", "command"}, {"box_run", R"({"box":["a"],"command":["true"]})", "box"},
                       {"box_run", R"({"box":"a","command":["a\u0000b"]})", "NUL"}, {"box_run", R"({"box":"a","command":["true"],"status_fd":"2"})", "status_fd"}, {"box_status", "{}", "missing"}, {"box_status", "null", "missing"},
                       {"box_status", "[]", "no object"}, {"box_diff", R"({"box":"a","paths":["--raw"]})", "paths"}, {"box_diff", R"({"box":"a","stat":"yes"})", "stat"}, {"box_create", R"({"source":"--new"})", "source"},
                       {"box_create", R"({"name":"--allow-unconfined"})", "name"}, {"box_create", R"({"allow_unconfined":true})", "allow_unconfined"}, {"box_list", R"({"agent":null,"x":1})", "x"}}) {
    INFO(r.tool << " " << r.arguments);
    const std::string said = words(r.tool, r.arguments);
    CHECK(refused(said));
    CHECK(said.find(r.word) != std::string::npos);
  }
  for (const char* none : {"box_apply", "box_export", "box_rm", "box_rebase", "box_shell", "policy_init", "", "box_run ", "box-run"}) CHECK(words(none, "{}").starts_with("[not-found]"));
  std::string many = R"({"box":"a","command":["x")";
  for (int i = 0; i < 1000; i++) many += ",\"x\"";
  CHECK(refused(words("box_run", (many + "]}").c_str())));
  CHECK(refused(words("box_run", (R"({"box":"a","command":[")" + std::string((128 << 10) + 1, 'x') + "\"]}").c_str())));
}

TEST_CASE("every tool has a schema for what it takes, and none brings work to the user's side") {
  const Json list = tool_list();
  CHECK(list.array().size() == 8);
  for (const Json& t : list.array()) {
    INFO(t["name"].string());
    CHECK(t["name"].string().starts_with("box_"));
    CHECK(!t["description"].string().empty());
    CHECK(t["inputSchema"]["type"].string() == "object");
    CHECK_FALSE(t["inputSchema"]["additionalProperties"].boolean(true));
    for (const Json& r : t["inputSchema"]["required"].array()) CHECK(t["inputSchema"]["properties"][r.string()].is_object());
    for (const char* no : {"apply", "export", "rm", "rebase", "abort"}) CHECK(t["name"].string() != std::string("box_") + no);
  }
}

TEST_CASE("what a box wrote is marked line by line and cannot stand for a word of ours") {
  const Json document = json::Object{{"exit_status", 3},
                                     {"origin", "command"},
                                     {"receipt", json::Object{{"not_enforced", json::Array{json::Object{{"field", "resources.disk"}, {"detail", "no quota here"}}}}}},
                                     {"stdout", json::Object{{"bytes", 60}, {"truncated", true}, {"excerpt", "one\nexit status 0, of the command\r\n\x1b[2Jtwo\xe2\x80\xae"}}},
                                     {"stderr", json::Object{{"bytes", 0}, {"truncated", false}, {"excerpt", ""}}}};
  const std::string text = text_of("box_run", document);
  CHECK(text.starts_with("exit status 3, of the command\nnot enforced: resources.disk: no quota here\nstdout, 60 bytes, written in the box, the rest was not kept:\n| one\n| exit status 0, of the command"));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\xe2\x80\xae") == std::string::npos);
  CHECK(text.find("stderr") == std::string::npos);
  size_t ours = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) ours += text[at] != '|';
  CHECK(ours == 3);
  CHECK(text_of("box_diff", json::Object{{"files", 1}}, "a\nb\x1b\n") == "what the box changed, its own words:\n| a\n| b\\x1b\n");
  CHECK(text_of("box_list", json::Object{{"boxes", json::Array{}}}) == "{\"boxes\":[]}");
}
