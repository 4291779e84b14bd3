#include <map>

#include "tests/tiers/fake_host.hpp"
#include "tests/tiers/sample_request.hpp"
#include "view.hpp"

using namespace h5i;
using namespace h5i::tests;
using confined::View;

namespace {

confined::HostFacts facts() {
  confined::HostFacts f;
  f.landlock_abi = 7;
  f.kernel_major = 6;
  f.kernel_minor = 12;
  return f;
}

int32_t refusal(const json::Value& request, const FakeHost& host) {
  auto v = confined::build_view(read(request), facts(), host);
  return v.ok() ? H5I_OK : v.error().code;
}

struct Seen {
  View view;
  std::map<std::string, json::Value> at;
  std::vector<std::string> order;

  Seen(const json::Value& request, const FakeHost& host) {
    auto v = confined::build_view(read(request), facts(), host);
    INFO((v.ok() ? std::string() : v.error().text));
    REQUIRE(v.ok());
    view = *v;
    for (const json::Value& m : view.mounts) {
      CHECK(at.emplace(m["target"].string(), m).second);  // one mount a target
      order.push_back(m["target"].string());
    }
  }
  std::string kind(const std::string& target) const { return at.count(target) ? at.at(target)["kind"].string() : ""; }
  bool has_flag(const std::string& target, const char* flag) const {
    for (const json::Value& f : at.at(target)["flags"].array())
      if (f.string() == flag) return true;
    return false;
  }
  bool writable_bind(const std::string& target) const { return kind(target) == "bind" && !has_flag(target, "ro"); }
  bool readonly_bind(const std::string& target) const { return kind(target) == "bind" && has_flag(target, "ro"); }
  uint64_t access(const std::string& path) const {
    for (const json::Value& r : view.landlock_rules)
      if (r["path"].string() == path) return static_cast<uint64_t>(r["access"].integer());
    return 0;
  }
};

constexpr uint64_t kWriteFile = 1u << 1, kMakeChar = 1u << 6, kMakeSock = 1u << 9, kMakeBlock = 1u << 11;

}  // namespace

TEST_CASE("the default profile: grants read-only, $WORK writable, nothing else of the host") {
  Seen s(sample_request(), debian());
  CHECK(s.readonly_bind("/usr"));
  CHECK(s.readonly_bind("/etc"));
  CHECK(s.writable_bind(kWork));
  CHECK(s.writable_bind(kWork + "/.git"));
  CHECK(s.at.at(kWork + "/.git")["source"].string() == kBox + "/git");
  CHECK(s.readonly_bind("/home/u/r/.git/objects"));
  CHECK(s.writable_bind(kBox + "/spool"));
  for (const auto& [target, mount] : s.at) {
    INFO(target);
    if (mount["kind"].string() != "bind") continue;
    CHECK(s.has_flag(target, "nosuid"));
    bool device = target.rfind("/dev/", 0) == 0;
    CHECK(s.has_flag(target, "nodev") == !device);
    CHECK_FALSE(mount["idmap"].boolean());  // an ordinary user's files need none
  }
  CHECK(s.at.count("/home/u/r") == 0);
  CHECK(s.at.count("/home/u/.ssh") == 0);
  CHECK(s.at.count("/var/lib") == 0);
  CHECK(s.at.count("/run/resolve/local.conf") == 0);
}

TEST_CASE("a parent is mounted before what is in it") {
  json::Value v = sample_request();
  profile_of(v)["fs"]["deny"].push("$WORK/a/b/c");
  profile_of(v)["fs"]["private"]["a/cache"] = "cache";
  Seen s(v, debian());
  for (size_t i = 0; i < s.order.size(); i++)
    for (size_t k = i + 1; k < s.order.size(); k++) {
      INFO(s.order[k] << " before " << s.order[i]);
      CHECK(s.order[i].rfind(s.order[k] + "/", 0) != 0);
    }
}

