// From configuration to the document: inheritance, built-ins, rules between fields, ceiling, tiers, comparison, digests.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/base/unique_fd.hpp"
#include "core/policy/allow_list.hpp"
#include "core/policy/compare.hpp"
#include "core/policy/explain.hpp"
#include "core/policy/paths.hpp"
#include "core/policy/resolve.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::policy;

namespace {

ResolveInput input(const std::string& yaml, const std::string& profile = "p") {
  ResolveInput in;
  in.config = ConfigBytes{".h5i/env.yaml", yaml, false};
  if (!profile.empty()) in.profile = profile;
  in.home = "/home/u";
  in.repo = "/src/repo";
  in.uid = 1000;
  return in;
}
ResolveInput bare(const std::string& profile) {
  ResolveInput in = input("", profile);
  in.config.reset();
  return in;
}
std::string body(const std::string& fields) { return "profiles:\n  p:\n    " + fields + "\n"; }
Json must(const ResolveInput& in) {
  auto r = resolve(in);
  if (!r) {
    INFO(r.error().id() << " " << r.error().what << " " << r.error().evidence);
    REQUIRE(r);
  }
  return r->document;
}
void refuses(const ResolveInput& in, const std::string& id, const std::string& part) {
  auto r = resolve(in);
  REQUIRE_FALSE(r);
  INFO(r.error().what << " | " << r.error().evidence);
  CHECK(r.error().id() == id);
  CHECK((r.error().what + " " + r.error().evidence).find(part) != std::string::npos);
}
HostPolicy host(const std::string& yaml) {
  auto h = parse_host_policy(yaml, "/etc/h5i/host.yaml");
  REQUIRE(h);
  return *h;
}
std::string list(const Json& v) { return json::canonical(v); }

const std::set<std::string> kProcessClaims = {"fs.read", "fs.write", "fs.deny", "fs.private", "net.mode", "net.unix", "resources.mem",
                                              "resources.procs", "resources.cpu", "resources.wall", "resources.fsize",
                                              "resources.output", "env.pass", "env.set", "tools"};
const std::set<std::string> kWorkspaceClaims = {"resources.wall", "resources.output", "env.pass", "env.set", "tools"};
TierFacts process() { return facts_of(TierId("process"), kProcessClaims); }

struct Temporary {
  std::string path;
  Temporary() {
    char name[] = "/tmp/h5i-policy-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Temporary() { (void)!::system(("rm -rf " + path).c_str()); }
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    std::string file = path + "/" + name;
    std::ofstream(file) << text;
    ::chmod(file.c_str(), mode);
    return file;
  }
};

}  // namespace

TEST_CASE("a field left out is inherited, an empty list is empty") {
  Json d = must(input("profiles:\n  a: { tools: [git], net: { egress: [x.example] }, env: { pass: [PATH, FOO] } }\n"
                      "  b: { extends: a }\n  c: { extends: a, tools: [], net: { egress: [] }, env: { pass: [] } }\n  p: { extends: b, tools: [make] }\n"));
  CHECK(list(d["profile"]["tools"]) == "[\"make\"]");
  CHECK(list(d["profile"]["env"]["pass"]) == "[\"FOO\",\"PATH\"]");
  ResolveInput in = input("profiles:\n  a: { tools: [git], net: { egress: [x.example] } }\n  p: { extends: a, tools: [], net: { egress: [] } }\n  q: {}\n");
  Json p = must(in);
  CHECK(list(p["profile"]["tools"]) == "[]");
  CHECK(list(p["profile"]["net"]["egress"]) == "[]");
  in.profile = "q";
  Json q = must(in);
  CHECK_FALSE(q["profile"].object().contains("tools"));
  CHECK_FALSE(q["profile"]["net"].object().contains("egress"));
  CHECK(canonical_digest(p) != canonical_digest(q));
}

TEST_CASE("extends: cycles, unknown names, a built-in's own name") {
  refuses(input("profiles:\n  a: { extends: b }\n  b: { extends: a }\n  p: { extends: a }\n"), "policy.extends-cycle", "p -> a -> b -> a");
  refuses(input("profiles:\n  p: { extends: p }\n"), "policy.extends-cycle", "p -> p");
  refuses(input("profiles:\n  p: { extends: defualt }\n"), "policy.no-profile", "nearest: default");
  refuses(input("profiles:\n  q: {}\n"), "policy.no-profile", "no profile `p`");
  refuses(bare("nothing"), "policy.no-profile", "known: agent-claude");
  Json d = must(input("profiles:\n  default: { extends: default, resources: { procs: 9 } }\n  p: { extends: default }\n"));
  CHECK(d["profile"]["resources"]["procs"].integer() == 9);
  CHECK(d["profile"]["resources"]["mem"].integer() == int64_t{4} << 30);
}

