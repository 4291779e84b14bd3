#include "plugins/websec-http/engine/send.hpp"

#include <sys/random.h>
#include <time.h>

#include <memory>

#include "plugins/websec-http/engine/exchange.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/engine/resolve.hpp"
#include "plugins/websec-http/http/syntax.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kNames = 200;  // of headers or cookies in the log
constexpr size_t kName = 100;   // bytes of each
constexpr size_t kLongestUrl = 16 << 10;

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
int64_t realtime_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
int64_t micros(int64_t from, int64_t to) { return (to - from) / 1000; }

class Sender {
 public:
  Sender(const sdk::Host& host, Recorder& recorder, const Scope& scope, const SendOptions& options)
      : host_(host), recorder_(recorder), scope_(scope), options_(options), own_(host, {}), transport_(options.transport ? *options.transport : own_) {}

  sdk::Result<Sends> run(const std::string& url, Request request) {
    auto parsed = Url::parse(url);
    if (!parsed.ok()) {
      H5I_SDK_TRY(refuse(log_url(url), "url", parsed.error().text, 1));
      return std::move(out_);
    }
    Url at = *parsed;
    fill(request, at);
    for (int hops = 0;; hops++) {
      std::optional<Url> next = H5I_SDK_TRY(one(at, request));
      if (!next || hops >= options_.follow) return std::move(out_);
      if (is_downgrade(at, *next)) {
        H5I_SDK_TRY(refuse(next->href_without_fragment(), "downgrade", "from https to " + next->scheme(), 1));
        return std::move(out_);
      }
      dropped_.clear();
      redirected(request, status_, at, *next, &dropped_);
      options_.raw.reset();
      at = std::move(*next);
    }
  }

 private:
  static void fill(Request& request, const Url& url) {
    request.scheme = url.scheme();
    request.authority = url.host_and_port();
    request.target = url.path() + (url.query() ? "?" + *url.query() : "");
  }

  sdk::Status refuse(const std::string& url, const char* why, const std::string& text, int code, const std::string& rule = {}) {
    json::Value facts = json::Object{{"url", url}, {"why", why}, {"text", text}};
    if (!rule.empty()) facts["rule"] = rule;
    if (parent_ != 0) facts["parent"] = parent_;
    uint64_t seq = H5I_SDK_TRY(recorder_.refusal(facts));
    out_.rows.push_back({seq, false, std::move(facts)});
    out_.code = code;
    return {};
  }

