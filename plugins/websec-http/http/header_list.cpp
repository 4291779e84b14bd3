#include "plugins/websec-http/http/header_list.hpp"

#include <utility>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

// A line break or a NUL in a structured header would be another header: only raw bytes may hold one.
Refused judge(std::string_view line) {
  for (char c : line)
    if (c == '\r' || c == '\n' || c == '\0')
      return Refusal{"header-line-break", "a header may not hold CR, LF or NUL; exact bytes are sent with --raw"};
  size_t colon = line.find(':');
  if (colon == std::string_view::npos || !syntax::token(line.substr(0, colon)))
    return Refusal{"header-name", "a header needs a name that is a token, then a colon; exact bytes are sent with --raw"};
  return std::nullopt;
}

}  // namespace

HeaderLine::HeaderLine(std::string line) : line_(std::move(line)), colon_(line_.find(':')) {}

std::string_view HeaderLine::value() const { return syntax::trimmed(std::string_view(line_).substr(colon_ + 1)); }

void HeaderLine::set_value(std::string_view value) {
  size_t at = colon_ + 1;
  while (at < line_.size() && syntax::is(line_[at], syntax::kSpace)) at++;
  line_.replace(at, std::string::npos, value);
}

Refused HeaderList::add_line(std::string_view line) {
  if (auto no = judge(line)) return no;
  lines_.emplace_back(std::string(line));
  return std::nullopt;
}

Refused HeaderList::add(std::string_view name, std::string_view value) {
  std::string line;
  line.reserve(name.size() + 2 + value.size());
  line.append(name).append(": ").append(value);
  if (name.find(':') != std::string_view::npos) return Refusal{"header-name", "a header's name holds no colon"};
  return add_line(line);
}

Refused HeaderList::set(std::string_view name, std::string_view value) {
  HeaderList made;
  if (auto no = made.add(name, value)) return no;
  bool placed = false;
  std::vector<HeaderLine> kept;
  for (HeaderLine& h : lines_) {
    if (!syntax::same(h.name(), name)) {
      kept.push_back(std::move(h));
    } else if (!placed) {
      kept.push_back(made.lines_.front());
      placed = true;
    }
  }
  if (!placed) kept.push_back(made.lines_.front());
  lines_ = std::move(kept);
  return std::nullopt;
}

size_t HeaderList::remove(std::string_view name) {
  return std::erase_if(lines_, [&](const HeaderLine& h) { return syntax::same(h.name(), name); });
}

const HeaderLine* HeaderList::find(std::string_view name) const {
  for (const HeaderLine& h : lines_)
    if (syntax::same(h.name(), name)) return &h;
  return nullptr;
}
HeaderLine* HeaderList::find(std::string_view name) { return const_cast<HeaderLine*>(std::as_const(*this).find(name)); }

size_t HeaderList::count(std::string_view name) const {
  size_t n = 0;
  for (const HeaderLine& h : lines_) n += syntax::same(h.name(), name);
  return n;
}

}  // namespace h5i::websec
