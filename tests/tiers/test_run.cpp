// Both tiers through the real h5i: the fields of a policy that the core holds, and what the receipt says of the rest.
#include <set>

#include "core/evidence/log.hpp"
#include "core/session/box.hpp"
#include "tests/cli/program.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_test.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

constexpr unsigned kBoxId = 1879050000;  // of the reserved range

class RealBox {
 public:
  RealBox(Checks& checks, const std::string& tier) : k(checks), tier_(tier), root_(checks.dir() + "/" + tier) {
    make_git_directory(root_ + "/.git");
    mkdir((root_ + "/home").c_str(), 0700);
    profile = json::Object{
        {"name", "test"},
        {"fs", json::Object{{"read", json::Array{"/usr", "/etc", "/bin", "/lib", "/lib64", "/sbin"}},
                            {"write", json::Array{"$WORK"}},
                            {"deny", json::Array{}},
                            {"private", json::Object{}},
                            {"optional", json::Array{"/bin", "/lib", "/lib64", "/sbin"}}}},
        {"net", json::Object{{"mode", tier == "workspace" ? "host" : "deny"}, {"unix", false}}},
        {"resources",
         json::Object{
             {"mem", 4ull << 30}, {"procs", 256}, {"wall", 600}, {"output", 64 << 20}, {"explicit", json::Array{}}}},
        {"env", json::Object{{"pass", json::Array{"PATH", "HOME"}}, {"set", json::Object{}}}}};
  }

  Ended run(const std::vector<std::string>& command, const std::vector<std::string>& options = {}) {
    save();
    Program p;
    p.argv = {"h5i", "box", "run", "fix"};
    p.argv.insert(p.argv.end(), options.begin(), options.end());
    p.argv.emplace_back("--");
    p.argv.insert(p.argv.end(), command.begin(), command.end());
    p.env = env;
    p.env["HOME"] = root_ + "/home";
    p.cwd = root_;
    Ended e = h5i::test::run(p);
    receipt = last("receipt");
    return e;
  }
  Ended shell(const std::string& script) { return run({"sh", "-c", script}); }

  json::Value last(const std::string& kind) {
    json::Value found;
    (void)evidence::read_log(paths_.log(), [&](uint64_t, const Json& r) {
      if (r["kind"].string() == kind) found = r["body"];
      return true;
    });
    return found;
  }
  bool declared(std::string_view field) const {
    for (const json::Value& n : receipt["not_enforced"].array())
      if (n["field"].string() == field) return true;
    return false;
  }
  std::string work() const { return paths_.work(); }
  const std::string& root() const { return root_; }

  json::Value profile, receipt;
  std::map<std::string, std::string> env;

 private:
  void save() {
    json::Value policy = json::Object{
        {"schema", "h5i.policy/1"}, {"tier", tier_}, {"audit", json::Object{{"capture", "all"}}}, {"profile", profile}};
    session::Manifest m = some_manifest("human", "fix");
    m.repo_git_dir = root_ + "/.git";
    m.base_commit.clear();
    m.object_dirs.clear();
    m.placeholders.clear();
    m.tier = tier_;
    m.policy_digest = PolicyDigest(canonical_digest(policy));
    m.host_uid = k.root() ? kBoxId : k.who().uid;
    m.host_gid = k.root() ? kBoxId : k.who().gid;
    paths_ = make_box(root_ + "/.git/h5i/boxes", m);
    for (const std::string& d : {paths_.work(), paths_.spool(), paths_.blobs(), paths_.priv()}) mkdir(d.c_str(), 0700);
    write_file(paths_.policy(), json::canonical(policy));
    chmod(paths_.policy().c_str(), 0600);
    chmod((root_ + "/.git/h5i").c_str(), 0700);
  }

  Checks& k;
  std::string tier_, root_;
  session::BoxPaths paths_;
};

const char* kTiers[] = {"process", "workspace"};

}  // namespace

KERNEL_TEST("a run ends with the program's status, and its receipt says what was not held", "[tiers][run]") {
  for (const char* tier : kTiers) {
    RealBox box(k, tier);
    Ended e = box.shell("echo out; echo err >&2; echo x > made; exit 7");
    KCHECK_SAYS(e.status == 7 && e.out == "out\n" && has(e.err, "err\n"), e.out + e.err);
    KCHECK(box.receipt["exit_status"].integer() == 7);
    KCHECK(box.declared("proc.tools") && box.declared("resources.disk") && box.declared("resources.inodes") &&
           box.declared("resources.cpus"));
    KCHECK(box.declared("fs.read") == (std::string(tier) == "workspace"));
    struct stat s {};
    KCHECK(stat((box.work() + "/made").c_str(), &s) == 0 && s.st_uid == k.who().uid);
    if (std::string(tier) == "workspace") {
      bool said = false;
      for (const json::Value& n : box.receipt["not_enforced"].array())
        said = said || has(n["detail"].string(), "nothing was confined");
      KCHECK(said);
    } else {
      KCHECK(box.receipt["attested"]["matches_plan"].boolean());
      KCHECK(box.receipt["attested"]["seccomp_mode"].integer() == 2);
    }
  }
}

