// The one rate: at most so many starts in any window of its length, and as close to that as the clock allows.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::websec {

// `starts` in any window of `window_ns`. "20/s" is 20 in a second and "100/min" 100 in a minute; "2.5/s" is 5 in two seconds, the shortest window
// in which it is a whole number.
struct Rate {
  int64_t starts = 0;
  int64_t window_ns = 0;
};

constexpr int64_t kMostStarts = 100'000;  // in a window: what one ring of times holds

// "N/s", "N/min" or "N/h", N with at most two decimals. H5I_E_INVALID names these forms.
sdk::Result<Rate> parse_rate(std::string_view text);

// Decides, and is told the time. Starts are spaced evenly, and whatever came late, the window holds: each start is more than a window after the one
// `starts` before it. Between this decision and a packet there is a record and a dial; the window that is kept is longer by a guard for that.
class Gate {
 public:
  explicit Gate(const Rate& rate);
  // When the next start may be, `now` or later.
  int64_t next(int64_t now) const;
  // It starts at `now`, which is not before next(now). `asked`: since when it waited. What it was let go too late is made up for by the next ones;
  // a time in which nobody asked is not saved up.
  void take(int64_t now, int64_t asked);

 private:
  int64_t window_, spacing_;
  std::vector<int64_t> last_;  // a ring: when the last starts were
  size_t at_ = 0;
  bool full_ = false;
  int64_t due_ = INT64_MIN;  // by the spacing
  int64_t late_ = 0;         // not yet made up for
};

}  // namespace h5i::websec
