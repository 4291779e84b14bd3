// One value of a JSON text, replaced in place: spacing, order and the spelling of every other value stay as they are.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plugins/websec-http/http/pairs.hpp"

namespace h5i::websec {

using JsonStep = std::variant<std::string, size_t>;  // a member's name or an index

// "$", "$.a.b", "$.list[0]", "$['any name']".
Refused parse_json_path(std::string_view path, std::vector<JsonStep>* out);

// SET replaces the value, or adds the last step to an object that lacks it or to the end of an array. ADD appends to the array at
// the path. REMOVE takes the member or element out. Of a name that stands twice the last counts, as most readers have it.
// `value` that is JSON is put as it is, any other as a string.
Refused splice_json(std::string* text, const std::vector<JsonStep>& path, EditAct act, std::string_view value);

}  // namespace h5i::websec
