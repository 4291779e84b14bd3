// What a response may store and what a request carries (RFC 6265bis, sections 5.7 and 5.8).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/cookie/public_suffix.hpp"
#include "plugins/websec-http/cookie/set_cookie.hpp"
#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

// Browsers keep 180 of a domain and some 3,000 in all; the standard asks for 50 and 3,000 at least.
constexpr size_t kMaxCookiesOfDomain = 180;
constexpr size_t kMaxCookies = 3000;
constexpr size_t kMaxJars = 100;

struct Cookie {
  std::string name, value;
  std::string domain;  // canonical
  std::string path;
  bool host_only = true, secure = false, http_only = false;
  SameSite same_site = SameSite::DEFAULT;
  std::optional<int64_t> expires;  // seconds since 1970; none: until the session ends
  int64_t created = 0, used = 0;
  uint64_t order = 0;  // of the creation, among those of one second
};

// Who asks, as far as SameSite wants to know.
struct Requester {
  bool same_site = true;
  bool navigation = true;   // of the topmost document
  bool safe_method = true;  // GET, HEAD, OPTIONS, TRACE
};

enum class CookieReason {
  SENT,
  OTHER_HOST,
  HOST_ONLY,       // set without Domain, by another host
  OTHER_PATH,
  NOT_SECURE,      // Secure, and the request is neither https nor wss
  SAME_SITE,
  EXPIRED,
  PUBLIC_SUFFIX,   // its domain is a public suffix by the list of now
  // and of a line that is not stored:
  STORED,
  DELETED,         // it was there, and the line ended its life
  MALFORMED,
  NAMELESS,
  EMPTY,           // neither name nor value
  DOMAIN_MISMATCH,
  DOMAIN_INVALID,
  SECURE_FROM_PLAIN,
  OVERWRITES_SECURE,
  SAME_SITE_NONE_NOT_SECURE,
  CROSS_SITE,
  PREFIX_SECURE,
  PREFIX_HOST,
  PREFIX_NAMELESS,
};
std::string_view name(CookieReason reason);   // the word in the log
std::string_view words(CookieReason reason);  // for people

struct StoreResult {
  CookieReason reason = CookieReason::STORED;
  bool stored() const { return reason == CookieReason::STORED; }
  bool replaced = false;      // another value of the same cookie was there
  bool made_host_only = false;  // its Domain was a public suffix and the host itself
  std::string cookie_name;    // "" when the line could not be read
  std::string detail;         // of MALFORMED
  size_t evicted = 0;
};

struct CookieVerdict {
  std::string cookie_name, domain, path;
  CookieReason reason = CookieReason::SENT;
};

struct Selection {
  std::string header;                   // "a=b; c=d", the only place with values; "" for none
  std::vector<CookieVerdict> verdicts;  // sent ones in the order of the header, then those of the host or its relatives that are not
  size_t elsewhere = 0;                 // cookies of unrelated hosts, not listed
};

// A cookie without a name. RFC 6265 drops the line; RFC 6265bis keeps it and sends the value alone.
enum class Nameless { DROP, KEEP };

class Jar {
 public:
  explicit Jar(Nameless nameless = Nameless::DROP) : nameless_(nameless) {}

  // One Set-Cookie line of a response to `url`; the caller gives each line on its own, in order.
  StoreResult store(const Url& url, std::string_view line, const Requester& requester, const SuffixList& list, int64_t now);
  // The Cookie header of a request to `url`. Marks what is sent as used.
  Selection select(const Url& url, const Requester& requester, const SuffixList& list, int64_t now);

  const std::vector<Cookie>& cookies() const { return cookies_; }
  void clear() { cookies_.clear(); }
  // What cookies() gave earlier.
  void restore(std::vector<Cookie> cookies);

 private:
  size_t evict(const std::string& domain, int64_t now);

  std::vector<Cookie> cookies_;
  uint64_t next_ = 0;
  Nameless nameless_;
};

// A jar for each identity, by its name; an identity never sees another's cookies.
class Jars {
 public:
  explicit Jars(Nameless nameless = Nameless::DROP) : nameless_(nameless) {}
  // The jar of that name, made when there is none. A name is 1 to 64 of a-z, 0-9, "-", "_" and "."; H5I_E_INVALID, H5I_E_TOO_LARGE.
  sdk::Result<Jar*> of(std::string_view identity);
  const std::map<std::string, Jar, std::less<>>& all() const { return jars_; }

 private:
  std::map<std::string, Jar, std::less<>> jars_;
  Nameless nameless_;
};

// Section 5.1.3 and 5.1.4.
bool domain_matches(const Host& host, std::string_view cookie_domain);
bool path_matches(std::string_view request_path, std::string_view cookie_path);
std::string default_path(const Url& url);

}  // namespace h5i::websec