TEST_CASE("the built-in profiles are the table of docs/policy.md") {
  Json d = must(bare("default"))["profile"];
  CHECK(d["net"]["mode"].string() == "deny");
  CHECK_FALSE(d["net"].object().contains("egress"));
  CHECK(d["resources"]["mem"].integer() == int64_t{4} << 30);
  CHECK(d["resources"]["procs"].integer() == 256);
  CHECK(d["resources"]["wall"].integer() == 1800);
  CHECK(d["resources"]["output"].integer() == 64 << 20);
  CHECK(list(d["resources"]["explicit"]) == "[]");
  CHECK(list(d["fs"]["write"]) == "[\"$WORK\"]");
  CHECK(list(d["fs"]["deny"]).find("/home/u/.ssh") != std::string::npos);
  CHECK(list(d["fs"]["deny"]).find("/src/repo/.git/hooks") != std::string::npos);
  CHECK(list(d["env"]["pass"]) == "[\"COLORTERM\",\"HOME\",\"LANG\",\"PATH\",\"TERM\"]");
  CHECK_FALSE(d.object().contains("isolation"));

  Json w = must(bare("workspace"))["profile"];
  CHECK(w["isolation"].string() == "workspace");
  CHECK(w["net"]["mode"].string() == "host");
  CHECK(w["resources"]["wall"].integer() == 1800);

  Json claude = must(bare("agent-claude"))["profile"], codex = must(bare("agent-codex"))["profile"];
  CHECK(claude["resources"]["mem"].integer() == int64_t{8} << 30);
  CHECK(claude["resources"]["procs"].integer() == 512);
  std::string c = list(claude), x = list(codex);
  CHECK(c.find("api.anthropic.com:443") != std::string::npos);
  CHECK(c.find("/home/u/.claude") != std::string::npos);
  for (const char* other : {"openai", "chatgpt", ".codex"}) CHECK(c.find(other) == std::string::npos);
  CHECK(x.find("api.openai.com:443") != std::string::npos);
  for (const char* other : {"anthropic", ".claude", "claude.com", "share/claude"}) {
    INFO(other);
    CHECK(list(codex["fs"]["write"]).find(other) == std::string::npos);
    CHECK(list(codex["net"]).find(other) == std::string::npos);
  }

  ResolveInput in = bare("browser");
  in.agent = "claude";
  Json b = must(in)["profile"];
  CHECK(b["net"]["unix"].boolean());
  CHECK(b["resources"]["mem"].integer() == int64_t{12} << 30);
  CHECK(b["resources"]["procs"].integer() == 1024);
  CHECK(b["net"]["egress"] == claude["net"]["egress"]);
}

TEST_CASE("which agent: by name, else the only one installed, else a refusal") {
  refuses(bare("agent"), "policy.agent-ambiguous", "no agent runtime");
  ResolveInput in = bare("agent");
  in.runtimes = {"claude", "codex"};
  refuses(in, "policy.agent-ambiguous", "installed: claude, codex");
  in.agent = "clod";
  refuses(in, "policy.agent-ambiguous", "no agent is called clod; installed: claude, codex");
  in.agent = "codex";
  CHECK(list(must(in)["profile"]["net"]["egress"]).find("openai") != std::string::npos);
  in.agent = "";
  in.runtimes = {"claude"};
  CHECK(list(must(in)["profile"]["net"]["egress"]).find("anthropic") != std::string::npos);
  ResolveInput file = input("profiles:\n  p: { extends: agent }\n");
  refuses(file, "policy.agent-ambiguous", "agent");
}

TEST_CASE("without --profile: the agent's when a tier here holds it, else default with a note") {
  ResolveInput in = bare("x");
  in.profile.reset();
  CHECK(resolve(in)->profile == "default");
  CHECK(resolve(in)->profile_from == "default");
  in.runtimes = {"claude"};
  auto r = resolve(in);
  CHECK(r->profile == "default");
  REQUIRE_FALSE(r->notes.empty());
  CHECK(r->notes[0].find("agent-claude needs egress rules") != std::string::npos);
  std::string asked;
  in.holds = [&](const std::string& tier, const std::vector<std::string>&) { asked = tier; return tier != "process"; };
  r = resolve(in);
  CHECK(r->profile == "agent-claude");
  CHECK(r->profile_from == "agent");
  in.isolation = "process";
  CHECK(resolve(in)->profile == "default");
  CHECK(asked == "process");
}

