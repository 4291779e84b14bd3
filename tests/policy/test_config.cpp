// Both formats, and every refusal of the schema by its id and place.
#include "core/policy/adapters.hpp"
#include "core/policy/env_names.hpp"
#include "core/policy/model.hpp"
#include "core/policy/nearest.hpp"
#include "core/policy/quantity.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::policy;

static const PathRoots kRoots{"/home/u", "/src/repo"};

struct Read {
  FileModel model;
  std::vector<Error> errors;
};
static Read read(const std::string& text, bool toml = false) {
  Read r;
  r.model = read_config(text, toml ? ".h5i/env.toml" : ".h5i/env.yaml", toml, kRoots, r.errors);
  return r;
}
// Some error of `text` has this id, and `part` in what it says.
static void refuses(const std::string& text, const std::string& id, const std::string& part, bool toml = false) {
  INFO(text.substr(0, 500));
  Read r = read(text, toml);
  bool found = false;
  std::string all;
  for (const Error& e : r.errors) {
    all += std::string(e.id()) + " | " + e.what + " | " + e.evidence + "\n";
    found = found || (e.id() == id && (e.what + " " + e.evidence).find(part) != std::string::npos);
  }
  INFO("wanted " << id << " with `" << part << "`, got:\n" << all);
  CHECK(found);
}
static std::string profile(const std::string& body) { return "profiles:\n  p:\n    " + body + "\n"; }

TEST_CASE("YAML that means something elsewhere than where it stands is refused") {
  refuses("a: &x 1\n", "policy.parse", "anchor");
  refuses("a: &x [1]\nb: *x\n", "policy.parse", "anchor");
  refuses("b: *nothing\n", "policy.parse", "");
  refuses("a: &x {k: v}\nb: {<<: *x}\n", "policy.parse", "anchor");
  refuses("b: {<<: {k: v}}\n", "policy.parse", "merge");
  refuses("a: !!str 1\n", "policy.parse", "tag");
  refuses("a: !own x\n", "policy.parse", "tag");
  refuses("a: ! x\n", "policy.parse", "tag");
  refuses("a: ! \"x\"\n", "policy.parse", "tag");
  refuses("a: !!map {}\n", "policy.parse", "tag");
  refuses("a: ! []\n", "policy.parse", "tag");
  refuses("%TAG ! tag:x\n---\na: 1\n", "policy.parse", "directive");
  refuses("a: 1\n---\nb: 2\n", "policy.parse", "second document");
  refuses("a: 1\na: 2\n", "policy.parse", "twice");
  refuses("a: {b: 1, b: 2}\n", "policy.parse", "env.yaml:1:11");
  refuses("\"a\": 1\n'a': 2\n", "policy.parse", "twice");
  refuses("? [a]\n: 1\n", "policy.parse", "plain text");
  refuses("? {a: b}\n: 1\n", "policy.parse", "plain text");
  refuses("a: [1, 2\n", "policy.parse", "");
  refuses("a: \"\\xZZ\"\n", "policy.parse", "");
  refuses("a: b: c\n", "policy.parse", "");
  refuses(std::string("a: \xff\n"), "policy.parse", "UTF-8");
  refuses(std::string("a: x\0y\n", 7), "policy.parse", "control");
  refuses("a: \x04\n", "policy.parse", "control");
  refuses("a: \x1b[2J\n", "policy.parse", "env.yaml:1:4");
  refuses("[profiles]\n", "policy.type", "a map");
  refuses(std::string(300000, '#'), "policy.limit", "262144");
}

