#include "plugins/websec-http/compare/lines.hpp"

#include <algorithm>
#include <map>

#include "h5i/json.hpp"

namespace h5i::websec {
namespace {

bool is_text(std::string_view s) {
  if (s.find('\0') != std::string_view::npos) return false;
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    size_t more = c < 0x80 ? 0 : c >= 0xc2 && c <= 0xdf ? 1 : c >= 0xe0 && c <= 0xef ? 2 : c >= 0xf0 && c <= 0xf4 ? 3 : 9;
    if (more == 9 || i + more >= s.size()) return false;
    for (size_t k = 1; k <= more; k++)
      if ((static_cast<unsigned char>(s[i + k]) & 0xC0) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

// With their line breaks, so that a last line without one is another.
std::vector<std::string_view> split(std::string_view s) {
  std::vector<std::string_view> out;
  while (!s.empty()) {
    const size_t end = std::min(s.find('\n'), s.size() - 1) + 1;
    out.push_back(s.substr(0, end));
    s.remove_prefix(end);
  }
  return out;
}

std::string_view bare(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

// Myers' greedy algorithm over numbers that stand for lines: which lines of a and b stay, or nothing above `most` edits.
bool edits(const std::vector<int>& a, const std::vector<int>& b, size_t most, std::vector<char>* kept_a, std::vector<char>* kept_b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size()), top = static_cast<std::ptrdiff_t>(std::min(most, a.size() + b.size()));
  std::vector<std::vector<std::ptrdiff_t>> trace;  // v of each round, from -d to d
  std::vector<std::ptrdiff_t> v(static_cast<size_t>(2 * top + 3), 0);
  const std::ptrdiff_t zero = top + 1;
  auto at = [&](std::ptrdiff_t k) -> std::ptrdiff_t& { return v[static_cast<size_t>(zero + k)]; };
  for (std::ptrdiff_t d = 0; d <= top; d++) {
    bool done = false;
    for (std::ptrdiff_t k = -d; k <= d && !done; k += 2) {
      std::ptrdiff_t x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      if (d == 0) x = 0;
      while (x < n && x - k >= 0 && x - k < m && a[static_cast<size_t>(x)] == b[static_cast<size_t>(x - k)]) x++;
      at(k) = x;
      done = x >= n && x - k >= m;
    }
    trace.emplace_back(v.begin() + (zero - d), v.begin() + (zero + d + 1));
    if (!done) continue;
    std::ptrdiff_t x = n, y = m;
    for (; d >= 0; d--) {
      const std::ptrdiff_t k = x - y;
      std::ptrdiff_t from_x = 0, from_y = 0;
      if (d > 0) {
        const std::vector<std::ptrdiff_t>& before = trace[static_cast<size_t>(d - 1)];
        auto was = [&](std::ptrdiff_t diagonal) { return before[static_cast<size_t>(diagonal + d - 1)]; };
        const bool down = k == -d || (k != d && (k - 1 < -(d - 1) ? true : k + 1 > d - 1 ? false : was(k - 1) < was(k + 1)));
        const std::ptrdiff_t from = down ? k + 1 : k - 1;
        from_x = was(from);
        from_y = from_x - from;
      }
      const std::ptrdiff_t start_x = d == 0 ? 0 : from_x + (x - y < from_x - from_y ? 0 : 1), start_y = d == 0 ? 0 : start_x - k;
      while (x > start_x && y > start_y) {
        (*kept_a)[static_cast<size_t>(--x)] = 1;
        (*kept_b)[static_cast<size_t>(--y)] = 1;
      }
      x = from_x;
      y = from_y;
    }
    return true;
  }
  return false;
}

}  // namespace

LineDiff diff_lines(std::string_view a, std::string_view b, const DiffLimits& limits) {
  LineDiff out;
  if (a == b) return out;
  out.kind = LineDiff::Kind::TOO_DIFFERENT;
  if (a.size() > limits.bytes || b.size() > limits.bytes) return out;
  if (!is_text(a) || !is_text(b)) {
    out.kind = LineDiff::Kind::BINARY;
    return out;
  }
  const std::vector<std::string_view> la = split(a), lb = split(b);
  size_t first = 0, last = 0;
  while (first < la.size() && first < lb.size() && la[first] == lb[first]) first++;
  while (last < la.size() - first && last < lb.size() - first && la[la.size() - 1 - last] == lb[lb.size() - 1 - last]) last++;
  const size_t na = la.size() - first - last, nb = lb.size() - first - last;
  if (na > limits.lines || nb > limits.lines) return out;
  // Ordered, so that no text is slow by being chosen for it.
  std::map<std::string_view, int> names;
  auto number = [&](std::string_view line) { return names.emplace(line, static_cast<int>(names.size())).first->second; };
  std::vector<int> a_numbers, b_numbers;
  for (size_t i = 0; i < na; i++) a_numbers.push_back(number(la[first + i]));
  for (size_t i = 0; i < nb; i++) b_numbers.push_back(number(lb[first + i]));
  std::vector<char> kept_a(na, 0), kept_b(nb, 0);
  if (!edits(a_numbers, b_numbers, limits.edits, &kept_a, &kept_b)) return out;

  out.kind = LineDiff::Kind::TEXT;
  auto stays_a = [&](size_t i) { return i < first || i >= first + na || kept_a[i - first]; };
  auto stays_b = [&](size_t i) { return i < first || i >= first + nb || kept_b[i - first]; };
  size_t i = first > limits.context ? first - limits.context : 0, j = i, quiet = 0;
  Hunk hunk{i + 1, j + 1, {}};
  auto close = [&] {
    // What stays behind the last change is context, and no more of it than that.
    while (quiet > limits.context) {
      hunk.lines.pop_back();
      quiet--;
    }
    out.hunks.push_back(std::move(hunk));
  };
  bool any = false;
  while (i < la.size() || j < lb.size()) {
    const bool minus = i < la.size() && !stays_a(i), plus = !minus && j < lb.size() && !stays_b(j);
    if (minus) hunk.lines.push_back({'-', bare(la[i++])});
    if (plus) hunk.lines.push_back({'+', bare(lb[j++])});
    if (minus || plus) {
      any = true;
      quiet = 0;
      continue;
    }
    hunk.lines.push_back({' ', bare(la[i])});
    i++;
    j++;
    quiet++;
    if (any && quiet > 2 * limits.context) {
      close();
      hunk = Hunk{i - limits.context + 1, j - limits.context + 1, {}};
      for (size_t k = i - limits.context; k < i; k++) hunk.lines.push_back({' ', bare(la[k])});
      any = false;
      quiet = limits.context;
    } else if (!any && quiet > limits.context) {
      hunk.lines.erase(hunk.lines.begin());
      hunk.a++;
      hunk.b++;
      quiet--;
    }
  }
  if (any) close();
  return out;
}

}  // namespace h5i::websec
