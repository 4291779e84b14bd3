#include "plugins/websec-http/scope/address.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {

constexpr int kV4Bits = 32, kV6Bits = 128;

bool same_bits(const std::array<uint8_t, 16>& a, const std::array<uint8_t, 16>& b, int bits) {
  size_t whole = static_cast<size_t>(bits) / 8;
  if (!std::equal(a.begin(), a.begin() + static_cast<long>(whole), b.begin())) return false;
  int rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

struct Range {
  std::array<uint8_t, 16> base;
  int length;
  Reach reach;
  std::string_view name;
};

// The first that contains an address names it: narrow ones stand before the wide ones around them.
constexpr Range kV4[] = {
    {{169, 254, 169, 254}, 32, Reach::SPECIAL, "metadata"},
    {{169, 254, 170, 2}, 32, Reach::SPECIAL, "metadata"},
    {{169, 254, 170, 23}, 32, Reach::SPECIAL, "metadata"},
    {{100, 100, 100, 200}, 32, Reach::SPECIAL, "metadata"},
    {{168, 63, 129, 16}, 32, Reach::SPECIAL, "metadata"},
    {{192, 0, 0, 192}, 32, Reach::SPECIAL, "metadata"},
    {{127}, 8, Reach::LOOPBACK, "loopback"},
    {{10}, 8, Reach::PRIVATE, "private"},
    {{172, 16}, 12, Reach::PRIVATE, "private"},
    {{192, 168}, 16, Reach::PRIVATE, "private"},
    {{0}, 8, Reach::SPECIAL, "unspecified"},
    {{169, 254}, 16, Reach::SPECIAL, "link-local"},
    {{100, 64}, 10, Reach::SPECIAL, "shared"},
    {{192, 0, 0}, 24, Reach::SPECIAL, "protocol"},
    {{192, 0, 2}, 24, Reach::SPECIAL, "documentation"},
    {{198, 51, 100}, 24, Reach::SPECIAL, "documentation"},
    {{203, 0, 113}, 24, Reach::SPECIAL, "documentation"},
    {{192, 88, 99}, 24, Reach::SPECIAL, "6to4-relay"},
    {{198, 18}, 15, Reach::SPECIAL, "benchmark"},
    {{224}, 4, Reach::SPECIAL, "multicast"},
    {{255, 255, 255, 255}, 32, Reach::SPECIAL, "broadcast"},
    {{240}, 4, Reach::SPECIAL, "reserved"},
};
constexpr Range kV6[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, Reach::LOOPBACK, "loopback"},
    {{0}, 128, Reach::SPECIAL, "unspecified"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, Reach::SPECIAL, "mapped"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, Reach::SPECIAL, "translated"},
    {{0}, 96, Reach::SPECIAL, "compatible"},
    {{0, 0x64, 0xff, 0x9b}, 96, Reach::SPECIAL, "nat64"},
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, Reach::SPECIAL, "nat64-local"},
    {{0x01, 0}, 64, Reach::SPECIAL, "discard"},
    {{0x20, 0x02}, 16, Reach::SPECIAL, "6to4"},
    {{0x20, 0x01, 0, 0}, 32, Reach::SPECIAL, "teredo"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, Reach::SPECIAL, "documentation"},
    {{0x3f, 0xff}, 20, Reach::SPECIAL, "documentation"},
    {{0x20, 0x01, 0}, 23, Reach::SPECIAL, "protocol"},
    {{0xfd, 0, 0x0e, 0xc2}, 32, Reach::SPECIAL, "metadata"},
    {{0xfd, 0x20, 0, 0xce}, 32, Reach::SPECIAL, "metadata"},
    {{0xfc}, 7, Reach::PRIVATE, "private"},
    {{0xfe, 0x80}, 10, Reach::SPECIAL, "link-local"},
    {{0xfe, 0xc0}, 10, Reach::SPECIAL, "site-local"},
    {{0xff}, 8, Reach::SPECIAL, "multicast"},
};
constexpr Range kGlobalUnicast = {{0x20}, 3, Reach::PUBLIC, "public"};  // of IPv6, the only block that is handed out

