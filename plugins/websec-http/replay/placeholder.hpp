// Secrets by name: "Authorization: Bearer $TOKEN" says where a value goes without having it.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/header_list.hpp"
#include "plugins/websec-http/replay/change.hpp"

namespace h5i::websec {

using Secrets = std::map<std::string, std::string>;  // by name; "{{name}}" is shown as it is, every other one behind a dollar

// Names in a text, each once: a dollar and [A-Z_][A-Z0-9_]*, as an environment spells them. "$$" is a dollar.
std::vector<std::string> placeholders(std::string_view text);
// Each name's value in its place. What has no value is refused by name.
Refused fill(std::string_view text, const Secrets& secrets, std::string* out);
// Each value, wherever it stands, is its name again, the longest first. A value shorter than 4 bytes is no secret that could be found.
std::string hide(std::string text, const Secrets& secrets);

// The header lines of an identity: a value that is placed by name must be in a header that is known for holding one (`secret`), so that nothing else
// shows it; and such a header's value must come by name.
Refused judge_identity(const std::vector<std::string>& lines, const IsSecret& secret);

}  // namespace h5i::websec
