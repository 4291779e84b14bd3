// The policy verbs as programs: what they print, their exit status, their --json against docs/schema.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "core/policy/resolve.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/schema.hpp"

using namespace h5i;
using test::Ended;

namespace {

// A repository with a home of its own; nothing of the real user is read.
struct Place {
  std::string root, repo, home;
  Place() {
    char name[] = "/tmp/h5i-verbs-XXXXXX";
    root = ::mkdtemp(name);
    repo = root + "/repo";
    home = root + "/home";
    for (const char* d : {"", "/repo", "/home", "/repo/.git", "/repo/.git/objects", "/repo/.git/refs", "/repo/sub"}) ::mkdir((root + d).c_str(), 0755);
    write(".git/HEAD", "ref: refs/heads/main\n");
  }
  ~Place() { (void)!::system(("rm -rf " + root).c_str()); }
  void write(const std::string& name, const std::string& text) const {
    size_t slash = name.rfind('/');
    if (slash != std::string::npos) ::mkdir((repo + "/" + name.substr(0, slash)).c_str(), 0755);
    std::ofstream(repo + "/" + name) << text;
  }
  std::string read(const std::string& path) const {
    std::ifstream f(path);
    std::stringstream s;
    s << f.rdbuf();
    return s.str();
  }
  Ended h5i(std::vector<std::string> words, const std::string& below = "") const {
    words.insert(words.begin(), "h5i");
    return test::run({.argv = words, .env = {{"HOME", home}}, .cwd = repo + below});
  }
  // A refusal is looked at twice, the second time as a person sees it: the same status and id, and three lines.
  Json json(std::vector<std::string> words, const std::string& schema, int status) const {
    const std::vector<std::string> for_a_person = words;
    words.push_back("--json");
    Ended e = h5i(words);
    INFO(e.out << e.err);
    CHECK(e.status == status);
    for (const std::string& fault : test::schema_errors_of_text(schema, e.out)) {
      INFO(fault);
      CHECK(false);
    }
    auto v = parse_json(e.out, "output");
    REQUIRE(v);
    if (const Json& id = (*v)["error"]["id"]; id.is_string()) {
      Ended text = h5i(for_a_person);
      INFO(text.status << ": " << text.err);
      CHECK(text.status == status);
      CHECK(test::is_refusal(text.err, id.string()));
    }
    return *v;
  }
};

}  // namespace

TEST_CASE("policy show lists profiles and prints one, with the digest's document") {
  Place p;
  Json all = p.json({"policy", "show"}, "policy-show", 0);
  std::set<std::string> names;
  for (const Json& n : all["profiles"].array()) names.insert(n["name"].string());
  CHECK(names.count("default"));
  CHECK(names.count("agent-claude"));
  p.write(".h5i/env.yaml", "profiles:\n  review: { tools: [make], secrets: { K: }, net: { egress: [a.example] } }\n");
  Json one = p.json({"policy", "show", "review"}, "policy-show", 0);
  CHECK(one["defined_at"].string() == ".h5i/env.yaml:2:3");
  CHECK(test::schema_errors("policy-document", one["policy"]).empty());
  Ended from_below = p.h5i({"policy", "show", "review"}, "/sub");
  CHECK(from_below.status == 0);
  CHECK(from_below.out.find("a.example:443") != std::string::npos);
  CHECK(p.json({"policy", "show", "nope"}, "policy-show", 1)["error"]["id"].string() == "policy.no-profile");
  Ended refused = p.h5i({"policy", "show", "nope"});
  CHECK(refused.status == 1);
  CHECK(test::is_refusal(refused.err, "policy.no-profile"));
  for (const char* builtin : {"default", "workspace", "agent-claude", "agent-codex"})
    CHECK(test::schema_errors("policy-document", p.json({"policy", "show", builtin}, "policy-show", 0)["policy"]).empty());
}

