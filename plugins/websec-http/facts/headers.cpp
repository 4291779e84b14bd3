#include <algorithm>
#include <optional>

#include "plugins/websec-http/facts/facts.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

using Id = PassiveId;
using syntax::same;
using syntax::trimmed;

constexpr uint64_t kShortHsts = 180 * 24 * 3600;
constexpr std::string_view kSecretNames[] = {"token", "access_token", "id_token", "api_key", "apikey",    "key", "secret", "client_secret", "password",
                                             "passwd", "pwd",         "session",  "sessionid", "sid", "jwt",  "auth",   "signature"};
// Of these a response has one, and readers differ in which of two counts.
constexpr std::string_view kOnce[] = {"content-type",        "location",        "access-control-allow-origin", "strict-transport-security",
                                      "content-disposition", "x-frame-options", "etag",                        "content-location"};

template <class F>
void each_of(const FieldBlock& fields, std::string_view name, F each) {
  for (size_t i = 0; i < fields.size(); i++)
    if (FieldView f = fields.field(i); same(f.name, name)) each(f);
}
template <class F>
void each_part(std::string_view s, char separator, F each) {
  for (size_t at = 0; at <= s.size();) {
    size_t end = std::min(s.find(separator, at), s.size());
    each(trimmed(s.substr(at, end - at)));
    at = end + 1;
  }
}
std::string_view before(std::string_view s, char c) { return trimmed(s.substr(0, s.find(c))); }
std::string_view behind(std::string_view s, char c) {
  size_t at = s.find(c);
  return at == std::string_view::npos ? std::string_view() : trimmed(s.substr(at + 1));
}

class Headers {
 public:
  Headers(const Exchange& x, bool page, PassiveFacts* out) : x_(x), answer_(x.response->fields), page_(page), out_(*out) {
    Oddities aside(false);
    size_t line = x.request_head.find('\n');
    if (line != std::string_view::npos) asked_.read(std::string(x.request_head), line + 1, 0, 1000, aside);
    with_credentials_ = asked_.first("authorization") || asked_.first("cookie");
  }

  void all() {
    target();
    if (!x_.secure)
      for (std::string_view name : {"authorization", "cookie"})
        each_of(asked_, name, [&](FieldView f) { asked(Id::CREDENTIALS_IN_CLEAR, f.offset, f.name); });
    each_of(answer_, "set-cookie", [&](FieldView f) { cookie(f); });
    if (page_) policy();
    hsts();
    cors();
    others();
    caching();
  }

 private:
  void asked(Id id, uint64_t offset, std::string_view detail) { out_.add(id, FactPlace::REQUEST_HEAD, offset, detail); }
  void says(Id id, const FieldView& f, std::string_view detail = {}) { out_.add(id, FactPlace::RESPONSE_HEAD, f.offset, detail); }
  void lacks(Id id) { out_.add(id, FactPlace::RESPONSE_HEAD, answer_.offset()); }

  // Names of parameters in the request's target. Their values stay out of the detail.
  void target() {
    std::string_view line = x_.request_head.substr(0, x_.request_head.find_first_of("\r\n"));
    size_t begin = line.find(' ');
    if (begin == std::string_view::npos) return;
    size_t end = std::min(line.find(' ', begin + 1), line.size()), mark = line.find('?', begin);
    if (mark == std::string_view::npos || mark > end) return;
    for (size_t at = mark + 1; at < end;) {
      size_t next = std::min(line.find('&', at), end);
      std::string_view name = before(line.substr(at, next - at), '=');
      for (std::string_view secret : kSecretNames)
        if (same(name, secret) && next > at + name.size() + 1) asked(Id::SECRET_IN_URL, at, name);
      at = next + 1;
    }
  }

  void cookie(const FieldView& f) {
    std::string_view pair = f.value.substr(0, f.value.find(';'));
    // What has no name may be all value.
    std::string_view name = pair.find('=') == std::string_view::npos ? std::string_view("(nameless)") : before(pair, '=');
    bool secure = false, http_only = false, path_root = false, gone = false;
    std::optional<std::string_view> domain, same_site;
    if (pair.size() < f.value.size())
      each_part(f.value.substr(pair.size() + 1), ';', [&](std::string_view a) {
        std::string_view key = before(a, '='), value = behind(a, '=');
        if (same(key, "secure")) secure = true;
        if (same(key, "httponly")) http_only = true;
        if (same(key, "path")) path_root = value == "/";
        if (same(key, "domain") && !value.empty()) domain = value;
        if (same(key, "samesite")) same_site = value;
        if (same(key, "max-age")) gone = value.starts_with('-') || (!value.empty() && value.find_first_not_of('0') == std::string_view::npos);
      });
    if (gone) return;  // it is taken back, not set
    if (x_.secure && !secure) says(Id::COOKIE_NO_SECURE, f, name);
    if (!http_only) says(Id::COOKIE_NO_HTTPONLY, f, name);
    if (!same_site) says(Id::COOKIE_NO_SAMESITE, f, name);
    if (same_site && same(*same_site, "none")) says(Id::COOKIE_SAMESITE_NONE, f, name);
    if (domain) says(Id::COOKIE_DOMAIN, f, name);
    bool host = same(name.substr(0, 7), "__Host-"), prefixed = host || same(name.substr(0, 9), "__Secure-");
    if (prefixed && (!secure || !x_.secure || (host && (domain || !path_root)))) says(Id::COOKIE_PREFIX_BROKEN, f, name);
  }