TEST_CASE("TOML by the same limits") {
  refuses("a = \n", "policy.parse", "env.toml:1", true);
  refuses("[profiles.p]\n[profiles.p]\n", "policy.parse", "", true);
  refuses("[@@@@]\n", "policy.parse", "", true);
  refuses("\xc3\xbc = 1\n", "policy.parse", "beyond ASCII", true);
  refuses("a = 1 \xcb\x8f\n", "policy.parse", "beyond ASCII", true);
  refuses("a = \"\"\"x\\\n  \xc3\xbc\"\"\"\n", "policy.parse", "beyond ASCII", true);
  CHECK(read_toml("\"\xc3\xbc\" = '\xc3\xbc' # \xc3\xbc\nb = \"\"\"\n\xc3\xbc \\\n  x\"\"\"\n", "f"));
  refuses("[profiles.p]\nextends = 'a'\nextends = 'b'\n", "policy.parse", "env.toml:3", true);
  refuses(std::string("a = '\xff'\n"), "policy.parse", "UTF-8", true);
  refuses("profiles = 1979-05-27\n", "policy.type", "a map", true);
  refuses("[profiles.p.resources]\nmem = 1979-05-27\n", "policy.type", "a date", true);
  refuses(std::string(300000, '#'), "policy.limit", "262144", true);
}

TEST_CASE("nesting is bounded before it costs stack") {
  auto nested = [](int n) { return "a: " + std::string(static_cast<size_t>(n), '[') + std::string(static_cast<size_t>(n), ']') + "\n"; };
  CHECK(read_yaml(nested(15), "f"));
  refuses(nested(16), "policy.limit", "16");
  refuses(nested(100000), "policy.limit", "16");
  std::string block, indent;
  for (int i = 0; i < 400; i++) block += indent + "a:\n", indent += " ";
  refuses(block, "policy.limit", "16");
  std::string maps;
  for (int i = 0; i < 50000; i++) maps += "{a: ";
  CHECK_FALSE(read_yaml(maps, "f"));  // the scanner may take the unfinished map for a key
  CHECK_FALSE(read_yaml(std::string(100000, '{'), "f"));
  std::string dashes;
  for (int i = 0; i < 50000; i++) dashes += "- ";
  refuses(dashes, "policy.limit", "16");
  std::string keys;
  for (int i = 0; i < 50000; i++) keys += "? ";
  refuses(keys, "policy.parse", "");

  CHECK(read_toml("a = [[[[1]]]]\n", "f"));
  refuses("a = " + std::string(100000, '[') + "\n", "policy.limit", "16", true);
  std::string inline_tables = "a = ";
  for (int i = 0; i < 20000; i++) inline_tables += "{a=";
  refuses(inline_tables + "\n", "policy.limit", "16", true);
  std::string dotted = "a";
  for (int i = 0; i < 100000; i++) dotted += ".a";
  refuses(dotted + " = 1\n", "policy.limit", "16", true);
  refuses("[" + dotted + "]\n", "policy.limit", "16", true);
  refuses("x = { " + dotted + " = 1 }\n", "policy.limit", "16", true);
  for (const char* close : {R"("""")", R"(""""")", "''''", "'''''"}) {  // quotes before the closing three hide nothing
    std::string q(3, close[0]);
    refuses("x = { y = " + q + "z" + close + ", " + dotted + " = 1 }\n", "policy.limit", "16", true);
  }
  // Dots and brackets in strings and comments are none.
  CHECK(read_toml("a = 'a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a' # [[[[[[[[[[[[[[[[[[[[\nb = \"\"\"\n[[[[[[[[[[[[[[[[[[[[[[\n\"\"\"\n", "f"));
}

TEST_CASE("values know their place, in characters") {
  auto n = read_yaml("profiles:\n  \xc3\xa4\xc3\xb6: {x: 1}\n", "f");
  REQUIRE(n);
  const Entry& e = n->entries[0].value.entries[0];
  CHECK(e.key_at.line == 2);
  CHECK(e.key_at.column == 3);
  CHECK(e.value.entries[0].key_at.column == 8);
}