  // The next hop, when the answer names one.
  sdk::Result<std::optional<Url>> one(const Url& url, const Request& request) {
    const std::string text = url.href_without_fragment();
    if (url.has_credentials()) {
      H5I_SDK_TRY(refuse(url.origin().text() + "/", "url-credentials", "a URL with a user or a password would be in every log: give a header instead", 1));
      return std::optional<Url>();
    }
    if (text.size() > kLongestUrl) {
      H5I_SDK_TRY(refuse(log_text(text), "url-too-long", std::to_string(text.size()) + " bytes, at most " + std::to_string(kLongestUrl), 1));
      return std::optional<Url>();
    }
    if (realtime_ns() >= options_.expires_ns) {
      H5I_SDK_TRY(refuse(text, "expired", "the session ended meanwhile", 1));
      return std::optional<Url>();
    }
    Decision decision = scope_.decide(url);
    if (!decision.allowed) {
      H5I_SDK_TRY(refuse(text, "scope", scope_.explain(url, decision).line, 1, scope_.rule_text(decision)));
      return std::optional<Url>();
    }
    // Which path raw bytes ask for, and how often, is for the server to say.
    if (options_.raw && has_paths(url)) {
      H5I_SDK_TRY(refuse(text, "raw-path", "the scope names paths of this origin, which raw bytes cannot be held to", 1, scope_.rule_text(decision)));
      return std::optional<Url>();
    }
    const bool socket = url.scheme() == "ws" || url.scheme() == "wss", secure = url.scheme() == "https" || url.scheme() == "wss";
    if (!socket && url.scheme() != "http" && url.scheme() != "https") {
      H5I_SDK_TRY(refuse(text, "scheme", "this engine does not speak " + url.scheme() + " yet", 2));
      return std::optional<Url>();
    }
    const int64_t asked = now_ns();
    Found found = look_up(*url.host(), options_.timeout_ns);
    dns_us_ = micros(asked, now_ns());
    if (found.addresses.empty()) {
      H5I_SDK_TRY(refuse(text, "dns-failed", url.hostname() + ": " + found.error, 2));
      return std::optional<Url>();
    }
    Dial dial = choose_address(scope_, decision, url, found.addresses);
    if (!dial.pinned) {
      H5I_SDK_TRY(refuse(text, "address", dial.refusal, 1, scope_.rule_text(decision)));
      return std::optional<Url>();
    }
    Peer place{endpoint(*dial.pinned, *url.effective_port()), secure ? bare_host(url) : "", address_of(*url.host()).has_value()};
    Intent intent;
    intent.peer = place.to.text();
    intent.tls_name = place.tls_name;
    Asked how;
    const bool h2 = options_.http2 && !socket && !options_.raw;
    std::unique_ptr<Wire> wire = transport_.take(intent.peer, intent.tls_name, h2);
    if (options_.raw) {
      RawSplit split = split_raw(*options_.raw);
      intent.method = "(raw)";
      how.method = split.method;
      intent.head = split.head;
      intent.body = split.body;
      intent.raw = true;
    } else {
      Request with_cookies = request;
      std::string added = choose_cookies(url, with_cookies, intent);
      auto refused = h2 ? write_h2(with_cookies, *wire, how, intent) : write_h1(with_cookies, socket, how, intent);
      if (refused) {
        H5I_SDK_TRY(refuse(text, "request", std::string(refused->id) + ": " + refused->what, 1));
        return std::optional<Url>();
      }
      intent.method = how.method = request.method;
      if (!added.empty()) intent.computed.push_back(added);
      for (const HeaderLine& h : with_cookies.headers.lines()) {
        if (!is_credential(h.name())) continue;
        if (intent.credentials.size() < kNames) intent.credentials.push_back(to_valid_utf8(h.name().substr(0, kName)));
        if (h.name().size() == 6) cookie_names(h.value(), &intent.cookies);
      }
    }
    intent.url = text;
    intent.rule = scope_.rule_text(decision);
    intent.parent = parent_;
    intent.dropped = dropped_;
    intent.replay_of = options_.replay_of;
    intent.identity = options_.identity;
    intent.experiment = options_.experiment;
    intent.input = options_.input;
    if (options_.admit && !options_.admit()) {
      H5I_SDK_TRY(refuse(text, "cancelled", "its turn did not come", 2));
      return std::optional<Url>();
    }
    return exchange(url, H5I_SDK_TRY(recorder_.intent(std::move(intent))), place, std::move(how), std::move(wire));
  }

  // The bytes of the request, as they will be on the wire.
  Refused write_h1(Request& request, bool socket, Asked& how, Intent& intent) {
    if (socket) {
      std::array<uint8_t, 16> random{};
      if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return Refusal{"websocket-handshake", "no random bytes for a key"};
      if (auto refused = open_websocket(&request, random, {}, &how.socket.emplace())) return refused;
      intent.computed = how.socket->computed;
    }
    Written written;  // borrows from the request
    if (auto refused = write_request(request, &written)) return refused;
    intent.head = written.head;
    intent.body = written.body;
    intent.computed.insert(intent.computed.begin(), written.computed.begin(), written.computed.end());
    return std::nullopt;
  }

