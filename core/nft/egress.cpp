#include "core/nft/egress.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/text.hpp"

namespace h5i::nft {
namespace {

constexpr size_t kMaxAbout = 256;

size_t size_of(const Address& a) { return a.v6 ? 16 : 4; }
int compare(const Address& a, const Address& b) {
  if (a.v6 != b.v6) return a.v6 ? 1 : -1;
  return memcmp(a.bytes.data(), b.bytes.data(), size_of(a));
}

// The next address, or nothing after the last of its family.
std::optional<Address> next(Address a) {
  for (size_t i = size_of(a); i-- > 0;)
    if (++a.bytes[i] != 0) return a;
  return std::nullopt;
}

// The length of the network that is exactly this range; -1 when it is none.
int prefix_length(const AddressRange& r) {
  size_t bits = size_of(r.from) * 8, i = 0;
  auto bit = [](const Address& a, size_t n) { return (a.bytes[n / 8] >> (7 - n % 8)) & 1; };
  while (i < bits && bit(r.from, i) == bit(r.to, i)) i++;
  for (size_t rest = i; rest < bits; rest++)
    if (bit(r.from, rest) != 0 || bit(r.to, rest) != 1) return -1;
  return static_cast<int>(i);
}

Error bad(const std::string& what, const std::string& evidence) { return make_error(Errc::INVALID, "the egress document: " + what, printable(evidence, {.limit = 200})); }

std::optional<Address> parse_address(std::string_view text) {
  return text.find(':') != std::string_view::npos ? parse_ipv6(text) : parse_ipv4(text);
}
// Digits only, no sign, no leading zero, at most `max`.
std::optional<unsigned> parse_number(std::string_view text, unsigned max) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  unsigned n = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + static_cast<unsigned>(c - '0');
  }
  return n <= max ? std::optional(n) : std::nullopt;
}

Result<AddressRange> parse_range(const std::string& text) {
  size_t dash = text.find('-'), slash = text.find('/');
  if (dash != std::string::npos) {
    auto from = parse_address(std::string_view(text).substr(0, dash)), to = parse_address(std::string_view(text).substr(dash + 1));
    if (!from || !to) return bad("not a range of addresses", text);
    return AddressRange{*from, *to};
  }
  auto base = parse_address(std::string_view(text).substr(0, slash));
  if (!base) return bad("not an address", text);
  unsigned bits = base->v6 ? 128 : 32;
  auto length = slash == std::string::npos ? bits : parse_number(std::string_view(text).substr(slash + 1), bits);
  if (!length) return bad("not a network", text);
  AddressRange r = range_of({*base, static_cast<int>(*length)});
  if (r.from != *base) return bad("a network with bits beyond its length", text);
  return r;
}

Result<PortRange> parse_ports(const std::string& text) {
  size_t dash = text.find('-');
  auto from = parse_number(std::string_view(text).substr(0, dash), 65535);
  auto to = dash == std::string::npos ? from : parse_number(std::string_view(text).substr(dash + 1), 65535);
  if (!from || !to) return bad("not a port or a range of ports", text);
  return PortRange{static_cast<uint16_t>(*from), static_cast<uint16_t>(*to)};
}

bool valid_id(const std::string& id) {
  return !id.empty() && id.size() <= 24 && id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

Result<void> check_allow(const Allow& a) {
  if (!valid_id(a.id)) return bad("an id is not 1 to 24 of [a-z0-9-]", a.id);
  if (a.about.size() > kMaxAbout) return bad("an about that is too long", a.id);
  if (a.addresses.empty() || a.ports.empty()) return bad("a destination without addresses or ports", a.id);
  for (size_t i = 0; i < a.addresses.size(); i++) {
    const AddressRange& r = a.addresses[i];
    if (r.from.v6 != r.to.v6 || compare(r.from, r.to) > 0) return bad("a range that runs backwards", a.id + ": " + to_text(r));
    if (i > 0 && compare(a.addresses[i - 1].to, r.from) >= 0) return bad("ranges overlap or are not in order", a.id + ": " + to_text(r));
  }
  for (size_t i = 0; i < a.ports.size(); i++) {
    const PortRange& r = a.ports[i];
    if (r.from == 0 || r.from > r.to) return bad("not a range of ports", a.id + ": " + to_text(r));
    if (i > 0 && a.ports[i - 1].to >= r.from) return bad("ports overlap or are not in order", a.id + ": " + to_text(r));
  }
  return {};
}

}  // namespace

std::string_view protocol_name(Protocol p) { return p == Protocol::TCP ? "tcp" : "udp"; }

AddressRange range_of(const Prefix& p) {
  AddressRange r{p.base, p.base};
  for (size_t bit = static_cast<size_t>(p.length); bit < size_of(p.base) * 8; bit++) {
    auto mask = static_cast<uint8_t>(1u << (7 - bit % 8));
    r.from.bytes[bit / 8] &= static_cast<uint8_t>(~mask);
    r.to.bytes[bit / 8] |= mask;
  }
  return r;
}

std::string to_text(const AddressRange& r) {
  if (r.from == r.to) return h5i::to_text(r.from);
  if (int length = prefix_length(r); length >= 0) return h5i::to_text(r.from) + "/" + std::to_string(length);
  return h5i::to_text(r.from) + "-" + h5i::to_text(r.to);
}

