#include "core/policy/nearest.hpp"

#include <algorithm>

namespace h5i::policy {
namespace {

constexpr size_t kLongest = 64;  // words beyond are compared no more: quadratic cost on hostile keys
constexpr size_t kMostEdits = 2;

size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); i++) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); j++) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); i++)
    for (size_t j = 1; j <= b.size(); j++) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.empty() || word.size() > kLongest) return {};
  size_t best = std::min(kMostEdits, word.size() / 2) + 1;
  std::string found;
  for (std::string_view k : known) {
    size_t n = distance(word, k);
    if (n < best) best = n, found = k;
  }
  return found;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string out;
  for (std::string_view w : words) out += (out.empty() ? "" : ", ") + std::string(w);
  return out;
}

}  // namespace h5i::policy
