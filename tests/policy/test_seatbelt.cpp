// The profile that is made for macOS, read again by its own grammar and asked questions, beside a direct reading of the policy.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "core/policy/seatbelt.hpp"
#include "tests/policy/sbpl.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::policy;

namespace {

using Paths = std::vector<std::string>;

Json list(const Paths& paths) {
  Json out = json::Array();
  for (const std::string& p : paths) out.push(p);
  return out;
}
Json policy_of(const Paths& read, const Paths& write, const Paths& deny = {}) {
  Json fs = json::Object{{"read", list(read)}, {"write", list(write)}, {"deny", list(deny)}, {"private", json::Object()}, {"optional", json::Array()}};
  Json net = json::Object{{"mode", "deny"}, {"unix", false}};
  Json profile = json::Object{{"name", "p"}, {"fs", fs}, {"net", net}, {"resources", json::Object()}, {"env", json::Object()}};
  return json::Object{{"schema", "h5i.policy/1"}, {"profile", profile}};
}
Json with_egress(Json document) {
  document["profile"]["net"]["egress"].push(json::Object{{"to", "host.example:443"}, {"private", false}});
  return document;
}
SeatbeltRun in_work(std::string work = "/w") {
  SeatbeltRun run;
  run.work = std::move(work);
  return run;
}
SeatbeltProfile profile_of(const Json& document, const SeatbeltRun& run = in_work()) {
  auto p = seatbelt_profile(document, run);
  if (!p) FAIL(p.error().what << " " << p.error().evidence);
  return std::move(*p);
}
std::string refused(const Json& document, const SeatbeltRun& run = in_work()) {
  auto p = seatbelt_profile(document, run);
  return p ? "made" : std::string(p.error().id());
}
sbpl::Rules rules_of(const SeatbeltProfile& p) {
  std::map<std::string, std::string> parameters;
  for (const auto& [name, value] : p.parameters) parameters[name] = value;
  REQUIRE(parameters.size() == p.parameters.size());  // no name twice
  std::string why;
  auto rules = sbpl::read(p.text, parameters, &why);
  if (!rules) FAIL(why);
  Paths names;
  for (const auto& parameter : p.parameters) names.push_back(parameter.name);
  CHECK(rules->used == names);  // each once, in order, and none besides
  return std::move(*rules);
}
std::set<std::string> unheld(const SeatbeltProfile& p) {
  std::set<std::string> out;
  for (const Unheld& u : p.not_held) {
    CHECK((!u.reason.empty() && !u.detail.empty()));
    out.insert(u.field);
  }
  return out;
}

// What a policy means, read directly: component by component, with macOS's second names of four directories.
Paths parts(const std::string& path) {
  Paths out;
  std::istringstream in(path);
  for (std::string part; std::getline(in, part, '/');)
    if (!part.empty()) out.push_back(part);
  return out;
}
Paths real_parts(const std::string& path) {
  Paths p = parts(path);
  if (p.size() > 3 && p[0] == "System" && p[1] == "Volumes" && p[2] == "Data") p.erase(p.begin(), p.begin() + 3);
  if (!p.empty() && (p[0] == "etc" || p[0] == "tmp" || p[0] == "var")) p.insert(p.begin(), "private");
  return p;
}
bool within(const Paths& path, const Paths& tree) { return path.size() >= tree.size() && std::equal(tree.begin(), tree.end(), path.begin()); }

const std::vector<Paths> kSystem = {{"Library", "Apple"}, {"System", "Library"}, {"System", "Volumes", "Preboot", "Cryptexes"}, {"private", "var", "db", "dyld"}, {"usr", "lib"}};

struct Meaning {
  std::vector<Paths> read, write, deny, locked;
  std::vector<Paths> grants = kSystem;  // by both names