TEST_CASE("a built-in that the repository redefines wider is taken only by name") {
  std::string wide = "profiles:\n  default: { net: { mode: host } }\n", narrow = "profiles:\n  default: { resources: { procs: 5 } }\n";
  ResolveInput in = input(wide, "");
  refuses(in, "policy.value", "redefines the profile `default` wider");
  in.profile = "default";
  CHECK(must(in)["profile"]["net"]["mode"].string() == "host");
  refuses(input("profiles:\n  default: { isolation: workspace }\n", ""), "policy.value", "isolation");
  refuses(input("profiles:\n  default: { container: { image: x } }\n", ""), "policy.value", "container.image");
  refuses(input("profiles:\n  default: { secrets: { K: } }\n", ""), "policy.value", "secrets");
  CHECK(resolve(input("profiles:\n  default: { fs: { deny: [$WORK/.env] } }\n", "")));
  CHECK(must(input(narrow, ""))["profile"]["resources"]["procs"].integer() == 5);
}

TEST_CASE("explicit limits are those that a file names") {
  Json d = must(input(body("resources: { mem: 1G, disk: 2G, cpus: 2 }")));
  CHECK(list(d["profile"]["resources"]["explicit"]) == "[\"cpus\",\"disk\",\"mem\"]");
}

TEST_CASE("environment names that load code need env.dangerous") {
  refuses(input(body("env: { pass: [LD_PRELOAD] }")), "policy.env-dangerous", "LD_PRELOAD");
  refuses(input(body("env: { set: { NODE_OPTIONS: x } }")), "policy.env-dangerous", "env.set");
  Json d = must(input(body("env: { pass: [LD_PRELOAD], dangerous: [LD_PRELOAD] }")));
  CHECK(list(d["profile"]["env"]["dangerous"]) == "[\"LD_PRELOAD\"]");
  // A proxy variable matters once egress is scoped.
  CHECK(resolve(input(body("env: { pass: [HTTPS_PROXY] }"))));
  CHECK(resolve(input(body("env: { pass: [HTTPS_PROXY] }\n    net: { egress: [] }"))));
  refuses(input(body("env: { pass: [https_proxy] }\n    net: { egress: [a.example] }")), "policy.env-dangerous", "https_proxy");
  CHECK(resolve(input(body("env: { pass: [https_proxy], dangerous: [https_proxy] }\n    net: { egress: [a.example] }"))));
  // What a parent passes and a child does not agree to.
  refuses(input("profiles:\n  a: { env: { pass: [BASH_ENV], dangerous: [BASH_ENV] } }\n  p: { extends: a, env: { dangerous: [] } }\n"),
          "policy.env-dangerous", "BASH_ENV");
}

TEST_CASE("paths of a profile: denied and granted, credentials, missing") {
  refuses(input(body("fs: { read: [~/.ssh] }")), "policy.path", "which is denied");
  refuses(input(body("fs: { read: [~/.ssh/known_hosts] }")), "policy.path", "which is denied");
  refuses(input(body("fs: { read: [~/.ssh], deny: [] }")), "policy.path", "credentials are kept");
  refuses(input(body("fs: { write: [~/.gnupg/x], deny: [] }")), "policy.path", "fs.credentials");
  refuses(input(body("fs: { read: [$WORK/a], deny: [$WORK/a] }")), "policy.path", "denied");
  CHECK(resolve(input(body("fs: { read: [$WORK/a], deny: [$WORK/a/b] }"))));
  ResolveInput agreed = input(body("fs: { read: [~/.ssh], deny: [] }"));
  agreed.host = host("fs: { credentials: true }");
  CHECK(resolve(agreed));
  // A grant above credentials denies them, also when the profile replaced the list.
  auto r = resolve(input(body("fs: { read: [\"~\"], deny: [] }")));
  REQUIRE(r);
  std::string deny = list(r->document["profile"]["fs"]["deny"]);
  for (const char* p : {"/home/u/.ssh", "/home/u/.aws", "/home/u/.claude/.credentials.json", "/home/u/.config/h5i", "/home/u/.netrc",
                        "/home/u/.npmrc", "/home/u/.pgpass", "/home/u/.m2/settings.xml", "/home/u/.vault-token", "/home/u/.config/rclone"}) {
    INFO(p);
    CHECK(deny.find(std::string("\"") + p + "\"") != std::string::npos);
  }
  for (std::string_view c : kCredentialPaths) {
    INFO(c);
    CHECK(deny.find("\"/home/u/" + std::string(c) + "\"") != std::string::npos);
  }
  for (const char* p : {"~/.npmrc", "~/.m2/settings.xml", "~/.config/rclone/rclone.conf"})
    refuses(input(body(std::string("fs: { read: [") + p + "], deny: [] }")), "policy.path", "credentials are kept");
  CHECK(resolve(input(body("fs: { write: [~/.m2/repository], deny: [] }"))));
  // h5i's directories where this user has them.
  ResolveInput elsewhere = input(body("fs: { read: [/data/state/h5i/keys] }"));
  CHECK(resolve(elsewhere));  // control
  elsewhere.own_dirs = {"/data/state/h5i"};
  refuses(elsewhere, "policy.path", "h5i's own");
  ResolveInput in = input(body("fs: { read: [/usr, /missing/dir] }"));
  in.exists = [](const std::string& p) { return p != "/missing/dir"; };
  refuses(in, "policy.path", "not there");
  in = bare("default");
  in.exists = [](const std::string& p) { return p != "/nix"; };
  auto d = resolve(in);
  REQUIRE(d);
  CHECK(d->notes.back().find("skipped, not on this host: /nix") != std::string::npos);
  CHECK(list(d->document["profile"]["fs"]["optional"]).find("\"/nix\"") != std::string::npos);
  CHECK(list(must(input(body("fs: { read: [/usr] }")))["profile"]["fs"]["optional"]) == "[]");
  // Without a home: a built-in says nothing about it, a file is refused.
  in = bare("default");
  in.home.clear();
  in.repo.clear();
  CHECK(list(must(in)["profile"]["fs"]["deny"]) == "[]");
  in = input(body("fs: { read: [~/x] }"));
  in.home.clear();
  refuses(in, "policy.path", "HOME is not set");
  in = input(body("fs: { read: [$REPO/x] }"));
  in.repo.clear();
  refuses(in, "policy.path", "$REPO is not set");
}

