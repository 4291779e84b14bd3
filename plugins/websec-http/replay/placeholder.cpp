#include "plugins/websec-http/replay/placeholder.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {

constexpr size_t kShortest = 4;
constexpr size_t kLongestName = 100;

bool begins(char c) { return (c >= 'A' && c <= 'Z') || c == '_'; }
bool goes_on(char c) { return begins(c) || (c >= '0' && c <= '9'); }

// A piece of text, a name, or a dollar; `each` returns false to end.
template <class F>
void walk(std::string_view text, F&& each) {
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$' || at + 1 == text.size() || (text[at + 1] != '$' && !begins(text[at + 1]))) {
      const size_t end = std::min(text.find('$', at + 1), text.size());
      each(text.substr(at, end - at), false);
      at = end;
      continue;
    }
    if (text[at + 1] == '$') {
      each(text.substr(at, 1), false);
      at += 2;
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && goes_on(text[end])) end++;
    each(text.substr(at + 1, end - at - 1), true);
    at = end;
  }
}

}  // namespace

std::vector<std::string> placeholders(std::string_view text) {
  std::vector<std::string> out;
  walk(text, [&](std::string_view piece, bool name) {
    if (name && std::find(out.begin(), out.end(), piece) == out.end()) out.emplace_back(piece);
  });
  return out;
}

Refused fill(std::string_view text, const Secrets& secrets, std::string* out) {
  Refused refused;
  std::string filled;
  walk(text, [&](std::string_view piece, bool name) {
    if (!name) {
      filled += piece;
      return;
    }
    auto found = secrets.find(std::string(piece));
    if (found == secrets.end()) {
      if (!refused) refused = Refusal{"secret", "there is no value for $" + std::string(piece.substr(0, kLongestName))};
      return;
    }
    filled += found->second;
  });
  if (!refused) *out = std::move(filled);
  return refused;
}

namespace {
std::string shown(std::string_view name) { return (name.starts_with("{{") ? "" : "$") + std::string(name); }
}  // namespace

std::string hide(std::string text, const Secrets& secrets) {
  std::vector<std::pair<std::string_view, std::string_view>> order;
  for (const auto& [name, value] : secrets)
    if (value.size() >= kShortest) order.emplace_back(name, value);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (const auto& [name, value] : order)
    for (size_t at = 0; (at = text.find(value, at)) != std::string::npos; at += shown(name).size()) text.replace(at, value.size(), shown(name));
  return text;
}

Refused judge_identity(const std::vector<std::string>& lines, const IsSecret& secret) {
  if (lines.empty()) return Refusal{"identity", "an identity has at least one header"};
  if (lines.size() > 50) return Refusal{"identity", "an identity has at most 50 headers"};
  HeaderList list;
  for (const std::string& line : lines) {
    if (auto no = list.add_line(line)) return no;
    const HeaderLine& h = list.lines().back();
    const std::string name(h.name());
    const std::vector<std::string> names = placeholders(h.value());
    if (!placeholders(h.name()).empty()) return Refusal{"identity", "a name of a header is not placed"};
    for (const std::string& n : names)
      if (n.size() > kLongestName) return Refusal{"identity", "a name of a secret has at most 100 characters"};
    if (secret(name) && names.empty())
      return Refusal{"identity", name + " may hold a key: put the value into an environment variable and write its name, as '" + name + ": $TOKEN'"};
    if (!secret(name) && !names.empty())
      return Refusal{"identity", name + " is not known as a header that holds a key, and would be shown: its name needs auth, cookie, token, session, secret, password, credential, signature or api-key in it"};
  }
  return std::nullopt;
}

}  // namespace h5i::websec