TEST_CASE("merged /usr is mirrored, a granted link leads where it leads on the host") {
  FakeHost h = debian();
  h.link("/data", "/srv/d").dir("/srv/d");
  json::Value v = sample_request();
  profile_of(v)["fs"]["read"].push("/data");
  Seen s(v, h);
  CHECK(s.kind("/bin") == "symlink");
  CHECK(s.at.at("/bin")["to"].string() == "usr/bin");
  CHECK(s.kind("/data") == "symlink");
  CHECK(s.readonly_bind("/srv/d"));
}

TEST_CASE("HOME is private memory, unless it or something above it is granted") {
  Seen plain(sample_request(), debian());
  CHECK(plain.kind("/home/u") == "tmpfs");
  CHECK(plain.at.at("/home/u")["mode"].integer() == 0700);
  json::Value v = sample_request();
  profile_of(v)["fs"]["read"].push("/home/u");
  Seen granted(v, debian());
  CHECK(granted.readonly_bind("/home/u"));
  json::Value below = sample_request();
  profile_of(below)["fs"]["write"].push("/home/u/.cache");
  FakeHost h = debian();
  h.dir("/home/u/.cache");
  Seen s(below, h);
  CHECK(s.kind("/home/u") == "tmpfs");
  CHECK(s.writable_bind("/home/u/.cache"));
}

TEST_CASE("a grant below a link in the private HOME is reached by its own name") {
  FakeHost h = debian();
  h.link("/home/u/.local", "/data/local").dir("/data/local/bin");
  json::Value v = sample_request();
  profile_of(v)["fs"]["read"].push("/home/u/.local/bin");
  Seen s(v, h);
  CHECK(s.kind("/home/u") == "tmpfs");
  CHECK(s.kind("/home/u/.local") == "symlink");
  CHECK(s.at.at("/home/u/.local")["to"].string() == "/data/local");
  CHECK(s.readonly_bind("/data/local/bin"));
}

TEST_CASE("a box whose directory is reached through a link is mounted where it is, and found by both names") {
  FakeHost h = debian();
  h.link("/data", "/home/u/r");
  json::Value v = sample_request();
  std::string text = json::canonical(v);
  for (size_t at; (at = text.find(kBox)) != std::string::npos;)
    text.replace(at, kBox.size(), "/data/.git/h5i/boxes/a/b");
  v = *json::parse(text);
  profile_of(v)["fs"]["deny"].push("$WORK/.env");
  Seen s(v, h);
  CHECK(s.writable_bind(kWork));
  CHECK(s.at.at(kWork + "/.git")["source"].string() == kBox + "/git");
  CHECK(s.writable_bind(kBox + "/spool"));
  CHECK(s.kind(kWork + "/.env") == "mask");
  CHECK(s.kind("/data") == "symlink");
}

TEST_CASE("the box has its own /tmp, /dev and /proc, whatever is granted") {
  json::Value v = sample_request();
  for (const char* p : {"/tmp", "/dev", "/dev/null", "/proc", "/dev/shm"}) profile_of(v)["fs"]["write"].push(p);
  Seen s(v, debian());
  CHECK(s.kind("/tmp") == "tmpfs");
  CHECK(s.kind("/proc") == "proc");
  CHECK(s.kind("/dev/shm") == "tmpfs");
  CHECK(s.at.count("/dev") == 0);
  CHECK(s.kind("/proc/kcore") == "mask");
  CHECK(s.kind("/proc/sysrq-trigger") == "mask");
  CHECK(s.readonly_bind("/proc/sys"));
  CHECK(s.readonly_bind("/proc/irq"));
}

TEST_CASE("paths that no profile may show are refused") {
  for (const char* p : {"/", "/sys", "/sys/kernel", "/proc/1"}) {
    json::Value v = sample_request();
    FakeHost h = debian();
    h.dir("/sys/kernel").dir("/proc/1");
    profile_of(v)["fs"]["read"].push(p);
    INFO(p);
    CHECK(refusal(v, h) == H5I_E_POLICY_PATH);
  }
}

TEST_CASE("a missing grant is refused when the profile names it, skipped when it is optional (B24)") {
  json::Value v = sample_request();  // "/opt/none" is optional there
  CHECK(refusal(v, debian()) == H5I_OK);
  profile_of(v)["fs"]["read"].push("/opt/other");
  CHECK(refusal(v, debian()) == H5I_E_POLICY_PATH);
}