TEST_CASE("each refusal of a policy has three lines, its id and status 1, in every verb that reads it") {
  const std::string deep = std::string(20, '[') + std::string(20, ']'), many(270000, 'x');
  struct Row {
    const char* id;
    std::string body;   // what the profile `a` says
    std::string file;   // else the whole file
  };
  const std::vector<Row> rows = {
      {"policy.parse", "", "profiles: &x { a: {} }"},
      {"policy.parse", "", "profiles: { a: &x {}, b: *x }"},
      {"policy.parse", "", "profiles: !!map { a: {} }"},
      {"policy.parse", "", "profiles: { a: { <<: {} } }"},
      {"policy.parse", "", "profiles: { a: {}, a: {} }"},
      {"policy.parse", "", "profiles: { a: { tools: ['\xff'] } }"},
      {"policy.parse", "", "profiles: { a: "},
      {"policy.limit", "", "x: " + deep},
      {"policy.limit", "", "# " + many},
      {"policy.unknown-key", "toolz: [sh]", ""},
      {"policy.type", "tools: sh", ""},
      {"policy.value", "net: { mode: open }", ""},
      {"policy.value", "resources: { mem: 4X }", ""},
      {"policy.value", "resources: { procs: 0 }", ""},
      {"policy.value", "browser: { deny: [snapshot] }", ""},
      {"policy.value", "audit: { capture: some }", ""},
      {"policy.no-equivalent", "fs: { fs_read: [/usr] }", ""},
      {"policy.no-equivalent", "persona: [x]", ""},
      {"policy.no-equivalent", "isolation: hardened-container", ""},
      {"policy.extends-cycle", "", "profiles: { a: { extends: b }, b: { extends: a } }"},
      {"policy.no-profile", "extends: nowhere", ""},
      {"policy.path", "fs: { read: [/nowhere/at/all] }", ""},
      {"policy.path", "fs: { read: [$NOPE] }", ""},
      {"policy.path", "fs: { read: [relative] }", ""},
      {"policy.path", "fs: { read: [/usr/../etc] }", ""},
      {"policy.path", "fs: { read: [/] }", ""},
      {"policy.path", "fs: { read: [~/.ssh] }", ""},
      {"policy.path", "fs: { private: { /abs: cache } }", ""},
      {"policy.env-dangerous", "env: { pass: [LD_PRELOAD] }", ""},
      {"policy.env-dangerous", "env: { set: { BASH_ENV: x } }", ""},
      {"policy.egress-rule", "net: { egress: ['*'] }", ""},
      {"policy.egress-rule", "net: { egress: ['*.com'] }", ""},
      {"policy.egress-rule", "net: { egress: ['a.example:70000'] }", ""},
      {"policy.egress-rule", "net: { egress: ['a.example:1:2'] }", ""},
      {"policy.egress-rule", "net: { egress: ['u@a.example'] }", ""},
      {"policy.egress-rule", "net: { egress: ['a.example/path'] }", ""},
      {"policy.egress-rule", "net: { egress: ['a..example'] }", ""},
      {"policy.egress-rule", "net: { egress: ['a example'] }", ""},
      {"policy.egress-rule", "net: { egress: ['" + std::string(254, 'x') + "'] }", ""},
      {"policy.egress-rule", "net: { egress: ['*.1.2.3.4'] }", ""},
      {"policy.egress-rule", "net: { egress: [127.0.0.1] }", ""},
      {"policy.egress-rule", "net: { egress: [169.254.169.254] }", ""},
      {"policy.egress-rule", "net: { egress: ['[::ffff:127.0.0.1]'] }", ""},
  };
  Place p;
  ::mkdir((p.home + "/.ssh").c_str(), 0700);
  auto refuses = [&](const std::vector<std::string>& words, const std::string& id) {
    Ended e = p.h5i(words);
    INFO(words[1] << ": " << e.status << ", " << e.err);
    CHECK(e.status == 1);
    CHECK(e.out.empty());
    CHECK(test::is_refusal(e.err, id));
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 3);
    if (words[1] != "check") CHECK(p.json(words, "policy-" + words[1], 1)["error"]["id"].string() == id);
  };
  for (const Row& r : rows) {
    INFO(r.id << ": " << r.body << r.file.substr(0, 60));
    p.write(".h5i/env.yaml", r.file.empty() ? "profiles:\n  a:\n    " + r.body + "\n" : r.file + "\n");
    for (const char* verb : {"show", "explain"}) refuses({"policy", verb, "a"}, r.id);
    refuses({"policy", "diff", "a", "default"}, r.id);
  }
  p.write(".h5i/env.yaml", "profiles:\n  a: { tools: [sh] }\n");
  CHECK(p.h5i({"policy", "show", "a"}).status == 0);  // the control
  refuses({"policy", "show", "nowhere"}, "policy.no-profile");
  refuses({"policy", "show", "agent"}, "policy.agent-ambiguous");
  p.write(".h5i/env.toml", "");
  refuses({"policy", "show", "a"}, "policy.two-files");
}

