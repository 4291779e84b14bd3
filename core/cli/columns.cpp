#include "core/cli/columns.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace h5i::cli {
namespace {

size_t width(const std::string& s) {
  size_t n = 0;
  for (char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

}  // namespace

std::vector<std::string> columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> cells;
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    auto& out = cells.emplace_back();
    for (size_t i = 0; i < row.size(); i++) {
      out.push_back(printable(row[i]));
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], width(out[i]));
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : cells) {
    std::string line;
    for (size_t i = 0; i < row.size(); i++) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - width(row[i]) + 2, ' ');
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> fields(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::vector<std::vector<std::string>> table;
  for (const auto& [name, value] : rows) table.push_back({name + ":", value});
  return columns(table);
}

}  // namespace h5i::cli
