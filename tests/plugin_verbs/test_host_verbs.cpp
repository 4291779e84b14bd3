#include <set>

#include "tests/plugin_verbs/prefix.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

const Json& tier_of(const Json& document, const std::string& name) {
  static const Json kNone;
  for (const Json& t : document["tiers"].array())
    if (t["tier"].string() == name) return t;
  return kNone;
}

}  // namespace

TEST_CASE("box probe begins with version, kernel, architecture and security modules") {
  Prefix p;
  Ended e = p.h5i({"box", "probe"});
  REQUIRE(e.status == 0);
  std::string first = e.out.substr(0, e.out.find('\n'));
  for (const char* word : {"h5i ", "Linux ", "security modules ", "Landlock "})
    CHECK(first.find(word) != std::string::npos);
  Json doc = p.json({"box", "probe"}, 0);
  CHECK(tier_of(doc, "process")["state"].string() == "not-installed");
  CHECK(tier_of(doc, "process")["package"].string() == "h5i-tier-process");
}

TEST_CASE("box probe tells apart available, impossible, refused, failed and not installed") {
  Prefix p;
  p.scratch().add("good");
  p.scratch().add("unavailable");
  p.scratch().add("overclaim");
  p.scratch().add("crash-probe");
  p.scratch().add("garbage-probe");
  p.scratch().add("throw-probe");
  p.scratch().add("lying-status");
  p.scratch().add("odd-status");
  std::string damaged = p.scratch().add("other-id");
  write_file(damaged + ".so", "x");
  write_file(p.scratch().plugins() + "/tier-odd.plugin.yaml", "odd: true\n");
  Json doc = p.json({"box", "probe"}, 0);
  CHECK(tier_of(doc, "fixture.good")["state"].string() == "available");
  CHECK(tier_of(doc, "fixture.unavailable")["state"].string() == "impossible");
  CHECK(tier_of(doc, "fixture.unavailable")["probe"]["missing"].array()[0].string() == "fixture-part");
  // It claims in its answer what its manifest does not: never shown as available.
  CHECK(tier_of(doc, "fixture.overclaim")["reason"]["id"].string() == "tier.overclaim");
  CHECK(tier_of(doc, "fixture.crash-probe")["reason"]["id"].string() == "plugin.crashed");
  CHECK(tier_of(doc, "fixture.garbage-probe")["state"].string() == "failed");
  CHECK(tier_of(doc, "fixture.throw-probe")["reason"]["id"].string() == "plugin.exception");
  // An error that says more text than it has is not read; a status that nobody knows is said.
  Json lying = tier_of(doc, "fixture.lying-status"), odd = tier_of(doc, "fixture.odd-status");
  CHECK(lying["state"].string() == "failed");
  CHECK(lying["reason"]["id"].string() == "plugin.abi-size");
  CHECK(lying["reason"]["evidence"].string() == "its error says 4294967295 bytes of text, has 240");
  CHECK(odd["reason"]["id"].string() == "internal");
  CHECK(odd["reason"]["evidence"].string() == "status 31337, which this host does not know: odd");
  CHECK(tier_of(doc, "fixture.other-id")["state"].string() == "refused");
  CHECK(tier_of(doc, "tier-odd")["reason"]["id"].string() == "plugin.manifest");
  CHECK(tier_of(doc, "supervised")["state"].string() == "not-installed");
}

TEST_CASE("box probe of one tier answers by its exit status") {
  Prefix p;
  p.scratch().add("good");
  p.scratch().add("unavailable");
  CHECK(p.json({"box", "probe", "--tier", "fixture.good"}, 0)["tiers"].array().size() == 1);
  CHECK(p.json({"box", "probe", "--tier", "fixture.unavailable"}, 1)["tiers"].array().size() == 1);
  CHECK(p.json({"box", "probe", "--tier", "process"}, 125)["error"]["id"].string() == "tier.not-installed");
  CHECK(p.json({"box", "probe", "--tier", "nonsense"}, 1)["error"]["id"].string() == "tier.unknown");
  Ended e = p.h5i({"box", "probe", "--tier", "process"});
  CHECK(is_refusal(e.err, "tier.not-installed"));
  CHECK(e.err.find("not installed") != std::string::npos);
  CHECK(e.err.find("h5i-tier-process") != std::string::npos);
}

