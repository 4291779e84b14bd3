// The environment and the program of a run, as the policy says. Pure: the host's variables are a parameter.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::session {

using Variables = std::map<std::string, std::string>;

// The variables of this process. A line without '=' is left out.
Variables host_variables();

struct Environment {
  Variables values;
  // Names of env.pass whose value is not UTF-8, so that no document can carry it: not passed, and the receipt says so.
  std::vector<std::string> unrepresentable;
};

// env.pass of `profile` from `host`, then env.set, which wins; PATH is kDefaultPath when neither gives one. Nothing else.
Environment compute_environment(const Json& profile, const Variables& host);
inline constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// Absolute paths in the order in which they are tried. A name with a slash is taken as it is, relative to `cwd`; else the
// directories of `path`, of which empty and relative ones are skipped: they would mean the box's own directory.
std::vector<std::string> exec_candidates(std::string_view name, std::string_view path, std::string_view cwd);

std::string_view base_name(std::string_view path);

// POLICY_TOOL when the profile has `tools` and argv0's last component is not one of them.
Result<void> check_tool(const Json& profile, std::string_view argv0);

// What this build cannot do for a profile at all: secrets and auth. BROKER_ABSENT.
Result<void> check_broker(const Json& profile);

// cwd (absolute) for a path below work: "" and "." are work itself. PATH_ESCAPE for anything that is absolute or has "..".
Result<std::string> cwd_below(const std::string& work, std::string_view relative);

}  // namespace h5i::session
