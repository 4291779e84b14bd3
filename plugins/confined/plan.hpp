// request + facts -> h5i.plan/1. Pure: everything that it knows of the host comes through its parameters.
#pragma once
#include <optional>

#include "host_view.hpp"
#include "request.hpp"
#include "view.hpp"

namespace h5i::confined {

struct Plan {
  json::Value document;
  std::vector<Placeholder> placeholders;
};

sdk::Result<Plan> build_plan(const Request& request, const HostFacts& facts, const HostView& host);

// What the core was shown, and for which request.
struct Shown {
  json::Value document;
  Plan plan;
};
// What was shown is what runs: the same request has its plan already. Another one gets its own.
sdk::Result<Plan> plan_of_run(const std::optional<Shown>& shown, const json::Value& document, const Request& request,
                              const HostFacts& facts, const HostView& host);

}  // namespace h5i::confined
