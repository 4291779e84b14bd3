#include "plugins/websec-http/cookie/cookie_date.hpp"

#include <chrono>
#include <cstdio>

namespace h5i::websec {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_delimiter(char c) {
  auto b = static_cast<unsigned char>(c);
  return b == 0x09 || (b >= 0x20 && b <= 0x2f) || (b >= 0x3b && b <= 0x40) || (b >= 0x5b && b <= 0x60) || (b >= 0x7b && b <= 0x7e);
}

// `low` to `high` digits at the front, which no other digit follows; takes them away.
std::optional<int> number(std::string_view& s, size_t low, size_t high) {
  size_t n = 0;
  int value = 0;
  while (n < s.size() && n < high && is_digit(s[n])) value = value * 10 + (s[n++] - '0');
  if (n < low || (n < s.size() && is_digit(s[n]))) return {};
  s.remove_prefix(n);
  return value;
}

struct Time {
  int hour, minute, second;
};
std::optional<Time> time_of(std::string_view s) {
  Time t{};
  for (int* field : {&t.hour, &t.minute, &t.second}) {
    if (field != &t.hour) {
      if (!s.starts_with(':')) return {};
      s.remove_prefix(1);
    }
    auto n = number(s, 1, 2);
    if (!n) return {};
    *field = *n;
  }
  return t;
}

constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};

std::optional<unsigned> month_of(std::string_view s) {
  if (s.size() < 3) return {};
  char three[3];
  for (size_t i = 0; i < 3; i++) three[i] = s[i] >= 'A' && s[i] <= 'Z' ? static_cast<char>(s[i] + 32) : s[i];
  for (unsigned m = 0; m < 12; m++)
    if (kMonths[m] == std::string_view(three, 3)) return m + 1;
  return {};
}

}  // namespace

std::optional<int64_t> parse_cookie_date(std::string_view s) {
  std::optional<Time> time;
  std::optional<int> day, year;
  std::optional<unsigned> month;
  while (!s.empty()) {
    if (is_delimiter(s.front())) {
      s.remove_prefix(1);
      continue;
    }
    size_t end = 0;
    while (end < s.size() && !is_delimiter(s[end])) end++;
    std::string_view token = s.substr(0, end);
    s.remove_prefix(end);
    // The first token of each kind counts, and one token is of one kind, in this order.
    if (!time && (time = time_of(token))) continue;
    std::string_view rest = token;
    if (!day && (day = number(rest, 1, 2))) continue;
    if (!month && (month = month_of(token))) continue;
    rest = token;
    if (!year) year = number(rest, 2, 4);
  }
  if (!time || !day || !month || !year) return {};
  if (*year >= 70 && *year <= 99) *year += 1900;
  if (*year <= 69) *year += 2000;
  if (*year < 1601 || time->hour > 23 || time->minute > 59 || time->second > 59) return {};
  std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month), std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return {};
  int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return days * 86400 + time->hour * 3600 + time->minute * 60 + time->second;
}

std::string imf_fixdate(int64_t seconds) {
  int64_t days = seconds / 86400 - (seconds % 86400 < 0);
  auto of_day = static_cast<int>(seconds - days * 86400);
  std::chrono::sys_days point{std::chrono::days(days)};
  std::chrono::year_month_day date(point);
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  unsigned month = static_cast<unsigned>(date.month());
  char out[64];
  snprintf(out, sizeof out, "%s, %02u %c%s %04d %02d:%02d:%02d GMT", kDays[std::chrono::weekday(point).c_encoding()], static_cast<unsigned>(date.day()),
           kMonths[month - 1][0] - 32, std::string(kMonths[month - 1].substr(1)).c_str(), static_cast<int>(date.year()), of_day / 3600,
           of_day / 60 % 60, of_day % 60);
  return out;
}

}  // namespace h5i::websec