  Refused write_h2(const Request& request, Wire& wire, Asked& how, Intent& intent) {
    H2Limits limits;
    limits.body_bytes = options_.most_bytes;
    H2Submitted made;
    if (auto refused = wire.h2(!options_.lenient, limits).submit(request, {.end_apart = options_.before_last_byte && parent_ == 0}, &made)) return refused;
    how.stream = made.stream;
    intent.protocol = "h2";
    intent.head = made.head;
    intent.body = request.body.value_or("");
    intent.framed_body = made.data;
    intent.last_piece = made.last_frame;
    intent.computed = made.fields.computed;
    for (const std::string& name : made.fields.dropped) intent.left_out.push_back(to_valid_utf8(std::string_view(name).substr(0, kName)));
    return std::nullopt;
  }

  // The jar's cookies for this URL, as a header of this hop alone. A Cookie header that was given stands as it is. What is told of it has no value.
  std::string choose_cookies(const Url& url, Request& request, Intent& intent) {
    if (!options_.cookies) return {};
    for (const HeaderLine& h : request.headers.lines())
      if (syntax::same(h.name(), "cookie")) return {};
    Selection chosen = options_.cookies->select(url);
    for (const CookieVerdict& v : chosen.verdicts)
      if (v.reason != CookieReason::SENT && intent.withheld.size() < kNames)
        intent.withheld.push_back(to_valid_utf8(std::string_view(v.cookie_name).substr(0, kName)) + ": " + std::string(name(v.reason)));
    if (chosen.header.empty() || request.headers.add_line("Cookie: " + chosen.header)) return {};
    return "Cookie: (of the jar)";
  }

  // As a certificate has it: an IPv6 address without its brackets.
  static std::string bare_host(const Url& url) {
    std::string host = url.hostname();
    return host.size() > 2 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
  }

  bool has_paths(const Url& url) const {
    for (const Rule& r : scope_.rules())
      if (!r.path.empty() && r.matches_origin(url, *url.host()) == Rule::Match::YES) return true;
    return false;
  }

  static void cookie_names(std::string_view value, std::vector<std::string>* names) {
    while (!value.empty() && names->size() < kNames) {
      size_t end = std::min(value.find(';'), value.size());
      names->push_back(cookie_name(value.substr(0, end)));
      value.remove_prefix(std::min(end + 1, value.size()));
    }
  }

  // From the record to the outcome.
  sdk::Result<std::optional<Url>> exchange(const Url& url, const Recorded& sent, const Peer& place, Asked asked, std::unique_ptr<Wire> wire) {
    Exchange exchange(host_, recorder_, transport_, options_, url, std::move(asked), std::move(wire));
    json::Value facts = H5I_SDK_TRY(exchange.run(sent, place, parent_ == 0, dns_us_));
    std::optional<Url> next;
    status_ = 0;
    if (exchange.head()) {
      status_ = exchange.head()->status;
      next = next_hop(url, *exchange.head(), facts);
    }
    if (next && (!exchange.one_reading() || exchange.head()->fields.count("location") > 1)) {
      facts["location_error"] = "not followed: the answer can be read in more than one way, or is not whole";
      next.reset();
    }
    parent_ = sent.seq();
    auto recorded = recorder_.outcome(sent, facts);
    facts["url"] = sent.intent().url;
    facts["method"] = sent.intent().method;
    facts["peer"] = sent.intent().peer;
    out_.rows.push_back({sent.seq(), true, std::move(facts)});
    out_.code = exchange.code();
    if (!recorded.ok()) return recorded.error();
    return next;
  }

  const sdk::Host& host_;
  Recorder& recorder_;
  const Scope& scope_;
  SendOptions options_;
  Transport own_;
  Transport& transport_;
  Sends out_;
  uint64_t parent_ = 0;
  int status_ = 0;
  int64_t dns_us_ = 0;
  std::vector<std::string> dropped_;
};

}  // namespace

sdk::Result<Sends> send(const sdk::Host& host, Recorder& recorder, const Scope& scope, const std::string& url, Request request, const SendOptions& options) {
  return Sender(host, recorder, scope, options).run(url, std::move(request));
}

}  // namespace h5i::websec
