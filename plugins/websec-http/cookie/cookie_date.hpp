// Dates as cookies write them (RFC 6265bis, section 5.1.1), and as HTTP writes them (RFC 9110, section 5.6.7).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace h5i::websec {

// Seconds since 1970 in UTC; zones in the text are not looked at. Nothing when it is no date.
std::optional<int64_t> parse_cookie_date(std::string_view text);
std::string imf_fixdate(int64_t seconds);  // "Mon, 10 Dec 2007 17:02:24 GMT", of the years 0 to 9999

}  // namespace h5i::websec
