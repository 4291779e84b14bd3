// A box made by hand: directories, a request with a given profile, and the process tier's plan run by a real spawner.
#pragma once
#include <sys/stat.h>

#include <fstream>

#include "host_nodes.hpp"
#include "plan.hpp"
#include "tests/spawn/session.hpp"
#include "tests/support/catch.hpp"

namespace h5i::test {

class TierBox {
 public:
  explicit TierBox(Checks& checks) : k(checks), dir_(checks.dir() + "/box") {
    for (const char* name : {"", "/work", "/work/.git", "/git", "/spool", "/private", "/home"})
      mkdir((dir_ + name).c_str(), 0700);
    json::Object profile{
        {"name", "test"},
        {"fs", json::Object{{"read", json::Array{"/usr", "/etc", "/bin", "/lib", "/lib64", "/sbin"}},
                            {"write", json::Array{"$WORK"}},
                            {"deny", json::Array{}},
                            {"private", json::Object{}},
                            {"optional", json::Array{"/bin", "/lib", "/lib64", "/sbin"}}}},
        {"net", json::Object{{"mode", "deny"}, {"unix", false}}},
        {"resources",
         json::Object{
             {"mem", 4ull << 30}, {"procs", 256}, {"wall", 600}, {"output", 64 << 20}, {"explicit", json::Array{}}}},
        {"env", json::Object{{"pass", json::Array{"PATH"}}, {"set", json::Object{}}}}};
    unsigned box = k.root() ? kBoxId : k.who().uid;
    request = json::Object{
        {"schema", "h5i.run/1"},
        {"session", "TEST"},
        {"box", "test/box"},
        {"boxid", "0123456789abcdef"},
        {"policy", json::Object{{"schema", "h5i.policy/1"}, {"tier", "process"}, {"profile", std::move(profile)}}},
        {"paths", json::Object{{"work", work()},
                               {"git", dir_ + "/git"},
                               {"objects", json::Array{}},
                               {"spool", dir_ + "/spool"},
                               {"private", dir_ + "/private"},
                               {"repo_git", ""},
                               {"home", home()},
                               {"libexec", ""}}},
        {"deny_always", json::Array{}},
        {"env",
         json::Object{{"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}, {"HOME", home()}, {"LANG", "C.UTF-8"}}},
        {"ids", json::Object{{"uid", k.who().uid}, {"gid", k.who().gid}, {"box_uid", box}, {"box_gid", box}}}};
  }

  std::string dir() const { return dir_; }
  std::string work() const { return dir_ + "/work"; }
  std::string home() const { return dir_ + "/home"; }
  json::Value& profile() { return request["policy"]["profile"]; }
  void write(const std::string& path, const std::string& text, unsigned mode = 0644) {
    std::ofstream(path) << text;
    chmod(path.c_str(), static_cast<mode_t>(mode));
  }

  // A refused plan is said in `refused`, as a refused start is.
  Outcome run(const std::vector<std::string>& argv) {
    request["command"] =
        json::Object{{"argv", list(argv)}, {"exec", json::Array{argv[0]}}, {"cwd", work()}, {"readonly", readonly}};
    Outcome o;
    auto fail = [&](const h5i::sdk::Failure& f) {
      o.refused = f.text;
      refusal = f.code;
      return o;
    };
    auto r = confined::read_request(request);
    if (!r) return fail(r.error());
    if (auto made = confined::prepare_private_dirs(*r); !made) return fail(made.error());
    auto p = confined::build_plan(*r, confined::read_facts(), confined::RealHostView());
    if (!p) return fail(p.error());
    plan = p->document;
    auto held = confined::Placeholders::make(p->placeholders);
    if (!held) return fail(held.error());
    return run_once(plan);
  }
  Outcome shell(const std::string& script) { return run({"/bin/sh", "-c", script}); }

  static json::Array list(const std::vector<std::string>& words) {
    json::Array out;
    for (const std::string& w : words) out.push_back(w);
    return out;
  }

  Checks& k;
  json::Value request, plan;
  int32_t refusal = 0;
  bool readonly = false;

 private:
  std::string dir_;
};

}  // namespace h5i::test
