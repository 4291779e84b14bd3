// request + facts -> h5i.plan/1. Pure: everything that it knows of the host comes through its parameters.
#pragma once
#include "host_view.hpp"
#include "request.hpp"
#include "view.hpp"

namespace h5i::tier_process {

struct Plan {
  json::Value document;
  std::vector<Placeholder> placeholders;
};

sdk::Result<Plan> build_plan(const Request& request, const HostFacts& facts, const HostView& host);

}  // namespace h5i::tier_process