TEST_CASE("YAML 1.2 scalars: no yes, no octal, no Norway") {
  auto n = read_yaml("[yes, no, on, 0o17, 017, 1_000, ~, null, true, False, 12, -3, 1.5, .5, 1e3, 'true', \"1\", nan, 12e999]", "f");
  REQUIRE(n);
  using K = Node::Kind;
  K want[] = {K::TEXT, K::TEXT, K::TEXT, K::TEXT, K::INTEGER, K::TEXT, K::NONE, K::NONE, K::BOOL, K::BOOL, K::INTEGER, K::INTEGER,
              K::REAL, K::REAL, K::REAL, K::TEXT, K::TEXT, K::TEXT, K::TEXT};
  REQUIRE(n->items.size() == std::size(want));
  for (size_t i = 0; i < std::size(want); i++) {
    INFO(i << " " << n->items[i].text);
    CHECK(n->items[i].kind == want[i]);
  }
  for (const char* empty : {"", "# only a comment\n", "---\n", "~\n", "\xef\xbb\xbf"}) {
    auto e = read_yaml(empty, "f");
    REQUIRE(e);
    CHECK(e->kind == K::MAP);
    CHECK(e->entries.empty());
  }
}

TEST_CASE("an unknown key is an error with place, expectation and the nearest known key") {
  Read r = read("profiles:\n  p:\n    fs:\n      raed: [/usr]\n");
  REQUIRE(r.errors.size() == 1);
  CHECK(r.errors[0].id() == "policy.unknown-key");
  CHECK(r.errors[0].what == ".h5i/env.yaml:4:7: unknown key `profiles.p.fs.raed`");
  CHECK(r.errors[0].evidence == "expected one of: read, write, deny, private; nearest: read");
  refuses("profils: {}\n", "policy.unknown-key", "nearest: profiles");
  refuses(profile("isolaton: process"), "policy.unknown-key", "nearest: isolation");
  refuses(profile("net: { egres: [] }"), "policy.unknown-key", "nearest: egress");
  refuses(profile("resources: { memory: 4G }"), "policy.unknown-key", "mem");
  refuses(profile("env: { passs: [] }"), "policy.unknown-key", "nearest: pass");
  refuses(profile("audit: { captures: all }"), "policy.unknown-key", "nearest: capture");
  refuses(profile("secrets: { K: { sauce: \"env:A\" } }"), "policy.unknown-key", "nearest: source");
  refuses(profile("browser: { denies: [] }"), "policy.unknown-key", "deny");
  refuses(profile("container: { img: x }"), "policy.unknown-key", "image");
  refuses(profile("auth: [ { hosts: a } ]"), "policy.unknown-key", "nearest: host");
  refuses(profile("net: { egress: [ { too: a } ] }"), "policy.unknown-key", "nearest: to");
  CHECK(nearest("xyzzy", {"read", "write"}).empty());
}

TEST_CASE("all faults are reported, not only the first") {
  Read r = read("profiles:\n  p:\n    tools: git\n    net: { mode: open }\n    resources: { mem: lots }\n    what: 1\n");
  CHECK(r.errors.size() == 4);
}

