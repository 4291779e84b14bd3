#include "core/policy/egress.hpp"

#include <algorithm>
#include <optional>

namespace h5i::policy {
namespace {

constexpr size_t kMaxName = 253;  // RFC 1035 section 3.1, without the trailing dot
constexpr size_t kMaxLabel = 63;
constexpr size_t kMaxRule = 300;  // a name, brackets, two ports

Error refused(std::string_view rule, std::string why) {
  return make_error(Errc::POLICY_EGRESS, "egress rule `" + std::string(rule.substr(0, kMaxRule)) + "` is not accepted",
                    std::move(why));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::optional<uint16_t> parse_port(std::string_view s) {
  if (s.empty() || s.size() > 5 || s[0] == '0') return {};
  unsigned n = 0;
  for (char c : s) {
    if (!is_digit(c)) return {};
    n = n * 10 + static_cast<unsigned>(c - '0');
  }
  return n >= 1 && n <= 65535 ? std::optional(static_cast<uint16_t>(n)) : std::nullopt;
}

// Empty when the name is in order, else what is wrong with it.
std::string name_fault(std::string_view name) {
  if (name.empty()) return "the host is empty";
  if (name.size() > kMaxName) return "a name has at most 253 bytes";
  size_t begin = 0;
  std::string_view label;
  while (begin <= name.size()) {
    size_t end = std::min(name.find('.', begin), name.size());
    label = name.substr(begin, end - begin);
    if (label.empty()) return "a label is empty";
    if (label.size() > kMaxLabel) return "a label has at most 63 bytes";
    if (label.front() == '-' || label.back() == '-') return "a label neither begins nor ends with a hyphen";
    for (char c : label)
      if (!(c >= 'a' && c <= 'z') && !is_digit(c) && c != '-')
        return std::string("`") + c + "` is not allowed in a host name";
    begin = end + 1;
  }
  // WHATWG URL "ends in a number": such a name would be read as an IPv4 address by some resolvers and not by others.
  bool digits = std::all_of(label.begin(), label.end(), is_digit);
  bool hex_number = label.size() > 1 && label[0] == '0' && label[1] == 'x' &&
                    std::all_of(label.begin() + 2, label.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
  if (digits || hex_number) return "it ends in a number and is not an IPv4 address of four decimal numbers";
  return {};
}

bool ends_with_label(std::string_view name, std::string_view suffix) {
  return name.size() > suffix.size() + 1 && name.substr(name.size() - suffix.size()) == suffix &&
         name[name.size() - suffix.size() - 1] == '.';
}

bool is_local_name(std::string_view name) { return name == "localhost" || ends_with_label(name, "localhost"); }

std::optional<int> parse_length(std::string_view s, int max) {
  if (s.empty() || s.size() > 3 || (s[0] == '0' && s.size() > 1)) return {};
  int n = 0;
  for (char c : s) {
    if (!is_digit(c)) return {};
    n = n * 10 + (c - '0');
  }
  return n <= max ? std::optional(n) : std::nullopt;
}

Address masked(Address a, int length) {
  for (int i = 0; i < 16; i++) {
    int keep = std::clamp(length - 8 * i, 0, 8);
    a.bytes[static_cast<size_t>(i)] &= static_cast<uint8_t>(0xff << (8 - keep));
  }
  return a;
}

// Fills `rule` with a network; an empty string when it is in order.
std::string set_network(EgressRule& rule, const Address& base, std::optional<std::string_view> length_text) {
  int full = base.v6 ? 128 : 32;
  int length = full;
  if (length_text) {
    auto n = parse_length(*length_text, full);
    if (!n) return "the prefix length is a number from 0 to " + std::to_string(full);
    length = *n;
    if (masked(base, length) != base) {
      Address m = masked(base, length);
      return "bits are set beyond the prefix length; the network is " +
             (m.v6 ? "[" + to_text(m) + "]" : to_text(m)) + "/" + std::to_string(length);
    }
  }
  rule.kind = EgressRule::Kind::NETWORK;
  rule.network = {base, length};
  AddressClass c = classify(rule.network);
  if (c.reach == Reach::NEVER) return std::string(c.name) + " addresses are never reachable from a box";
  if (c.reach == Reach::PRIVATE) rule.private_ok = true;
  return {};
}

// Splits off and parses ":ports". An empty string when in order.
std::string set_ports(EgressRule& rule, std::string_view ports) {
  if (ports.find(':') != std::string_view::npos) return "the port is written twice, or an IPv6 address lacks its brackets";
  size_t dash = ports.find('-');
  auto lo = parse_port(ports.substr(0, dash));
  auto hi = dash == std::string_view::npos ? lo : parse_port(ports.substr(dash + 1));
  if (!lo || !hi) return "a port is a number from 1 to 65535, or LOW-HIGH";
  if (*lo > *hi) return "the port range runs downwards";
  rule.low = *lo;
  rule.high = *hi;
  return {};
}

}  // namespace

std::string EgressRule::host_text() const {
  if (kind == Kind::NAME) return name;
  if (kind == Kind::SUFFIX) return "*." + name;
  std::string s = network.base.v6 ? "[" + to_text(network.base) + "]" : to_text(network.base);
  if (network.length != (network.base.v6 ? 128 : 32)) s += "/" + std::to_string(network.length);
  return s;
}

std::string EgressRule::text() const {
  std::string s = host_text() + ":" + std::to_string(low);
  return high == low ? s : s + "-" + std::to_string(high);
}

Json EgressRule::to_json() const { return json::Object{{"to", text()}, {"private", private_ok}}; }

Result<std::string> canonical_host(std::string_view text) {
  std::string name;
  for (char c : text) name += lower(c);
  if (!name.empty() && name.back() == '.') name.pop_back();
  std::string fault = name_fault(name);
  if (!fault.empty()) return refused(text, fault);
  return name;
}

Result<EgressRule> parse_egress(std::string_view text, bool private_ok) {
  EgressRule rule;
  rule.private_ok = private_ok;
  if (text.empty()) return refused(text, "it is empty; an empty list says that nothing may be reached");
  if (text.size() > kMaxRule) return refused(text, "it is longer than any name with a port");
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if (u >= 0x80) return refused(text, "names are ASCII; write an international name by its A-label (xn--...)");
    if (u <= 0x20 || u == 0x7f) return refused(text, "it holds white space or a control character");
    if (c == '@') return refused(text, "it holds user information; a rule is HOST or HOST:PORT");
    if (c == ',') return refused(text, "it holds a comma; write one rule each");
    if (c == '?' || c == '#' || c == '\\' || c == '%')
      return refused(text, std::string("`") + c + "` is not part of a rule; a rule is HOST or HOST:PORT");
  }
  if (text.find("://") != std::string_view::npos)
    return refused(text, "it is a URL; a rule is HOST or HOST:PORT");

  // Cut into host, prefix length and ports.
  std::string_view host, rest;
  bool bracketed = text[0] == '[';
  if (bracketed) {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return refused(text, "the bracket is not closed");
    host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else {
    size_t end = text.find_first_of("/:");
    host = text.substr(0, end);
    rest = end == std::string_view::npos ? "" : text.substr(end);
  }
  std::optional<std::string_view> length;
  if (!rest.empty() && rest[0] == '/') {
    size_t end = rest.find(':');
    length = rest.substr(1, end == std::string_view::npos ? end : end - 1);
    rest = end == std::string_view::npos ? "" : rest.substr(end);
  }
  if (!rest.empty()) {
    if (rest[0] != ':') return refused(text, "after the bracket comes :PORT or /LENGTH");
    std::string fault = set_ports(rule, rest.substr(1));
    if (!fault.empty()) return refused(text, fault);
  }

  if (bracketed) {
    auto a = parse_ipv6(host);
    if (!a) return refused(text, "what stands in brackets is not an IPv6 address");
    std::string fault = set_network(rule, *a, length);
    if (!fault.empty()) return refused(text, fault);
    return rule;
  }
  if (auto a = parse_ipv4(host)) {
    std::string fault = set_network(rule, *a, length);
    if (!fault.empty()) return refused(text, fault);
    return rule;
  }
  if (length) return refused(text, "a path or prefix length stands behind what is not an address");

  if (host == "*") return refused(text, "a rule for every host is not accepted; name the hosts");
  if (host.substr(0, 2) == "*.") {
    std::string_view suffix = host.substr(2);
    if (parse_ipv4(suffix)) return refused(text, "an address has no wildcard; write a network, ADDRESS/LENGTH");
    auto name = canonical_host(suffix);
    if (!name) return refused(text, name.error().evidence);
    if (name->find('.') == std::string::npos)
      return refused(text, "a wildcard needs a suffix of at least two labels, as *.example.com");
    if (is_local_name(*name)) return refused(text, "loopback is never reachable from a box by egress; see net.loopback");
    rule.kind = EgressRule::Kind::SUFFIX;
    rule.name = *name;
    return rule;
  }
  if (host.find('*') != std::string_view::npos)
    return refused(text, "a wildcard stands only as the first label, as *.example.com");
  auto name = canonical_host(host);
  if (!name) return refused(text, name.error().evidence);
  if (is_local_name(*name)) return refused(text, "loopback is never reachable from a box by egress; see net.loopback");
  rule.name = *name;
  return rule;
}

Result<EgressRule> egress_from_json(const Json& rule) {
  return parse_egress(rule["to"].string(), rule["private"].boolean());
}

bool matches_name(const EgressRule& rule, std::string_view name, uint16_t port) {
  if (port < rule.low || port > rule.high) return false;
  if (rule.kind == EgressRule::Kind::NAME) return name == rule.name;
  return rule.kind == EgressRule::Kind::SUFFIX && ends_with_label(name, rule.name);
}

bool admits_address(const EgressRule& rule, const Address& address, uint16_t port) {
  if (port < rule.low || port > rule.high) return false;
  AddressClass c = classify(address);
  if (c.reach == Reach::NEVER || (c.reach == Reach::PRIVATE && !rule.private_ok)) return false;
  return rule.kind != EgressRule::Kind::NETWORK || rule.network.contains(address);
}

bool covers(const EgressRule& a, const EgressRule& b) {
  if (b.low < a.low || b.high > a.high) return false;
  if (b.private_ok && !a.private_ok) return false;
  switch (a.kind) {
    case EgressRule::Kind::NAME: return b.kind == EgressRule::Kind::NAME && a.name == b.name;
    case EgressRule::Kind::SUFFIX:
      if (b.kind == EgressRule::Kind::NAME) return ends_with_label(b.name, a.name);
      return b.kind == EgressRule::Kind::SUFFIX && (b.name == a.name || ends_with_label(b.name, a.name));
    case EgressRule::Kind::NETWORK: return b.kind == EgressRule::Kind::NETWORK && a.network.contains(b.network);
  }
  return false;
}

void sort_rules(std::vector<EgressRule>& rules) {
  std::sort(rules.begin(), rules.end(), [](const EgressRule& a, const EgressRule& b) {
    std::string x = a.text(), y = b.text();
    return x != y ? x < y : a.private_ok > b.private_ok;
  });
  rules.erase(std::unique(rules.begin(), rules.end(),
                          [](const EgressRule& a, const EgressRule& b) { return a.text() == b.text(); }),
              rules.end());
}

}  // namespace h5i::policy
