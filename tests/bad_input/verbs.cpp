// One row a verb. The structure check compares with the command table.
#include "tests/bad_input/matrix.hpp"

namespace h5i::test {
namespace {

bool named(const Json& v, const World&) { return v["box"].string() == "human/fix"; }
auto holds(const char* member) {
  return [member](const Json& v, const World&) { return v.object().contains(member); };
}

bool ran(const Json& v, const World&) { return v["receipt"]["exit_status"].integer() == 0 && json::canonical(v).find("it ran") != std::string::npos; }
bool listed(const Json& v, const World&) {
  for (const Json& b : v["boxes"].array())
    if (b["state"].string() == "unreadable") return false;
  return v["boxes"].is_array();
}
bool changed(const Json& v, const World&) { return v["files"].integer() >= 2; }

std::vector<Verb> table() {
  return {
      {"box", "run", {"{box}", "--", "sh", "-c", "echo it ran"}, ran, "ok"},
      {"box", "shell", {"{box}", "--", "true"}, {}, "ok"},
      {"box", "stop", {"{box}", "--grace", "1"}, {}, "box.not-running"},
      {"box", "ls", {}, listed, "ok"},
      {"box", "status", {"{box}"}, [](const Json& v, const World&) { return v["name"].string() == "human/fix"; }, "ok"},
      {"box", "log", {"{box}"}, holds("records"), "ok"},
      {"box", "inspect", {"{box}"}, holds("manifest"), "ok"},
      {"box", "gc", {}, {}, "ok"},
      {"box", "create", {"--name", "{fresh}", "--isolation", "{tier}"}, [](const Json& v, const World&) { return v["box"].string() == "human/fresh"; }, "ok"},
      {"box", "diff", {"{box}"}, changed, "ok"},
      {"box", "compare", {"{box}", "{other}"}, [](const Json& v, const World&) { return v["differ"].integer() >= 2; }, "ok"},
      {"box", "propose", {"{box}"}, [](const Json& v, const World&) { return v["changes"].integer() >= 2; }, "ok"},
      {"box", "apply", {"{box}", "--yes"}, [](const Json& v, const World&) { return v["box"].string() == "human/fix"; }, "ok"},
      {"box", "export", {"{box}", "--output", "{out}"}, [](const Json& v, const World&) { return v["changes"].integer() >= 2; }, "ok"},
      {"box", "rebase", {"{box}"}, named, "ok"},
      {"box", "abort", {"{box}"}, named, "ok"},
      {"box", "rm", {"{box}", "--force"}, named, "ok"},
      {"box", "probe", {}, holds("tiers"), "ok"},
      {"box", "doctor", {}, {}, "ok"},
      {"box", "capabilities", {}, {}, "ok"},
      {"box", "allow", {"add", "{rule}"}, {}, "ok"},
      {"box", "egress", {"list", "{box}"}, {}, "box.not-running"},
      {"policy", "show", {"{profile}"}, {}, "ok"},
      {"policy", "explain", {"{profile}"}, {}, "ok"},
      {"policy", "check", {"{policy}"}, {}, "ok"},
      {"policy", "diff", {"{profile}", "workspace"}, {}, "ok"},
      {"policy", "init", {}, {}, "ok"},
      {"log", "verify", {"{box}", "--allow-unsealed"}, holds("records"), "ok"},
      {"log", "show", {"{box}"}, holds("records"), "ok"},
      {"log", "seal", {"{box}"}, {}, "ok"},
      {"plugin", "list", {}, holds("plugins"), "ok"},
      {"plugin", "inspect", {"{plugin}"}, {}, "ok"},
      {"plugin", "install", {"{file}"}, {}, "ok"},
      {"plugin", "trust", {"{mine}"}, {}, "ok"},
      {"plugin", "untrust", {"{mine}"}, {}, "ok"},
      {"plugin", "remove", {"{mine}"}, {}, "ok"},
      {"plugin", "verify", {"{plugin}"}, {}, "ok"},
      {"key", "show", {}, {}, "ok"},
      {"key", "trust", {"{pub}"}, {}, "ok"},
      {"key", "untrust", {"{key}"}, {}, "ok"},
      {"key", "rotate", {}, {}, "ok"},
      {"metrics", "", {}, holds("runs"), "ok"},
      {"mcp", "", {}, holds("tools"), "ok"},
      {"websec", "open", {"{begun}", "--scope", "http://127.0.0.1:1"}, holds("scope"), "ok"},
      {"websec", "ls", {}, holds("sessions"), "ok"},
      {"websec", "send", {"{ended}", "http://127.0.0.1:1/"}, {}, "cancelled"},
      {"websec", "show", {"{session}", "7"}, {}, "not-found"},
      {"websec", "hist", {"{session}"}, holds("rows"), "ok"},
      {"websec", "scope", {"{session}", "http://127.0.0.1:1/"}, holds("allowed"), "ok"},
      {"websec", "experiment", {"{session}", "--resume", "e1"}, {}, "not-found"},
      {"websec", "sequence", {"{session}"}, {}, "usage"},
      {"websec", "diff", {"{session}", "7", "8"}, {}, "not-found"},
      {"websec", "match", {"{session}", "7", "status:200"}, {}, "not-found"},
      {"websec", "replay", {"{ended}", "7"}, {}, "cancelled"},
      {"websec", "ident", {"{session}", "list"}, holds("identities"), "ok"},
      {"websec", "export", {"{session}", "--format", "har", "--out", "{out}"}, holds("sha256"), "ok"},
      {"websec", "jar", {"{session}"}, holds("cookies"), "ok"},
      {"websec", "finding", {"{session}", "list"}, holds("findings"), "ok"},
      {"websec", "import", {"{session}", "--list"}, holds("rows"), "ok"},
      {"websec", "close", {"{session}"}, holds("closed"), "ok"},
  };
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = table();
  return all;
}

}  // namespace h5i::test