TEST_CASE("what a file asks of a tier that cannot hold it is refused in three lines; what a built-in asks is reported") {
  Prefix p;
  p.scratch().add("partial");
  fs::create_directories(p.root() / ".git/objects");
  fs::create_directories(p.root() / ".git/refs");
  write_file((p.root() / ".git/HEAD").string(), "ref: refs/heads/main\n");
  fs::create_directories(p.root() / ".h5i");
  auto explain = [&](const std::string& body, int status) {
    write_file((p.root() / ".h5i/env.yaml").string(), "profiles:\n  a: { " + body + " }\n");
    return p.json({"policy", "explain", "a", "--tier", "fixture.partial"}, status);
  };
  for (const char* limit : {"mem: 1G", "procs: 10", "cpu: 1m", "fsize: 1M"}) {
    CAPTURE(limit);
    CHECK(explain("resources: { " + std::string(limit) + " }", 1)["error"]["id"].string() == "policy.limit-unenforceable");
  }
  CHECK(explain("fs: { private: { cache: cache } }", 1)["error"]["id"].string() == "policy.field-unenforceable");
  CHECK(explain("net: { egress: [a.example] }", 1)["error"]["id"].string() == "policy.egress-unenforceable");
  std::set<std::string> unheld;
  const Json reported = explain("tools: [sh]", 0);
  for (const Json& n : reported["not_enforced"].array()) unheld.insert(n["field"].string());
  CHECK(unheld.count("resources.mem"));
  CHECK(unheld.count("resources.procs"));
}

TEST_CASE("an untrusted plugin is never mapped: its constructor would have said so") {
  Prefix p;
  fs::create_directories(p.user_plugins());
  p.scratch().add("crash-open", p.user_plugins());
  Json before = p.json({"box", "probe"}, 0);
  CHECK(tier_of(before, "fixture.crash-open")["state"].string() == "refused");
  CHECK(tier_of(before, "fixture.crash-open")["reason"]["id"].string() == "plugin.untrusted");
  // Control: once trusted it is mapped, and then it crashes.
  p.json({"plugin", "trust", "fixture.crash-open"}, 0);
  CHECK(tier_of(p.json({"box", "probe"}, 0), "fixture.crash-open")["reason"]["id"].string() == "plugin.crashed");
}

TEST_CASE("box doctor lists every finding with its evidence, in text and JSON") {
  Prefix p;
  Json empty = p.json({"box", "doctor"}, 0);
  CHECK_FALSE(empty["ok"].boolean());  // no tier is installed
  p.scratch().add("good");
  Json doc = p.json({"box", "doctor"}, 0);
  CHECK(doc["findings"].array().size() == 8);
  Ended e = p.h5i({"box", "doctor"});
  CHECK(e.status == 0);
  for (const Json& f : doc["findings"].array()) CHECK(e.out.find(f["id"].string() + ": ") != std::string::npos);
}

TEST_CASE(
    "box capabilities says for each field and tier whether it is enforced, and a tier that cannot run enforces "
    "nothing") {
  Prefix p;
  p.add_tier("tier-workspace");
  p.scratch().add("unavailable");
  Json doc = p.json({"box", "capabilities"}, 0);
  CHECK(tier_of(doc, "workspace")["enforces"]["env.pass"].boolean());
  CHECK_FALSE(tier_of(doc, "workspace")["enforces"]["fs.read"].boolean());
  for (const auto& [field, held] : tier_of(doc, "fixture.unavailable")["enforces"].object())
    CHECK_FALSE(held.boolean());
  CHECK(tier_of(doc, "process")["state"].string() == "not-installed");
  CHECK(p.json({"box", "capabilities", "--tier", "process"}, 125)["error"]["id"].string() == "tier.not-installed");
  CHECK(p.h5i({"box", "capabilities"}).out.find("field") == 0);
}