  struct Weak {
    bool no_script = false, inside = false, eval = false, wildcard = false, no_object = false, no_base = false;
  };
  static Weak weakness(std::string_view policy, bool* frames) {
    std::optional<std::string_view> script, fallback, object, base;
    each_part(policy, ';', [&](std::string_view d) {
      size_t space = std::min(d.find_first_of(" \t"), d.size());
      std::string_view name = d.substr(0, space), rest = d.substr(space);
      auto first = [&](std::optional<std::string_view>* into) {  // of a directive that stands twice the first counts
        if (!*into) *into = rest;
      };
      if (same(name, "script-src")) first(&script);
      if (same(name, "default-src")) first(&fallback);
      if (same(name, "object-src")) first(&object);
      if (same(name, "base-uri")) first(&base);
      if (same(name, "frame-ancestors")) *frames = true;
    });
    Weak w;
    w.no_object = !object && !fallback;
    w.no_base = !base;
    std::optional<std::string_view> sources = script ? script : fallback;
    w.no_script = !sources;
    if (!sources) return w;
    bool unsafe_inline = false, trusted = false, dynamic = false, wild = false;
    each_part(*sources, ' ', [&](std::string_view s) {
      if (same(s, "'unsafe-inline'")) unsafe_inline = true;
      if (same(s, "'unsafe-eval'")) w.eval = true;
      if (same(s, "'strict-dynamic'")) dynamic = true;
      for (std::string_view p : {"'nonce-", "'sha256-", "'sha384-", "'sha512-"}) trusted = trusted || same(s.substr(0, p.size()), p);
      for (std::string_view any : {"*", "http:", "https:", "data:"}) wild = wild || same(s, any);
    });
    w.inside = unsafe_inline && !trusted && !dynamic;
    w.wildcard = wild && !dynamic;
    return w;
  }

  // Several policies hold together, so a weakness counts when each of them has it.
  void policy() {
    std::optional<FieldView> first;
    Weak all{true, true, true, true, true, true};
    each_of(answer_, "content-security-policy", [&](FieldView f) {
      if (!first) first = f;
      syntax::each_element(f.value, [&](std::string_view p) {
        if (p.empty()) return;
        Weak w = weakness(p, &frames_);
        all = {all.no_script && w.no_script, all.inside && w.inside,       all.eval && w.eval,
               all.wildcard && w.wildcard,   all.no_object && w.no_object, all.no_base && w.no_base};
      });
    });
    if (!first) {
      if (auto f = answer_.first("content-security-policy-report-only")) says(Id::CSP_REPORT_ONLY, *f);
      return lacks(Id::CSP_MISSING);
    }
    if (all.no_script) says(Id::CSP_NO_SCRIPT_SRC, *first);
    if (all.inside && !all.no_script) says(Id::CSP_UNSAFE_INLINE, *first);
    if (all.eval && !all.no_script) says(Id::CSP_UNSAFE_EVAL, *first);
    if (all.wildcard && !all.no_script) says(Id::CSP_WILDCARD, *first);
    if (all.no_object) says(Id::CSP_NO_OBJECT_SRC, *first);
    if (all.no_base) says(Id::CSP_NO_BASE_URI, *first);
  }

  void hsts() {
    auto f = answer_.first("strict-transport-security");
    if (!f) {
      if (x_.secure) lacks(Id::HSTS_MISSING);
      return;
    }
    if (!x_.secure) return says(Id::HSTS_ON_HTTP, *f);
    int ages = 0;
    std::string_view age;
    each_part(f->value, ';', [&](std::string_view d) {
      if (!same(before(d, '='), "max-age")) return;
      ages++;
      age = behind(d, '=');
      if (age.size() >= 2 && age.front() == '"' && age.back() == '"') age = age.substr(1, age.size() - 2);
    });
    if (ages != 1 || age.empty() || !syntax::all(age, syntax::kDigit)) return says(Id::HSTS_INVALID, *f, f->value);
    uint64_t seconds = 0;
    for (char c : age) seconds = std::min<uint64_t>(seconds * 10 + static_cast<uint64_t>(c - '0'), UINT32_MAX);
    if (seconds == 0) return says(Id::HSTS_OFF, *f);
    if (seconds < kShortHsts) says(Id::HSTS_SHORT, *f, age);
  }

