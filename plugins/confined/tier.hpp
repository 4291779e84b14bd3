// The verbs of a tier that is built from this folder; what they decide is in plan.hpp, probe.hpp, verify.hpp.
#pragma once
#include <unistd.h>

#include "host_nodes.hpp"
#include "plan.hpp"
#include "probe.hpp"
#include "verify.hpp"

namespace h5i::confined {

class ConfinedTier : public sdk::Tier {
 public:
  explicit ConfinedTier(const TierKind& kind) : kind_(kind) {}

  sdk::Result<json::Value> probe() override { return probe_document(probe_components(facts(), geteuid() == 0, kind_), kind_); }

  sdk::Result<json::Value> plan(const json::Value& document) override {
    Request request = H5I_SDK_TRY(read_request(document, kind_));
    Plan plan = H5I_SDK_TRY(build_plan(request, facts(), view_));
    shown_ = Shown{document, plan};
    return plan.document;
  }

  sdk::Result<json::Value> verify_exec(const json::Value& document) override {
    Request request = H5I_SDK_TRY(read_request(document, kind_));
    H5I_SDK_TRY(prepare_private_dirs(request));
    Plan plan = H5I_SDK_TRY(build_plan(request, facts(), view_));
    Placeholders held = H5I_SDK_TRY(Placeholders::make(plan.placeholders));
    return verify(host(), request, plan);
  }

  sdk::Result<sdk::Outcome> run(const json::Value& document) override {
    Request request = H5I_SDK_TRY(read_request(document, kind_));
    if (request.argv.empty()) return sdk::failure(H5I_E_INVALID, "run: the request has no command");
    H5I_SDK_TRY(prepare_private_dirs(request));
    Plan plan = H5I_SDK_TRY(plan_of_run(shown_, document, request, facts(), view_));
    Placeholders held = H5I_SDK_TRY(Placeholders::make(plan.placeholders));
    uint64_t handle = H5I_SDK_TRY(host().start(plan.document, H5I_SPAWN_WORKLOAD));
    return sdk::outcome_of(H5I_SDK_TRY(host().wait(handle)));
  }

  // Everything of a run lives in namespaces that end with its first process; the spawner's own sweep does the rest.
  sdk::Status cleanup(std::string_view) override { return {}; }

 private:
  // Once for this process: the trial of a cgroup makes and removes one.
  const HostFacts& facts() {
    if (!facts_) {
      facts_ = read_facts();
      if (auto group = host().cgroup()) facts_->cgroup = *group;
    }
    return *facts_;
  }

  const TierKind& kind_;
  std::optional<HostFacts> facts_;
  std::optional<Shown> shown_;
  RealHostView view_;
};

}  // namespace h5i::confined
