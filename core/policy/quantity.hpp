// Sizes ("4G"), counts ("500k"), durations ("30m") and CPU shares, each to one integer or number of the document.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace h5i::policy {

// Digits with an optional K, M, G or T (1024). Bytes; at most 2^50.
std::optional<int64_t> parse_size(std::string_view text);
// Digits with an optional k or m (1000). At most 10^12.
std::optional<int64_t> parse_count(std::string_view text);
// Digits with s, m or h, or a sum of them in that order ("1h30m"). Seconds; at most a year.
std::optional<int64_t> parse_duration(std::string_view text);

// The shortest exact spelling that the parsers read back.
std::string size_text(int64_t bytes);
std::string count_text(int64_t n);
std::string duration_text(int64_t seconds);

}  // namespace h5i::policy