TEST_CASE("what a tier cannot hold of a policy is refused in three lines, with status 1") {
  Place p;
  struct Row {
    const char *id, *body, *tier;
  };
  for (const Row& r : std::initializer_list<Row>{
           {"policy.egress-unenforceable", "net: { egress: [a.example] }", "process"},
           {"policy.egress-unenforceable", "net: { egress: [a.example] }", "workspace"},
           {"policy.field-unenforceable", "fs: { deny: [$WORK/.env] }", "workspace"},
           {"policy.isolation", "isolation: workspace", "process"},
           {"tier.not-installed", "isolation: microvm", "microvm"},
           {"tier.unknown", "tools: [sh]", "nowhere"},
       }) {
    p.write(".h5i/env.yaml", "profiles:\n  a: { " + std::string(r.body) + " }\n");
    Ended e = p.h5i({"policy", "explain", "a", "--tier", r.tier});
    INFO(r.id << ", " << r.body << ": " << e.err);
    CHECK(e.status == (std::string(r.id) == "tier.not-installed" ? 125 : 1));
    CHECK(test::is_refusal(e.err, r.id));
  }
  p.write(".h5i/env.yaml", "profiles:\n  a: { fs: { deny: [$WORK/.env] } }\n");
  CHECK(p.h5i({"policy", "explain", "a", "--tier", "process"}).status == 0);  // the control
}

TEST_CASE("policy check prints every error and exits 1, or says ok and exits 0") {
  Place p;
  CHECK(p.h5i({"policy", "check"}).status == 0);
  p.write(".h5i/env.yaml", "profiles:\n  a: { toools: [x], net: { mode: open } }\n  b: { env: { pass: [LD_PRELOAD] } }\n");
  Ended e = p.h5i({"policy", "check"});
  CHECK(e.status == 1);
  CHECK(e.err.find("nearest: tools") != std::string::npos);
  CHECK(e.err.find("[policy.value]") != std::string::npos);
  Json j = p.json({"policy", "check"}, "policy-check", 1);
  CHECK_FALSE(j["ok"].boolean());
  CHECK(j["errors"].array().size() == 2);
  p.write(".h5i/env.yaml", "profiles:\n  a: {}\n  b: { env: { pass: [LD_PRELOAD] } }\n  c: { extends: zzz }\n");
  j = p.json({"policy", "check"}, "policy-check", 1);
  CHECK(j["errors"].array().size() == 2);  // what shows only after merging, of each profile
  p.write("good.toml", "[profiles.x]\ntools = ['make']\n");
  j = p.json({"policy", "check", "good.toml"}, "policy-check", 0);
  CHECK(j["profiles"].array()[0]["name"].string() == "x");
  p.json({"policy", "check", "missing.yaml"}, "policy-check", 1);
  // A name that would move the cursor is shown, not sent.
  p.write("esc.yaml", "profiles:\n  a: { \"k\\x1b[2Jx\": 1 }\n");
  e = p.h5i({"policy", "check", "esc.yaml"});
  CHECK(e.status == 1);
  CHECK(e.err.find('\x1b') == std::string::npos);
  CHECK(e.err.find("\\x1b") != std::string::npos);
  p.write(".h5i/env.toml", "");
  CHECK(p.json({"policy", "check"}, "policy-check", 1)["errors"].array()[0]["id"].string() == "policy.two-files");
}

