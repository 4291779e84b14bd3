// Environment names: which are well formed, and which make a program load code or change where it connects.
#pragma once
#include <string>
#include <string_view>

namespace h5i::policy {

// [A-Za-z_][A-Za-z0-9_]*, at most 128 bytes.
bool valid_env_name(std::string_view name);

// Why `name` needs env.dangerous; empty when it does not. Covers dynamic loaders (LD_*), shells (BASH_ENV, ENV),
// language runtimes (NODE_OPTIONS, PYTHON*, PERL5*, RUBYOPT, JAVA_TOOL_OPTIONS), git, character-set modules and their kind.
std::string_view dangerous_env(std::string_view name);

// HTTP_PROXY and its relatives in either case: refused while egress is scoped, unless env.dangerous names them.
bool is_proxy_variable(std::string_view name);

// Where the host keeps what the broker hands out; never passed, whatever the profile says.
bool is_secret_source(std::string_view name);

}  // namespace h5i::policy