  void cors() {
    auto allowed = answer_.first("access-control-allow-origin");
    if (!allowed) return;
    auto credentials = answer_.first("access-control-allow-credentials");
    bool with = credentials && credentials->value == "true";
    if (allowed->value == "*") return says(Id::CORS_ANY, *allowed);  // browsers give it no credentials
    bool other = allowed->value != x_.origin;
    if (allowed->value == "null") says(Id::CORS_NULL, *allowed);
    auto origin = asked_.first("origin");
    if (other && origin && origin->value == allowed->value) says(Id::CORS_REFLECTED, *allowed, allowed->value);
    if (other && with) says(Id::CORS_CREDENTIALS, *credentials, allowed->value);
    bool varies = false;
    auto names_origin = [&](std::string_view e) { varies = varies || e == "*" || same(e, "origin"); };
    each_of(answer_, "vary", [&](FieldView f) { syntax::each_element(f.value, names_origin); });
    if (other && !varies) says(Id::CORS_NO_VARY, *allowed, allowed->value);
  }

  void others() {
    auto sniff = answer_.first("x-content-type-options");
    auto type = answer_.first("content-type");
    if (!x_.body.empty() && !type) lacks(Id::CONTENT_TYPE_MISSING);
    if (!x_.body.empty() && !(sniff && same(sniff->value, "nosniff"))) sniff ? says(Id::NOSNIFF_MISSING, *sniff, sniff->value) : lacks(Id::NOSNIFF_MISSING);
    auto options = answer_.first("x-frame-options");
    bool framed = options && (same(options->value, "deny") || same(options->value, "sameorigin"));
    if (page_ && !frames_ && !framed) options ? says(Id::FRAMING_ALLOWED, *options, options->value) : lacks(Id::FRAMING_ALLOWED);
    each_of(answer_, "alt-svc", [&](FieldView f) { says(Id::ALT_SVC, f, f.value); });
    each_of(answer_, "referrer-policy", [&](FieldView f) {
      syntax::each_element(f.value, [&](std::string_view e) {
        if (same(e, "unsafe-url")) says(Id::REFERRER_UNSAFE, f);
      });
    });
    for (std::string_view name : kOnce) {
      size_t n = 0;
      each_of(answer_, name, [&](FieldView f) {
        if (++n == 2) says(Id::HEADER_REPEATED, f, f.name);
      });
    }
    for (std::string_view name : {"server", "x-powered-by", "x-aspnet-version", "x-aspnetmvc-version", "x-generator", "via"})
      each_of(answer_, name, [&](FieldView f) {
        bool via = name == "via";  // has a protocol's version in front
        std::string_view product = via ? f.value.substr(std::min(f.value.find(' '), f.value.size())) : f.value;
        if (std::any_of(product.begin(), product.end(), [](char c) { return syntax::is(c, syntax::kDigit); })) says(Id::LEAK_VERSION, f, f.value);
      });
    for (size_t i = 0; i < answer_.size(); i++) {
      FieldView f = answer_.field(i);
      facts_of_addresses(f.value, FactPlace::RESPONSE_HEAD, answer_.offset() + static_cast<uint64_t>(f.value.data() - answer_.bytes().data()), &out_);
    }
  }

  void caching() {
    std::optional<FieldView> control;
    bool kept_out = false, shared = false, age = false;
    each_of(answer_, "cache-control", [&](FieldView f) {
      if (!control) control = f;
      syntax::each_element(f.value, [&](std::string_view e) {
        std::string_view name = before(e, '='), value = behind(e, '=');
        // With a list of header names they keep out only those headers (RFC 9111 section 5.2.2).
        if (same(name, "no-store") || ((same(name, "private") || same(name, "no-cache")) && value.empty())) kept_out = true;
        if (same(name, "public") || same(name, "s-maxage") || same(name, "must-revalidate")) shared = true;
        if (same(name, "max-age") && value != "0") age = true;
      });
    });
    int s = x_.response->status;
    bool cacheable = (x_.request_head.starts_with("GET ") || x_.request_head.starts_with("HEAD ")) && s >= 200 && s < 400 && s != 304;
    if (!cacheable) return;
    if (control && !kept_out) {
      if (auto cookie = answer_.first("set-cookie"); cookie && (shared || age)) says(Id::CACHE_COOKIE, *control, control->value);
      bool authorized = asked_.first("authorization").has_value();
      if ((authorized && shared) || (!authorized && with_credentials_ && (shared || age))) says(Id::CACHE_CREDENTIALS, *control, control->value);
    }
    if (!control && with_credentials_ && !answer_.first("expires") && !answer_.first("pragma")) lacks(Id::CACHE_NOT_SAID);
  }

  const Exchange& x_;
  const FieldBlock& answer_;
  bool page_;
  PassiveFacts& out_;
  FieldBlock asked_;
  bool with_credentials_ = false, frames_ = false;
};

}  // namespace

void facts_of_headers(const Exchange& exchange, bool page, PassiveFacts* out) { Headers(exchange, page, out).all(); }

}  // namespace h5i::websec
