#include "plugins/websec-http/url/host.hpp"

#include <algorithm>
#include <vector>

#include "plugins/websec-http/url/idna.hpp"
#include "plugins/websec-http/url/percent.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

sdk::Failure invalid(std::string why) { return sdk::failure(H5I_E_INVALID, "host: " + std::move(why)); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool forbidden_in_host(char c) { return c == '\0' || std::string_view("\t\n\r #/:<>?@[\\]^|").find(c) != std::string_view::npos; }

bool forbidden_in_domain(char c) { return forbidden_in_host(c) || static_cast<unsigned char>(c) <= 0x1f || c == '%' || c == '\x7f'; }

std::string code_point_text(char c) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  auto b = static_cast<unsigned char>(c);
  return std::string("forbidden code point U+00") + kDigits[b >> 4] + kDigits[b & 15];
}

// One of the up to four numbers of an IPv4 address: decimal, octal after 0, hexadecimal after 0x. What is larger than any
// address may hold comes back as the first such number.
std::optional<uint64_t> ipv4_number(std::string_view s) {
  constexpr uint64_t kTooLarge = uint64_t{1} << 32;
  if (s.empty()) return {};
  unsigned radix = 10;
  if (s.size() >= 2 && s[0] == '0' && (s[1] | 0x20) == 'x') {
    radix = 16;
    s.remove_prefix(2);
  } else if (s.size() >= 2 && s[0] == '0') {
    radix = 8;
    s.remove_prefix(1);
  }
  uint64_t n = 0;
  for (char c : s) {
    if (!is_hex(c)) return {};
    auto digit = static_cast<unsigned>(hex_value(c));
    if (digit >= radix) return {};
    n = std::min(kTooLarge, n * radix + digit);
  }
  return n;
}

// The label that decides whether a domain is an address: the last one, or the one before a final dot.
std::string_view last_label(std::string_view domain) {
  if (domain.ends_with('.') && domain.size() > 1) domain.remove_suffix(1);
  size_t dot = domain.rfind('.');
  return dot == std::string_view::npos ? domain : domain.substr(dot + 1);
}

bool ends_in_number(std::string_view domain) {
  std::string_view last = last_label(domain);
  return !last.empty() && (std::all_of(last.begin(), last.end(), is_digit) || ipv4_number(last));
}

sdk::Result<Host> parse_ipv4(std::string_view s) {
  if (s.ends_with('.')) s.remove_suffix(1);
  uint64_t numbers[4];
  size_t count = 0;
  for (bool more = true; more;) {
    size_t dot = s.find('.');
    more = dot != std::string_view::npos;
    if (count == 4) return invalid("an IPv4 address of more than four parts");
    auto n = ipv4_number(s.substr(0, dot));
    if (!n) return invalid("an IPv4 address with a part that is no number");
    numbers[count++] = *n;
    if (more) s.remove_prefix(dot + 1);
  }
  uint64_t value = 0;
  for (size_t i = 0; i + 1 < count; i++) {
    if (numbers[i] > 255) return invalid("an IPv4 address with a part above 255");
    value |= numbers[i] << (8 * (3 - i));
  }
  if (numbers[count - 1] >= uint64_t{1} << (8 * (5 - count))) return invalid("an IPv4 address that is too large");
  value |= numbers[count - 1];
  Host host;
  host.kind = Host::Kind::IPV4;
  for (size_t i = 0; i < 4; i++) host.address[i] = static_cast<uint8_t>(value >> (8 * (3 - i)));
  host.text = ipv4_text(host.address);
  return host;
}

// Exactly four decimal parts without leading zeros, as the tail of an IPv6 address has them.
bool ipv4_tail(std::string_view s, uint8_t* out) {
  for (int part = 0; part < 4; part++) {
    if (part) {
      if (s.empty() || s[0] != '.') return false;
      s.remove_prefix(1);
    }
    size_t n = 0;
    unsigned value = 0;
    while (n < s.size() && n < 4 && is_digit(s[n])) value = value * 10 + static_cast<unsigned>(s[n++] - '0');
    if (n == 0 || value > 255 || (n > 1 && s[0] == '0')) return false;
    out[part] = static_cast<uint8_t>(value);
    s.remove_prefix(n);
  }
  return s.empty();
}

sdk::Status within_limit(std::string_view host) {
  if (host.size() > kMaxHost) return sdk::failure(H5I_E_TOO_LARGE, "host: longer than " + std::to_string(kMaxHost) + " bytes");
  return {};
}

