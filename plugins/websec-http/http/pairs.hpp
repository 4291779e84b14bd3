// Lists of names and values inside one string, "a=1&b=2" and "a=1; b=2", edited without touching what is not named.
#pragma once
#include <string>
#include <string_view>

#include "plugins/websec-http/http/header_list.hpp"

namespace h5i::websec {

// SET: one of that name remains, where the first was or else at the end. ADD: one more at the end. REMOVE: none remains.
enum class EditAct { SET, ADD, REMOVE };

// QUERY and FORM: name and value are data; they are encoded, and names are compared decoded. A space is %20 in a query, + in a form.
// COOKIE: both are written as they are, so they must not hold what would end them.
enum class PairStyle { QUERY, FORM, COOKIE };

bool has_pair(std::string_view list, PairStyle style, std::string_view name);
Refused edit_pairs(std::string* list, PairStyle style, EditAct act, std::string_view name, std::string_view value);

}  // namespace h5i::websec
