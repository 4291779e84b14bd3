// A line with the URL of a response, a line with that of a request, then Set-Cookie lines. What is kept keeps the rules of prefixes,
// of Secure, of domains and of sizes; what is sent belongs to the host, holds no byte that ends a header, and no reason holds a value.
#include <cstdlib>

#include "plugins/websec-http/cookie/cookie_date.hpp"
#include "plugins/websec-http/cookie/jar.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

bool begins(std::string_view s, std::string_view prefix) {
  if (s.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); i++)
    if ((s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]) != prefix[i]) return false;
  return true;
}

void check(const Jar& jar, const Url& from, const SuffixList& list) {
  bool plain = from.scheme() != "https" && from.scheme() != "wss";
  if (jar.cookies().size() > kMaxCookiesOfDomain) abort();
  for (const Cookie& c : jar.cookies()) {
    if (c.name.size() + c.value.size() > kMaxNameAndValue || (c.name.empty() && c.value.empty())) abort();
    if (c.name.find_first_of("=;") != std::string::npos || c.value.find(';') != std::string::npos || !c.path.starts_with('/')) abort();
    if (plain && c.secure) abort();
    if (c.same_site == SameSite::NONE && !c.secure) abort();
    if (!domain_matches(*from.host(), c.domain) || (!c.host_only && from.host()->kind == Host::Kind::DOMAIN && list.is_public_suffix(c.domain))) abort();
    std::string_view shown = c.name.empty() ? c.value : c.name;
    if (begins(shown, "__secure-") && (!c.secure || c.name.empty())) abort();
    if (begins(shown, "__host-") && (!c.secure || c.name.empty() || !c.host_only || c.path != "/")) abort();
    for (const Cookie& d : jar.cookies())
      if (&c != &d && c.name == d.name && c.domain == d.domain && c.path == d.path && c.host_only == d.host_only) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const SuffixList list = *SuffixList::from_bytes("com\nio\ngithub.io\n*.ck\n!www.ck\n");
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto date = parse_cookie_date(text))
    if (parse_cookie_date(imf_fixdate(*date)) != date) abort();
  auto from = Url::parse(line(text));
  auto to = Url::parse(line(text));
  if (!from || !to || !from->host()) return 0;
  constexpr int64_t kNow = 1700000000;
  Jar jar(Nameless::KEEP), dropping;
  int64_t now = kNow;
  while (!text.empty()) {
    std::string_view one = line(text);
    Requester who;
    who.same_site = one.size() % 3 != 0;
    who.navigation = one.size() % 2 != 0;
    StoreResult stored = jar.store(*from, one, who, list, now++);
    if (name(stored.reason).empty() || words(stored.reason).empty()) abort();
    (void)dropping.store(*from, one, who, list, now);
  }
  check(jar, *from, list);
  check(dropping, *from, list);
  for (const Cookie& c : dropping.cookies())
    if (c.name.empty()) abort();
  for (bool same_site : {true, false}) {
    Selection s = jar.select(*to, {same_site, true, true}, list, now);
    for (char c : s.header)
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) abort();
    if (s.verdicts.size() + s.elsewhere != jar.cookies().size() && to->host()) abort();
    for (const CookieVerdict& v : s.verdicts)
      if (v.reason == CookieReason::SENT && (!to->host() || !domain_matches(*to->host(), v.domain) || !path_matches(to->path(), v.path))) abort();
  }
  return 0;
}
