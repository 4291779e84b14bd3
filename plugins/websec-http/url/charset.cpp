#include "plugins/websec-http/url/charset.hpp"

#include <unicode/ucnv.h>
#include <unicode/ucnv_err.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <memory>

namespace h5i::websec {
namespace {

// The Encoding Standard's name, and ICU's converter that has the same table or the nearest.
constexpr std::pair<std::string_view, const char*> kConverters[] = {
    {"ibm866", "ibm-866_P100-1995"},        {"iso-8859-2", "ISO-8859-2"},           {"iso-8859-3", "ISO-8859-3"},
    {"iso-8859-4", "ISO-8859-4"},           {"iso-8859-5", "ISO-8859-5"},           {"iso-8859-6", "ISO-8859-6"},
    {"iso-8859-7", "ISO-8859-7"},           {"iso-8859-8", "ISO-8859-8"},           {"iso-8859-10", "ISO-8859-10"},
    {"iso-8859-13", "ISO-8859-13"},         {"iso-8859-14", "ISO-8859-14"},         {"iso-8859-15", "ISO-8859-15"},
    {"koi8-r", "KOI8-R"},                   {"koi8-u", "KOI8-U"},                   {"macintosh", "macintosh"},
    {"windows-874", "windows-874"},         {"windows-1250", "windows-1250"},       {"windows-1251", "windows-1251"},
    {"windows-1252", "windows-1252"},       {"windows-1253", "windows-1253"},       {"windows-1254", "windows-1254"},
    {"windows-1255", "windows-1255"},       {"windows-1256", "windows-1256"},       {"windows-1257", "windows-1257"},
    {"windows-1258", "windows-1258"},       {"gbk", "GBK"},                         {"gb18030", "gb18030"},
    {"big5", "Big5"},                       {"euc-jp", "EUC-JP"},                   {"iso-2022-jp", "ISO-2022-JP"},
    {"shift_jis", "ibm-943_P15A-2003"},     {"euc-kr", "windows-949-2000"},
};

struct Close {
  void operator()(UConverter* c) const { ucnv_close(c); }
};
using Converter = std::unique_ptr<UConverter, Close>;

Converter open(std::string_view charset) {
  for (const auto& [name, converter] : kConverters) {
    if (name != charset) continue;
    UErrorCode status = U_ZERO_ERROR;
    Converter c(ucnv_open(converter, &status));
    if (U_SUCCESS(status)) ucnv_setFromUCallBack(c.get(), UCNV_FROM_U_CALLBACK_STOP, nullptr, nullptr, nullptr, &status);
    return U_SUCCESS(status) ? std::move(c) : nullptr;
  }
  return nullptr;
}

// Where the Encoding Standard's encoder differs from every table: what it puts in the place of `cp`, or 0 when it is refused.
struct Asked {
  UChar32 cp;
  UChar32 refused_as = 0;  // the reference that stands for it
};
Asked asked_of(std::string_view charset, UChar32 cp) {
  if (charset == "iso-2022-jp" && (cp == 0x0e || cp == 0x0f || cp == 0x1b)) return {cp, 0xfffd};
  if ((charset == "gb18030" || charset == "gbk") && cp == 0xe5e5) return {cp, cp};
  if ((charset == "shift_jis" || charset == "euc-jp" || charset == "iso-2022-jp") && cp == 0x2212) return {0xff0d};
  return {cp};
}

}  // namespace

std::optional<std::string> percent_encode_in(std::string_view charset, std::string_view text, EncodeSet set) {
  if (charset == "utf-8" || charset == "replacement" || charset == "utf-16le" || charset == "utf-16be") return percent_encode(text, set);
  Converter converter = open(charset);
  if (!converter) return {};
  std::string out;
  // One code point a call, so that what cannot be said is known; the converter keeps its shift state between them.
  auto convert = [&](UChar32 cp, bool last) {
    char16_t units[2];
    int32_t n = 0;
    if (!last) U16_APPEND_UNSAFE(units, n, cp);
    const UChar* from = units;
    char bytes[32];
    char* to = bytes;
    UErrorCode status = U_ZERO_ERROR;
    ucnv_fromUnicode(converter.get(), &to, bytes + sizeof bytes, &from, units + n, nullptr, last, &status);
    percent_encode(std::string_view(bytes, static_cast<size_t>(to - bytes)), set, out);
    return U_SUCCESS(status);
  };
  const auto* source = reinterpret_cast<const uint8_t*>(text.data());
  auto size = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < size;) {
    UChar32 cp = 0;
    U8_NEXT_OR_FFFD(source, i, size, cp);
    Asked asked = asked_of(charset, cp);
    UChar32 reference = asked.refused_as;
    if (!reference && !convert(asked.cp, false)) reference = cp;
    if (!reference) continue;
    // A reference is ASCII: back to that state first. What is left of the refused code point goes with it.
    convert(0, true);
    ucnv_resetFromUnicode(converter.get());
    out += "%26%23" + std::to_string(reference) + "%3B";
  }
  convert(0, true);
  return out;
}

}  // namespace h5i::websec
