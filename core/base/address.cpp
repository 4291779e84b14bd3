#include "core/base/address.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace h5i {
namespace {

constexpr int kV4Bits = 32, kV6Bits = 128;

bool same_bits(const uint8_t* a, const uint8_t* b, int bits) {
  int whole = bits / 8, rest = bits % 8;
  for (int i = 0; i < whole; i++)
    if (a[i] != b[i]) return false;
  if (!rest) return true;
  auto mask = static_cast<uint8_t>(0xff << (8 - rest));
  return ((a[whole] ^ b[whole]) & mask) == 0;
}

struct Range {
  std::array<uint8_t, 16> base;
  int length;
  Reach reach;
  const char* name;
};

// IANA special-purpose registry, and the addresses at which clouds hand out credentials.
constexpr Range kV4[] = {
    {{0}, 8, Reach::NEVER, "unspecified"},
    {{127}, 8, Reach::NEVER, "loopback"},
    {{169, 254}, 16, Reach::NEVER, "link-local"},  // holds 169.254.169.254 and .170.2
    {{100, 100, 100, 200}, 32, Reach::NEVER, "metadata"},
    {{168, 63, 129, 16}, 32, Reach::NEVER, "metadata"},
    {{192, 0, 0, 192}, 32, Reach::NEVER, "metadata"},
    {{224}, 4, Reach::NEVER, "multicast"},
    {{240}, 4, Reach::NEVER, "reserved"},  // holds the limited broadcast address
    {{10}, 8, Reach::PRIVATE, "private"},
    {{172, 16}, 12, Reach::PRIVATE, "private"},
    {{192, 168}, 16, Reach::PRIVATE, "private"},
    {{100, 64}, 10, Reach::PRIVATE, "shared"},
    {{192, 0, 0}, 24, Reach::PRIVATE, "protocol"},
    {{198, 18}, 15, Reach::PRIVATE, "benchmark"},
};
constexpr Range kV6[] = {
    {{0}, 128, Reach::NEVER, "unspecified"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, Reach::NEVER, "loopback"},
    {{0xfe, 0x80}, 10, Reach::NEVER, "link-local"},
    {{0xff}, 8, Reach::NEVER, "multicast"},
    {{0xfd, 0, 0x0e, 0xc2}, 32, Reach::NEVER, "metadata"},
    {{0xfd, 0x20, 0, 0xce}, 32, Reach::NEVER, "metadata"},
    {{0x01, 0}, 64, Reach::NEVER, "discard"},  // 100::/64
    {{0xfc}, 7, Reach::PRIVATE, "private"},
    {{0xfe, 0xc0}, 10, Reach::PRIVATE, "site-local"},
};

// IPv6 forms that carry an IPv4 address, at byte `at` (0: none that is fixed).
struct Form {
  std::array<uint8_t, 16> base;
  int length;
  size_t at;
  Reach at_least;
  const char* name;
};
constexpr Form kForms[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 12, Reach::OPEN, "mapped"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 12, Reach::PRIVATE, "translated"},
    {{0}, 96, 12, Reach::NEVER, "compatible"},
    {{0, 0x64, 0xff, 0x9b}, 96, 12, Reach::OPEN, "nat64"},
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, 0, Reach::PRIVATE, "nat64-local"},
    {{0x20, 0x02}, 16, 2, Reach::OPEN, "6to4"},
    {{0x20, 0x01, 0, 0}, 32, 4, Reach::OPEN, "teredo"},
};

Address v4_at(const Address& a, size_t offset, uint8_t flip = 0) {
  Address r;
  for (size_t i = 0; i < 4; i++) r.bytes[i] = a.bytes[offset + i] ^ flip;
  return r;
}

// The IPv4 addresses that an IPv6 address carries, by the form it has.
struct Embedded {
  std::vector<Address> inner;
  Reach at_least = Reach::OPEN;
  const char* name = "";
};

