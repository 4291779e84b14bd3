// The plan's decoder, its effective form, and the messages of the spawner's channels. Nothing here touches the system.
#include <functional>

#include "core/base/sha256.hpp"
#include "core/base/text.hpp"
#include "core/os/landlock.hpp"
#include "core/spawn/plan.hpp"
#include "core/spawn/program.hpp"
#include "core/spawn/protocol.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;

namespace {

Json minimal() {
  return *json::parse(
      R"({"schema":"h5i.plan/1","tier":"t","ids":{"inside_uid":1000,"inside_gid":1000,"outside_uid":1000,
    "outside_gid":1000},"cwd":"/w","env":{},"capabilities":"none","exec":["/bin/true"],"argv":["true"]})");
}
Json confined() {
  Json p = minimal();
  for (const char* n : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) p["namespaces"].push(n);
  p["nested_user"] = true;
  p["root"]["size"] = 1 << 20;
  p["init"] = true;
  p["no_new_privs"] = true;
  p["loopback"] = true;
  p["hostname"] = "box";
  Json m;
  m["kind"] = "bind";
  m["source"] = "/home/u/state/boxes/x/work";
  m["target"] = "/home/u/state/boxes/x/work";
  m["flags"].push("nosuid");
  p["mounts"].push(m);
  return p;
}
Json allow_all() {
  sock_filter f[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  std::string raw(reinterpret_cast<char*>(f), sizeof f);
  Json s;
  s["program"] = base64(raw);
  s["sha256"] = sha256_hex(raw);
  return s;
}
std::string refusal(const Json& p) {
  auto r = spawn::decode_plan(json::canonical(p));
  return r ? "" : r.error().what + ": " + r.error().evidence;
}

}  // namespace

TEST_CASE("a minimal and a full plan are taken", "[spawn][plan]") {
  CHECK(refusal(minimal()).empty());
  CHECK(refusal(confined()).empty());
  Json p = confined();
  p["seccomp"] = allow_all();
  p["seccomp"]["notify"]["default"] = 1;
  p["landlock"] = *json::parse(R"({"abi":1,"handled_fs":8191,"rules":[{"path":"/usr","access":4}]})");
  p["cgroup"] = *json::parse(R"({"base":"/sys/fs/cgroup/x","limits":{"pids.max":"64"}})");
  p["rlimits"] = *json::parse(R"([{"name":"nofile","soft":10,"hard":-1}])");
  p["not_enforced"] = *json::parse(R"([{"field":"resources.disk","reason":"no-quota","detail":"d"}])");
  CHECK(refusal(p) == "");
}

