#include "plugins/websec-http/replay/spread.hpp"

#include <algorithm>

namespace h5i::websec {

Spread spread(std::vector<int64_t> v) {
  Spread s;
  s.count = v.size();
  if (v.empty()) return s;
  std::sort(v.begin(), v.end());
  auto at = [&](size_t quarter) { return v[(v.size() - 1) * quarter / 4]; };
  s.least = v.front();
  s.lower = at(1);
  s.median = at(2);
  s.upper = at(3);
  s.most = v.back();
  return s;
}

}  // namespace h5i::websec