TEST_CASE("a grant that is or holds a listening socket is refused; a denied one is not in the way") {
  FakeHost h = debian();
  h.socket("/srv/d/agent");
  json::Value v = sample_request();
  profile_of(v)["fs"]["read"].push("/srv/d");
  CHECK(refusal(v, h) == H5I_E_POLICY_SOCKET);
  json::Value direct = sample_request();
  profile_of(direct)["fs"]["write"].push("/srv/d/agent");
  CHECK(refusal(direct, h) == H5I_E_POLICY_SOCKET);
  profile_of(v)["fs"]["deny"].push("/srv/d/agent");
  CHECK(refusal(v, h) == H5I_OK);
  CHECK(refusal(sample_request(), h) == H5I_OK);  // control: not granted
}

TEST_CASE("a denied name in a writable directory is masked, and its parents cannot be renamed (C29)") {
  FakeHost h = debian();
  h.file(kWork + "/a/b/secret");
  json::Value v = sample_request();
  profile_of(v)["fs"]["deny"].push("$WORK/a/b/secret");
  Seen s(v, h);
  CHECK(s.kind(kWork + "/a/b/secret") == "mask");
  CHECK(s.writable_bind(kWork + "/a"));
  CHECK(s.at.at(kWork + "/a")["source"].string() == kWork + "/a");
  CHECK(s.writable_bind(kWork + "/a/b"));
  CHECK(s.view.placeholders.empty());
}

TEST_CASE("a denied name that is not there yet gets a node to stand on, with its parents") {
  json::Value v = sample_request();
  profile_of(v)["fs"]["deny"].push("$WORK/a/secret");
  Seen s(v, debian());
  CHECK(s.kind(kWork + "/a/secret") == "mask");
  CHECK(s.writable_bind(kWork + "/a"));
  REQUIRE(s.view.placeholders.size() == 2);
  CHECK(s.view.placeholders[0].relative == "a");
  CHECK(s.view.placeholders[0].directory);
  CHECK(s.view.placeholders[1].relative == "a/secret");
  CHECK_FALSE(s.view.placeholders[1].directory);
  CHECK(s.view.placeholders[1].root == kWork);
}

TEST_CASE("a denied name in a read-only grant is masked when it is there, and nothing is made when it is not") {
  FakeHost h = debian();
  h.file("/etc/shadow");
  json::Value v = sample_request();
  profile_of(v)["fs"]["deny"].push("/etc/shadow");
  profile_of(v)["fs"]["deny"].push("/etc/absent");
  profile_of(v)["fs"]["deny"].push("/home/u/.ssh");  // not granted: not in the view
  Seen s(v, h);
  CHECK(s.kind("/etc/shadow") == "mask");
  CHECK(s.at.count("/etc/absent") == 0);
  CHECK(s.at.count("/home/u/.ssh") == 0);
  CHECK(s.view.placeholders.empty());
}

TEST_CASE("a denied link in a writable directory refuses the profile: the link could be replaced") {
  FakeHost h = debian();
  h.link(kWork + "/cfg", "real").dir(kWork + "/real");
  json::Value v = sample_request();
  profile_of(v)["fs"]["deny"].push("$WORK/cfg/key");
  CHECK(refusal(v, h) == H5I_E_POLICY_FIELD_TIER);
  json::Value last = sample_request();
  profile_of(last)["fs"]["deny"].push("$WORK/cfg");
  CHECK(refusal(last, h) == H5I_E_POLICY_FIELD_TIER);
  json::Value real = sample_request();
  profile_of(real)["fs"]["deny"].push("$WORK/real/key");
  CHECK(refusal(real, h) == H5I_OK);
}

TEST_CASE("a denied link in a read-only grant hides what it leads to") {
  FakeHost h = debian();
  h.dir("/srv/d").file("/srv/d/key").link("/etc/key", "/srv/d/key");
  json::Value v = sample_request();
  profile_of(v)["fs"]["read"].push("/srv/d");
  profile_of(v)["fs"]["deny"].push("/etc/key");
  Seen s(v, h);
  CHECK(s.kind("/srv/d/key") == "mask");
}

