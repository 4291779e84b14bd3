#include "verify.hpp"

#include <algorithm>

namespace h5i::tier_workspace {
namespace {

constexpr int64_t kCanaryTimeoutMs = 10000;

}  // namespace

sdk::Result<json::Value> verify(const sdk::Host& host, json::Value plan) {
  plan.make_object().erase("exec");
  plan.make_object().erase("argv");
  plan["canary"] = json::Array{json::Array{"env"}, json::Array{"list", "/"}};
  uint64_t handle = H5I_SDK_TRY(host.start(plan, H5I_SPAWN_CANARY));
  sdk::SpawnResult ended = H5I_SDK_TRY(host.wait(handle, kCanaryTimeoutMs));

  // What this tier does say: the program runs, and has the environment that the policy gives and nothing besides.
  std::string first = ended.output.substr(0, ended.output.find('\n'));
  auto line = json::parse(first);
  bool ran = ended.raw.status == H5I_OUTCOME_EXITED && ended.raw.code == 0 && line && (*line)["ok"].boolean();
  std::vector<std::string> wanted, found;
  for (const auto& [name, value] : plan["env"].object()) wanted.push_back(name);
  if (line)
    for (const json::Value& v : (*line)["value"].array()) found.push_back(v.string());
  std::sort(wanted.begin(), wanted.end());
  std::sort(found.begin(), found.end());
  bool same = wanted == found;
  std::string detail =
      !ran    ? "the test program did not run"
      : !same ? "the test program had another environment than the policy's"
              : "the test program ran with the policy's environment; nothing is confined, so nothing else is proved";
  return json::Value(json::Object{{"schema", "h5i.verify/1"},
                                  {"tier", "workspace"},
                                  {"ok", ran && same},
                                  {"positive", json::Object{{"ok", ran && same}, {"detail", detail}}},
                                  {"dimensions", json::Array{}},
                                  {"missing", json::Array{}}});
}

}  // namespace h5i::tier_workspace
