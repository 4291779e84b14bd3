#include "core/broker/target.hpp"

#include <algorithm>

namespace h5i::broker {
namespace {

std::optional<uint16_t> parse_port(std::string_view s) {
  if (s.empty() || s.size() > 5 || s[0] == '0') return {};
  unsigned n = 0;
  for (char c : s) {
    if (c < '0' || c > '9') return {};
    n = n * 10 + static_cast<unsigned>(c - '0');
  }
  if (n > 65535) return {};
  return static_cast<uint16_t>(n);
}

}  // namespace

std::string Target::host_text() const {
  if (!address) return name;
  return address->v6 ? "[" + to_text(*address) + "]" : to_text(*address);
}

std::string Target::text() const { return host_text() + ":" + std::to_string(port); }

std::optional<Target> parse_target(std::string_view text, uint16_t port) {
  Target t;
  t.port = port;
  std::string_view host, rest;
  if (!text.empty() && text[0] == '[') {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return {};
    t.address = parse_ipv6(text.substr(1, close - 1));
    if (!t.address) return {};
    rest = text.substr(close + 1);
  } else {
    size_t colon = text.find(':');
    host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? "" : text.substr(colon);
    t.address = parse_ipv4(host);
    if (!t.address) {
      auto name = policy::canonical_host(host);
      if (!name) return {};
      t.name = std::move(*name);
    }
  }
  if (!rest.empty()) {
    auto given = rest[0] == ':' ? parse_port(rest.substr(1)) : std::nullopt;
    if (!given) return {};
    t.port = *given;
  }
  if (t.port == 0) return {};
  return t;
}

std::vector<size_t> matching(const std::vector<policy::EgressRule>& rules, const Target& t) {
  std::vector<size_t> out;
  for (size_t i = 0; i < rules.size(); i++) {
    const policy::EgressRule& r = rules[i];
    bool network = r.kind == policy::EgressRule::Kind::NETWORK;
    if (t.address ? network && policy::admits_address(r, *t.address, t.port) : !network && policy::matches_name(r, t.name, t.port)) out.push_back(i);
  }
  return out;
}

std::string refusal(const Target& t) {
  if (!t.address) return "no-rule";
  AddressClass c = classify(*t.address);
  return c.reach == Reach::OPEN ? "no-rule" : "address-" + std::string(c.name);
}

std::vector<Address> admitted(const std::vector<policy::EgressRule>& rules, const std::vector<size_t>& by, const std::vector<Address>& found, uint16_t port) {
  std::vector<Address> out;
  for (const Address& a : found)
    if (std::any_of(by.begin(), by.end(), [&](size_t i) { return policy::admits_address(rules[i], a, port); })) out.push_back(a);
  return out;
}

}  // namespace h5i::broker