std::string to_text(const PortRange& r) {
  return r.from == r.to ? std::to_string(r.from) : std::to_string(r.from) + "-" + std::to_string(r.to);
}

Result<void> Egress::check() const {
  if (log_group == 0) return bad("no log group", "log_group");
  if (allow.size() > kMaxAllow) return bad("too many destinations", std::to_string(allow.size()));
  size_t destinations = 0;
  std::set<std::string> ids;
  for (const Allow& a : allow) {
    H5I_TRY(check_allow(a));
    if (!ids.insert(a.id).second) return bad("an id twice", a.id);
    destinations += a.addresses.size() * a.ports.size();
  }
  if (destinations > kMaxDestinations) return bad("too many destinations", std::to_string(destinations) + ", at most " + std::to_string(kMaxDestinations));
  return {};
}

void Egress::normalize() {
  for (Allow& a : allow) {
    std::sort(a.addresses.begin(), a.addresses.end(), [](const AddressRange& x, const AddressRange& y) { return compare(x.from, y.from) < 0; });
    std::vector<AddressRange> joined;
    for (const AddressRange& r : a.addresses) {
      bool touches = !joined.empty() && joined.back().to.v6 == r.from.v6;
      if (touches) {
        auto after = next(joined.back().to);
        touches = !after || compare(r.from, *after) <= 0;
      }
      if (!touches) joined.push_back(r);
      else if (compare(joined.back().to, r.to) < 0) joined.back().to = r.to;
    }
    a.addresses = std::move(joined);
    std::sort(a.ports.begin(), a.ports.end(), [](const PortRange& x, const PortRange& y) { return x.from < y.from; });
    std::vector<PortRange> ports;
    for (const PortRange& r : a.ports) {
      if (ports.empty() || r.from > ports.back().to + 1) ports.push_back(r);
      else ports.back().to = std::max(ports.back().to, r.to);
    }
    a.ports = std::move(ports);
  }
}

Json Egress::to_json() const {
  Json list = json::Array{};
  for (const Allow& a : allow) {
    Json addresses = json::Array{}, ports = json::Array{};
    for (const AddressRange& r : a.addresses) addresses.push(to_text(r));
    for (const PortRange& r : a.ports) ports.push(to_text(r));
    list.push(json::Object{{"id", a.id}, {"about", a.about}, {"pinned", a.pinned}, {"protocol", protocol_name(a.protocol)}, {"addresses", std::move(addresses)}, {"ports", std::move(ports)}});
  }
  return json::Object{{"schema", "h5i.egress/1"}, {"allow", std::move(list)}, {"log_group", log_group}};
}

Result<Egress> Egress::from_json(const Json& document) {
  if (document["schema"].string() != "h5i.egress/1") return bad("schema is not h5i.egress/1", document["schema"].string());
  for (const auto& [key, value] : document.object())
    if (key != "schema" && key != "allow" && key != "log_group") return bad("an unknown key", key);
  if (!document["allow"].is_array() || !document["log_group"].is_int()) return bad("allow or log_group is absent", "");
  Egress out;
  int64_t group = document["log_group"].integer();
  if (group < 1 || group > 65535) return bad("not a log group", std::to_string(group));
  out.log_group = static_cast<uint16_t>(group);
  if (document["allow"].array().size() > kMaxAllow) return bad("too many destinations", std::to_string(document["allow"].array().size()));
  for (const Json& v : document["allow"].array()) {
    Allow a;
    a.id = v["id"].string();
    a.about = v["about"].string();
    a.pinned = v["pinned"].boolean();
    if (!v["pinned"].is_bool() && !v["pinned"].is_null()) return bad("pinned is neither true nor false", a.id);
    for (const auto& [key, value] : v.object())
      if (key != "id" && key != "about" && key != "pinned" && key != "protocol" && key != "addresses" && key != "ports") return bad("an unknown key", key);
    if (!v["id"].is_string() || !v["addresses"].is_array() || !v["ports"].is_array()) return bad("a destination without id, addresses or ports", a.id);
    if (v["protocol"].string() == "udp") a.protocol = Protocol::UDP;
    else if (v["protocol"].string() != "tcp") return bad("a protocol that is neither tcp nor udp", v["protocol"].string());
    if (v["addresses"].array().size() > kMaxDestinations || v["ports"].array().size() > kMaxDestinations) return bad("too many destinations", a.id);
    for (const Json& r : v["addresses"].array()) {
      a.addresses.push_back(H5I_TRY(parse_range(r.string())));
      if (a.addresses.back().from.v6 != a.addresses.back().to.v6 || compare(a.addresses.back().from, a.addresses.back().to) > 0)
        return bad("a range that runs backwards", r.string());
    }
    for (const Json& r : v["ports"].array()) {
      a.ports.push_back(H5I_TRY(parse_ports(r.string())));
      if (a.ports.back().from == 0 || a.ports.back().from > a.ports.back().to) return bad("not a range of ports", r.string());
    }
    out.allow.push_back(std::move(a));
  }
  out.normalize();
  H5I_TRY(out.check());
  return out;
}

}  // namespace h5i::nft