TEST_CASE("rules between other fields") {
  refuses(input(body("net: { mode: host, egress: [a.example] }")), "policy.value", "would hold nothing");
  refuses(input(body("secrets: { K: { source: 'file:~/.ssh/k' } }")), "policy.path", "fs.deny");
  refuses(input(body("secrets: { K: { source: 'command:/bin/pass k' } }")), "policy.value", "allow_command_extractors");
  ResolveInput in = input(body("secrets: { K: { source: 'command:/bin/pass k' } }\n    allow_command_extractors: true"));
  refuses(in, "policy.above-ceiling", "did not agree");
  in.command_extractors = true;
  CHECK(resolve(in));
  in.command_extractors = false;
  in.host = host("secrets: { command_extractors: true }");
  Json d = must(in);
  CHECK(d["profile"]["command_extractors"].boolean());
  CHECK(d["profile"]["secrets"]["K"]["source"].string() == "command:/bin/pass k");
}

TEST_CASE("a tier that two places name differently is refused") {
  ResolveInput in = input(body("isolation: process"));
  CHECK(resolve(in)->isolation == "process");
  in.isolation = "auto";
  CHECK(resolve(in));
  in.isolation = "workspace";
  refuses(in, "policy.isolation", ".h5i/env.yaml:3:16");
  in = bare("workspace");
  in.isolation = "process";
  refuses(in, "policy.isolation", "--isolation process");
}

TEST_CASE("image: command line above profile above repository") {
  std::string file = "container: { image: repo:1 }\nprofiles:\n  p: { container: { image: own:1 } }\n  q: {}\n";
  ResolveInput in = input(file);
  auto r = resolve(in);
  CHECK(r->image == "own:1");
  CHECK(r->image_from == "profile");
  in.profile = "q";
  CHECK(resolve(in)->image == "repo:1");
  CHECK(resolve(in)->image_from == "repository");
  in.image = "flag:1";
  CHECK(resolve(in)->document["profile"]["container"]["image"].string() == "flag:1");
  CHECK(resolve(in)->image_from == "flag");
  in = bare("default");
  in.image = "-bad";
  refuses(in, "policy.value", "image");
  in.image.reset();
  in.audit = "some";
  refuses(in, "policy.value", "--audit");
  in.audit = "none";
  CHECK(must(in)["audit"]["capture"].string() == "none");
}

TEST_CASE("all errors of a file are in Problems, the first is the result") {
  Problems all;
  auto r = resolve(input("profiles:\n  p: { tools: 1, net: { mode: x } }\n  q: { isolation: auto }\n"), &all);
  REQUIRE_FALSE(r);
  CHECK(all.errors.size() == 3);
  CHECK(r.error().what == all.errors[0].what);
  // Also what shows only after merging, of profiles that were not asked for.
  r = resolve(input("profiles:\n  p: {}\n  q: { env: { pass: [LD_PRELOAD] } }\n  z: { extends: nope }\n"), &all);
  CHECK(all.errors.size() == 2);
}

