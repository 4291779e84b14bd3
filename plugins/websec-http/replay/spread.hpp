// What many measurements of one thing come to.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace h5i::websec {

struct Spread {
  size_t count = 0;
  int64_t least = 0, lower = 0, median = 0, upper = 0, most = 0;  // lower and upper: a quarter is below, a quarter above
};
// Of an even number the median is the lower of the two in the middle: a value that was measured.
Spread spread(std::vector<int64_t> values);

}  // namespace h5i::websec