  static std::vector<Paths> all(const Json& paths, const std::string& work) {
    std::vector<Paths> out;
    for (const Json& j : paths.array()) {
      std::string p = j.string();
      out.push_back(real_parts(p.substr(0, 5) == "$WORK" ? work + p.substr(5) : p));
    }
    return out;
  }
  Meaning(const Json& document, const SeatbeltRun& run) {
    const Json& fs = document["profile"]["fs"];
    read = all(fs["read"], run.work);
    write = all(fs["write"], run.work);
    deny = all(fs["deny"], run.work);
    for (const std::string& h : run.hidden) deny.push_back(real_parts(h));
    for (const std::string& l : run.locked) locked.push_back(real_parts(l));
    auto own = [](const Paths& p) {
      return (!p.empty() && (p[0] == "dev" || p[0] == "proc")) || p == Paths{"private", "tmp"} || p == Paths{"private", "var", "tmp"};
    };
    std::erase_if(read, own);
    std::erase_if(write, own);
    for (const auto* list : {&read, &write}) grants.insert(grants.end(), list->begin(), list->end());
    for (const char* field : {"read", "write"})
      for (const Json& j : fs[field].array()) {
        std::string p = j.string();
        p = p.substr(0, 5) == "$WORK" ? run.work + p.substr(5) : p;
        if (!own(real_parts(p))) grants.push_back(parts(p));
      }
  }
  static bool under(const Paths& path, const std::vector<Paths>& trees) {
    return std::any_of(trees.begin(), trees.end(), [&](const Paths& t) { return within(path, t); });
  }
  bool may_exec(const Paths& p) const { return !under(p, deny) && (under(p, read) || under(p, write)); }
  bool may_read(const Paths& p) const {
    static const std::vector<Paths> nodes = {{}, {"dev", "null"}, {"dev", "zero"}, {"dev", "random"}, {"dev", "urandom"}};
    return !under(p, deny) && (under(p, read) || under(p, write) || under(p, kSystem) || std::count(nodes.begin(), nodes.end(), p));
  }
  bool may_write(const Paths& p) const {
    if (under(p, deny) || under(p, locked)) return false;
    return under(p, write) || p == Paths{"dev", "null"} || p == Paths{"dev", "zero"};
  }
  // Of a directory above a grant its attributes, by either of its names.
  bool may_look(const Paths& p, const std::string& path) const {
    if (under(p, deny)) return false;
    if (may_read(p)) return true;
    for (const Paths& g : grants)
      if (g.size() > p.size() && (within(g, p) || within(g, parts(path)))) return true;
    return false;
  }
  // Nothing that is denied may be moved away by a name above it.
  bool may_unlink(const Paths& p) const {
    if (!under(p, write) || !may_write(p)) return false;
    for (const auto* names : {&deny, &locked})
      for (const Paths& name : *names)
        if (within(name, p)) return false;
    return true;
  }
};

std::string joined(const Paths& p) {
  std::string out;
  for (const std::string& part : p) out += "/" + part;
  return out.empty() ? "/" : out;
}
// Every question about one path, as the kernel would have it.
void agree(const sbpl::Rules& rules, const Meaning& m, const std::string& path) {
  Paths p = real_parts(path);
  std::string real = joined(p);
  INFO(real);
  CHECK(rules.may("file-read-data", real) == m.may_read(p));
  CHECK(rules.may("file-read-metadata", real) == m.may_look(p, real));
  CHECK(rules.may("file-write-data", real) == m.may_write(p));
  CHECK(rules.may("file-write-create", real) == (m.may_write(p) && Meaning::under(p, m.write)));
  CHECK(rules.may("file-write-unlink", real) == m.may_unlink(p));
  CHECK(rules.may("process-exec-interpreter", real) == m.may_exec(p));
  CHECK_FALSE(rules.may("file-write-setugid", real));
  CHECK_FALSE(rules.may("file-ioctl", real));
}

constexpr const char* kAnywhere[] = {"*:443", "*:*", "localhost:*", "localhost:22", "localhost:80", "93.184.216.34:443", "host.example:443", "/var/run/mDNSResponder"};

}  // namespace

