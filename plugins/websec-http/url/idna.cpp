#include "plugins/websec-http/url/idna.hpp"

#include <unicode/uidna.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

// What a lookup that is not strict forgives: CheckHyphens and VerifyDnsLength are false.
constexpr uint32_t kForgiven = UIDNA_ERROR_EMPTY_LABEL | UIDNA_ERROR_LABEL_TOO_LONG | UIDNA_ERROR_DOMAIN_NAME_TOO_LONG |
                               UIDNA_ERROR_LEADING_HYPHEN | UIDNA_ERROR_TRAILING_HYPHEN | UIDNA_ERROR_HYPHEN_3_4;

// What UTS 46 of Unicode 15.1 to 17 maps or ignores and the tables of older ICU releases refuse (capital sharp s: map elsewhere).
// Browsers have the newer tables, and one name is to be one machine here and there. With a newer ICU these rows change nothing.
struct Newer {
  uint32_t first, last;
  uint32_t to;  // of `first`, the others in order; 0: ignored
};
constexpr Newer kNewer[] = {
    {0x4c0, 0x4c0, 0x4cf},       {0x10a0, 0x10c5, 0x2d00},    {0x115f, 0x1160, 0},         {0x17b4, 0x17b5, 0},
    {0x180e, 0x180e, 0},         {0x1e9e, 0x1e9e, 0xdf},      {0x2061, 0x2063, 0},         {0x206a, 0x206f, 0},
    {0x2132, 0x2132, 0x214e},    {0x2183, 0x2183, 0x2184},    {0x3164, 0x3164, 0},         {0xffa0, 0xffa0, 0},
    {0x1d173, 0x1d17a, 0},       {0x2f868, 0x2f868, 0x36fc},  {0x2f874, 0x2f874, 0x5f53},  {0x2f91f, 0x2f91f, 0x243ab},
    {0x2f95f, 0x2f95f, 0x7aee},  {0x2f9bf, 0x2f9bf, 0x45d7},
};

std::string with_newer_tables(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(s.data());
  auto size = static_cast<int32_t>(s.size());
  for (int32_t i = 0; i < size;) {
    int32_t begin = i;
    UChar32 c = 0;
    U8_NEXT_OR_FFFD(bytes, i, size, c);
    auto cp = static_cast<uint32_t>(c);
    auto row = std::find_if(std::begin(kNewer), std::end(kNewer), [&](const Newer& n) { return cp >= n.first && cp <= n.last; });
    if (row == std::end(kNewer)) {
      out.append(s.substr(static_cast<size_t>(begin), static_cast<size_t>(i - begin)));
    } else if (row->to) {
      uint8_t encoded[U8_MAX_LENGTH];
      int32_t n = 0;
      U8_APPEND_UNSAFE(encoded, n, row->to + (cp - row->first));
      out.append(reinterpret_cast<const char*>(encoded), static_cast<size_t>(n));
    }
  }
  return out;
}

// An A-label that stands for nothing but ASCII, or for nothing: an error since Unicode 15.1.
bool has_idle_a_label(std::string_view domain) {
  while (!domain.empty()) {
    std::string_view label = domain.substr(0, domain.find('.'));
    if (label.starts_with("xn--") && label.ends_with('-')) return true;
    domain.remove_prefix(std::min(label.size() + 1, domain.size()));
  }
  return false;
}

// One for the process: ICU's object is constant after it was opened.
const UIDNA* processor() {
  static const UIDNA* const p = [] {
    UErrorCode status = U_ZERO_ERROR;
    const UIDNA* opened =
        uidna_openUTS46(UIDNA_CHECK_BIDI | UIDNA_CHECK_CONTEXTJ | UIDNA_NONTRANSITIONAL_TO_ASCII | UIDNA_NONTRANSITIONAL_TO_UNICODE, &status);
    return U_SUCCESS(status) ? opened : nullptr;
  }();
  return p;
}

}  // namespace

std::optional<std::string> domain_to_ascii(std::string_view domain) {
  if (is_ascii(domain)) {
    std::string out(domain);
    std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return out;
  }
  const UIDNA* p = processor();
  if (!p) return {};
  std::string name = with_newer_tables(domain);
  if (name.empty()) return name;
  std::string out(name.size() * 2 + 64, '\0');
  for (int attempt = 0; attempt < 2; attempt++) {
    UErrorCode status = U_ZERO_ERROR;
    UIDNAInfo info = UIDNA_INFO_INITIALIZER;
    int32_t n = uidna_nameToASCII_UTF8(p, name.data(), static_cast<int32_t>(name.size()), out.data(), static_cast<int32_t>(out.size()),
                                       &info, &status);
    if (status == U_BUFFER_OVERFLOW_ERROR) {
      out.resize(static_cast<size_t>(n) + 1);
      continue;
    }
    if (U_FAILURE(status) || (info.errors & ~kForgiven)) return {};
    out.resize(static_cast<size_t>(n));
    return is_ascii(out) && !has_idle_a_label(out) ? std::optional(std::move(out)) : std::nullopt;
  }
  return {};
}

}  // namespace h5i::websec