TEST_CASE("files are read through a descriptor, and links are not followed") {
  Temporary t;
  ::mkdir((t.path + "/.h5i").c_str(), 0755);
  UniqueFd root(::open(t.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  ResolveInput in = bare("p");
  in.repo_root_fd = root.get();
  refuses(in, "policy.no-profile", "p");
  std::string yaml = t.write(".h5i/env.yaml", body("tools: [git]"));
  CHECK(list(must(in)["profile"]["tools"]) == "[\"git\"]");
  std::string toml = t.write(".h5i/env.toml", "[profiles.p]\ntools = ['make']\n");
  refuses(in, "policy.two-files", "env.toml");
  ::unlink(yaml.c_str());
  CHECK(list(must(in)["profile"]["tools"]) == "[\"make\"]");
  ::unlink(toml.c_str());
  std::string elsewhere = t.write("elsewhere.yaml", body("tools: [git]"));
  REQUIRE(::symlink("../elsewhere.yaml", yaml.c_str()) == 0);
  refuses(in, "path.escape", "");
  ::unlink(yaml.c_str());
  REQUIRE(::mkfifo(yaml.c_str(), 0600) == 0);
  CHECK_FALSE(resolve(in));  // and does not wait for a writer
  ::unlink(yaml.c_str());
  t.write(".h5i/env.yaml", std::string(300000, '#'));
  refuses(in, "policy.limit", "262144");
}

TEST_CASE("the host's ceiling refuses with both lines") {
  struct { const char *profile, *host, *field; } rows[] = {
      {"resources: { mem: 8G }", "resources: { mem: 4G }", "resources.mem"},
      {"resources: { procs: 2k }", "resources: { procs: 1k }", "resources.procs"},
      {"resources: { wall: 2h }", "resources: { wall: 1h }", "resources.wall"},
      {"resources: { cpus: 4 }", "resources: { cpus: 2 }", "resources.cpus"},
      {"net: { egress: [b.example] }", "net: { egress: [\"*.a.example\"] }", "net.egress"},
      {"net: { egress: [a.b.example] }", "net: { egress: [] }", "net.egress"},
      {"net: { mode: host }", "net: { host: false }", "net.mode"},
      {"audit: { capture: none }", "audit: { capture: signal }", "audit.capture"},
      {"secrets: { K: { source: 'file:/etc/k' } }", "secrets: { sources: [env] }", "secrets.K"},
      {"env: { pass: [LD_PRELOAD], dangerous: [LD_PRELOAD] }", "env: { dangerous: false }", "env.dangerous"}};
  for (auto& r : rows) {
    INFO(r.field);
    ResolveInput in = input(body(r.profile));
    CHECK(resolve(in));  // the control: without a ceiling it holds
    in.host = host(r.host);
    auto x = resolve(in);
    REQUIRE_FALSE(x);
    CHECK(x.error().id() == "policy.above-ceiling");
    CHECK(x.error().what.find(r.field) == 0);
    CHECK(x.error().evidence.find(".h5i/env.yaml:3:") != std::string::npos);
    CHECK(x.error().evidence.find("/etc/h5i/host.yaml:1") != std::string::npos);
  }
}

TEST_CASE("below the ceiling passes; built-in defaults give way; a missing limit takes the ceiling") {
  ResolveInput in = input(body("resources: { mem: 2G }\n    net: { egress: [x.a.example] }"));
  in.host = host("resources: { mem: 4G, fsize: 1G, procs: 100 }\nnet: { egress: [\"*.a.example\"] }\n");
  auto r = resolve(in);
  REQUIRE(r);
  const Json& res = r->document["profile"]["resources"];
  CHECK(res["mem"].integer() == int64_t{2} << 30);
  CHECK(res["procs"].integer() == 100);
  CHECK(res["fsize"].integer() == 1 << 30);
  CHECK(list(res["explicit"]) == "[\"fsize\",\"mem\",\"procs\"]");
  std::string notes;
  for (const auto& n : r->notes) notes += n + "\n";
  CHECK(notes.find("resources.procs is 100 instead of the built-in 256") != std::string::npos);
}

TEST_CASE("host policy: root's file wins, both ceilings hold, others may not write them") {
  Temporary t;
  ::chmod(t.path.c_str(), 0755);
  auto uid = static_cast<uint32_t>(::geteuid());
  std::string root = t.write("root.yaml", "tiers: { order: [supervised, process], allow_unconfined: false }\nresources: { mem: 4G }\n");
  std::string user = t.write("user.yaml", "tiers: { order: [workspace], allow_unconfined: true, allowed: [process] }\nresources: { mem: 2G }\nfs: { credentials: true }\n");
  auto h = load_host_policy(uid == 0 ? root : "", user, uid);
  REQUIRE(h);
  if (uid == 0) {
    CHECK(h->tiers_order == std::vector<std::string>{"supervised", "process"});
    CHECK_FALSE(h->allow_unconfined);
    REQUIRE(h->ceilings.size() == 2);
    ResolveInput in = input(body("resources: { mem: 3G }"));
    in.host = *h;
    refuses(in, "policy.above-ceiling", "user.yaml:2");
  }
  CHECK(h->credentials);
  CHECK(load_host_policy(t.path + "/none", t.path + "/no/dir", uid)->ceilings.empty());
  auto refused = [&](const std::string& file, const char* part) {
    auto r = load_host_policy("", file, uid);
    REQUIRE_FALSE(r);
    INFO(r.error().what << " " << r.error().evidence);
    CHECK(r.error().id() == "policy.host-file");
    CHECK((r.error().what + r.error().evidence).find(part) != std::string::npos);
  };
  ::chmod(user.c_str(), 0664);
  refused(user, "written by others");
  ::chmod(user.c_str(), 0646);
  refused(user, "written by others");
  ::chmod(user.c_str(), 0644);
  ::chmod(t.path.c_str(), 0777);
  refused(user, "written by others");
  ::chmod(t.path.c_str(), 0755);
  for (const char* d : {"/above", "/above/h5i"}) ::mkdir((t.path + d).c_str(), 0755);
  std::string deeper = t.write("above/h5i/host.yaml", "audit: { capture: all }\n");
  CHECK(load_host_policy("", deeper, uid)->ceilings.size() == 1);
  ::chmod((t.path + "/above").c_str(), 0777);
  refused(deeper, "on the way");
  ::chmod((t.path + "/above").c_str(), 01777);  // as /tmp: others cannot replace what is not theirs
  CHECK(load_host_policy("", deeper, uid));
  REQUIRE(::symlink("user.yaml", (t.path + "/link.yaml").c_str()) == 0);
  refused(t.path + "/link.yaml", "symbolic link");
  ::mkdir((t.path + "/dir.yaml").c_str(), 0755);
  refused(t.path + "/dir.yaml", "not a regular file");
  if (uid == 0) {
    REQUIRE(::chown(user.c_str(), 12345, 0) == 0);
    refused(user, "somebody else");
    CHECK(load_host_policy("", user, 12345));
    CHECK_FALSE(load_host_policy(user, "", 12345));  // the first file is root's or it is nothing
  }
  refused(t.write("bad1.yaml", "resorces: {}\n"), "nearest: resources");
  refused(t.write("bad2.yaml", "resources: { mem: lots }\n"), "bad2.yaml:1:19");
  refused(t.write("bad3.yaml", "net: { egress: ['*'] }\n"), "every host");
  refused(t.write("bad4.yaml", "a: &x 1\n"), "anchor");
  refused(t.write("bad5.yaml", "plugins: { directories: [/opt/p] }\n"), "plugin-directories");
  refused(t.write("bad6.yaml", "secrets: { sources: [vault] }\n"), "env, file and command");
}

TEST_CASE("a tier must hold what the profile asks, or it is refused by id") {
  auto plain = resolve(bare("default"));
  auto pinned = with_tier(*plain, process());
  REQUIRE(pinned);
  CHECK(pinned->document["tier"].string() == "process");
  CHECK(pinned->digest.str() == canonical_digest(pinned->document));
  CHECK(pinned->digest.str().size() == 64);
  CHECK(plain->digest.empty());
  auto refused = [](const ResolveInput& in, const TierFacts& facts, const std::string& id, const std::string& part) {
    auto r = resolve(in);
    REQUIRE(r);
    auto t = with_tier(*r, facts);
    REQUIRE_FALSE(t);
    INFO(t.error().what << " | " << t.error().evidence);
    CHECK(t.error().id() == id);
    CHECK((t.error().what + t.error().evidence).find(part) != std::string::npos);
  };
  TierFacts workspace = facts_of(TierId("workspace"), kWorkspaceClaims), supervised = process();
  CHECK_FALSE(workspace.confines);
  supervised.tier = TierId("supervised");
  supervised.claims.insert("net.egress");
  supervised = facts_of(supervised.tier, supervised.claims);
  ResolveInput egress = input(body("net: { egress: [a.example] }"));
  refused(egress, process(), "policy.egress-unenforceable", "process");
  refused(egress, workspace, "policy.egress-unenforceable", "workspace");
  CHECK(with_tier(*resolve(egress), supervised));
  CHECK(with_tier(*resolve(input(body("net: { egress: [] }"))), process()));  // an empty list asks nothing more than deny

  ResolveInput host_net = input(body("net: { mode: host }"));
  CHECK(with_tier(*resolve(host_net), process()));
  refused(host_net, supervised, "policy.field-unenforceable", "net.mode");

  TierFacts weak = process();
  weak.claims.erase("resources.mem");
  refused(input(body("resources: { mem: 1G }")), weak, "policy.limit-unenforceable", "asks 1G");
  auto by_default = with_tier(*resolve(bare("default")), weak);
  REQUIRE(by_default);
  CHECK(by_default->notes.back().find("resources.mem") != std::string::npos);
  for (const char* f : {"disk: 1G", "inodes: 1k", "cpus: 2"})  // may be declared instead
    CHECK(with_tier(*resolve(input(body(std::string("resources: { ") + f + " }"))), process()));
  CHECK(with_tier(*resolve(input(body("net: { loopback: [3000] }"))), process()));
  for (const char* claim : {"fs.read", "fs.write", "fs.deny", "net.mode", "net.unix"}) {
    weak = process();
    weak.claims.erase(claim);
    refused(bare("default"), weak, "policy.field-unenforceable", claim);
  }
  weak = process();
  weak.claims.erase("fs.private");
  CHECK(with_tier(*resolve(bare("default")), weak));
  refused(input(body("fs: { private: { a: cache } }")), weak, "policy.field-unenforceable", "fs.private");

  // An image or a browser's verbs that nobody here has a use for are reported; an image of the command line is a request.
  std::string both = body("browser: { deny: [cookies] }\n    container: { image: registry.example/dev:1 }");
  for (const TierFacts& facts : {process(), workspace}) {
    INFO(facts.tier.str());
    REQUIRE(with_tier(*resolve(input(both)), facts));
    std::set<std::string> said;
    for (const Unheld& u : unheld_fields(resolve(input(both))->document, facts)) said.insert(u.field);
    CHECK(said.count("container.image"));
    CHECK(said.count("browser.deny"));
    ResolveInput flag = bare("default");
    flag.image = "registry.example/dev:1";
    refused(flag, facts, "policy.field-unenforceable", "--image registry.example/dev:1");
    TierFacts takes_one = facts;
    takes_one.claims.insert("container.image");
    CHECK(with_tier(*resolve(flag), takes_one));
  }
  for (const FieldLine& line : explain_fields(*resolve(input(both)), {"container.image", "browser.deny"}, {}))
    if (line.field == "container.image" || line.field == "browser.deny") CHECK(line.state == "not enforced");

  // At workspace, which was chosen by name and confines nothing, what is not held is reported.
  auto w = with_tier(*resolve(bare("workspace")), workspace);
  REQUIRE(w);
  CHECK(w->notes.back() == "tier workspace confines nothing; named by workspace (built-in)");
  CHECK(with_tier(*resolve(input(body("resources: { mem: 1G }"))), workspace));
  // But a path that a file denies is not shown after all: only a built-in's denials are reported.
  refused(input(body("fs: { deny: [$WORK/.env] }")), workspace, "policy.field-unenforceable", ".h5i/env.yaml:");
  CHECK(with_tier(*resolve(bare("default")), workspace));
  CHECK(with_tier(*resolve(input(body("fs: { deny: [] }"))), workspace));
  std::set<std::string> unheld;
  for (const Unheld& u : unheld_fields(resolve(input(body("tools: [git]\n    resources: { mem: 1G, cpus: 1, disk: 1G }")))->document, workspace)) {
    unheld.insert(u.field);
    CHECK_FALSE(u.reason.empty());
  }
  for (const char* f : {"proc.tools", "fs.read", "fs.write", "fs.deny", "net.mode", "net.unix", "resources.mem", "resources.procs", "resources.cpus", "resources.disk"}) {
    INFO(f);
    CHECK(unheld.count(f));
  }
  CHECK_FALSE(unheld.count("resources.wall"));

  ResolveInput named = input(body("isolation: supervised"));
  refused(named, process(), "policy.isolation", "supervised");
  ResolveInput capped = bare("default");
  capped.host = host("tiers:\n  allowed: [supervised]\n");
  refused(capped, process(), "policy.above-ceiling", "/etc/h5i/host.yaml:2");
  CHECK(with_tier(*resolve(capped), supervised));
}

TEST_CASE("facts come from a tier's answer") {
  auto probe = parse_json("{\"schema\":\"h5i.probe/1\",\"tier\":\"process\",\"available\":true,\"claims\":[\"fs.read\",\"net.mode\"],\"components\":[],\"missing\":[]}", "probe");
  TierFacts f = facts_from_probe(*probe);
  CHECK(f.tier.str() == "process");
  CHECK(f.confines);
  CHECK(f.host_network);
  CHECK(f.claims.size() == 2);
}

TEST_CASE("a comparison says what widened and what narrowed, by effect") {
  auto diff = [](const std::string& a, const std::string& b) {
    ResolveInput x = input(body(a)), y = input(body(b));
    std::string out;
    for (const Change& c : compare(must(x), must(y))) out += std::string(direction_name(c.direction)) + " " + c.field + " " + c.detail + "; ";
    return out;
  };
  CHECK(diff("fs: { read: [/usr] }", "fs: { read: [/usr] }").empty());
  CHECK(diff("fs: { read: [/usr] }", "fs: { read: [/usr, /opt] }") == "widened fs.read + /opt; ");
  CHECK(diff("fs: { read: [/usr, /opt] }", "fs: { read: [/usr] }") == "narrowed fs.read - /opt; ");
  CHECK(diff("fs: { read: [/usr] }", "fs: { read: [/usr, /usr/lib] }").empty());  // covered already
  CHECK(diff("fs: { read: [/usr] }", "fs: { read: [/usr], write: [$WORK, /usr/x] }") == "widened fs.write + /usr/x; ");
  CHECK(diff("fs: { deny: [$WORK/a] }", "fs: { deny: [] }") == "widened fs.deny - $WORK/a; ");
  CHECK(diff("fs: { deny: [\"~/.ssh\"] }", "fs: { deny: [] }").empty());  // no grant lies above it
  CHECK(diff("fs: { read: [/usr, \"~/x\"], deny: [\"~/x/y\"] }", "fs: { read: [/usr, \"~/x\"], deny: [] }") == "widened fs.deny - /home/u/x/y; ");
  CHECK(diff("resources: { mem: 4G }", "resources: { mem: 8G }") == "widened resources.mem 4G -> 8G; ");
  CHECK(diff("resources: { fsize: 1G }", "tools: [git]") == "narrowed tools any -> 1 named; widened resources.fsize 1G -> none; ");
  CHECK(diff("tools: []", "extends: default") == "widened tools a list -> any; ");
  CHECK(diff("net: { egress: [\"*.a.example\"] }", "net: { egress: [b.a.example] }") == "narrowed net.egress - *.a.example:443; ");
  CHECK(diff("net: { egress: [a.example] }", "net: { egress: [ { to: a.example, private: true } ] }") == "widened net.egress + a.example:443 (private); ");
  CHECK(diff("net: { egress: [] }", "extends: default") == "changed net.egress empty list -> left out; ");
  CHECK(diff("net: { mode: deny }", "net: { mode: host, unix: true }") == "widened net.mode deny -> host; widened net.unix false -> true; ");
  CHECK(diff("audit: { capture: all }", "audit: { capture: none }") == "widened audit.capture all -> none; ");
  CHECK(diff("secrets: { A: }", "secrets: { B: }") == "widened secrets + B; narrowed secrets - A; ");
  CHECK(diff("env: { set: { A: \"1\" } }", "env: { set: { A: \"2\" } }") == "changed env.set A; ");
  CHECK(diff("isolation: process", "isolation: workspace") == "changed isolation process -> workspace; ");
  CHECK(diff("browser: { deny: [cookies] }", "browser: { deny: [cookies, tab] }") == "narrowed browser.deny + tab; ");
}

TEST_CASE("explain names each field's value, origin and keeper") {
  auto r = resolve(input(body("tools: [git]\n    resources: { mem: 1G }\n    secrets: { K: }")));
  REQUIRE(r);
  std::set<std::string> seen;
  for (const FieldLine& f : explain_fields(*r, {"resources.mem"}, {"resources.mem", "resources.wall"})) {
    seen.insert(f.field);
    if (f.field == "tools") CHECK((f.value == "git" && f.state == "core" && f.origin == "p (.h5i/env.yaml:3:12)"));
    if (f.field == "resources.mem") CHECK((f.value == "1G" && f.state == "not enforced"));
    if (f.field == "resources.procs") CHECK((f.value == "256" && f.state == "enforced" && f.origin == "default (built-in)"));
    if (f.field == "resources.wall") CHECK(f.state == "in part");
    if (f.field == "secrets") CHECK(f.state == "refused");
  }
  for (const char* f : {"tools", "resources.mem", "fs.read", "net.mode", "secrets", "audit.capture"}) CHECK(seen.count(f));
  CHECK_FALSE(seen.count("net.egress"));
}

TEST_CASE("golden documents keep their bytes and digests") {
  const char* source = ::getenv("H5I_SOURCE_DIR");
  REQUIRE(source);
  std::string dir = std::string(source) + "/tests/policy/golden/";
  struct { const char *file, *config, *profile; bool toml; } rows[] = {
      {"default", "", "default", false},
      {"workspace", "", "workspace", false},
      {"agent-claude", "", "agent-claude", false},
      {"review", "review.yaml", "review", false},
      {"review", "review.toml", "review", true}};
  for (auto& row : rows) {
    INFO(row.file << " " << row.config);
    ResolveInput in = bare(row.profile);
    if (*row.config) {
      std::ifstream f(dir + row.config);
      std::stringstream text;
      text << f.rdbuf();
      REQUIRE(!text.str().empty());
      in.config = ConfigBytes{row.config, text.str(), row.toml};
    }
    auto r = resolve(in);
    if (!r) FAIL(r.error().what << " " << r.error().evidence);
    TierFacts facts = process();
    facts.tier = TierId(r->isolation.empty() ? "process" : r->isolation);
    facts.claims.insert("net.egress");
    facts.host_network = true;
    auto t = with_tier(*r, facts);
    if (!t) FAIL(t.error().what << " " << t.error().evidence);
    std::string now = json::pretty(t->document) + "\n" + t->digest.str() + "\n";
    std::string path = dir + row.file + ".golden";
    if (::getenv("H5I_UPDATE_GOLDENS")) std::ofstream(path) << now;
    std::ifstream f(path);
    std::stringstream stored;
    stored << f.rdbuf();
    CHECK(stored.str() == now);
  }
}
