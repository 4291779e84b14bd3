// Rules of a resolved policy that the core itself holds at the start of a run. Pure, no parser of configuration.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/result.hpp"

namespace h5i::policy {

// POLICY_SECRETS or POLICY_AUTH when the policy asks for what this version cannot hand over.
Result<void> check_grants(const Json& policy);

// tools: absent allows any program, an empty list none, else the base name of the program that starts (`program` is
// the resolved path, or argv[0] when nothing was resolved). POLICY_TOOL.
Result<void> check_tool(const Json& policy, const std::string& program);

// env.pass from `host` (absent names stay absent), then env.set over them. Nothing else reaches the box.
std::map<std::string, std::string> box_environment(
    const Json& policy, const std::function<std::optional<std::string>(const std::string&)>& host);

}  // namespace h5i::policy
