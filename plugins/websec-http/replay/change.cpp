#include "plugins/websec-http/replay/change.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {

constexpr size_t kFields = 1000;

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

struct Field {
  std::string key, name;
  std::vector<std::string_view> values;
};

struct Head {
  std::string_view line;
  std::vector<Field> fields;
};

Head read(std::string_view head) {
  Head out;
  bool first = true;
  while (!head.empty()) {
    size_t end = std::min(head.find_first_of("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(head.size(), end + (head.substr(end).starts_with("\r\n") ? 2 : 1)));
    if (first) {
      out.line = line;
      first = false;
      continue;
    }
    if (line.empty() || out.fields.size() >= kFields) continue;
    const size_t colon = line.find(':');
    const bool is_field = colon != std::string_view::npos && line[0] != ' ' && line[0] != '\t';
    const std::string name(is_field ? trimmed(line.substr(0, colon)) : std::string_view());
    const std::string key = lower(name);
    auto at = std::find_if(out.fields.begin(), out.fields.end(), [&](const Field& f) { return f.key == key; });
    if (at == out.fields.end()) at = out.fields.insert(at, Field{key, name, {}});
    at->values.push_back(is_field ? trimmed(line.substr(colon + 1)) : line);
  }
  return out;
}

std::string text(const Field& f, bool hidden) {
  std::string out;
  for (size_t i = 0; i < f.values.size(); i++) {
    if (i > 0) out += ", ";
    out += hidden ? "[" + std::to_string(f.values[i].size()) + " bytes]" : std::string(f.values[i]);
  }
  return out;
}

}  // namespace

std::vector<Change> changes(std::string_view before, std::string_view after, const IsSecret& secret) {
  std::vector<Change> out;
  const Head a = read(before), b = read(after);
  if (a.line != b.line) out.push_back({"line", std::string(a.line), std::string(b.line)});
  auto add = [&](const Field* x, const Field* y) {
    const Field& named = x ? *x : *y;
    const bool hidden = named.name.empty() || secret(named.name);
    Change c{named.name.empty() ? "(no header)" : "header." + named.name, {}, {}};
    if (x) c.before = text(*x, hidden);
    if (y) c.after = text(*y, hidden);
    out.push_back(std::move(c));
  };
  for (const Field& x : a.fields) {
    auto y = std::find_if(b.fields.begin(), b.fields.end(), [&](const Field& f) { return f.key == x.key; });
    if (y == b.fields.end()) add(&x, nullptr);
    else if (x.values != y->values) add(&x, &*y);
  }
  for (const Field& y : b.fields)
    if (std::none_of(a.fields.begin(), a.fields.end(), [&](const Field& f) { return f.key == y.key; })) add(nullptr, &y);
  return out;
}

}  // namespace h5i::websec