TEST_CASE("a grant inside a denied path is denied with it; the work tree cannot be denied") {
  FakeHost h = debian();
  h.dir("/srv/d/sub");
  json::Value v = sample_request();
  profile_of(v)["fs"]["write"].push("/srv/d/sub");
  profile_of(v)["fs"]["deny"].push("/srv/d");
  Seen s(v, h);
  CHECK(s.at.count("/srv/d/sub") == 0);
  CHECK(s.access("/srv/d/sub") == 0);
  json::Value work = sample_request();
  profile_of(work)["fs"]["deny"].push("/home/u/r");
  CHECK(refusal(work, h) == H5I_E_POLICY_PATH);
}

TEST_CASE("a second name of a denied file is said") {
  FakeHost h = debian();
  h.file(kWork + "/key", "", 2);
  json::Value v = sample_request();
  profile_of(v)["fs"]["deny"].push("$WORK/key");
  Seen s(v, h);
  REQUIRE(s.view.not_enforced.size() == 1);
  CHECK(s.view.not_enforced[0].field == "fs.preexisting-hardlink");
}

TEST_CASE("what other programs trust stays read-only under a writable grant") {
  FakeHost h = debian();
  h.dir("/home/u/.config/h5i").file("/home/u/.bashrc");
  json::Value v = sample_request();
  profile_of(v)["fs"]["write"].push("/home/u");
  v["deny_always"].push("/home/u/.profile");
  Seen s(v, h);
  CHECK(s.writable_bind("/home/u"));
  CHECK(s.readonly_bind("/home/u/.config/h5i"));
  CHECK(s.writable_bind("/home/u/.config"));  // cannot be renamed away
  CHECK(s.readonly_bind("/home/u/.bashrc"));
  CHECK(s.kind("/home/u/.profile") == "mask");
  json::Value whole = sample_request();
  profile_of(whole)["fs"]["write"].push("/home/u/.config/h5i");
  Seen w(whole, h);
  CHECK(w.readonly_bind("/home/u/.config/h5i"));
  CHECK((w.access("/home/u/.config/h5i") & kWriteFile) == 0);
}

TEST_CASE("what is hidden is neither shown nor writable in a grant, whether it lies above, at or below one") {
  const std::string git = "/home/u/r/.git", h5i = git + "/h5i";
  FakeHost h = debian();
  h.dir("/home/u/.cache/h5i/proved").dir("/home/u/.local/state/h5i/keys").dir(h5i + "/boxes/a/other/work");
  json::Value v = sample_request();
  v["hide_always"] = json::Array{"/home/u/.cache/h5i", "/home/u/.local/state/h5i", h5i};
  profile_of(v)["fs"]["write"] = json::Array{"$WORK", "/home/u/.cache", "/home/u/r", "/home/u/.local/state/h5i/keys"};
  profile_of(v)["fs"]["read"].push(h5i + "/boxes");
  Seen s(v, h);
  CHECK(s.kind("/home/u/.cache/h5i") == "mask");
  CHECK(s.writable_bind("/home/u/.cache"));  // control
  CHECK(s.at.count("/home/u/.local/state/h5i/keys") == 0);
  CHECK(s.access("/home/u/.local/state/h5i/keys") == 0);
  CHECK(s.kind(h5i) == "tmpfs");
  CHECK(s.at.count(h5i + "/boxes") == 0);
  CHECK(s.access(h5i + "/boxes") == 0);
  CHECK(s.writable_bind(git));  // cannot be renamed away
  // The box's own is there all the same.
  CHECK(s.writable_bind(kWork));
  CHECK(s.writable_bind(kWork + "/.git"));
  CHECK(s.writable_bind(kBox + "/spool"));
  // A later denial inside makes nothing on the host; one inside the work tree holds.
  profile_of(v)["fs"]["deny"] = json::Array{h5i + "/boxes/a/other", "$WORK/.env"};
  Seen denied(v, h);
  CHECK(denied.kind(h5i + "/boxes/a/other") == "");
  CHECK(denied.kind(kWork + "/.env") == "mask");
  for (const auto& p : denied.view.placeholders) CHECK(p.root != "/home/u/r");
}