TEST_CASE("the reader of profiles takes nothing that it does not understand") {
  struct { const char *text, *why; } rows[] = {
      {"", "version"}, {"(version 2)", "version"}, {"(version 1)(allow", "well formed"}, {"(version 1))", "well formed"},
      {"(version 1)(deny default)\"", "well formed"}, {"(version 1)(allow file-read* (literal \"/a\\x\"))", "well formed"},
      {"(version 1)(allow all)", "operation all"}, {"(version 1)(import \"x\")", "no rule"}, {"(version 1)(allow)", "no rule"},
      {"(version 1)(allow file-read* (regex \"x\"))", "takes no regex"}, {"(version 1)(allow file-read* (literal (param \"NO\")))", "not given"},
      {"(version 1)(allow file-read* (literal (param P)))", "no parameter"}, {"(version 1)(allow file-read* (literal P))", "wrong kind"},
      {"(version 1)(allow network-outbound (remote tcp \"*:443\"))", "an address"}, {"(version 1)(allow network-outbound (remote tcp \"localhost:*\"))", "an address"},
      {"(version 1)(allow network-outbound (remote tcp \"localhost:65536\"))", "an address"}, {"(version 1)(allow network-outbound (remote ip \"localhost:1\"))", "an address"},
      {"(version 1)(allow network-outbound (literal \"/a\"))", "takes no literal"}, {"(version 1)(allow signal (target \"self\"))", "wrong kind"}};
  for (auto& r : rows) {
    INFO(r.text);
    std::string why;
    CHECK_FALSE(sbpl::read(r.text, {{"P", "/p"}}, &why));
    CHECK(why.find(r.why) != std::string::npos);
  }
  auto rules = sbpl::read("(version 1) ; (allow default)\n(deny default)(allow file-read* (subpath (param \"P\")) (literal \"/q\\\"\\\\\\n\"))(deny file-read-metadata (literal \"/p/x\"))",
                          {{"P", "/p"}});
  REQUIRE(rules);
  CHECK(rules->may("file-read-data", "/p"));
  CHECK(rules->may("file-read-data", "/p/y"));
  CHECK(rules->may("file-read-data", "/p/x"));
  CHECK_FALSE(rules->may("file-read-metadata", "/p/x"));
  CHECK_FALSE(rules->may("file-read-data", "/pq"));
  CHECK(rules->may("file-read-data", "/q\"\\\n"));
  CHECK_FALSE(rules->may("file-write-data", "/p/y"));
}

TEST_CASE("a denied name wins over every grant, and cannot be moved away") {
  SeatbeltRun run = in_work();
  run.locked = {"/w/.git/hooks"};
  run.hidden = {"/w/state"};
  Json document = policy_of({"/usr"}, {"$WORK"}, {"$WORK/a/b/.env", "/usr/secret"});
  auto rules = rules_of(profile_of(document, run));
  CHECK(rules.may("file-read-data", "/w/a/b/.envx"));  // the controls
  CHECK(rules.may("file-write-data", "/w/a/b/x"));
  CHECK(rules.may("file-write-unlink", "/w/a/c"));
  CHECK(rules.may("file-read-data", "/w/.git/hooks/pre-commit"));
  for (const char* operation : {"file-read-data", "file-read-metadata", "file-write-data", "file-write-create", "file-map-executable", "process-exec"})
    for (const char* path : {"/w/a/b/.env", "/w/a/b/.env/x", "/usr/secret", "/usr/secret/x", "/w/state"}) {
      INFO(operation << " " << path);
      CHECK_FALSE(rules.may(operation, path));
    }
  CHECK_FALSE(rules.may("file-write-data", "/w/.git/hooks/pre-commit"));
  for (const char* path : {"/w", "/w/a", "/w/a/b", "/w/.git", "/w/.git/hooks", "/w/state"}) {
    INFO(path);
    CHECK_FALSE(rules.may("file-write-unlink", path));
  }
  CHECK_FALSE(rules.may("file-write-data", "/usr/x"));
  CHECK_FALSE(rules.may("file-read-data", "/home/u/x"));
}

