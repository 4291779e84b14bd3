#include "core/mcp/tools.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace h5i::mcp {
namespace {

constexpr size_t kMostWords = 1000;
constexpr size_t kLongestWord = 128 << 10;  // what one argument of a program may have

enum class Kind { NAME, TEXT, SWITCH, LIST };
struct Argument {
  const char* name;
  Kind kind;
  const char* option;  // nullptr: the verb's own argument; "--": the words behind it
  bool required;
  const char* help;
};
struct Tool {
  const char* name;
  const char* verb;
  bool reads;  // and changes nothing
  const char* help;
  std::vector<Argument> arguments;
};

const std::vector<Tool>& tools() {
  static const Argument box = {"box", Kind::NAME, nullptr, true, "the box: agent/slug, or slug where that is one box"};
  static const std::vector<Tool> all = {
      {"box_create",
       "create",
       false,
       "Make a box: a copy of this repository's work in which unreviewed commands can be run under a policy. Nothing leaves it unreviewed.",
       {{"source", Kind::NAME, nullptr, false, "a revision's repository, a directory or a git URL; without it, this repository"},
        {"name", Kind::NAME, "--name", false, "[a-z0-9][a-z0-9._-]{0,63}"},
        {"agent", Kind::NAME, "--agent", false, "the agent part of the name"},
        {"from", Kind::NAME, "--from", false, "the revision to begin from"},
        {"profile", Kind::NAME, "--profile", false, "the policy profile"},
        {"isolation", Kind::NAME, "--isolation", false, "exactly this tier, or a refusal; auto chooses the strongest that verifies"},
        {"image", Kind::NAME, "--image", false, "the image of an image tier"},
        {"new", Kind::SWITCH, "--new", false, "an empty work tree without a repository"},
        {"with_changes", Kind::SWITCH, "--with-changes", false, "carry modified and untracked files into the box"}}},
      {"box_run",
       "run",
       false,
       "Run a command in a box and wait for its end. The answer has the exit status, whether it is the command's own or h5i's, an excerpt of what it wrote, and a "
       "receipt of what was enforced.",
       {box, {"command", Kind::LIST, "--", true, "the program and its arguments, one string each; no shell reads them"}, {"cwd", Kind::TEXT, "--cwd", false, "start here, relative to the box's work tree"}}},
      {"box_status", "status", true, "State of one box: tier, profile, digests, last run, whether its log is sealed.", {box}},
      {"box_diff",
       "diff",
       true,
       "What a box changed. What would make other tools run code on the user's side is listed apart.",
       {box, {"paths", Kind::LIST, nullptr, false, "only these"}, {"stat", Kind::SWITCH, "--stat", false, "files and line counts only"}}},
      {"box_inspect", "inspect", true, "Everything that is recorded of one box: manifest, policy, last receipt.", {box}},
      {"box_compare",
       "compare",
       true,
       "How the results of two boxes differ.",
       {box, {"other", Kind::NAME, nullptr, true, "the other box"}, {"stat", Kind::SWITCH, "--stat", false, "files and line counts only"}}},
      {"box_propose",
       "propose",
       false,
       "Take a box's changes through the gate into a commit on the box's branch. It is for the user to review and apply; applying is no tool.",
       {box, {"message", Kind::TEXT, "--message", false, "the commit's message"}}},
      {"box_list",
       "ls",
       true,
       "The boxes of this repository and those without one.",
       {{"agent", Kind::NAME, "--agent", false, "only boxes of this agent"}, {"state", Kind::NAME, "--state", false, "created, running, idle, proposed, applied or aborted"}}},
  };
  return all;
}

Json schema_of(const Argument& a) {
  switch (a.kind) {
    case Kind::NAME: return json::Object{{"type", "string"}, {"minLength", 1}, {"pattern", "^[^-]"}, {"description", a.help}};
    case Kind::TEXT: return json::Object{{"type", "string"}, {"description", a.help}};
    case Kind::SWITCH: return json::Object{{"type", "boolean"}, {"description", a.help}};
    case Kind::LIST: {
      Json out = json::Object{{"type", "array"}, {"items", json::Object{{"type", "string"}}}, {"description", a.help}};
      if (a.required) out["minItems"] = 1;
      return out;
    }
  }
  return {};
}

Error wrong(const Argument& a, const std::string& why) { return make_error(Errc::INVALID, std::string("argument ") + a.name + " is not what the tool takes", why, "tools/list has its schema"); }

// A program's argument ends at its first NUL byte, and would say something else then.
Result<std::string> word(const Argument& a, const Json& v) {
  if (!v.is_string()) return wrong(a, "no string");
  const std::string& s = v.string();
  if (s.find('\0') != std::string::npos) return wrong(a, "it has a NUL byte");
  if (s.size() > kLongestWord) return wrong(a, std::to_string(s.size()) + " bytes, at most " + std::to_string(kLongestWord));
  return s;
}

Result<std::string> name(const Argument& a, const Json& v) {
  std::string s = H5I_TRY(word(a, v));
  if (s.empty() || s[0] == '-') return wrong(a, s.empty() ? "it is empty" : "it begins as an option does");
  return s;
}

struct Words {
  std::vector<std::string> options, own, behind;
};

Result<void> take(const Argument& a, const Json& v, Words& to) {
  if (a.kind == Kind::SWITCH) {
    if (!v.is_bool()) return wrong(a, "neither true nor false");
    if (v.boolean()) to.options.emplace_back(a.option);
    return {};
  }
  if (a.kind == Kind::LIST) {
    if (!v.is_array() || v.array().size() > kMostWords || (a.required && v.array().empty())) return wrong(a, "no list of 1 to " + std::to_string(kMostWords) + " strings");
    for (const Json& one : v.array())
      if (a.option) to.behind.push_back(H5I_TRY(word(a, one)));
      else to.own.push_back(H5I_TRY(name(a, one)));
    return {};
  }
  std::string s = a.kind == Kind::NAME ? H5I_TRY(name(a, v)) : H5I_TRY(word(a, v));
  if (a.option) to.options.push_back(a.option + ("=" + s));
  else to.own.push_back(std::move(s));
  return {};
}

// Each line is marked, so that none of them is taken for a word of ours.
void add_marked(std::string& out, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += "| " + printable(text.substr(at, end - at), {.limit = 4000}) + "\n";
    at = end + 1;
  }
}

