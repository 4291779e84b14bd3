#include "plugins/websec-http/cookie/jar.hpp"

#include <algorithm>
#include <tuple>

#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

bool is_secure(const Url& url) { return url.scheme() == "https" || url.scheme() == "wss"; }

bool begins_with_nocase(std::string_view s, std::string_view prefix) {
  return s.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), s.begin(), [](char a, char b) {
           auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
           return lower(a) == lower(b);
         });
}

// Is `name` that domain or one below it?
bool is_below(std::string_view name, std::string_view domain) {
  if (!name.ends_with(domain)) return false;
  return name.size() == domain.size() || (!domain.empty() && name[name.size() - domain.size() - 1] == '.');
}

bool same_cookie(const Cookie& a, const Cookie& b) {
  return a.name == b.name && a.domain == b.domain && a.host_only == b.host_only && a.path == b.path;
}

bool is_expired(const Cookie& c, int64_t now) { return c.expires && *c.expires <= now; }

// Why the prefix of a name, or of the value of a cookie without one, refuses it; STORED when it does not.
CookieReason prefix_reason(const Cookie& c, bool explicit_root) {
  if (c.name.empty() && (begins_with_nocase(c.value, "__secure-") || begins_with_nocase(c.value, "__host-"))) return CookieReason::PREFIX_NAMELESS;
  if (begins_with_nocase(c.name, "__secure-") && !c.secure) return CookieReason::PREFIX_SECURE;
  if (begins_with_nocase(c.name, "__host-") && (!c.secure || !c.host_only || !explicit_root)) return CookieReason::PREFIX_HOST;
  return CookieReason::STORED;
}

}  // namespace

std::string_view name(CookieReason reason) {
  switch (reason) {
    case CookieReason::SENT: return "sent";
    case CookieReason::OTHER_HOST: return "other-host";
    case CookieReason::HOST_ONLY: return "host-only";
    case CookieReason::OTHER_PATH: return "other-path";
    case CookieReason::NOT_SECURE: return "not-secure";
    case CookieReason::SAME_SITE: return "same-site";
    case CookieReason::EXPIRED: return "expired";
    case CookieReason::PUBLIC_SUFFIX: return "public-suffix";
    case CookieReason::STORED: return "stored";
    case CookieReason::DELETED: return "deleted";
    case CookieReason::MALFORMED: return "malformed";
    case CookieReason::NAMELESS: return "nameless";
    case CookieReason::EMPTY: return "empty";
    case CookieReason::DOMAIN_MISMATCH: return "domain-mismatch";
    case CookieReason::DOMAIN_INVALID: return "domain-invalid";
    case CookieReason::SECURE_FROM_PLAIN: return "secure-from-plain";
    case CookieReason::OVERWRITES_SECURE: return "overwrites-secure";
    case CookieReason::SAME_SITE_NONE_NOT_SECURE: return "none-not-secure";
    case CookieReason::CROSS_SITE: return "cross-site";
    case CookieReason::PREFIX_SECURE: return "prefix-secure";
    case CookieReason::PREFIX_HOST: return "prefix-host";
    case CookieReason::PREFIX_NAMELESS: return "prefix-nameless";
  }
  return "";
}

std::string_view words(CookieReason reason) {
  switch (reason) {
    case CookieReason::SENT: return "sent";
    case CookieReason::OTHER_HOST: return "its domain is another";
    case CookieReason::HOST_ONLY: return "set without Domain, so only the host that set it has it";
    case CookieReason::OTHER_PATH: return "its path is another";
    case CookieReason::NOT_SECURE: return "Secure, and the request is not encrypted";
    case CookieReason::SAME_SITE: return "SameSite keeps it from a request that another site began";
    case CookieReason::EXPIRED: return "its time is over";
    case CookieReason::PUBLIC_SUFFIX: return "its domain is a public suffix by the list in use";
    case CookieReason::STORED: return "stored";
    case CookieReason::DELETED: return "its time was over when it came, which deletes it";
    case CookieReason::MALFORMED: return "the line cannot be read as a cookie";
    case CookieReason::NAMELESS: return "without a name, which this jar does not keep (browsers do)";
    case CookieReason::EMPTY: return "neither name nor value";
    case CookieReason::DOMAIN_MISMATCH: return "the host is not in the Domain that the line names";
    case CookieReason::DOMAIN_INVALID: return "the Domain that the line names is not ASCII";
    case CookieReason::SECURE_FROM_PLAIN: return "Secure, and the response was not encrypted";
    case CookieReason::OVERWRITES_SECURE: return "a response that was not encrypted may not stand in for a Secure cookie";
    case CookieReason::SAME_SITE_NONE_NOT_SECURE: return "SameSite=None without Secure";
    case CookieReason::CROSS_SITE: return "SameSite, and another site asked for the response";
    case CookieReason::PREFIX_SECURE: return "a name that begins with __Secure- needs Secure";
    case CookieReason::PREFIX_HOST: return "a name that begins with __Host- needs Secure, Path=/ and no Domain";
    case CookieReason::PREFIX_NAMELESS: return "without a name, and its value would be read as a name with a prefix";
  }
  return "";
}