TEST_CASE("policy init writes a file that passes its own check, in both formats, and never overwrites") {
  for (const char* format : {"yaml", "toml"}) {
    Place p;
    Json j = p.json({"policy", "init", "--format", format}, "policy-init", 0);
    std::string file = p.repo + "/.h5i/env." + format;
    CHECK(j["file"].string() == file);
    std::string before = p.read(file);
    CHECK(before.size() > 500);
    Ended check = p.h5i({"policy", "check"});
    INFO(check.err);
    CHECK(check.status == 0);
    for (const char* again : {"yaml", "toml"}) {
      CHECK(p.json({"policy", "init", "--format", again}, "policy-init", 1)["error"]["id"].string() == "exists");
    }
    CHECK(p.read(file) == before);
  }
  Place y, t;
  y.h5i({"policy", "init"});
  t.h5i({"policy", "init", "--format", "toml"});
  Json a = y.json({"policy", "show", "dev"}, "policy-show", 0)["policy"], b = t.json({"policy", "show", "dev"}, "policy-show", 0)["policy"];
  // Both starters say the same, apart from where their repositories are.
  std::string x = json::canonical(a), z = json::canonical(b);
  for (size_t i; (i = z.find(t.root)) != std::string::npos;) z.replace(i, t.root.size(), y.root);
  CHECK(x == z);
  CHECK(y.h5i({"policy", "init", "--format", "ini"}).status == 2);
  // A link in the place of the file is something that exists.
  Place l;
  l.write(".h5i/x", "");
  REQUIRE(::symlink("../elsewhere", (l.repo + "/.h5i/env.yaml").c_str()) == 0);
  CHECK(l.h5i({"policy", "init"}).status == 1);
  CHECK(::access((l.repo + "/elsewhere").c_str(), F_OK) != 0);
}

TEST_CASE("policy diff names what widened and what narrowed") {
  Place p;
  p.write(".h5i/env.yaml", "profiles:\n  a: { resources: { mem: 8G, procs: 10 } }\n");
  Json j = p.json({"policy", "diff", "default", "a"}, "policy-diff", 0);
  std::string said = json::canonical(j["changes"]);
  CHECK(said.find("\"change\":\"widened\",\"detail\":\"4G -> 8G\",\"field\":\"resources.mem\"") != std::string::npos);
  CHECK(said.find("\"change\":\"narrowed\",\"detail\":\"256 -> 10\",\"field\":\"resources.procs\"") != std::string::npos);
  CHECK(p.json({"policy", "diff", "a", "a"}, "policy-diff", 0)["changes"].array().empty());
  CHECK(p.h5i({"policy", "diff", "a", "a"}).out == "no difference in what is allowed\n");
  CHECK(p.json({"policy", "diff", "a", "nope"}, "policy-diff", 1)["error"]["id"].string() == "policy.no-profile");
  // Against a stored document.
  std::ofstream(p.repo + "/stored.json") << json::canonical(p.json({"policy", "show", "a"}, "policy-show", 0)["policy"]);
  CHECK(p.json({"policy", "diff", "a", "stored.json"}, "policy-diff", 0)["changes"].array().empty());
  std::ofstream(p.repo + "/other.json") << "{\"schema\":\"x\"}";
  CHECK(p.json({"policy", "diff", "a", "other.json"}, "policy-diff", 1)["error"]["id"].string() == "input.invalid");
  CHECK(p.h5i({"policy", "diff", "a"}).status == 2);
}

TEST_CASE("policy explain: the tier that is asked for, or a refusal that names what is missing") {
  Place p;
  CHECK(p.json({"policy", "explain", "default", "--tier", "nowhere"}, "policy-explain", 1)["error"]["id"].string().substr(0, 5) == "tier.");
  CHECK(p.json({"policy", "explain", "nope"}, "policy-explain", 1)["error"]["id"].string() == "policy.no-profile");
  p.write(".h5i/env.yaml", "profiles:\n  a: { isolation: supervised }\n");
  CHECK(p.json({"policy", "explain", "a", "--tier", "nowhere"}, "policy-explain", 1)["error"]["id"].string().substr(0, 5) == "tier.");
}