TEST_CASE("each value has one type") {
  refuses(profile("tools: git"), "policy.type", "write [git]");
  refuses(profile("fs: { read: [~] }"), "policy.type", "quote it: \"~\"");
  refuses(profile("tools: [1]"), "policy.type", "quote it");
  refuses(profile("tools: [/usr/bin/git]"), "policy.value", "base name");
  refuses(profile("tools: ['']"), "policy.value", "base name");
  refuses(profile("fs: [/usr]"), "policy.type", "a map");
  refuses(profile("fs: { read: /usr }"), "policy.type", "a list");
  refuses(profile("net: { mode: allow }"), "policy.value", "deny, host");
  refuses(profile("net: { unix: \"true\" }"), "policy.type", "true or false");
  refuses(profile("net: { unix: yes }"), "policy.type", "true or false");
  refuses(profile("net: { loopback: [\"3000\"] }"), "policy.type", "ports");
  refuses(profile("net: { loopback: [0] }"), "policy.value", "1 to 65535");
  refuses(profile("net: { loopback: [65536] }"), "policy.value", "1 to 65535");
  refuses(profile("net: { egress: [443] }"), "policy.type", "rules");
  refuses(profile("net: { egress: [ { private: true } ] }"), "policy.value", "lacks `to`");
  refuses(profile("net: { egress: [ '*' ] }"), "policy.egress-rule", "every host");
  refuses(profile("net: { egress: [ { to: 'http://x' } ] }"), "policy.egress-rule", "URL");
  refuses(profile("isolation: auto"), "policy.value", "leave isolation out");
  refuses(profile("isolation: Process"), "policy.value", "tier's id");
  refuses(profile("isolation: [process]"), "policy.type", "tier's id");
  refuses(profile("env: { set: { CI: 1 } }"), "policy.type", "quote it: \"1\"");
  refuses(profile("env: { set: [CI] }"), "policy.type", "a map");
  refuses(profile("env: { set: { A: \"x\\0y\" } }"), "policy.value", "NUL");
  refuses(profile("env: { pass: ['A=B'] }"), "policy.value", "variable's name");
  refuses(profile("env: { pass: ['LC_*'] }"), "policy.value", "no patterns");
  refuses(profile("env: { pass: ['BASH_FUNC_x%%'] }"), "policy.env-dangerous", "code");
  refuses(profile("env: { pass: [H5I_SECRET_KEY] }"), "policy.value", "under secrets");
  refuses(profile("env: { set: { A: \"" + std::string(40000, 'x') + "\" } }"), "policy.limit", "32768");
  refuses(profile("audit: { capture: some }"), "policy.value", "all, signal, none");
  refuses(profile("extends: [a]"), "policy.type", "name");
  refuses("profiles: { 'a b': {} }\n", "policy.value", "profile's name");
  refuses("profiles: { ../x: {} }\n", "policy.value", "profile's name");
  refuses("profiles: [a]\n", "policy.type", "a map");
  refuses("profiles: {a: {}}\nprofile: {a: {}}\n", "policy.value", "keep profiles");
  refuses(profile("container: { image: '-x' }"), "policy.value", "image's name");
  refuses(profile("container: { image: 'a b' }"), "policy.value", "image's name");
  refuses(profile("container: { image: '" + std::string(513, 'a') + "' }"), "policy.value", "512");
  refuses("container: { image: '../x' }\n", "policy.value", "image's name");
  refuses(profile("browser: { deny: [snapshot] }"), "policy.value", "cannot be denied");
  refuses(profile("browser: { deny: [cookie] }"), "policy.value", "nearest: cookies");
  refuses(profile("allow_command_extractors: 1"), "policy.type", "true or false");
}

TEST_CASE("sizes, counts and durations take their own units") {
  CHECK(parse_size("4G") == int64_t{4} << 30);
  CHECK(parse_size("512M") == int64_t{512} << 20);
  CHECK(parse_size("1K") == 1024);
  CHECK(parse_size("0") == 0);
  CHECK(parse_size("4096") == 4096);
  CHECK(parse_count("500k") == 500000);
  CHECK(parse_count("2m") == 2000000);
  CHECK(parse_count("256") == 256);
  CHECK(parse_duration("90s") == 90);
  CHECK(parse_duration("30m") == 1800);
  CHECK(parse_duration("1h30m") == 5400);
  for (const char* bad : {"", "G", "4g", "4GB", "4 G", "-1G", "+1G", "1.5G", "0x10", "010", "9999999999999999999", "2000T", "4Gx"}) {
    INFO(bad);
    CHECK_FALSE(parse_size(bad));
  }
  for (const char* bad : {"", "5K", "5M", "1e3", "-1", "9999999999999m"}) CHECK_FALSE(parse_count(bad));
  for (const char* bad : {"", "30", "30M", "m", "1m1h", "1s1s", "400000h", "-1s", "1d"}) CHECK_FALSE(parse_duration(bad));
  for (int64_t n : {int64_t{1}, int64_t{1024}, int64_t{1500}, int64_t{4} << 30, int64_t{3} << 40}) CHECK(parse_size(size_text(n)) == n);
  for (int64_t n : {1, 60, 90, 3600, 5400}) CHECK(parse_duration(duration_text(n)) == n);
  for (int64_t n : {1, 999, 1000, 500000, 2000000}) CHECK(parse_count(count_text(n)) == n);

  refuses(profile("resources: { mem: 4GB }"), "policy.value", "a size");
  refuses(profile("resources: { mem: 0 }"), "policy.value", "is 0");
  refuses(profile("resources: { mem: -1 }"), "policy.value", "a size");
  refuses(profile("resources: { mem: 1.5 }"), "policy.type", "a size");
  refuses(profile("resources: { procs: many }"), "policy.value", "a count");
  refuses(profile("resources: { procs: 0 }"), "policy.value", "is 0");
  refuses(profile("resources: { wall: 30 }"), "policy.type", "write the unit: 30s");
  refuses(profile("resources: { wall: 0s }"), "policy.value", "is 0");
  refuses(profile("resources: { cpus: two }"), "policy.type", "processors");
  refuses(profile("resources: { cpus: 0 }"), "policy.value", "4096");
  refuses(profile("resources: { cpus: 0.001 }"), "policy.value", "hundredths");
  refuses(profile("resources: { cpus: -1 }"), "policy.value", "4096");
  for (const char* v : {"nan", "inf", "-inf", "1e308"}) refuses(std::string("[profiles.p.resources]\ncpus = ") + v + "\n", "policy.value", "4096", true);
  CHECK(read(profile("resources: { cpus: 0.5, output: 0, fsize: 1G, disk: 8G, inodes: 500k, cpu: 10m }")).errors.empty());
}

