#include "core/policy/nearest.hpp"

#include <algorithm>

#include "core/base/edit_distance.hpp"

namespace h5i::policy {
namespace {

constexpr size_t kLongest = 64;  // words beyond are compared no more: quadratic cost on hostile keys
constexpr size_t kMostEdits = 2;

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.empty() || word.size() > kLongest) return {};
  size_t best = std::min(kMostEdits, word.size() / 2) + 1;
  std::string found;
  for (std::string_view k : known) {
    size_t n = edit_distance(word, k);
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
