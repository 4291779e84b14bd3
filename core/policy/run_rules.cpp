#include "core/policy/run_rules.hpp"

namespace h5i::policy {

Result<void> check_grants(const Json& policy) {
  const Json& profile = policy["profile"];
  if (!profile["secrets"].object().empty())
    return make_error(Errc::POLICY_SECRETS, "the profile grants secrets and nothing here can hand them over",
                      "secrets: " + profile["secrets"].object().begin()->first);
  if (!profile["auth"].array().empty())
    return make_error(Errc::POLICY_AUTH, "the profile wants an authenticating proxy and none is here",
                      "auth host: " + profile["auth"].array()[0]["host"].string());
  return {};
}

Result<void> check_tool(const Json& policy, const std::string& program) {
  const Json* tools = policy["profile"].object().find("tools");
  if (!tools) return {};
  std::string base = program.substr(program.rfind('/') + 1);
  std::string listed;
  for (const Json& t : tools->array()) {
    if (t.string() == base) return {};
    listed += (listed.empty() ? "" : ", ") + t.string();
  }
  return make_error(Errc::POLICY_TOOL, "the profile does not allow the program `" + base + "`",
                    listed.empty() ? "tools is an empty list: no program may be started" : "tools: " + listed);
}

std::map<std::string, std::string> box_environment(
    const Json& policy, const std::function<std::optional<std::string>(const std::string&)>& host) {
  std::map<std::string, std::string> env;
  const Json& e = policy["profile"]["env"];
  for (const Json& name : e["pass"].array())
    if (auto v = host(name.string())) env[name.string()] = *v;
  for (const auto& [name, value] : e["set"].object()) env[name] = value.string();
  return env;
}

}  // namespace h5i::policy
