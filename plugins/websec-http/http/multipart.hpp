// One part of a multipart/form-data body (RFC 7578), replaced in place.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "plugins/websec-http/http/pairs.hpp"

namespace h5i::websec {

// The boundary in a Content-Type that says multipart/form-data.
std::optional<std::string> multipart_boundary(std::string_view content_type);
// One that none of these bytes hold.
std::string free_boundary(std::string_view bytes);

// SET replaces the content of the first part of that name and keeps its headers, later ones go; without one, a part is added. `filename` is only
// for a part that is added: not empty, it makes it a file.
Refused edit_multipart(std::string* body, std::string_view boundary, EditAct act, std::string_view name, std::string_view value, std::string_view filename);

}  // namespace h5i::websec
