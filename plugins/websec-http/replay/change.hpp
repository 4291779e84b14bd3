// What differs between two heads, field by field.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::websec {

using IsSecret = std::function<bool(std::string_view header)>;  // its value is not for a screen

struct Change {
  std::string field;                         // "line", "header.Name"
  std::optional<std::string> before, after;  // raw bytes; of a secret header its size, "[18 bytes]"
};

// Of requests or of responses. The first line, and each header name with all its values in their order; where a header stands among others is no
// difference. What is no header line is a number of bytes too: it may go on with a secret.
std::vector<Change> changes(std::string_view before, std::string_view after, const IsSecret& secret);

}  // namespace h5i::websec