bool domain_matches(const Host& host, std::string_view cookie_domain) {
  if (host.kind != Host::Kind::DOMAIN) return host.text == cookie_domain;
  return is_below(host.text, cookie_domain);
}

bool path_matches(std::string_view request_path, std::string_view cookie_path) {
  if (!request_path.starts_with(cookie_path)) return false;
  return request_path.size() == cookie_path.size() || cookie_path.ends_with('/') || request_path[cookie_path.size()] == '/';
}

std::string default_path(const Url& url) {
  size_t last = url.path().rfind('/');
  return last == std::string::npos || last == 0 ? "/" : url.path().substr(0, last);
}

StoreResult Jar::store(const Url& url, std::string_view line, const Requester& requester, const SuffixList& list, int64_t now) {
  StoreResult result;
  auto refuse = [&](CookieReason reason) {
    result.reason = reason;
    return result;
  };
  const char* why = "";
  auto set = parse_set_cookie(line, now, &why);
  if (!set || !url.host()) {
    result.detail = set ? "the URL has no host" : why;
    return refuse(CookieReason::MALFORMED);
  }
  result.cookie_name = set->name;
  if (set->name.empty() && set->value.empty()) return refuse(CookieReason::EMPTY);
  if (set->name.empty() && nameless_ == Nameless::DROP) return refuse(CookieReason::NAMELESS);

  const Host& host = *url.host();
  std::string domain = set->domain.value_or("");
  if (!is_ascii(domain)) return refuse(CookieReason::DOMAIN_INVALID);
  if (host.kind == Host::Kind::DOMAIN && list.is_public_suffix(domain)) {
    if (domain != host.text) return refuse(CookieReason::PUBLIC_SUFFIX);
    domain.clear();
    result.made_host_only = true;
  }
  if (!domain.empty() && !domain_matches(host, domain)) return refuse(CookieReason::DOMAIN_MISMATCH);

  Cookie c;
  c.name = std::move(set->name);
  c.value = std::move(set->value);
  c.host_only = domain.empty();
  c.domain = c.host_only ? host.text : domain;
  bool explicit_root = set->path == "/";
  c.path = set->path ? *std::move(set->path) : default_path(url);
  c.secure = set->secure;
  c.http_only = set->http_only;
  c.same_site = set->same_site;
  c.expires = set->expires;
  c.created = c.used = now;

  if (c.secure && !is_secure(url)) return refuse(CookieReason::SECURE_FROM_PLAIN);
  if (!c.secure && !is_secure(url)) {
    // An attacker on the wire must not put his own in the place of one that only encrypted responses may set.
    for (const Cookie& old : cookies_)
      if (old.secure && old.name == c.name && !is_expired(old, now) && (is_below(old.domain, c.domain) || is_below(c.domain, old.domain)) &&
          path_matches(c.path, old.path))
        return refuse(CookieReason::OVERWRITES_SECURE);
  }
  if (c.same_site != SameSite::NONE && !requester.same_site && !requester.navigation) return refuse(CookieReason::CROSS_SITE);
  if (c.same_site == SameSite::NONE && !c.secure) return refuse(CookieReason::SAME_SITE_NONE_NOT_SECURE);
  if (CookieReason reason = prefix_reason(c, explicit_root); reason != CookieReason::STORED) return refuse(reason);

  auto old = std::find_if(cookies_.begin(), cookies_.end(), [&](const Cookie& o) { return same_cookie(o, c); });
  c.order = next_++;
  if (old != cookies_.end()) {
    result.replaced = !is_expired(*old, now);
    if (result.replaced) {
      c.created = old->created;
      c.order = old->order;
    }
    cookies_.erase(old);
  }
  if (is_expired(c, now)) return refuse(CookieReason::DELETED);
  std::string its_domain = c.domain;
  cookies_.push_back(std::move(c));
  result.evicted = evict(its_domain, now);
  return result;
}

// Section 5.7, the end: what is over goes first, then of a domain with too many those without Secure, then the rest of it, then
// anything; each time what was not used for longest.
void Jar::restore(std::vector<Cookie> cookies) {
  cookies_ = std::move(cookies);
  next_ = 0;
  for (const Cookie& c : cookies_) next_ = std::max(next_, c.order + 1);
}