KERNEL_TEST("resources.wall: the deadline ends everything", "[tiers][resources.wall]") {
  for (const char* tier : kTiers) {
    RealBox box(k, tier);
    box.profile["resources"]["wall"] = 1;
    Ended e = box.shell("trap '' TERM; setsid sleep 83 & sleep 83");
    KCHECK_SAYS(e.status == 124, std::string(tier) + " " + std::to_string(e.status) + e.err);
    int found = system("pgrep -f '^sleep 83$' > /dev/null");
    KCHECK_SAYS(WIFEXITED(found) && WEXITSTATUS(found) == 1, tier);
    box.profile["resources"]["wall"] = 60;
    KCHECK(box.shell("sleep 0.1").status == 0);
  }
}

KERNEL_TEST("resources.output: what is above it is shown and counted, not kept", "[tiers][resources.output]") {
  for (const char* tier : kTiers) {
    RealBox box(k, tier);
    box.profile["resources"]["output"] = 1000;
    Ended e = box.shell("head -c 50000 /dev/zero | tr '\\0' x");
    const json::Value& out = box.receipt["output"]["stdout"];
    KCHECK_SAYS(e.status == 0 && e.out.size() == 50000, std::to_string(e.out.size()) + e.err);
    KCHECK_SAYS(out["truncated"].boolean() && out["bytes"].integer() == 50000 && out["captured"].integer() <= 1000,
                json::canonical(out));
    Ended small = box.shell("echo x");
    KCHECK(small.status == 0 && !box.receipt["output"]["stdout"]["truncated"].boolean());
  }
}

KERNEL_TEST("env.pass and env.set: a program sees these and nothing else of the host's", "[tiers][env.pass][env.set]") {
  for (const char* tier : kTiers) {
    RealBox box(k, tier);
    box.env = {{"PASSED", "yes"}, {"KEPT_BACK", "secret"}};
    box.profile["env"]["pass"].push("PASSED");
    box.profile["env"]["set"]["CI"] = "1";
    Ended e = box.run({"env"});
    KCHECK_SAYS(has(e.out, "PASSED=yes\n") && has(e.out, "CI=1\n") && !has(e.out, "KEPT_BACK"), e.out + e.err);
  }
}

KERNEL_TEST("tools: the first program must be in the list; an empty list is none", "[tiers][tools]") {
  for (const char* tier : kTiers) {
    RealBox box(k, tier);
    box.profile["tools"] = json::Array{"true"};
    KCHECK(box.run({"true"}).status == 0);
    Ended e = box.shell("true");
    KCHECK_SAYS(e.status == 125 && has(e.err, "policy.tool"), e.err);
    box.profile["tools"] = json::Array{};
    KCHECK(box.run({"true"}).status == 125);
  }
}

KERNEL_TEST("net.egress: rules are refused at both tiers, and the refusal is recorded", "[tiers][net.egress]") {
  for (const char* tier : kTiers) {
    RealBox box(k, tier);
    box.profile["net"]["egress"] = json::Array{json::Object{{"to", "api.example:443"}, {"private", false}}};
    Ended e = box.shell("true");
    KCHECK_SAYS(e.status == 125 && has(e.err, "policy.egress-unenforceable"), e.err);
    KCHECK(box.last("run-refused")["id"].string() == "policy.egress-unenforceable");
  }
}

KERNEL_TEST("the program's absence and its lack of permission have their own statuses", "[tiers][run]") {
  for (const char* tier : kTiers) {
    RealBox box(k, tier);
    KCHECK(box.run({"no-such-program"}).status == 127);
    KCHECK(box.shell("echo x > plain; chmod 644 plain").status == 0);
    KCHECK(box.run({"./plain"}).status == 126);
  }
}

KERNEL_TEST("refused system calls are counted in the receipt of a process box", "[tiers][run]") {
  RealBox box(k, "process");
  Ended e = box.run(
      {"python3", "-c",
       "import socket\nfor a in (40,1,0),(40,1,0),(2,2,1):\n  try: socket.socket(*a)\n  except PermissionError: print('refused')"});
  KCHECK_SAYS(e.out == "refused\nrefused\nrefused\n", e.out + e.err);
  int64_t count = 0;
  Json kinds;
  for (const json::Value& d : box.receipt["denials"].array())
    if (d["errno"].string() == "EPERM" && d["syscall"].string() == "socket")
      count = std::max(count, d["count"].integer()), kinds = d["sockets"];
  KCHECK_SAYS(count == 3, json::canonical(box.receipt["denials"]));
  const std::string told = json::canonical(kinds);
  KCHECK_SAYS(told == R"([{"count":1,"kind":"inet dgram icmp"},{"count":2,"kind":"vsock stream"}])", told);
}