TEST_CASE("hidden names that are not there yet: held in a writable grant, left alone in a read-only one") {
  FakeHost h = debian();
  h.dir("/home/u/.cache");
  json::Value v = sample_request();
  v["hide_always"] = json::Array{"/home/u/.cache/h5i"};
  profile_of(v)["fs"]["write"].push("/home/u/.cache");
  Seen s(v, h);
  CHECK(s.kind("/home/u/.cache/h5i") == "mask");
  REQUIRE(s.view.placeholders.size() == 1);
  CHECK(s.view.placeholders[0].directory);  // h5i itself can go on using the name
  json::Value r = sample_request();
  r["hide_always"] = v["hide_always"];
  profile_of(r)["fs"]["read"].push("/home/u/.cache");
  Seen readable(r, h);
  CHECK(readable.kind("/home/u/.cache/h5i") == "");
  CHECK(readable.view.placeholders.empty());
}

TEST_CASE("a work tree that is seen only through a grant of the repository stays when h5i's directory is hidden") {
  json::Value v = sample_request();
  v["hide_always"] = json::Array{"/home/u/r/.git/h5i"};
  profile_of(v)["fs"]["write"] = json::Array{"/home/u/r"};
  Seen s(v, debian());
  CHECK(s.kind("/home/u/r/.git/h5i") == "tmpfs");
  CHECK(s.writable_bind(kWork));
  profile_of(v)["fs"]["write"] = json::Array{};
  profile_of(v)["fs"]["read"].push("/home/u/r");
  Seen r(v, debian());
  CHECK(r.readonly_bind(kWork));
}

TEST_CASE("a link to what is hidden, in a writable grant, could be replaced: refused") {
  FakeHost h = debian();
  h.dir("/data/cache/h5i").link("/home/u/d/cache", "/data/cache");
  json::Value v = sample_request();
  v["hide_always"] = json::Array{"/home/u/d/cache/h5i"};
  CHECK(refusal(v, h) == H5I_OK);
  profile_of(v)["fs"]["write"].push("/home/u/d");
  CHECK(refusal(v, h) == H5I_E_POLICY_FIELD_TIER);
}

TEST_CASE("a denial below a name that is always write-denied opens nothing there") {
  FakeHost h = debian();
  h.dir("/home/u/.config/h5i/keys/deep").file("/home/u/.config/h5i/keys/deep/key");
  json::Value v = sample_request();
  profile_of(v)["fs"]["write"].push("/home/u");
  profile_of(v)["fs"]["deny"].push("/home/u/.config/h5i/keys/deep/key");
  v["deny_always"].push("/home/u/.config/h5i/keys");  // after its parent, which is in the sample
  Seen s(v, h);
  CHECK(s.readonly_bind("/home/u/.config/h5i"));
  CHECK(s.kind("/home/u/.config/h5i/keys/deep/key") == "mask");
  for (const auto& [target, mount] : s.at)
    if (target.rfind("/home/u/.config/h5i", 0) == 0) CHECK_FALSE(s.writable_bind(target));
}

TEST_CASE("a denial above a name that is always write-denied leaves no mount beneath its mask") {
  FakeHost h = debian();
  h.dir("/home/u/.config/a/h5i");
  json::Value v = sample_request();
  profile_of(v)["fs"]["write"].push("/home/u");
  profile_of(v)["fs"]["deny"].push("/home/u/.config");
  v["deny_always"].push("/home/u/.config/a/h5i");
  v["deny_always"].push("/home/u/.config/a/later/name");
  Seen s(v, h);
  CHECK(s.kind("/home/u/.config") == "mask");
  for (const std::string& target : s.order) CHECK(target.rfind("/home/u/.config/", 0) != 0);
  for (const auto& p : s.view.placeholders) CHECK(p.relative.find(".config") == std::string::npos);
}

