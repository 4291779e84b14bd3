#include "plugins/websec-http/index/filter.hpp"

namespace h5i::websec {
namespace {

std::optional<int64_t> number(std::string_view text) {
  if (text.empty() || text.size() > 15 || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::stoll(std::string(text));
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

bool Filter::operator()(const IndexRow& r) const {
  auto within = [&](int64_t n) { return least <= n && n <= most; };
  switch (field) {
    case Field::HOST: return r.host && holds(*r.host, text);
    case Field::PATH: return r.path && holds(*r.path, text);
    case Field::METHOD: return r.method == text;
    case Field::ENDED: return r.ended == text;
    case Field::TYPE: return holds(r.type, text);
    case Field::EXPERIMENT: return r.experiment == text;
    case Field::STATUS: return within(r.status);
    case Field::REFUSED: return within(r.refused ? 1 : 0);
    case Field::SEQ: return within(static_cast<int64_t>(r.seq));
    case Field::SIZE: return within(r.size);
    case Field::TIME: return within(r.total_us);
  }
  return false;
}

bool hold(const Filters& filters, const IndexRow& row) {
  for (const Filter& f : filters)
    if (!f(row)) return false;
  return true;
}

sdk::Result<Filter> parse_filter(const std::string& text) {
  using F = Filter::Field;
  auto bad = [&](const char* why) { return sdk::failure(H5I_E_INVALID, "filter " + text.substr(0, 100) + ": " + why); };
  const size_t at = text.find_first_of(":>");
  if (at == std::string::npos) return bad("not name:value or name>number");
  const std::string name = text.substr(0, at), value = text.substr(at + 1);
  if (text[at] == '>') {
    auto n = number(value);
    if (!n) return bad("not a number");
    if (name == "size") return Filter{F::SIZE, {}, *n + 1, INT64_MAX};
    if (name == "time") return Filter{F::TIME, {}, *n * 1000 + 1, INT64_MAX};
    return bad("only size and time are compared");
  }
  if (value.empty()) return bad("nothing after the colon");
  if (name == "host") return Filter{F::HOST, value};
  if (name == "path") return Filter{F::PATH, value};
  if (name == "method") return Filter{F::METHOD, value};
  if (name == "ended") return Filter{F::ENDED, value};
  if (name == "type") return Filter{F::TYPE, value};
  if (name == "refused") {
    if (value != "yes" && value != "no") return bad("yes or no");
    const int64_t wanted = value == "yes" ? 1 : 0;
    return Filter{F::REFUSED, {}, wanted, wanted};
  }
  if (name == "seq") {
    auto n = number(value);
    if (!n) return bad("not a number");
    return Filter{F::SEQ, {}, *n, *n};
  }
  if (name == "status") {
    if (value.size() != 3 || value[0] < '1' || value[0] > '9' || (value.substr(1) != "xx" && !number(value))) return bad("404 or 4xx");
    if (value.ends_with("xx")) return Filter{F::STATUS, {}, (value[0] - '0') * 100, (value[0] - '0') * 100 + 99};
    return Filter{F::STATUS, {}, *number(value), *number(value)};
  }
  return bad("there is no such field: host, path, method, status, ended, type, refused, seq, size, time");
}

}  // namespace h5i::websec