TEST_CASE("a name holds under the second name that macOS has for it") {
  auto rules = rules_of(profile_of(policy_of({"/etc/ssl", "/System/Volumes/Data/opt"}, {"/var/x", "/Users/u"}, {"/System/Volumes/Data/Users/u/.ssh", "/var/x/.env"})));
  CHECK(rules.may("file-read-data", "/private/etc/ssl/cert.pem"));
  CHECK(rules.may("file-read-data", "/opt/x"));
  CHECK(rules.may("file-write-data", "/private/var/x/y"));
  CHECK(rules.may("file-write-data", "/Users/u/y"));
  CHECK_FALSE(rules.may("file-read-data", "/Users/u/.ssh/id"));
  CHECK_FALSE(rules.may("file-read-data", "/private/var/x/.env"));
  CHECK_FALSE(rules.may("file-write-unlink", "/private/var/x"));
  CHECK_FALSE(rules.may("file-read-data", "/private/etc/passwd"));
}

TEST_CASE("no network, or the one port of the proxy") {
  SeatbeltRun run = in_work();
  for (bool egress : {false, true})
    for (bool proxy : {false, true}) {
      INFO(egress << proxy);
      run.proxy = proxy ? std::optional<uint16_t>(41999) : std::nullopt;
      Json document = policy_of({"/usr"}, {"$WORK"});
      auto p = profile_of(egress ? with_egress(document) : document, run);
      auto rules = rules_of(p);
      CHECK(rules.may("network-outbound", "localhost:41999") == (egress && proxy));
      for (const char* where : kAnywhere) {
        CHECK_FALSE(rules.may("network-outbound", where));
        CHECK_FALSE(rules.may("network-inbound", where));
        CHECK_FALSE(rules.may("network-bind", where));
      }
      CHECK_FALSE(rules.may("network-bind", "localhost:41999"));
      CHECK(unheld(p).count("net.egress") == egress);
    }
  run.proxy = 0;
  CHECK(refused(with_egress(policy_of({}, {})), run) == "input.invalid");
}

TEST_CASE("a process of a box reaches itself alone") {
  auto rules = rules_of(profile_of(policy_of({"/usr"}, {"$WORK"})));
  CHECK(rules.may("process-fork", ""));
  CHECK(rules.may("signal", "self"));
  CHECK_FALSE(rules.may("signal", "others"));
  CHECK(rules.may("process-info-pidinfo", "self"));
  CHECK_FALSE(rules.may("process-info-pidinfo", "others"));
  CHECK(rules.may("sysctl-read", "hw.ncpu"));
  for (const char* name : {"kern.procargs2", "kern.proc.all", "kern.hostname"}) CHECK_FALSE(rules.may("sysctl-read", name));
  CHECK(rules.may("mach-lookup", "com.apple.system.opendirectoryd.libinfo"));
  for (const char* name : {"com.apple.pasteboard.1", "com.apple.SecurityServer", "com.apple.windowserver.active"}) CHECK_FALSE(rules.may("mach-lookup", name));
  for (const char* operation : {"mach-register", "iokit-open", "ipc-posix-shm-write-create", "system-socket", "file-mount", "nvram-set", "job-creation"})
    CHECK_FALSE(rules.may(operation, ""));
}

TEST_CASE("what no rule holds is named, and what is not asked is not") {
  CHECK(unheld(profile_of(policy_of({"/usr"}, {"$WORK"}))).empty());
  Json document = with_egress(policy_of({"/usr", "/tmp"}, {"$WORK", "/private/var/tmp"}, {"$WORK/.env"}));
  Json& p = document["profile"];
  for (const char* name : {"mem", "procs", "cpus", "cpu", "wall", "fsize", "disk", "inodes", "output"}) p["resources"][name] = 7;
  p["tools"] = list({"make"});
  p["fs"]["private"]["node_modules"] = "cache";
  p["net"]["unix"] = true;
  p["net"]["loopback"].push(3000);
  p["container"]["image"] = "registry.example/dev:1";
  p["browser"]["deny"].push("cookies");
  p["secrets"]["K"] = json::Object();
  p["auth"] = json::Array();
  auto made = profile_of(document);
  CHECK(unheld(made) == std::set<std::string>{"auth", "browser.deny", "container.image", "fs.deny", "fs.preexisting-hardlink", "fs.private", "fs.read", "fs.write",
                                              "net.egress", "net.loopback", "net.unix", "proc.tools", "resources.cpu", "resources.cpus", "resources.disk",
                                              "resources.fsize", "resources.inodes", "resources.mem", "resources.output", "resources.procs", "resources.wall", "secrets"});
  auto rules = rules_of(made);
  for (const char* path : {"/tmp/x", "/private/tmp/x", "/private/var/tmp/x"}) CHECK_FALSE(rules.may("file-read-data", path));
}