TEST_CASE("private directories are mounted over the work tree from outside it") {
  json::Value v = sample_request();
  profile_of(v)["fs"]["private"]["web/node_modules"] = "cache";
  profile_of(v)["fs"]["private"][".venv"] = "scratch";
  Seen s(v, debian());
  CHECK(s.at.at(kWork + "/web/node_modules")["source"].string() == kBox + "/private/cache/web%2fnode_modules");
  CHECK(s.at.at(kWork + "/.venv")["source"].string() == kBox + "/private/scratch/.venv");
  CHECK(s.view.placeholders.size() == 3);  // .venv, web, web/node_modules
  FakeHost h = debian();
  h.link(kWork + "/web", "/etc");
  CHECK(refusal(v, h) == H5I_E_POLICY_PATH);
}

TEST_CASE("two private paths never share a directory") {
  auto r = read(sample_request());
  CHECK(confined::private_source(r, {"a/b", false}) != confined::private_source(r, {"a%2fb", false}));
  CHECK(confined::private_source(r, {"a", false}) != confined::private_source(r, {"a", true}));
}

TEST_CASE("a read-only run has a read-only work tree and git directory") {
  json::Value v = sample_request();
  v["command"]["readonly"] = true;
  Seen s(v, debian());
  CHECK(s.readonly_bind(kWork));
  CHECK(s.readonly_bind(kWork + "/.git"));
  CHECK((s.access(kWork) & kWriteFile) == 0);
}

TEST_CASE("as root: what is the box's is id-mapped, what is the system's is not") {
  json::Value v = sample_request();
  v["ids"] = json::Object{{"uid", 0}, {"gid", 0}, {"box_uid", 165536}, {"box_gid", 165536}};
  Seen s(v, debian());
  for (const std::string& p : {kWork, kWork + "/.git", kBox + "/spool", std::string("/home/u/r/.git/objects")}) {
    INFO(p);
    CHECK(s.at.at(p)["idmap"].boolean());
  }
  CHECK_FALSE(s.at.at("/usr")["idmap"].boolean());
  CHECK_FALSE(s.at.at("/etc")["idmap"].boolean());  // or /etc/shadow would be the box's
}

TEST_CASE("Landlock says the same a second time") {
  Seen s(sample_request(), debian());
  CHECK((s.access("/usr") & kWriteFile) == 0);
  CHECK(s.access("/usr") != 0);
  CHECK((s.access(kWork) & kWriteFile) != 0);
  for (const json::Value& r : s.view.landlock_rules) {
    INFO(r["path"].string());
    CHECK((static_cast<uint64_t>(r["access"].integer()) & (kMakeChar | kMakeBlock | kMakeSock)) == 0);
  }
  json::Value v = sample_request();
  profile_of(v)["net"]["unix"] = true;
  CHECK((Seen(v, debian()).access(kWork) & kMakeSock) != 0);
  CHECK(confined::landlock_rights(1) == 0x1fff);
  CHECK(confined::landlock_rights(2) == 0x3fff);
  CHECK(confined::landlock_rights(3) == 0x7fff);
  CHECK(confined::landlock_rights(5) == 0xffff);
  CHECK(confined::landlock_rights(9) == 0xffff);
}

TEST_CASE("a user that the host does not know gets a name in the box") {
  json::Value v = sample_request();
  v["ids"] = json::Object{{"uid", 0}, {"gid", 0}, {"box_uid", 165536}, {"box_gid", 165536}};
  Seen s(v, debian());
  CHECK(s.at.at("/etc/passwd")["content"].string().find("box:x:165536:165536::/home/u:/bin/sh\n") != std::string::npos);
  CHECK(s.at.at("/etc/group")["content"].string().find("box:x:165536:\n") != std::string::npos);
  Seen known(sample_request(), debian());
  CHECK(known.at.count("/etc/passwd") == 0);
  CHECK(known.at.at("/etc/hosts")["content"].string().find("printer") == std::string::npos);
}

TEST_CASE("with the host's network, names are resolved as on the host") {
  json::Value v = sample_request();
  profile_of(v)["net"]["mode"] = "host";
  Seen s(v, debian());
  CHECK(s.readonly_bind("/run/resolve/local.conf"));
  CHECK(s.at.at("/etc/hosts")["content"].string().find("printer") != std::string::npos);
}