sdk::Result<Host> parse_domain(std::string_view text) {
  std::string bytes = percent_decode(text);
  H5I_SDK_TRY(within_limit(bytes));
  auto ascii = domain_to_ascii(to_valid_utf8(bytes));
  if (!ascii) return invalid("not a domain by UTS 46");
  if (ascii->empty()) return invalid("empty");
  H5I_SDK_TRY(within_limit(*ascii));  // what a host is written as can be longer than what was read, and is read again
  if (auto bad = std::find_if(ascii->begin(), ascii->end(), forbidden_in_domain); bad != ascii->end()) return invalid(code_point_text(*bad));
  if (ends_in_number(*ascii)) return parse_ipv4(*ascii);
  Host host;
  host.kind = Host::Kind::DOMAIN;
  host.text = std::move(*ascii);
  return host;
}

sdk::Result<Host> parse_opaque(std::string_view text) {
  H5I_SDK_TRY(within_limit(text));
  if (auto bad = std::find_if(text.begin(), text.end(), forbidden_in_host); bad != text.end()) return invalid(code_point_text(*bad));
  Host host;
  host.kind = text.empty() ? Host::Kind::EMPTY : Host::Kind::OPAQUE;
  host.text = percent_encode(text, EncodeSet::C0_CONTROL);
  H5I_SDK_TRY(within_limit(host.text));
  return host;
}

}  // namespace

std::optional<std::array<uint8_t, 16>> parse_ipv6(std::string_view s) {
  std::array<uint8_t, 16> out{};
  size_t at = 0;                // bytes that are filled
  size_t gap = out.size() + 1;  // where "::" stands
  if (s.starts_with("::")) {
    gap = 0;
    s.remove_prefix(2);
  } else if (s.empty() || s[0] == ':') {
    return {};
  }
  while (!s.empty()) {
    if (at == out.size()) return {};
    size_t n = 0;
    unsigned value = 0;
    while (n < s.size() && n < 4 && is_hex(s[n])) value = value * 16 + static_cast<unsigned>(hex_value(s[n++]));
    if (n < s.size() && s[n] == '.') {
      if (at > out.size() - 4 || !ipv4_tail(s, &out[at])) return {};
      at += 4;
      break;
    }
    if (n == 0) return {};
    out[at++] = static_cast<uint8_t>(value >> 8);
    out[at++] = static_cast<uint8_t>(value);
    s.remove_prefix(n);
    if (s.empty()) break;
    if (s[0] != ':' || s.size() == 1) return {};
    s.remove_prefix(1);
    if (s[0] == ':') {
      if (gap <= out.size()) return {};
      gap = at;
      s.remove_prefix(1);
    }
  }
  if (gap > out.size()) return at == out.size() ? std::optional(out) : std::nullopt;
  if (at == out.size()) return {};  // nothing left for "::" to stand for
  std::copy_backward(out.begin() + static_cast<long>(gap), out.begin() + static_cast<long>(at), out.end());
  std::fill(out.begin() + static_cast<long>(gap), out.end() - static_cast<long>(at - gap), uint8_t{0});
  return out;
}

std::string ipv6_text(const std::array<uint8_t, 16>& a) {
  static constexpr char kDigits[] = "0123456789abcdef";
  unsigned piece[8];
  for (size_t i = 0; i < 8; i++) piece[i] = static_cast<unsigned>(a[2 * i] << 8 | a[2 * i + 1]);
  size_t best = 8, best_length = 1;
  for (size_t i = 0; i < 8;) {
    size_t end = i;
    while (end < 8 && piece[end] == 0) end++;
    if (end - i > best_length) best = i, best_length = end - i;
    i = end + 1;
  }
  std::string out;
  for (size_t i = 0; i < 8; i++) {
    if (i == best) {
      out += i == 0 ? "::" : ":";
      i += best_length - 1;
      continue;
    }
    bool started = false;
    for (int shift = 12; shift >= 0; shift -= 4) {
      unsigned digit = piece[i] >> shift & 15;
      started = started || digit || shift == 0;
      if (started) out += kDigits[digit];
    }
    if (i != 7) out += ':';
  }
  return out;
}

std::string ipv4_text(const std::array<uint8_t, 16>& a) {
  std::string out;
  for (size_t i = 0; i < 4; i++) out += (i ? "." : "") + std::to_string(a[i]);
  return out;
}

sdk::Result<Host> parse_host(std::string_view text, bool special) {
  if (!text.starts_with('[')) return special ? parse_domain(text) : parse_opaque(text);
  if (!text.ends_with(']')) return invalid("'[' without ']'");
  auto address = parse_ipv6(text.substr(1, text.size() - 2));
  if (!address) return invalid("not an IPv6 address");
  Host host;
  host.kind = Host::Kind::IPV6;
  host.address = *address;
  host.text = "[" + ipv6_text(*address) + "]";
  return host;
}

}  // namespace h5i::websec
