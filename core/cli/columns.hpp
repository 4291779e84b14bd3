// Text in columns for people. Cells are made printable before their width is taken.
#pragma once
#include <string>
#include <vector>

namespace h5i::cli {

// One line a row, cells padded to the widest of their column, two spaces between, none at the end.
std::vector<std::string> columns(const std::vector<std::vector<std::string>>& rows);
// "name:      value" with the values of all rows in one column.
std::vector<std::string> fields(const std::vector<std::pair<std::string, std::string>>& rows);

}  // namespace h5i::cli