TEST_CASE("paths expand once and say only one thing") {
  auto path = [](std::string_view p) {
    auto r = expand_path(p, kRoots);
    return r ? *r : "refused: " + r.error().evidence;
  };
  CHECK(path("$WORK") == "$WORK");
  CHECK(path("$WORK/a//b/./c/") == "$WORK/a/b/c");
  CHECK(path("~") == "/home/u");
  CHECK(path("~/.ssh") == "/home/u/.ssh");
  CHECK(path("$REPO/.git/hooks") == "/src/repo/.git/hooks");
  CHECK(path("/usr//lib/") == "/usr/lib");
  CHECK(path("/") == "/");
  for (auto [in, why] : std::vector<std::pair<const char*, const char*>>{
           {"", "empty"}, {"rel/path", "$WORK/rel/path"}, {"../x", "absolute"}, {"/a/../b", "`..`"}, {"$WORK/..", "`..`"},
           {"$HOME/x", "variables"}, {"${WORK}", "variables"}, {"$WORKING", "variables"}, {"~bob/x", "another user"}, {"/a/*", "pattern"}, {"/a?", "pattern"},
           {"/a[0]", "pattern"}, {"/a\nb", "control"}, {"/a\x1b", "control"}}) {
    INFO(in);
    CHECK(path(in).find(why) != std::string::npos);
    CHECK(path(in).find("refused") == 0);
  }
  CHECK_FALSE(expand_path("~/x", PathRoots{"", "/r"}));
  CHECK_FALSE(expand_path("$REPO/x", PathRoots{"/h", ""}));
  CHECK_FALSE(expand_path("/" + std::string(256, 'a'), kRoots));
  std::string deep;
  while (deep.size() < 5000) deep += "/abcdefgh";
  CHECK_FALSE(expand_path(deep, kRoots));
  refuses(profile("fs: { read: [usr] }"), "policy.path", "$WORK/usr");
  refuses(profile("fs: { read: [/] }"), "policy.path", "whole file system");
  refuses(profile("fs: { write: [/sys/fs/cgroup] }"), "policy.path", "/sys");
  refuses(profile("fs: { read: [/proc/1] }"), "policy.path", "/proc");
  refuses(profile("fs: { read: [/dev/kvm] }"), "policy.path", "devices");
  refuses(profile("fs: { read: [~/.config/h5i/trust] }"), "policy.path", "h5i's own");
  refuses(profile("fs: { write: [~/.local/state/h5i] }"), "policy.path", "h5i's own");
  refuses(profile("fs: { write: [~/.cache/h5i/proved] }"), "policy.path", "h5i's own");
  refuses(profile("fs: { read: [$REPO/.git/h5i] }"), "policy.path", "h5i's own");
  CHECK(read(profile("fs: { write: [~/.cache], read: [$REPO/.git] }")).errors.empty());
  // What every box has of its own is not bound from the host, with a note.
  Read r = read(profile("fs: { read: [/usr, /proc, /tmp, /dev/null] }"));
  CHECK(r.errors.empty());
  CHECK(r.model.notes.size() == 3);
  CHECK(json::canonical(r.model.profiles["p"].settings["fs.read"].value) == "[\"/usr\"]");
}

