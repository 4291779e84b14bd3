#include "plugins/websec-http/cookie/public_suffix.hpp"

#include <libpsl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "plugins/websec-http/digest/sha256.hpp"

namespace h5i::websec {
namespace {

const psl_ctx_t* context(const std::shared_ptr<const void>& list) { return static_cast<const psl_ctx_t*>(list.get()); }

// The list's own header says "// VERSION: 2024-05-01_10-11-12_UTC".
std::optional<std::string> own_date(std::string_view bytes) {
  constexpr std::string_view kVersion = "// VERSION: ";
  constexpr size_t kHeader = 4096, kDay = 10;
  size_t at = bytes.substr(0, kHeader).find(kVersion);
  if (at == std::string_view::npos || bytes.size() < at + kVersion.size() + kDay) return {};
  std::string_view day = bytes.substr(at + kVersion.size(), kDay);
  for (size_t i = 0; i < day.size(); i++)
    if (i == 4 || i == 7 ? day[i] != '-' : day[i] < '0' || day[i] > '9') return {};
  return std::string(day);
}

constexpr std::string_view kCompiled = ".DAFSA@PSL_";

// libpsl takes any text for rules. A file that is something else must not pass for a list, because it would know no suffix.
size_t line_that_is_no_rule(std::string_view text) {
  for (size_t number = 1; !text.empty(); number++) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("//")) continue;
    std::string_view rule = line.substr(0, line.find_first_of(" \t\r"));  // the rest of a line is not read
    for (char c : rule) {
      bool letter = static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
      if (!letter && (c == '\0' || std::string_view(".*!-").find(c) == std::string_view::npos)) return number;
    }
  }
  return 0;
}

bool is_domain(std::string_view s) {
  constexpr size_t kNone = std::string_view::npos;
  return !s.empty() && s.front() != '.' && s.back() != '.' && s.find("..") == kNone && s.find('\0') == kNone;
}

void free_list(const void* list) { psl_free(static_cast<psl_ctx_t*>(const_cast<void*>(list))); }

}  // namespace

sdk::Result<SuffixList> SuffixList::from_bytes(std::string_view bytes, std::string date) {
  SuffixList out;
  if (!bytes.starts_with(kCompiled))
    if (size_t line = line_that_is_no_rule(bytes)) return sdk::failure(H5I_E_INVALID, "public suffix list: line " + std::to_string(line) + " is no rule");
  if (!bytes.empty())
    if (FILE* stream = fmemopen(const_cast<char*>(bytes.data()), bytes.size(), "r")) {  // read only; libpsl takes nothing but a stream
      if (psl_ctx_t* loaded = psl_load_fp(stream)) out.list_ = std::shared_ptr<const void>(loaded, free_list);
      fclose(stream);
    }
  // A compiled list does not count its rules; that it knows a suffix of two labels shows that it has some.
  if (!out.list_ || (psl_suffix_count(context(out.list_)) == 0 && !psl_is_public_suffix2(context(out.list_), "co.uk", PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE)))
    return sdk::failure(H5I_E_INVALID, "public suffix list: no rule in it");
  out.date_ = own_date(bytes).value_or(std::move(date));
  out.digest_ = "sha256:" + sha256_hex(bytes);
  return out;
}

sdk::Result<SuffixList> SuffixList::builtin() {
  const psl_ctx_t* list = psl_builtin();
  if (!list) return sdk::failure(H5I_E_UNSUPPORTED, "libpsl was built without a list");
  SuffixList out;
  out.list_ = std::shared_ptr<const void>(list, [](const void*) {});
  std::chrono::sys_days day = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::from_time_t(psl_builtin_file_time()));
  std::chrono::year_month_day date(day);
  char text[16];
  snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()), static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  out.date_ = text;
  out.digest_ = std::string("sha1:") + psl_builtin_sha1sum();
  return out;
}

bool SuffixList::is_public_suffix(std::string_view domain) const {
  return is_domain(domain) && psl_is_public_suffix(context(list_), std::string(domain).c_str());
}

std::optional<std::string> SuffixList::registrable_domain(std::string_view domain) const {
  if (!is_domain(domain)) return {};
  std::string name(domain);
  const char* found = psl_registrable_domain(context(list_), name.c_str());
  return found ? std::optional<std::string>(found) : std::nullopt;
}

bool same_site(const Url& a, const Url& b, const SuffixList& list) {
  auto transport = [](const Url& u) { return u.scheme() == "ws" ? std::string("http") : u.scheme() == "wss" ? std::string("https") : u.scheme(); };
  if (!a.host() || !b.host() || transport(a) != transport(b) || !a.special() || a.scheme() == "file") return false;
  if (*a.host() == *b.host()) return true;
  if (a.host()->kind != Host::Kind::DOMAIN || b.host()->kind != Host::Kind::DOMAIN) return false;
  auto of_a = list.registrable_domain(a.hostname()), of_b = list.registrable_domain(b.hostname());
  return of_a && of_a == of_b;
}

}  // namespace h5i::websec
