#include "plan.hpp"

namespace h5i::tier_workspace {
namespace {

using json::Object;

// The rest of the policy's fields is held by the core at every tier: wall, output, env.pass, env.set, tools for the
// first program.
constexpr const char* kUnheld[] = {"fs.read",         "fs.write",        "fs.deny",       "fs.private",
                                   "net.mode",        "net.unix",        "net.loopback",  "resources.mem",
                                   "resources.procs", "resources.cpus",  "resources.cpu", "resources.fsize",
                                   "resources.disk",  "resources.inodes"};
constexpr const char* kNothingConfined = "nothing was confined: the command had all rights of the user who started it";

}  // namespace

sdk::Result<json::Value> build_plan(const json::Value& request, const HostFacts& facts) {
  if (request["schema"].string() != "h5i.run/1")
    return sdk::failure(H5I_E_INVALID, "request: schema h5i.run/1 expected");
  const json::Value& profile = request["policy"]["profile"];
  if (!profile.is_object()) return sdk::failure(H5I_E_INVALID, "request: policy.profile is missing");
  if (!profile["net"]["egress"].array().empty())
    return sdk::failure(H5I_E_POLICY_EGRESS_TIER, "net.egress has rules, and the workspace tier confines nothing");
  const json::Value& ids = request["ids"];
  if (!ids["uid"].is_int() || !ids["gid"].is_int()) return sdk::failure(H5I_E_INVALID, "ids: uid and gid expected");
  const json::Value& command = request["command"];
  const std::string& work = request["paths"]["work"].string();
  if (work.empty() || work[0] != '/') return sdk::failure(H5I_E_INVALID, "paths.work: an absolute path expected");

  json::Array not_enforced;
  for (const char* field : kUnheld)
    not_enforced.push_back(Object{{"field", field}, {"reason", "unconfined"}, {"detail", kNothingConfined}});
  not_enforced.push_back(
      Object{{"field", "proc.tools"},
             {"reason", "first-program-only"},
             {"detail", "tools limits the program that h5i starts; what that program starts is not limited"}});
  const bool image = profile["container"]["image"].is_string(), browser = !profile["browser"]["deny"].array().empty();
  for (const char* field : {image ? "container.image" : nullptr, browser ? "browser.deny" : nullptr})
    if (field) not_enforced.push_back(Object{{"field", field}, {"reason", "unconfined"}, {"detail", kNothingConfined}});
  if (!facts.namespaces)
    not_enforced.push_back(
        Object{{"field", "proc.kill-tree"},
               {"reason", "no-pid-namespace"},
               {"detail", "no pid namespace here: descendants are found by walking, and one that hides may stay"}});

  json::Array namespaces, exec, argv;
  if (facts.namespaces) namespaces = {"user", "pid"};
  for (const json::Value& v : command["exec"].array()) exec.push_back(v);
  for (const json::Value& v : command["argv"].array()) argv.push_back(v);
  const std::string& cwd = command["cwd"].string();
  return json::Value(Object{
      {"schema", "h5i.plan/1"},
      {"tier", "workspace"},
      {"namespaces", std::move(namespaces)},
      {"nested_user", false},
      {"ids", Object{{"inside_uid", ids["uid"]},
                     {"inside_gid", ids["gid"]},
                     {"outside_uid", ids["uid"]},
                     {"outside_gid", ids["gid"]}}},
      {"identity_map", true},
      {"root", nullptr},
      {"mounts", json::Array{}},
      {"hostname", ""},
      {"loopback", false},
      {"cwd", cwd.empty() ? work : cwd},
      {"exec", std::move(exec)},
      {"argv", std::move(argv)},
      {"env", request["env"].is_object() ? request["env"] : json::Value(Object{})},
      {"umask", 022},
      {"rlimits", json::Array{}},
      {"cgroup", nullptr},
      {"capabilities", "keep"},
      {"no_new_privs", false},
      {"landlock", nullptr},
      {"seccomp", nullptr},
      {"init", facts.namespaces},
      {"canary", nullptr},
      {"not_enforced", std::move(not_enforced)},
  });
}

}  // namespace h5i::tier_workspace