TEST_CASE("private paths stay inside the work tree and apart") {
  for (auto [body, why] : std::vector<std::pair<const char*, const char*>>{
           {"/abs: cache", "relative"}, {"../up: cache", "`..`"}, {"a/../b: cache", "`..`"}, {".git: cache", "git directory"},
           {".git/hooks: scratch", "git directory"}, {"'a,b': cache", "comma"}, {".: cache", "work tree itself"}, {"~/x: cache", "relative"}}) {
    refuses(profile(std::string("fs: { private: { ") + body + " } }"), "policy.path", why);
  }
  refuses(profile("fs: { private: { a: cache, a/b: scratch } }"), "policy.path", "nest");
  refuses(profile("fs: { private: { a: cache, ./a: scratch } }"), "policy.value", "twice");
  refuses(profile("fs: { private: { a: temp } }"), "policy.value", "cache, scratch");
  refuses(profile("fs: { private: [a] }"), "policy.type", "a map");
  CHECK(read(profile("fs: { private: { a: cache, ab: scratch, c/d: cache } }")).errors.empty());
}

TEST_CASE("secrets and auth are checked and canonical, whoever enforces them") {
  refuses(profile("secrets: { K: { source: 'vault:x' } }"), "policy.value", "env:NAME");
  refuses(profile("secrets: { K: { source: 'env:a-b' } }"), "policy.value", "env:NAME");
  refuses(profile("secrets: { K: { source: 'file:rel' } }"), "policy.path", "absolute");
  refuses(profile("secrets: { K: { source: 'file:$WORK/k' } }"), "policy.path", "work tree");
  refuses(profile("secrets: { K: { source: 'command:ls' } }"), "policy.value", "command:/PROGRAM");
  refuses(profile("secrets: { K: { inject: argv } }"), "policy.value", "env, file");
  refuses(profile("secrets: { K: { ttl: 15 } }"), "policy.type", "duration");
  refuses(profile("secrets: { K: { ttl: 0s } }"), "policy.value", "duration");
  refuses(profile("secrets: { 'K K': {} }"), "policy.value", "variable's name");
  Read r = read(profile("secrets: { K: , L: { source: 'file:~/l', inject: file, ttl: 15m } }"));
  CHECK(r.errors.empty());
  CHECK(json::canonical(r.model.profiles["p"].settings["secrets"].value) ==
        "{\"K\":{\"inject\":\"env\",\"source\":\"env:H5I_SECRET_K\"},\"L\":{\"inject\":\"file\",\"source\":\"file:/home/u/l\",\"ttl\":900}}");
  std::string whole = "{ host: api.example, credential: 'env:T', base_url_var: U, token_var: V }";
  CHECK(read(profile("auth: [ " + whole + " ]")).errors.empty());
  refuses(profile("auth: [ " + whole + ", " + whole + " ]"), "policy.value", "twice");
  refuses(profile("auth: [ { host: api.example } ]"), "policy.value", "lacks `token_var`");
  refuses(profile("auth: [ { host: 'https://x', credential: 'env:T', base_url_var: U, token_var: V } ]"), "policy.value", "bare host name");
  refuses(profile("auth: [ { host: '*.x.example', credential: 'env:T', base_url_var: U, token_var: V } ]"), "policy.value", "bare host name");
  refuses(profile("auth: [ { host: a.example, credential: T, base_url_var: U, token_var: V } ]"), "policy.value", "env:NAME");
}