TEST_CASE("a path that a rule could read in two ways is refused") {
  for (const char* bad : {"", "a", "/a/../b", "/..", "/a/.", "/./a", "/a//b", "/a/", "//", "$HOME/x", "$WORKX", "$WORK/../x", "$WORK/", "/System/Volumes/Data"}) {
    INFO(bad);
    CHECK(refused(policy_of({bad}, {})) == "policy.path");
    CHECK(refused(policy_of({}, {bad})) == "policy.path");
    CHECK(refused(policy_of({}, {}, {bad})) == "policy.path");
    SeatbeltRun run = in_work();
    run.hidden = {bad};
    CHECK(refused(policy_of({}, {}), run) == "policy.path");
    run = in_work();
    run.locked = {bad};
    CHECK(refused(policy_of({}, {}), run) == "policy.path");
    CHECK(refused(policy_of({}, {}), in_work(bad)) == "policy.path");
  }
  for (const char* odd : {"/a b", "/a..b", "/...", "/ ", "/a\n"}) CHECK(refused(policy_of({odd}, {odd}, {odd})) == "made");
  CHECK(refused(policy_of({"/"}, {})) == "policy.path");
  CHECK(refused(policy_of({}, {"/"})) == "policy.path");
  CHECK(refused(policy_of({}, {}), in_work("/")) == "policy.path");
  CHECK(refused(policy_of({}, {}, {"/"})) == "made");
  CHECK_FALSE(rules_of(profile_of(policy_of({"/usr"}, {"$WORK"}, {"/"}))).may("file-read-data", "/usr/lib/x"));
  Json nul = policy_of({}, {});
  nul["profile"]["fs"]["deny"].push(std::string("/a\0b", 4));
  CHECK(refused(nul) == "policy.path");
  Json host = policy_of({}, {});
  host["profile"]["net"]["mode"] = "host";
  CHECK(refused(host) == "policy.field-unenforceable");
  CHECK(refused(json::Object()) == "input.invalid");
  Json odd = policy_of({}, {});
  odd["profile"]["fs"]["deny"] = "/a";
  CHECK(refused(odd) == "input.invalid");
  odd["profile"]["fs"]["deny"] = json::Array{7};
  CHECK(refused(odd) == "input.invalid");
}

TEST_CASE("profiles keep their text") {
  const char* source = ::getenv("H5I_SOURCE_DIR");
  REQUIRE(source);
  SeatbeltRun plain = in_work("/Users/u/w"), proxied = plain;
  proxied.proxy = 41999;
  proxied.locked = {"/Users/u/w/.git/hooks"};
  proxied.hidden = {"/Users/u/.config/h5i"};
  struct { const char* file; Json document; SeatbeltRun run; } rows[] = {
      {"seatbelt-plain", policy_of({"/bin", "/usr"}, {"$WORK"}), plain},
      {"seatbelt-denied", with_egress(policy_of({"/etc/ssl", "/usr"}, {"$WORK", "/Users/u/.cache"}, {"$WORK/a/.env", "/Users/u/.ssh"})), proxied},
      {"seatbelt-hostile", policy_of({"/a\"))(allow default)", "/a\\"}, {"$WORK", "/b\n(allow default);"}, {"/b\n(allow default);/\"x\""}), plain}};
  for (auto& row : rows) {
    INFO(row.file);
    auto p = profile_of(row.document, row.run);
    rules_of(p);
    std::string now = p.text + "\n";
    for (const auto& parameter : p.parameters) now += parameter.name + " " + json::canonical(Json(parameter.value)) + "\n";
    for (const Unheld& u : p.not_held) now += "not held: " + u.field + " " + u.reason + "\n";
    std::string path = std::string(source) + "/tests/policy/golden/" + row.file + ".golden";
    if (::getenv("H5I_UPDATE_GOLDENS")) std::ofstream(path) << now;
    std::ifstream f(path);
    std::stringstream stored;
    stored << f.rdbuf();
    CHECK(stored.str() == now);
  }
}