Embedded embedded(const Address& a) {
  const auto& b = a.bytes;
  auto starts = [&](std::initializer_list<uint8_t> p) {
    size_t i = 0;
    for (uint8_t x : p)
      if (b[i++] != x) return false;
    return true;
  };
  Embedded e;
  if (starts({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})) e = {{v4_at(a, 12)}, Reach::OPEN, "mapped"};
  else if (starts({0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0})) e = {{v4_at(a, 12)}, Reach::PRIVATE, "translated"};
  else if (starts({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})) e = {{v4_at(a, 12)}, Reach::NEVER, "compatible"};
  else if (starts({0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) e = {{v4_at(a, 12)}, Reach::OPEN, "nat64"};
  else if (starts({0, 0x64, 0xff, 0x9b, 0, 1})) {
    // RFC 8215: a local prefix of any length of RFC 6052. The address sits at bit 48 (around the u octet), or in the tail.
    Address split;
    split.bytes = {b[6], b[7], b[9], b[10]};
    Address p56;
    p56.bytes = {b[7], b[9], b[10], b[11]};
    Address p64;
    p64.bytes = {b[9], b[10], b[11], b[12]};
    e = {{split, p56, p64, v4_at(a, 12)}, Reach::PRIVATE, "nat64-local"};
  } else if (starts({0x20, 0x02})) {
    e = {{v4_at(a, 2)}, Reach::OPEN, "6to4"};
  } else if (starts({0x20, 0x01, 0, 0})) {
    e = {{v4_at(a, 4), v4_at(a, 12, 0xff)}, Reach::OPEN, "teredo"};
  } else if ((b[8] & 0xfd) == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe) {
    e = {{v4_at(a, 12)}, Reach::OPEN, "isatap"};
  }
  return e;
}

template <size_t N>
AddressClass from_table(const Range (&table)[N], const Address& a) {
  for (const Range& r : table)
    if (same_bits(a.bytes.data(), r.base.data(), r.length)) return {r.reach, r.name};
  return {Reach::OPEN, "public"};
}

}  // namespace

bool Prefix::contains(const Address& a) const {
  return a.v6 == base.v6 && same_bits(a.bytes.data(), base.bytes.data(), length);
}
bool Prefix::contains(const Prefix& p) const { return p.length >= length && contains(p.base); }

std::optional<Address> parse_ipv4(std::string_view s) {
  Address a;
  size_t i = 0;
  for (size_t part = 0; part < 4; part++) {
    if (part) {
      if (i >= s.size() || s[i] != '.') return {};
      i++;
    }
    size_t begin = i;
    unsigned n = 0;
    while (i < s.size() && s[i] >= '0' && s[i] <= '9' && i - begin < 3) n = n * 10 + static_cast<unsigned>(s[i++] - '0');
    if (i == begin || n > 255 || (s[begin] == '0' && i - begin > 1)) return {};
    a.bytes[part] = static_cast<uint8_t>(n);
  }
  return i == s.size() ? std::optional(a) : std::nullopt;
}

std::optional<Address> parse_ipv6(std::string_view s) {
  std::vector<uint16_t> head, tail;
  bool gap = false;
  size_t i = 0;
  if (s.substr(0, 2) == "::") {
    gap = true;
    i = 2;
  } else if (s.substr(0, 1) == ":") {
    return {};
  }
  bool need_group = !gap;
  while (i < s.size()) {
    auto& to = gap ? tail : head;
    size_t end = s.find(':', i);
    std::string_view group = s.substr(i, end == std::string_view::npos ? end : end - i);
    if (group.find('.') != std::string_view::npos) {  // an IPv4 tail ends the text
      auto v4 = parse_ipv4(group);
      if (!v4 || end != std::string_view::npos) return {};
      to.push_back(static_cast<uint16_t>(v4->bytes[0] << 8 | v4->bytes[1]));
      to.push_back(static_cast<uint16_t>(v4->bytes[2] << 8 | v4->bytes[3]));
      i = s.size();
      need_group = false;
      break;
    }
    if (group.empty() || group.size() > 4) return {};
    unsigned n = 0;
    for (char c : group) {
      int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (d < 0) return {};
      n = n * 16 + static_cast<unsigned>(d);
    }
    to.push_back(static_cast<uint16_t>(n));
    need_group = false;
    if (head.size() + tail.size() > 8) return {};
    if (end == std::string_view::npos) {
      i = s.size();
      break;
    }
    i = end + 1;
    need_group = true;
    if (i < s.size() && s[i] == ':') {
      if (gap) return {};
      gap = true;
      need_group = false;
      i++;
    }
  }
  if (need_group) return {};
  size_t n = head.size() + tail.size();
  if (gap ? n > 7 : n != 8) return {};
  Address a;
  a.v6 = true;
  head.resize(8 - tail.size(), 0);
  head.insert(head.end(), tail.begin(), tail.end());
  for (size_t k = 0; k < 8; k++) {
    a.bytes[2 * k] = static_cast<uint8_t>(head[k] >> 8);
    a.bytes[2 * k + 1] = static_cast<uint8_t>(head[k]);
  }
  return a;
}

std::string to_text(const Address& a) {
  char buf[64];
  const auto& b = a.bytes;
  if (!a.v6) {
    snprintf(buf, sizeof buf, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
    return buf;
  }
  unsigned g[8];
  for (size_t i = 0; i < 8; i++) g[i] = static_cast<unsigned>(b[2 * i]) << 8 | b[2 * i + 1];
  bool mapped = !g[0] && !g[1] && !g[2] && !g[3] && !g[4] && g[5] == 0xffff;
  if (mapped) {  // RFC 5952 section 5
    snprintf(buf, sizeof buf, "::ffff:%u.%u.%u.%u", b[12], b[13], b[14], b[15]);
    return buf;
  }
  int best = -1, best_len = 1;  // a single zero group is not compressed
  for (int i = 0; i < 8; i++) {
    int j = i;
    while (j < 8 && !g[j]) j++;
    if (j - i > best_len) best = i, best_len = j - i;
    if (j > i) i = j;
  }
  std::string out;
  for (int i = 0; i < 8; i++) {
    if (i == best) {
      out += "::";
      i += best_len - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    snprintf(buf, sizeof buf, "%x", g[i]);
    out += buf;
  }
  return out;
}

AddressClass classify(const Address& a) {
  if (!a.v6) return from_table(kV4, a);
  AddressClass c = from_table(kV6, a);
  if (c.reach == Reach::NEVER) return c;
  Embedded e = embedded(a);
  if (e.at_least > c.reach) c = {e.at_least, e.name};
  for (const Address& in : e.inner) {
    AddressClass i = from_table(kV4, in);
    if (i.reach > c.reach) c = i;
  }
  return c;
}

AddressClass classify(const Prefix& p) {
  // The same class at both ends and no range of another class wholly inside: every table range is a prefix, so two
  // prefixes are nested or disjoint, and it is enough to ask whether the prefix lies inside a range.
  int bits = p.base.v6 ? kV6Bits : kV4Bits;
  if (p.length == bits) return classify(p.base);
  auto inside = [&](const auto& table) -> AddressClass {
    for (const Range& r : table)
      if (p.length >= r.length && same_bits(p.base.bytes.data(), r.base.data(), r.length)) return {r.reach, r.name};
    return {Reach::OPEN, "public"};
  };
  if (!p.base.v6) return inside(kV4);
  AddressClass c = inside(kV6);
  if (c.reach == Reach::NEVER) return c;
  // A prefix of an embedding form is judged by the IPv4 prefix that it fixes, when it fixes one.
  for (const Form& f : kForms) {
    if (p.length < f.length || !same_bits(p.base.bytes.data(), f.base.data(), f.length)) continue;
    if (f.at_least > c.reach) c = {f.at_least, f.name};
    if (!f.at) continue;
    Prefix inner{v4_at(p.base, f.at), p.length - f.length};
    if (inner.length > kV4Bits) inner.length = kV4Bits;
    AddressClass i = inner.length == kV4Bits ? from_table(kV4, inner.base) : classify(inner);
    if (i.reach > c.reach) c = i;
  }
  return c;
}

namespace {

Address last_of(const Prefix& p) {
  Address out = p.base;
  for (int bit = p.length; bit < (p.base.v6 ? kV6Bits : kV4Bits); bit++) out.bytes[static_cast<size_t>(bit / 8)] |= static_cast<uint8_t>(1u << (7 - bit % 8));
  return out;
}
// One further or back; false when there is none.
bool step(Address& a, bool up) {
  for (size_t i = a.v6 ? 16 : 4; i-- > 0;) {
    uint8_t was = a.bytes[i];
    a.bytes[i] = static_cast<uint8_t>(up ? was + 1 : was - 1);
    if (was != (up ? 0xff : 0)) return true;
  }
  return false;
}

// Prefixes within which nothing, or nothing without private_ok, may be reached.
std::vector<Prefix> restricted(bool v6, const Prefix& within, bool private_ok) {
  std::vector<Prefix> out;
  auto bars = [&](Reach r) { return r == Reach::NEVER || (r == Reach::PRIVATE && !private_ok); };
  auto add = [&](const std::array<uint8_t, 16>& base, int length) { out.push_back({{v6, base}, length}); };
  if (!v6) {
    for (const Range& r : kV4)
      if (bars(r.reach)) add(r.base, r.length);
    return out;
  }
  for (const Range& r : kV6)
    if (bars(r.reach)) add(r.base, r.length);
  for (const Form& f : kForms) {
    Prefix form{{true, f.base}, f.length};
    if (!form.contains(within) || bars(f.at_least)) {
      add(f.base, f.length);
      continue;
    }
    if (!f.at) continue;
    for (const Range& r : kV4) {
      if (!bars(r.reach)) continue;
      Address carrying = within.base;
      for (size_t i = f.at; i < 16; i++) carrying.bytes[i] = i < f.at + 4 ? r.base[i - f.at] : 0;
      out.push_back({carrying, static_cast<int>(f.at) * 8 + r.length});
    }
  }
  return out;
}

}  // namespace

std::vector<std::pair<Address, Address>> reachable_parts(const Prefix& p, bool private_ok) {
  std::vector<std::pair<Address, Address>> out;
  std::vector<Prefix> barred = restricted(p.base.v6, p, private_ok);
  std::sort(barred.begin(), barred.end(), [](const Prefix& a, const Prefix& b) { return a.base.bytes < b.base.bytes; });
  Address at = p.base;
  const Address end = last_of(p);
  for (const Prefix& b : barred) {
    if (b.contains(p)) return {};
    if (!p.contains(b) || b.base.bytes < at.bytes) {
      // Within one that was left out already, or elsewhere.
      if (!p.contains(b) || last_of(b).bytes < at.bytes) continue;
    }
    if (at.bytes < b.base.bytes) {
      Address before = b.base;
      step(before, false);
      out.push_back({at, before});
    }
    at = last_of(b);
    if (!step(at, true) || end.bytes < at.bytes) return out;
  }
  out.push_back({at, end});
  return out;
}

}  // namespace h5i