// The kind by form alone.
AddressClass kind_of(const Address& a) {
  const AddressClass open = {Reach::PUBLIC, "public"};
  auto look = [&](const auto& table) {
    for (const Range& r : table)
      if (same_bits(a.bytes, r.base, r.length)) return AddressClass{r.reach, r.name};
    return open;
  };
  AddressClass found = a.v6 ? look(kV6) : look(kV4);
  if (!a.v6 || found.reach != Reach::PUBLIC) return found;
  if (!same_bits(a.bytes, kGlobalUnicast.base, kGlobalUnicast.length)) return {Reach::SPECIAL, "reserved"};
  const auto& b = a.bytes;
  bool isatap = (b[8] & 0xfd) == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe;  // RFC 5214, section 6.1
  return isatap ? AddressClass{Reach::SPECIAL, "isatap"} : open;
}

}  // namespace

std::string Address::text() const { return v6 ? ipv6_text(bytes) : ipv4_text(bytes); }

std::optional<Address> address_of(const Host& host) {
  if (!host.is_address()) return {};
  return Address{host.kind == Host::Kind::IPV6, host.address};
}

std::optional<Address> parse_address(std::string_view text) {
  if (text.find(':') != std::string_view::npos) {
    auto bytes = parse_ipv6(text);
    return bytes ? std::optional(Address{true, *bytes}) : std::nullopt;
  }
  auto host = parse_host(text, true);
  if (!host || host->kind != Host::Kind::IPV4 || host->text != text) return {};
  return Address{false, host->address};
}

std::vector<Address> carried_by(const Address& a) {
  if (!a.v6) return {};
  const auto& b = a.bytes;
  auto at = [&](size_t i, int flip = 0) {
    Address inner;
    for (size_t k = 0; k < 4; k++) inner.bytes[k] = static_cast<uint8_t>(b[i + k] ^ flip);
    return inner;
  };
  std::string_view form = kind_of(a).name;
  if (form == "6to4") return {at(2)};
  if (form == "teredo") return {at(4), at(12, 0xff)};
  if (form == "mapped" || form == "translated" || form == "compatible" || form == "nat64" || form == "isatap") return {at(12)};
  // RFC 6052, section 2.2: where the address stands depends on the length of the prefix, which only the gateway knows.
  if (form == "nat64-local") return {{false, {b[6], b[7], b[9], b[10]}}, {false, {b[7], b[9], b[10], b[11]}}, at(9), at(12)};
  return {};
}

AddressClass classify(const Address& a) {
  AddressClass found = kind_of(a);
  for (const Address& inner : carried_by(a)) found.carries_restricted |= kind_of(inner).reach != Reach::PUBLIC;
  return found;
}

bool Prefix::contains(const Address& a) const { return a.v6 == base.v6 && same_bits(a.bytes, base.bytes, length); }

std::string Prefix::text() const { return base.text() + "/" + std::to_string(length); }

std::optional<Prefix> parse_prefix(std::string_view text) {
  size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  std::string_view digits = text.substr(slash + 1);
  if (digits.empty() || digits.size() > 3 || (digits.size() > 1 && digits[0] == '0')) return {};
  Prefix p;
  for (char c : digits) {
    if (c < '0' || c > '9') return {};
    p.length = p.length * 10 + (c - '0');
  }
  auto base = parse_address(text.substr(0, slash));
  if (!base || p.length > (base->v6 ? kV6Bits : kV4Bits)) return {};
  p.base = *base;
  for (int bit = p.length; bit < (base->v6 ? kV6Bits : kV4Bits); bit++)
    if (base->bytes[static_cast<size_t>(bit) / 8] >> (7 - bit % 8) & 1) return {};
  return p;
}

AddressClass classify(const Prefix& p) {
  auto around = [&](const auto& table) -> std::optional<AddressClass> {
    for (const Range& r : table)
      if (r.length <= p.length && same_bits(p.base.bytes, r.base, r.length)) return AddressClass{r.reach, r.name};
    return {};
  };
  if (auto found = p.base.v6 ? around(kV6) : around(kV4)) return *found;
  bool unicast = !p.base.v6 || same_bits(p.base.bytes, kGlobalUnicast.base, std::min(p.length, kGlobalUnicast.length));
  return unicast ? AddressClass{Reach::PUBLIC, "public"} : AddressClass{Reach::SPECIAL, "reserved"};
}

}  // namespace h5i::websec