TEST_CASE("whatever the names are, the text is of h5i alone and the rules mean the policy") {
  std::mt19937 random(20260917);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const Paths hostile = {"\"", "\\", "\\\"", "))(allow default)", "(param \"ROOT_0\")", ";", "\n", "\n(allow network*)\n", "\r\n", "..a", "...", "a..", " ", "\t",
                         "\xff\xfe", "\xc3\x28", "\x7f", "\x1b[2J", "*", "$WORK", "#", "|", "'", "%s", "-D", "A=B", "\xe2\x80\xae", std::string(3000, 'x') + "\""};
  const Paths tops = {"/usr", "/etc", "/var", "/tmp", "/private/etc", "/Users/u", "/w", "/System/Volumes/Data/Users", "/System/Library", "/dev", "/opt"};
  for (int round = 0; round < 300; round++) {
    INFO("round " << round);
    Paths pool;  // few names, so that grants and denials meet
    for (int i = 0; i < 6; i++) {
      std::string mark = "mark" + std::to_string(below(4)) + hostile[below(hostile.size())];
      std::string parent = !pool.empty() && below(2) ? pool[below(pool.size())] : tops[below(tops.size())];
      pool.push_back(parent + "/" + mark);
      if (below(3) == 0) pool.back() += hostile[below(hostile.size())];
    }
    auto some = [&] {
      Paths out;
      for (size_t n = below(4); n > 0; n--) out.push_back(below(4) ? pool[below(pool.size())] : tops[below(tops.size())]);
      return out;
    };
    SeatbeltRun run = in_work(pool[below(pool.size())]);
    if (below(2)) run.proxy = static_cast<uint16_t>(1 + below(65535));
    run.locked = some();
    run.hidden = below(3) ? Paths() : some();
    Json document = policy_of(some(), some(), some());
    if (below(2)) document["profile"]["fs"]["write"].push("$WORK");
    if (below(2)) document["profile"]["fs"]["deny"].push("$WORK/mark.env");
    if (below(2)) document = with_egress(document);

    auto p = profile_of(document, run);
    auto rules = rules_of(p);
    CHECK(std::all_of(p.text.begin(), p.text.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); }));
    CHECK(p.text.find("mark") == std::string::npos);
    for (const auto& top : tops) CHECK(p.text.find(top) == std::string::npos);
    CHECK(p.text.find("/") == std::string::npos);
    // Every path filter is a parameter, and a rule that allows without a filter is one of processes.
    for (const auto& rule : rules.rules) {
      for (const auto& f : rule.filters) CHECK(f.parameter == (f.kind == "literal" || f.kind == "subpath"));
      if (rule.allow && rule.filters.empty()) CHECK(rule.operations == Paths{"process-fork"});
    }
    CHECK_FALSE(rules.rules[0].allow);
    CHECK(rules.rules[0].operations == Paths{"default"});

    Meaning m(document, run);
    Paths asked = pool;
    asked.insert(asked.end(), tops.begin(), tops.end());
    for (const char* more : {"/", "/usr/lib/x", "/dev/null", "/dev/zero", "/dev/random", "/dev/disk0", "/private/tmp", "/private/var/tmp/x", "/Users", "/System/Volumes/Data/x"}) asked.push_back(more);
    asked.push_back(run.work + "/mark.env");
    for (const std::string& path : asked)
      for (const char* end : {"", "/x", "x"}) agree(rules, m, path == "/" ? "/" : path + end);
    bool way_out = run.proxy && !document["profile"]["net"]["egress"].array().empty();
    if (run.proxy) CHECK(rules.may("network-outbound", "localhost:" + std::to_string(*run.proxy)) == way_out);
    for (const char* where : kAnywhere)
      if (!run.proxy || where != "localhost:" + std::to_string(*run.proxy)) CHECK_FALSE(rules.may("network-outbound", where));
  }
}