KERNEL_TEST("a placeholder of a denied name is gone after a run, and known if the run is killed", "[tiers][run]") {
  RealBox box(k, "process");
  box.profile["fs"]["deny"] = json::Array{"$WORK/.env", "$WORK/a/key"};
  Ended e = box.shell("cat .env; echo x > a/key; ls -A");
  KCHECK_SAYS(has(e.err, "Permission denied") && has(e.out, ".env"), e.out + e.err);
  struct stat s {};
  KCHECK(lstat((box.work() + "/.env").c_str(), &s) != 0 && lstat((box.work() + "/a").c_str(), &s) != 0);
}

KERNEL_TEST("no grant shows a box h5i's own files, nor lets it write them; its own and its neighbours in the grant it has",
            "[tiers][run]") {
  RealBox box(k, "process");
  std::string data = box.root() + "/data", xdg = data + "/state", cache = data + "/cache";
  for (const std::string& d : {data, xdg, xdg + "/h5i", xdg + "/h5i/keys", cache, cache + "/h5i", cache + "/h5i/proved", data + "/run"})
    mkdir(d.c_str(), 0700);
  box.env = {{"XDG_STATE_HOME", xdg}, {"XDG_CACHE_HOME", cache}, {"XDG_CONFIG_HOME", data + "/config"}, {"XDG_RUNTIME_DIR", data + "/run"}};
  write_file(xdg + "/h5i/keys/host.key", "secret");
  write_file(data + "/other", "theirs");
  std::string h5i = box.root() + "/.git/h5i", neighbour = h5i + "/boxes/human/neighbour";
  KCHECK(box.run({"true"}).status == 0);  // the proof is there now, and the box's folder
  mkdir(neighbour.c_str(), 0700);
  write_file(neighbour + "/manifest.json", "{}");
  for (const char* field : {"read", "write"}) {
    box.profile["fs"]["read"] = json::Array{"/usr", "/etc", "/bin", "/lib", "/lib64", "/sbin"};
    box.profile["fs"]["write"] = json::Array{"$WORK"};
    box.profile["fs"][field].push(data);
    box.profile["fs"][field].push(box.root());
    bool may_write = std::string(field) == "write";
    auto runs = [&](const std::string& script) { return box.shell(script).status == 0; };
    // Controls: what lies beside it in the same grants, and what is the box's own below it.
    KCHECK_SAYS(runs("grep theirs " + data + "/other && cat " + box.root() + "/.git/HEAD"), field);
    KCHECK(runs("echo x > " + data + "/other") == may_write);
    write_file(data + "/other", "theirs");
    KCHECK(runs("echo x > made && cat " + box.work() + "/made && echo '{}' > $H5I_SPOOL/a.json"));
    for (const std::string& path : {xdg + "/h5i/keys/host.key", neighbour + "/manifest.json", h5i + "/boxes/human/fix/log.jsonl",
                                    h5i + "/boxes/human/fix/policy.resolved.json", h5i + "/boxes/human/fix/manifest.json"}) {
      struct stat s {};
      KCHECK_SAYS(stat(path.c_str(), &s) == 0, path);  // control: it is there
      KCHECK_SAYS(!runs("cat " + path), path);
    }
    for (const std::string& dir : {xdg + "/h5i", cache + "/h5i/proved", data + "/config/h5i", data + "/run/h5i", h5i}) {
      (void)runs("mkdir -p " + dir + "; chmod 777 " + dir + "; echo forged > " + dir + "/forged");
      struct stat s {};
      KCHECK_SAYS(lstat((dir + "/forged").c_str(), &s) != 0, dir);
    }
    for (const std::string& dir : {xdg, cache, h5i.substr(0, h5i.size() - 4)}) {
      (void)runs("mv " + dir + " " + dir + ".away");
      struct stat s {};
      KCHECK_SAYS(lstat((dir + "/h5i").c_str(), &s) == 0, dir);
    }
    (void)runs("for f in $(find " + cache + " -name 'verify-*'); do echo forged > $f; done");
    KCHECK(box.run({"true"}).status == 0);
    KCHECK(box.run({"true"}).status == 0);
    KCHECK(box.receipt["self_reported"]["proof"].string() == "cached");
  }
}
