// The smallest tier that keeps its promises: it starts the command in a plain child with no new privileges, claims only
// what that holds, and says the rest in not_enforced. Copy it, change the id, and add what you enforce: each new claim
// needs a component in probe(), a control in verify_exec(), and its part in plan().
#include <sys/prctl.h>

#include "h5i/plugin.hpp"

namespace {

using namespace h5i;

class MyTier final : public sdk::Tier {
 public:
  // Could this host do it? Read-only, under 50 ms; each component with its evidence.
  sdk::Result<json::Value> probe() override {
    int flag = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    bool ok = flag >= 0;
    json::Value missing = json::Array{};
    if (!ok) missing.push("no-new-privs");
    return json::Value(
        json::Object{{"schema", "h5i.probe/1"},
                     {"tier", H5I_PLUGIN_ID},
                     {"available", ok},
                     {"claims", ok ? claims() : json::Array{}},
                     {"missing", missing},
                     {"components", json::Array{json::Object{{"id", "no-new-privs"},
                                                             {"ok", ok},
                                                             {"evidence", ok ? "prctl answers" : "prctl fails"},
                                                             {"reason", ok ? "" : "tier.probe.missing"}}}}});
  }

  // Did it hold, under this very policy? The claim is that the box's environment is the policy's and nothing else.
  // Negative: the canary does not see a variable that nobody gave. Control: it does see it when it is given.
  sdk::Result<json::Value> verify_exec(const json::Value& request) override {
    json::Value plan = plan_for(request);
    std::string without = H5I_SDK_TRY(names_of_environment(plan));
    plan["env"][kControl] = "1";
    std::string with = H5I_SDK_TRY(names_of_environment(plan));
    bool ran = with.find(kControl) != std::string::npos;
    bool absent = ran && without.find(kControl) == std::string::npos;
    json::Array dimensions;
    for (const json::Value& claim : claims())
      dimensions.push_back(json::Object{{"claim", claim},
                                        {"control", ran ? "ok" : "failed"},
                                        {"negative", absent ? "absent" : "visible"},
                                        {"expected", json::Array{"absent"}},
                                        {"ok", absent},
                                        {"detail", ""}});
    return json::Value(json::Object{{"schema", "h5i.verify/1"},
                                    {"tier", H5I_PLUGIN_ID},
                                    {"ok", absent},
                                    {"positive", json::Object{{"ok", ran}, {"detail", with}}},
                                    {"dimensions", std::move(dimensions)},
                                    {"missing", json::Array{}}});
  }

  // What run would hand to the host, without doing it.
  sdk::Result<json::Value> plan(const json::Value& request) override { return plan_for(request); }

  sdk::Result<sdk::Outcome> run(const json::Value& request) override {
    uint64_t child = H5I_SDK_TRY(host().start(plan_for(request), H5I_SPAWN_WORKLOAD));
    return sdk::outcome_of(H5I_SDK_TRY(host().wait(child)));
  }

  // Nothing of ours outlives the host process.
  sdk::Status cleanup(std::string_view) override { return {}; }

 private:
  static constexpr int64_t kCanaryMs = 5000;
  static constexpr const char* kControl = "MY_TIER_CONTROL";

  static json::Array claims() { return {"env.pass", "env.set"}; }

  sdk::Result<std::string> names_of_environment(json::Value plan) {
    plan["canary"] = json::Array{json::Array{"env"}};
    uint64_t child = H5I_SDK_TRY(host().start(plan, H5I_SPAWN_CANARY));
    return H5I_SDK_TRY(host().wait(child, kCanaryMs)).output;
  }

  // docs/spawn-plan.md says what each key means.
  static json::Value plan_for(const json::Value& request) {
    const json::Value& ids = request["ids"];
    const json::Value& command = request["command"];
    return json::Object{
        {"schema", "h5i.plan/1"},
        {"tier", H5I_PLUGIN_ID},
        {"namespaces", json::Array{}},
        {"nested_user", false},
        {"ids", json::Object{{"inside_uid", ids["uid"]},
                             {"inside_gid", ids["gid"]},
                             {"outside_uid", ids["uid"]},
                             {"outside_gid", ids["gid"]}}},
        {"identity_map", true},
        {"root", nullptr},
        {"mounts", json::Array{}},
        {"loopback", false},
        {"cwd", command["cwd"].is_string() ? command["cwd"] : request["paths"]["work"]},
        {"exec", command["exec"].is_array() ? command["exec"] : json::Value(json::Array{})},
        {"argv", command["argv"].is_array() ? command["argv"] : json::Value(json::Array{})},
        {"env", request["env"]},
        {"umask", 022},
        {"rlimits", json::Array{}},
        {"cgroup", nullptr},
        {"capabilities", "keep"},
        {"no_new_privs", true},
        {"landlock", nullptr},
        {"seccomp", nullptr},
        {"init", false},
        {"canary", nullptr},
        {"not_enforced",
         json::Array{
             json::Object{{"field", "fs.read"}, {"reason", "tier.none"}, {"detail", "the host's files are visible"}},
             json::Object{
                 {"field", "net.mode"}, {"reason", "tier.none"}, {"detail", "the host's network is reachable"}}}}};
  }
};

}  // namespace

H5I_EXPORT_PLUGIN(MyTier, H5I_PLUGIN_ID, H5I_PLUGIN_VERSION)