TEST_CASE("policy explain says who holds each field, and shows the plan that a run would have") {
  Place p;
  Json w = p.json({"policy", "explain", "--tier", "workspace"}, "policy-explain", 0);
  std::set<std::string> unheld;
  for (const Json& n : w["not_enforced"].array()) unheld.insert(n["field"].string());
  for (const char* f : {"fs.read", "fs.write", "fs.deny", "net.mode", "resources.mem"}) CHECK(unheld.count(f));
  CHECK(w["plan"]["tier"].string() == "workspace");
  CHECK(w["policy_digest"].string() == canonical_digest(w["policy"]));
  Ended text = p.h5i({"policy", "explain", "--tier", "workspace", "-q"});
  CHECK(text.out.find("fs.read") != std::string::npos);
  CHECK(text.out.find("spawn plan:") != std::string::npos);

  Json t = p.json({"policy", "explain", "--tier", "process"}, "policy-explain", 0);
  // A host without user namespaces has no plan; then the reason stands in its place.
  CHECK(t["plan"].is_object() != t.object().contains("no_plan"));
  for (const Json& f : t["fields"].array())
    if (f["field"].string() == "fs.read") CHECK(f["state"].string() == "enforced");
  CHECK(p.json({"policy", "explain", "agent-claude", "--tier", "process"}, "policy-explain", 1)["error"]["id"].string() == "policy.egress-unenforceable");
  CHECK(p.json({"policy", "explain", "workspace", "--tier", "process"}, "policy-explain", 1)["error"]["id"].string() == "policy.isolation");
  CHECK(p.json({"policy", "explain", "workspace"}, "policy-explain", 0)["tier"].string() == "workspace");
}

TEST_CASE("policy explain shows the profile of macOS and claims nothing of it") {
  Place p;
  p.write(".h5i/env.yaml",
          "profiles:\n"
          "  a: { fs: { deny: [\"$WORK/a\\\"))(allow default)\"] }, net: { egress: [host.example] }, resources: { mem: 1G, disk: 1G } }\n"
          "  b: { net: { egress: [] } }\n"
          "  other: { isolation: process }\n");
  Json j = p.json({"policy", "explain", "a", "--tier", "seatbelt"}, "policy-explain", 0);
  CHECK(j["plan"].is_null());
  CHECK(j["no_plan"].string().find("nothing of this is enforced by this build") == 0);
  CHECK_FALSE(j["probed"].boolean());
  CHECK(j["policy"]["tier"].string() == "seatbelt");
  CHECK(j["policy_digest"].string() == canonical_digest(j["policy"]));
  std::set<std::string> unheld;
  for (const Json& n : j["not_enforced"].array()) unheld.insert(n["field"].string());
  CHECK(j["fields"].array().size() > 8);
  for (const Json& f : j["fields"].array()) {
    INFO(f["field"].string());
    CHECK(f["state"].string() == "not enforced");
    CHECK(unheld.count(f["field"].string()));
  }
  const std::string& profile = j["seatbelt"]["profile"].string();
  CHECK(profile.find("(deny default)") != std::string::npos);
  CHECK(profile.find("(remote tcp \"localhost:3128\")") != std::string::npos);
  CHECK(profile.find("allow default") == std::string::npos);
  CHECK(profile.find('/') == std::string::npos);
  bool there = false;
  for (const Json& parameter : j["seatbelt"]["parameters"].array()) there = there || parameter["value"].string().ends_with("/a\"))(allow default)");
  CHECK(there);
  Json b = p.json({"policy", "explain", "b", "--tier", "seatbelt"}, "policy-explain", 0);
  CHECK(b["seatbelt"]["profile"].string().find("remote") == std::string::npos);
  CHECK(json::canonical(b["notes"]).find("3128") == std::string::npos);
  CHECK(json::canonical(j["notes"]).find("3128") != std::string::npos);

  Ended text = p.h5i({"policy", "explain", "a", "--tier", "seatbelt", "-q"});
  CHECK(text.status == 0);
  CHECK(text.out.find("\nnothing of this is enforced by this build: h5i does not run on macOS\n") != std::string::npos);
  CHECK(text.out.find(profile) != std::string::npos);
  CHECK(text.out.find("  DENIED_0=") != std::string::npos);
  CHECK(text.out.find("resources.mem  [no-rule]") != std::string::npos);
  CHECK(text.out.find("core  ") == std::string::npos);
  CHECK_FALSE(p.json({"policy", "explain", "b", "--tier", "process"}, "policy-explain", 0).object().contains("seatbelt"));

  CHECK(p.json({"policy", "explain", "other", "--tier", "seatbelt"}, "policy-explain", 1)["error"]["id"].string() == "policy.isolation");
  CHECK(p.json({"policy", "explain", "b", "--tier", "seatbelt", "--image", "registry.example/dev:1"}, "policy-explain", 1)["error"]["id"].string() == "policy.field-unenforceable");
  // Explained, and there is still nothing to run at.
  CHECK(p.json({"box", "probe", "--tier", "seatbelt"}, "box-probe", 125)["error"]["id"].string() == "tier.not-installed");
}