TEST_CASE("what is unknown, of another type or impossible is refused with its place", "[spawn][plan]") {
  struct Bad {
    const char* place;
    std::function<void(Json&)> change;
  };
  auto set = [](const char* key, const char* text) { return [=](Json& p) { p[key] = *json::parse(text); }; };
  auto mount = [](const char* text) { return [=](Json& p) { p["mounts"].push(*json::parse(text)); }; };
  const Bad bad[] = {
      {"surprise", set("surprise", "1")},
      {"schema", set("schema", "\"h5i.plan/2\"")},
      {"namespaces", set("namespaces", "[\"user\",\"time\"]")},
      {"namespaces", set("namespaces", "[\"user\",\"user\",\"mnt\",\"pid\",\"net\",\"uts\"]")},
      {"nested_user", set("namespaces", "[\"mnt\",\"pid\",\"net\",\"uts\"]")},
      {"nested_user", set("nested_user", "1")},
      {"ids", set("ids", "null")},
      {"ids.outside_gid", set("ids", R"({"inside_uid":1,"inside_gid":1,"outside_uid":1})")},
      {"ids.more", set("ids", R"({"inside_uid":1,"inside_gid":1,"outside_uid":1,"outside_gid":1,"more":1})")},
      {"ids.inside_uid", set("ids", R"({"inside_uid":4294967295,"inside_gid":1,"outside_uid":1,"outside_gid":1})")},
      {"ids", set("ids", R"({"inside_uid":1000,"inside_gid":1,"outside_uid":0,"outside_gid":1})")},
      {"ids", set("ids", R"({"inside_uid":0,"inside_gid":1,"outside_uid":5,"outside_gid":1})")},
      {"root.size", set("root", "{}")},
      {"root.size", set("root", R"({"size":0})")},
      {"mounts", set("root", "null")},
      {"mounts[1].kind", mount(R"({"kind":"overlay","target":"/x"})")},
      {"mounts[1].target", mount(R"({"kind":"dir","target":"x"})")},
      {"mounts[1].target", mount(R"({"kind":"dir","target":"/a/../b"})")},
      {"mounts[1].target", mount(R"({"kind":"dir","target":"/a//b"})")},
      {"mounts[1].target", mount(R"({"kind":"dir","target":"/a/"})")},
      {"mounts[1].target", mount(R"({"kind":"dir","target":"/"})")},
      {"mounts[1].source", mount(R"({"kind":"bind","target":"/a","source":"/b/./c"})")},
      {"mounts[1].source", mount(R"({"kind":"tmpfs","target":"/a","size":1,"source":"/b"})")},
      {"mounts[1].flags", mount(R"({"kind":"bind","target":"/a","source":"/b","flags":["suid"]})")},
      {"mounts[1].size", mount(R"({"kind":"tmpfs","target":"/a"})")},
      {"mounts[1].mode", mount(R"({"kind":"dir","target":"/a","mode":2541})")},
      {"mounts[1].to", mount(R"({"kind":"symlink","target":"/a","to":""})")},
      {"hostname", [](Json& p) { p["namespaces"] = *json::parse(R"(["user","mnt","pid","net"])"); }},
      {"loopback", [](Json& p) { p["namespaces"] = *json::parse(R"(["user","mnt","pid","uts"])"); }},
      {"init", [](Json& p) { p["namespaces"] = *json::parse(R"(["user","mnt","net","uts"])"); }},
      {"namespaces", set("init", "false")},
      {"identity_map", set("identity_map", "true")},
      {"cwd", set("cwd", "\"w\"")},
      {"exec[0]", set("exec", "[\"true\"]")},
      {"exec", set("exec", "[]")},
      {"argv", set("argv", "[]")},
      {"argv[1]", set("argv", "[\"a\",\"b\\u0000c\"]")},
      {"env", set("env", "[]")},
      {"env.A=B", set("env", "{\"A=B\":\"1\"}")},
      {"env.A", set("env", "{\"A\":1}")},
      {"umask", set("umask", "4096")},
      {"rlimits[0].name", set("rlimits", R"([{"name":"NOFILE","soft":1,"hard":1}])")},
      {"rlimits[0].soft", set("rlimits", R"([{"name":"cpu","soft":2,"hard":1}])")},
      {"rlimits[0].soft", set("rlimits", R"([{"name":"cpu","soft":-1,"hard":1}])")},
      {"rlimits", set("rlimits", R"([{"name":"cpu","soft":1,"hard":1},{"name":"cpu","soft":1,"hard":2}])")},
      {"cgroup.limits.cgroup.procs", set("cgroup", R"({"base":"/sys/fs/cgroup/x","limits":{"cgroup.procs":"1"}})")},
      {"cgroup.base", set("cgroup", R"({"base":"/","limits":{}})")},
      {"capabilities", set("capabilities", "\"some\"")},
      {"capabilities", set("capabilities", "\"keep\"")},
      {"landlock.handled_fs", set("landlock", R"({"abi":1,"handled_fs":8192})")},
      {"landlock.handled_net", set("landlock", R"({"abi":3,"handled_fs":1,"handled_net":1})")},
      {"landlock.scoped", set("landlock", R"({"abi":5,"handled_fs":1,"scoped":1})")},
      {"landlock", set("landlock", R"({"abi":1,"handled_fs":0})")},
      {"landlock.rules[0].access", set("landlock", R"({"abi":1,"handled_fs":1,"rules":[{"path":"/","access":2}]})")},
      {"landlock.rules[0].path",
       set("landlock", R"({"abi":4,"handled_fs":1,"handled_net":1,"rules":[{"path":"/","port":1,"access":1}]})")},
      {"no_new_privs",
       [](Json& p) {
         p["seccomp"] = allow_all();
         p["no_new_privs"] = false;
       }},
      {"seccomp.sha256",
       [](Json& p) {
         p["seccomp"] = allow_all();
         p["seccomp"]["sha256"] = std::string(64, '0');
       }},
      {"seccomp.program",
       [](Json& p) {
         p["seccomp"] = allow_all();
         p["seccomp"]["program"] = "????";
       }},
      {"seccomp.notify",
       [](Json& p) {
         p["seccomp"] = allow_all();
         p["seccomp"]["notify"] = json::Object{};
       }},
      {"seccomp.notify.1",
       [](Json& p) {
         p["seccomp"] = allow_all();
         p["seccomp"]["notify"] = *json::parse(R"({"default":1,"1":0})");  // 0 would be a success that never happened
       }},
      {"seccomp.notify.01",
       [](Json& p) {
         p["seccomp"] = allow_all();
         p["seccomp"]["notify"] = *json::parse(R"({"default":1,"01":1})");
       }},
      {"canary", set("canary", R"([["ids"]])")},
      {"not_enforced.why", set("not_enforced", R"([{"field":"a","reason":"b","why":"c"}])")},
  };
  for (const Bad& b : bad) {
    Json p = confined();
    b.change(p);
    INFO(b.place << " <- " << refusal(p));
    CHECK(refusal(p).find("at " + std::string(b.place) + ":") != std::string::npos);
  }
}

TEST_CASE("every byte of a plan that is cut or changed is refused or decoded, never half taken", "[spawn][plan]") {
  std::string text = json::canonical(confined());
  for (size_t i = 0; i < text.size(); i++) {
    CHECK_FALSE(spawn::decode_plan(std::string_view(text).substr(0, i)));
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    (void)spawn::decode_plan(other);
  }
}

TEST_CASE("the effective digest covers confinement and not the command", "[spawn][plan]") {
  spawn::Names names;
  names.values = {{"/home/u", "$HOME"}, {"/home/u/state/boxes/x/work", "$WORK"}};
  auto digest = [&](const Json& p) {
    auto d = spawn::effective_digest(json::canonical(p), names);
    REQUIRE(d);
    return d->str();
  };
  Json base = confined();
  base["seccomp"] = allow_all();
  base["env"]["A"] = "1";
  const std::string same = digest(base);

  Json p = base;
  p["argv"].push("more");
  p["exec"] = json::Array{Json("/other")};
  p["cwd"] = "/elsewhere";
  p["env"]["A"] = "2";
  CHECK(digest(p) == same);
  p.make_object().erase("exec");
  p.make_object().erase("argv");
  p["canary"] = *json::parse(R"([["ids"]])");
  CHECK(digest(p) == same);

  // Another session: other paths for the same names.
  p = base;
  for (const char* key : {"source", "target"}) p["mounts"].make_array()[0][key] = "/home/v/state/boxes/y/work";
  CHECK(digest(p) != same);
  spawn::Names other;
  other.values = {{"/home/v/state/boxes/y/work", "$WORK"}};
  CHECK(spawn::effective_digest(json::canonical(p), other)->str() == same);

  // Another scope for the same limits, and other limits.
  p = base;
  p["cgroup"] = *json::parse(R"({"base":"/sys/fs/cgroup/a.scope","limits":{"pids.max":"64"}})");
  const std::string grouped = digest(p);
  CHECK(grouped != same);
  p["cgroup"]["base"] = "/sys/fs/cgroup/b.scope";
  CHECK(digest(p) == grouped);
  p["cgroup"]["limits"]["pids.max"] = "65";
  CHECK(digest(p) != grouped);

  for (auto change : std::initializer_list<std::function<void(Json&)>>{
           [](Json& x) { x["env"]["B"] = ""; }, [](Json& x) { x["mounts"].make_array()[0]["flags"].push("ro"); },
           [](Json& x) { x["umask"] = 0; }, [](Json& x) { x["nested_user"] = false; },
           [](Json& x) { x["seccomp"]["notify"]["default"] = 1; }, [](Json& x) { x["loopback"] = false; },
           [](Json& x) { x["not_enforced"].push(*json::parse(R"({"field":"f","reason":"r"})")); },
           [](Json& x) { x["mounts"].make_array()[0]["target"] = "$WORK"; }}) {
    Json changed = base;
    change(changed);
    auto d = spawn::effective_digest(json::canonical(changed), names);
    CHECK((!d || d->str() != same));
  }
}

TEST_CASE("names replace whole path components, the longest first, and a '$' in a path cannot pose as one",
          "[spawn][plan]") {
  spawn::Names names;
  names.values = {{"/home/u", "$HOME"}, {"/home/u/w", "$WORK"}, {"01abc", "$SESSION"}};
  names.box_uid = 1000;
  Json p = confined();
  Json& m = p["mounts"].make_array()[0];
  m["source"] = "/home/u/w/a";
  m["target"] = "/home/user";
  p["hostname"] = "x01abc";
  auto form = spawn::effective_form(json::canonical(p), names);
  REQUIRE(form);
  const Json& out = (*form)["mounts"].array()[0];
  CHECK(out["source"].string() == "$WORK/a");
  CHECK(out["target"].string() == "/home/user");
  CHECK((*form)["hostname"].string() == "x$SESSION");
  CHECK((*form)["ids"]["inside_uid"].string() == "$BOXUID");
  CHECK((*form)["ids"]["inside_gid"].integer() == 1000);
  m["source"] = "/$WORK/a";
  CHECK((*spawn::effective_form(json::canonical(p), names))["mounts"].array()[0]["source"].string() == "/$$WORK/a");
}

TEST_CASE("a step's text always ends with its cause", "[spawn][plan]") {
  Json p = confined();
  p["mounts"].make_array()[0]["target"] = "/" + std::string(200, 'a');
  auto plan = spawn::decode_plan(json::canonical(p));
  REQUIRE(plan);
  std::string text = spawn::step_text(*plan, spawn::kStageMount, 0, ENOENT);
  CHECK(text.size() <= 127);
  CHECK(text.find("No such file or directory") != std::string::npos);
  CHECK(spawn::step_text(*plan, 99, 0, EPERM).find("99") != std::string::npos);
}

TEST_CASE("messages survive a round trip, and nothing else is decoded", "[spawn][protocol]") {
  using namespace h5i::spawn;
  Message m;
  m.kind = Kind::ended;
  m.handle = 7;
  m.result.status = 1;
  m.result.code = -3;
  m.result.setup_text = "mount 3";
  m.result.survivors = 9;
  m.result.usage_cgroup = true;
  m.result.cpu_spent = true;
  m.result.oom_kills = 5;
  m.result.tasks_refused = 6;
  m.result.denials = {{1, 2, 3}, {4, 5, 6}};
  m.result.sockets = {{{2, 2, 1}, 3}, {{17, 3, 768}, 1}};
  m.result.network = "{\"schema\":\"h5i.network/1\"}";
  std::string bytes = encode(m);
  auto back = decode(bytes);
  REQUIRE(back);
  CHECK(back->handle == 7);
  CHECK(back->result.code == -3);
  CHECK(back->result.setup_text == "mount 3");
  CHECK(back->result.denials.size() == 2);
  CHECK(back->result.denials[1].count == 6);
  REQUIRE(back->result.sockets.size() == 2);
  CHECK(back->result.sockets[1].kind.protocol == 768);
  CHECK(back->result.sockets[0].count == 3);
  CHECK(back->result.usage_cgroup);
  CHECK(back->result.network == m.result.network);
  CHECK(back->result.cpu_spent);
  CHECK(back->result.oom_kills == 5);
  CHECK(back->result.tasks_refused == 6);
  CHECK(encode(*back) == bytes);
  for (size_t i = 0; i < bytes.size(); i++) CHECK_FALSE(decode(std::string_view(bytes).substr(0, i)));
  CHECK_FALSE(decode(bytes + "x"));
  // A count that says more than there is must not be believed.
  std::string lie = bytes;
  size_t denials_at = 32 + 96 - 12;
  for (int byte : {0xff, 0x03, 0x01}) {
    lie[denials_at] = static_cast<char>(byte);
    CHECK_FALSE(decode(lie));
  }
  lie = bytes;
  for (int byte : {0xff, 0x41, 0x01}) {
    lie[32 + 96 - 4] = static_cast<char>(byte);
    CHECK_FALSE(decode(lie));
  }
  m.result.sockets.assign(500, {{1, 1, 1}, 1});
  m.result.denials.assign(5000, {1, 1, 1});
  auto capped = decode(encode(m));
  REQUIRE(capped);
  CHECK(capped->result.denials.size() == kMaxDenials);
  CHECK(capped->result.sockets.size() == kMaxSocketKinds);
}
