// The workspace tier: plugin of h5i.tier/1.
#include <optional>

#include "plan.hpp"
#include "probe.hpp"
#include "verify.hpp"

namespace h5i::tier_workspace {
namespace {

class WorkspaceTier final : public sdk::Tier {
 public:
  sdk::Result<json::Value> probe() override { return probe_document(try_namespaces()); }

  sdk::Result<json::Value> plan(const json::Value& request) override { return build_plan(request, facts(request)); }

  sdk::Result<json::Value> verify_exec(const json::Value& request) override {
    return verify(host(), H5I_SDK_TRY(build_plan(request, facts(request))));
  }

  sdk::Result<sdk::Outcome> run(const json::Value& request) override {
    json::Value document = H5I_SDK_TRY(build_plan(request, facts(request)));
    if (document["argv"].array().empty()) return sdk::failure(H5I_E_INVALID, "run: the request has no command");
    uint64_t handle = H5I_SDK_TRY(host().start(document, H5I_SPAWN_WORKLOAD));
    return sdk::outcome_of(H5I_SDK_TRY(host().wait(handle)));
  }

  // What a dead run left are processes; finding and killing them is the core's sweep, which knows the session's
  // records.
  sdk::Status cleanup(std::string_view) override { return {}; }

 private:
  // A trial costs two forks: our own probe's answer of this boot, which the core hands back, saves it.
  HostFacts facts(const json::Value& request) {
    for (const json::Value& c : request["probe"]["components"].array())
      if (c["id"].string() == kPidNamespace) return {c["ok"].boolean()};
    if (!namespaces_) namespaces_ = try_namespaces().ok;
    return {*namespaces_};
  }

  std::optional<bool> namespaces_;
};

}  // namespace
}  // namespace h5i::tier_workspace

H5I_EXPORT_PLUGIN(h5i::tier_workspace::WorkspaceTier, H5I_PLUGIN_ID, H5I_PLUGIN_VERSION)