TEST_CASE("box allow edits the host's list, whole lines at a time, and refuses bad rules") {
  Place p;
  CHECK(p.json({"box", "allow"}, "box-allow", 0)["rules"].array().empty());
  Json j = p.json({"box", "allow", "add", "B.example:8080", "a.example"}, "box-allow", 0);
  CHECK(j["changed"].array().size() == 2);
  std::string file = p.home + "/.config/h5i/egress-allow";
  CHECK(j["file"].string() == file);
  CHECK(p.read(file).find("\na.example:443\nb.example:8080\n") != std::string::npos);
  struct stat st{};
  REQUIRE(::stat(file.c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0600);
  CHECK(p.json({"box", "allow", "add", "a.example:443"}, "box-allow", 0)["changed"].array().empty());
  p.json({"box", "allow", "add", "ci.corp.example", "--private"}, "box-allow", 0);
  CHECK(p.h5i({"box", "allow", "list"}).out == "a.example:443\nb.example:8080\nci.corp.example:443 private\n");
  CHECK(p.json({"box", "allow", "remove", "b.example:8080"}, "box-allow", 0)["rules"].array().size() == 2);
  CHECK(p.json({"box", "allow", "remove", "b.example:8080"}, "box-allow", 1)["error"]["id"].string() == "not-found");
  std::string before = p.read(file);
  CHECK(p.json({"box", "allow", "add", "ok.example", "*.com"}, "box-allow", 1)["error"]["id"].string() == "policy.egress-rule");
  CHECK(p.read(file) == before);  // all or nothing
  CHECK(p.json({"box", "egress", "add", "nothing", "a.example"}, "box-egress", 1)["error"]["id"].string() == "box.not-found");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"box", "egress"}, {"box", "egress", "list"}, {"box", "egress", "add", "x"}, {"box", "egress", "list", "x", "y"}, {"box", "egress", "x", "y"}})
    CHECK(p.h5i(words).status == 2);
  CHECK(p.h5i({"box", "allow", "a.example"}).status == 2);
  CHECK(p.h5i({"box", "allow", "add"}).status == 2);
  ::chmod(file.c_str(), 0666);
  CHECK(p.json({"box", "allow"}, "box-allow", 1)["error"]["id"].string() == "policy.host-file");
  Ended homeless = test::run({.argv = {"h5i", "box", "allow"}, .env = {}, .cwd = p.repo});
  CHECK(homeless.status == 1);
  CHECK(test::is_refusal(homeless.err, "home.missing"));
}

TEST_CASE("the host's list is not edited from inside a box") {
  Place p;
  // A process of a box descends from h5i-init; here a copy of a shell has its name.
  std::string init = p.root + "/h5i-init";
  REQUIRE(::system(("cp /bin/sh " + init + " && chmod 755 " + init).c_str()) == 0);
  std::string line = test::h5i_path() + " box allow add a.example; echo status=$?";
  Ended inside = test::run({.argv = {init, "-c", line}, .env = {{"HOME", p.home}}, .cwd = p.repo});
  CHECK(inside.out.find("status=1") != std::string::npos);
  CHECK(test::is_refusal(inside.err, "policy.inside-box"));
  Ended outside = test::run({.argv = {"/bin/sh", "-c", line}, .env = {{"HOME", p.home}}, .cwd = p.repo});
  CHECK(outside.out.find("status=0") != std::string::npos);  // the control
}

TEST_CASE("a host policy in the user's configuration holds the verbs too") {
  Place p;
  p.write(".h5i/env.yaml", "profiles:\n  a: { resources: { mem: 8G } }\n");
  CHECK(p.h5i({"policy", "show", "a"}).status == 0);
  for (const char* d : {"/.config", "/.config/h5i"}) ::mkdir((p.home + d).c_str(), 0755);
  std::ofstream(p.home + "/.config/h5i/host.yaml") << "resources: { mem: 4G }\n";
  Ended e = p.h5i({"policy", "show", "a"});
  CHECK(test::is_refusal(e.err, "policy.above-ceiling"));
  CHECK(e.err.find("host.yaml:1") != std::string::npos);
  ::chmod((p.home + "/.config/h5i/host.yaml").c_str(), 0666);
  CHECK(test::is_refusal(p.h5i({"policy", "show", "default"}).err, "policy.host-file"));
}
