// What the policy verbs share: this process's surroundings as the input of policy::resolve().
#pragma once
#include <string>

#include "core/base/unique_fd.hpp"
#include "core/cli/command.hpp"
#include "core/policy/resolve.hpp"

namespace h5i::cli {

struct PolicySurroundings {
  policy::ResolveInput input;  // repo_root_fd is `root`'s
  UniqueFd root;
  std::string directory;       // where the configuration is looked for: the work tree around here, or here
};

// The work tree around the current directory, this user's home and host policy. Options --agent and --image are taken
// when the verb has them.
Result<PolicySurroundings> policy_surroundings(const Parsed& parsed);

// A profile of this input. When `name` holds a slash or ends in .json: a resolved policy in a file.
Result<policy::Resolved> profile_or_file(const policy::ResolveInput& input, const std::string& name);

// An error as every JSON form shows it.
Json error_json(const Error& e);

// ~/.config/h5i/NAME by the XDG rules; NO_HOME.
Result<std::string> config_file(const std::string& name);

int policy_show(Context& ctx, const Parsed& parsed);
int policy_explain(Context& ctx, const Parsed& parsed);
int policy_check(Context& ctx, const Parsed& parsed);
int policy_diff(Context& ctx, const Parsed& parsed);
int policy_init(Context& ctx, const Parsed& parsed);
int box_allow(Context& ctx, const Parsed& parsed);
int box_egress(Context& ctx, const Parsed& words);

}  // namespace h5i::cli