TEST_CASE("the predecessor's files are read, and what has no equivalent says what to write") {
  Read r = read("[container]\nimage = \"img:1\"\n"
                "[profile.x]\nisolation = \"supervised\"\ntools = [\"git\"]\nsecrets = [\"A\"]\nallow_command_extractors = true\n"
                "[profile.x.fs]\nread = [\"/usr\", \"/proc\"]\n"
                "[profile.x.net]\negress = [\".example.com\"]\n"
                "[profile.x.private_paths]\n\"node_modules\" = { kind = \"cache\", persist = true }\n"
                "[profile.x.secret.B]\nsource = \"env:BB\"\ninject = \"file\"\n"
                "[[profile.x.auth]]\nhost = \"api.example\"\ncredential_env = \"T\"\nbase_url_var = \"U\"\ntoken_var = \"V\"\n", true);
  for (const Error& e : r.errors) INFO(e.what << " " << e.evidence);
  REQUIRE(r.errors.empty());
  Settings& s = r.model.profiles["x"].settings;
  CHECK(r.model.image->value.string() == "img:1");
  CHECK(s["net.egress"].value.array()[0]["to"].string() == "*.example.com:443");
  CHECK(json::canonical(s["fs.private"].value) == "{\"node_modules\":\"cache\"}");
  CHECK(s["secrets"].value["A"]["source"].string() == "env:H5I_SECRET_A");
  CHECK(s["secrets"].value["B"]["inject"].string() == "file");
  CHECK(s["auth"].value.array()[0]["credential"].string() == "env:T");
  CHECK(s["command_extractors"].value.boolean());
  refuses("[profile.x]\npersona = [\"a\"]\n", "policy.no-equivalent", "instead:", true);
  refuses("[profile.x.detect]\nenabled = true\n", "policy.no-equivalent", "audit.capture", true);
  refuses("[profile.x]\nengine = \"chromium\"\n", "policy.no-equivalent", "browser", true);
  refuses("[service.web]\ncommand = \"x\"\n", "policy.no-equivalent", "box run", true);
  refuses("[profile.x.shell]\nrcfile = \"x\"\n", "policy.no-equivalent", "instead:", true);
  refuses("[profile.x]\nisolation = \"hardened-container\"\n", "policy.no-equivalent", "container", true);
  refuses("[profile.x.private_paths]\na = { kind = \"private\" }\n", "policy.no-equivalent", "scratch", true);
  refuses("[profile.x.net]\negress = [\"\"]\n", "policy.egress-rule", "empty", true);
}

TEST_CASE("left out and empty are different values") {
  for (bool toml : {false, true}) {
    Read r = toml ? read("[profiles.a]\ntools = []\nauth = []\nsecrets = {}\n[profiles.a.net]\negress = []\n[profiles.b]\n", true)
                  : read("profiles:\n  a: { tools: [], auth: [], secrets: {}, net: { egress: [] } }\n  b: {}\n  c:\n");
    CHECK(r.errors.empty());
    Settings &a = r.model.profiles["a"].settings, &b = r.model.profiles["b"].settings;
    for (const char* f : {"tools", "auth", "secrets", "net.egress"}) {
      INFO(f);
      CHECK(a.count(f) == 1);
      CHECK(b.count(f) == 0);
    }
    CHECK(a["tools"].value.is_array());
    CHECK(a["tools"].value.array().empty());
  }
}

TEST_CASE("names that make programs load code are known by kind") {
  for (const char* n : {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PYTHONPATH", "PERL5OPT",
                        "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GCONV_PATH",
                        "GLIBC_TUNABLES", "npm_config_script_shell", "NPM_CONFIG_PREFIX", "RUSTC_WRAPPER", "MAKEFLAGS", "PROMPT_COMMAND",
                        "OPENSSL_CONF", "DOTNET_STARTUP_HOOKS", "H5I_ALLOW_COMMAND_EXTRACTORS", "HOSTALIASES"}) {
    INFO(n);
    CHECK_FALSE(dangerous_env(n).empty());
  }
  for (const char* n : {"PATH", "HOME", "LANG", "LC_ALL", "TERM", "COLORTERM", "CI", "USER", "SHELL", "TZ", "CC", "CFLAGS", "ENVIRONMENT", "LDFLAGS", "GITHUB_ACTIONS"}) {
    INFO(n);
    CHECK(dangerous_env(n).empty());
  }
  for (const char* n : {"HTTP_PROXY", "https_proxy", "ALL_PROXY", "No_Proxy", "FTP_PROXY"}) CHECK(is_proxy_variable(n));
  CHECK_FALSE(is_proxy_variable("PROXY"));
}