size_t Jar::evict(const std::string& domain, int64_t now) {
  size_t before = cookies_.size();
  auto of_domain = [&](const Cookie& c) { return c.domain == domain; };
  auto too_many = [&] { return static_cast<size_t>(std::count_if(cookies_.begin(), cookies_.end(), of_domain)) > kMaxCookiesOfDomain; };
  if (before <= kMaxCookies && !too_many()) return 0;
  std::erase_if(cookies_, [&](const Cookie& c) { return is_expired(c, now); });
  auto sooner = [](const Cookie& a, const Cookie& b) { return std::tuple(a.used, a.order) < std::tuple(b.used, b.order); };
  while (too_many()) {
    auto worst = cookies_.end();
    for (auto it = cookies_.begin(); it != cookies_.end(); ++it)
      if (of_domain(*it) && (worst == cookies_.end() || it->secure < worst->secure || (it->secure == worst->secure && sooner(*it, *worst)))) worst = it;
    cookies_.erase(worst);
  }
  while (cookies_.size() > kMaxCookies) cookies_.erase(std::min_element(cookies_.begin(), cookies_.end(), sooner));
  return before - cookies_.size();
}

Selection Jar::select(const Url& url, const Requester& requester, const SuffixList& list, int64_t now) {
  Selection out;
  if (!url.host()) return out;
  const Host& host = *url.host();
  std::string site = list.registrable_domain(host.text).value_or(host.text);
  // Most cookies of a host name one domain: the list is asked once for each that differs from the one before.
  std::string_view asked;
  bool asked_is_suffix = false;
  auto is_suffix = [&](const std::string& domain) {
    if (asked != domain) {
      asked = domain;
      asked_is_suffix = list.is_public_suffix(domain);
    }
    return asked_is_suffix;
  };
  auto reason = [&](const Cookie& c) {
    if (c.host_only ? host.text != c.domain : !domain_matches(host, c.domain))
      return c.host_only && host.kind == Host::Kind::DOMAIN && is_below(host.text, c.domain) ? CookieReason::HOST_ONLY : CookieReason::OTHER_HOST;
    if (is_expired(c, now)) return CookieReason::EXPIRED;
    // The list may have changed since it was stored.
    if (!c.host_only && host.kind == Host::Kind::DOMAIN && is_suffix(c.domain)) return CookieReason::PUBLIC_SUFFIX;
    if (!path_matches(url.path(), c.path)) return CookieReason::OTHER_PATH;
    if (c.secure && !is_secure(url)) return CookieReason::NOT_SECURE;
    if (c.same_site != SameSite::NONE && !requester.same_site) {
      bool lax = c.same_site != SameSite::STRICT && requester.navigation && requester.safe_method;
      if (!lax) return CookieReason::SAME_SITE;
    }
    return CookieReason::SENT;
  };
  std::vector<Cookie*> sent;
  std::vector<CookieVerdict> kept;
  for (Cookie& c : cookies_) {
    CookieReason r = reason(c);
    if (r == CookieReason::SENT) sent.push_back(&c);
    else if (r == CookieReason::OTHER_HOST && !is_below(c.domain, site)) out.elsewhere++;
    else kept.push_back({c.name, c.domain, c.path, r});
  }
  std::sort(sent.begin(), sent.end(), [](const Cookie* a, const Cookie* b) {
    if (a->path.size() != b->path.size()) return a->path.size() > b->path.size();
    return std::tuple(a->created, a->order) < std::tuple(b->created, b->order);
  });
  for (Cookie* c : sent) {
    c->used = now;
    out.header += (out.header.empty() ? "" : "; ") + (c->name.empty() ? "" : c->name + "=") + c->value;
    out.verdicts.push_back({c->name, c->domain, c->path, CookieReason::SENT});
  }
  out.verdicts.insert(out.verdicts.end(), std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
  return out;
}

sdk::Result<Jar*> Jars::of(std::string_view identity) {
  constexpr size_t kMaxName = 64;
  bool fits = !identity.empty() && identity.size() <= kMaxName && std::all_of(identity.begin(), identity.end(), [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
              });
  if (!fits) return sdk::failure(H5I_E_INVALID, "the name of a jar is 1 to 64 of a-z, 0-9, \"-\", \"_\" and \".\"");
  auto it = jars_.find(identity);
  if (it == jars_.end()) {
    if (jars_.size() == kMaxJars) return sdk::failure(H5I_E_TOO_LARGE, "more than " + std::to_string(kMaxJars) + " jars");
    it = jars_.emplace(std::string(identity), Jar(nameless_)).first;
  }
  return &it->second;
}

}  // namespace h5i::websec