void add_stream(std::string& out, const char* title, const Json& stream) {
  if (stream["bytes"].integer() == 0) return;
  out += std::string(title) + ", " + std::to_string(stream["bytes"].integer()) + " bytes, written in the box" + (stream["truncated"].boolean() ? ", the rest was not kept" : "") + ":\n";
  add_marked(out, stream["excerpt"].string());
  if (stream["excerpt"].string().empty()) out += "| (no text)\n";
}

}  // namespace

Json tool_list() {
  Json out = json::Array{};
  for (const Tool& t : tools()) {
    Json properties = json::Object{}, required = json::Array{};
    for (const Argument& a : t.arguments) {
      properties[a.name] = schema_of(a);
      if (a.required) required.push(a.name);
    }
    Json schema = json::Object{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (!required.array().empty()) schema["required"] = std::move(required);
    out.push(json::Object{{"name", t.name}, {"description", t.help}, {"inputSchema", std::move(schema)}, {"annotations", json::Object{{"readOnlyHint", t.reads}, {"openWorldHint", false}, {"destructiveHint", false}}}});
  }
  return out;
}

Result<std::vector<std::string>> command_line(const std::string& tool, const Json& arguments) {
  const Tool* found = nullptr;
  for (const Tool& t : tools())
    if (tool == t.name) found = &t;
  if (!found) return make_error(Errc::NOT_FOUND, "there is no tool " + printable(tool), "box_apply and the like are for the user", "tools/list");
  if (!arguments.is_object() && !arguments.is_null()) return make_error(Errc::INVALID, "the arguments are no object", "", "tools/list has the schema");
  for (const auto& [key, value] : arguments.object()) {
    bool known = false;
    for (const Argument& a : found->arguments) known = known || key == a.name;
    if (!known) return make_error(Errc::INVALID, "the tool " + tool + " takes no argument " + printable(key), "", "tools/list has its schema");
  }
  Words words;
  for (const Argument& a : found->arguments) {
    const Json& v = arguments[a.name];
    if (v.is_null() && !a.required) continue;
    if (v.is_null()) return wrong(a, "it is missing");
    H5I_TRY(take(a, v, words));
  }
  std::vector<std::string> out = {"box", found->verb, "--json"};
  out.insert(out.end(), words.options.begin(), words.options.end());
  out.insert(out.end(), words.own.begin(), words.own.end());
  if (!words.behind.empty()) {
    out.emplace_back("--");
    out.insert(out.end(), words.behind.begin(), words.behind.end());
  }
  return out;
}

std::vector<std::string> reading_line(const std::string& tool, const std::vector<std::string>& words) {
  if (tool != "box_diff" && tool != "box_compare") return {};
  std::vector<std::string> out = words;
  std::erase(out, "--json");
  return out;
}

std::string text_of(const std::string& tool, const Json& document, const std::string& shown) {
  if (!shown.empty()) {
    std::string out = "what the box changed, its own words:\n";
    add_marked(out, shown);
    return out;
  }
  if (tool != "box_run" || !document["exit_status"].is_int()) return json::canonical(document);
  std::string out = "exit status " + std::to_string(document["exit_status"].integer()) + ", of " + (document["origin"].string() == "command" ? "the command" : "h5i") + "\n";
  if (document["error"].is_object()) out += "refused: " + document["error"]["what"].string() + " [" + document["error"]["id"].string() + "]\nbecause: " + document["error"]["evidence"].string() + "\n";
  for (const Json& n : document["receipt"]["not_enforced"].array()) out += "not enforced: " + n["field"].string() + ": " + n["detail"].string() + "\n";
  add_stream(out, "stdout", document["stdout"]);
  add_stream(out, "stderr", document["stderr"]);
  return out;
}

}  // namespace h5i::mcp
