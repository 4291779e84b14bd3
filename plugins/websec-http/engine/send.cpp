#include "plugins/websec-http/engine/send.hpp"

#include <time.h>

#include <memory>

#include "plugins/websec-http/engine/answer.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/engine/resolve.hpp"
#include "plugins/websec-http/engine/wire.hpp"
#include "plugins/websec-http/http/syntax.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kPiece = 64 << 10;
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

// How one exchange went on the wire.
struct Course {
  std::string ended;  // "complete", or why not
  std::string why;
  int64_t connected = 0, secured = 0, written = 0, first = 0, done = 0;
  uint64_t sent_bytes = 0;
  bool reused = false;
};

// One address to dial, and the name that TLS is to have.
struct Place {
  Endpoint to;
  std::string tls_name;  // "": no TLS
  bool is_address = false;
};

json::Value tls_facts(const TlsSession& tls) {
  json::Value out = json::Object{{"version", tls.version()}, {"cipher", tls.cipher()}, {"alpn", tls.alpn()}, {"verified", tls.verdict()}};
  json::Value chain = json::Array{};
  for (const std::string& der : tls.chain()) chain.push(sha256_hex(der));
  out["chain_sha256"] = std::move(chain);
  return out;
}

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
    if (url.scheme() != "http" && url.scheme() != "https") {
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
    Place place{endpoint(*dial.pinned, *url.effective_port()), url.scheme() == "https" ? bare_host(url) : "", address_of(*url.host()).has_value()};
    Intent intent;
    Request with_cookies;  // the bytes borrow from it
    Written written;
    if (options_.raw) {
      RawSplit split = split_raw(*options_.raw);
      intent.method = "(raw)";
      method_ = split.method;
      intent.head = split.head;
      intent.body = split.body;
      intent.raw = true;
    } else {
      with_cookies = request;
      std::string added = choose_cookies(url, with_cookies, intent);
      if (auto refused = write_request(with_cookies, &written)) {
        H5I_SDK_TRY(refuse(text, "request", std::string(refused->id) + ": " + refused->what, 1));
        return std::optional<Url>();
      }
      intent.method = method_ = request.method;
      intent.head = written.head;
      intent.body = written.body;
      intent.computed = written.computed;
      if (!added.empty()) intent.computed.push_back(added);
      for (const HeaderLine& h : with_cookies.headers.lines()) {
        if (!is_credential(h.name())) continue;
        if (intent.credentials.size() < kNames) intent.credentials.push_back(to_valid_utf8(h.name().substr(0, kName)));
        if (h.name().size() == 6) cookie_names(h.value(), &intent.cookies);
      }
    }
    intent.url = text;
    intent.peer = place.to.text();
    intent.tls_name = place.tls_name;
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
    return exchange(url, H5I_SDK_TRY(recorder_.intent(std::move(intent))), place);
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
  sdk::Result<std::optional<Url>> exchange(const Url& url, const Recorded& sent, const Place& place) {
    const int64_t begun = now_ns();
    ResponseRules rules;
    rules.strict = !options_.lenient;
    rules.head = method_ == "HEAD";
    rules.connect = method_ == "CONNECT";
    rules.limits.bytes = options_.most_bytes;
    ResponseParser parser(rules);
    AnswerBody body(options_.capture, options_.most_decoded, [&]() -> const ResponseHead& { return parser.head(); });
    std::unique_ptr<Wire> wire = transport_.take(sent.intent().peer, sent.intent().tls_name);
    wire->begin(begun + options_.timeout_ns);
    Course course = talk(sent, place, *wire, parser, body);
    body.finish();

    json::Value facts = json::Object{{"ended", course.ended}, {"sent_bytes", course.sent_bytes}, {"wire_bytes", parser.wire_bytes()}};
    if (!course.why.empty()) facts["text"] = log_text(course.why);
    if (course.reused) facts["reused"] = true;
    json::Value times = json::Object{{"dns_us", dns_us_}, {"total_us", micros(begun, course.done)}};
    if (course.connected) times["connect_us"] = micros(begun, course.connected);
    if (course.secured) times["tls_us"] = micros(begun, course.secured);
    if (course.written) times["written_us"] = micros(begun, course.written);
    if (course.first) times["first_byte_us"] = micros(begun, course.first);
    facts["times"] = std::move(times);
    if (wire->tls()) facts["tls"] = tls_facts(*wire->tls());
    std::optional<Url> next;
    status_ = 0;
    json::Value odd = json::Array{};
    for (const Oddity& o : parser.oddities().list()) odd.push(json::Object{{"id", oddity_id(o.id)}, {"offset", o.offset}, {"count", o.count}});
    if (parser.has_head()) {
      const ResponseHead& head = parser.head();
      status_ = head.status;
      describe_head(head, facts);
      facts["body_bytes"] = parser.body_bytes();
      body.describe(facts, odd);
      json::Value passive = passive_lines(url, sent.intent().raw ? std::string_view() : sent.intent().head, head, body.decoded_start());
      if (!passive.array().empty()) facts["passive"] = std::move(passive);
      if (options_.cookies) keep_cookies(url, head, facts);
      next = next_hop(url, head, facts);
    }
    if (next && (course.ended != "complete" || parser.oddities().ambiguous() || parser.head().fields.count("location") > 1)) {
      facts["location_error"] = "not followed: the answer can be read in more than one way, or is not whole";
      next.reset();
    }
    facts["facts"] = std::move(odd);
    if (options_.capture)
      if (auto kept = keep(sent, parser, body, facts); !kept.ok()) facts["kept_error"] = kept.error().text;
    if (course.ended == "complete" && !sent.intent().raw && parser.no_reuse().empty()) transport_.give(sent.intent().peer, sent.intent().tls_name, std::move(wire));

    parent_ = sent.seq();
    auto recorded = recorder_.outcome(sent, facts);
    facts["url"] = sent.intent().url;
    facts["method"] = sent.intent().method;
    facts["peer"] = sent.intent().peer;
    out_.rows.push_back({sent.seq(), true, std::move(facts)});
    out_.code = course.ended == "complete" || course.ended == "tunnel" ? 0 : parser.wire_bytes() > 0 ? 1 : 2;
    if (!recorded.ok()) return recorded.error();
    return next;
  }

  Course talk(const Recorded& sent, const Place& place, Wire& wire, ResponseParser& parser, AnswerBody& body) {
    Course a;
    auto ended = [&](std::string_view id, std::string why) {
      a.ended = id;
      a.why = std::move(why);
      a.sent_bytes = wire.bytes_sent();
      a.done = now_ns();
      return a;
    };
    a.reused = wire.connected();
    if (!a.reused) {
      if (auto e = wire.connect(sent, place.to)) return ended(e->id, e->text);
      a.connected = now_ns();
      if (!place.tls_name.empty()) {
        auto trust = transport_.trust();
        if (!trust.ok()) return ended("tls-failed", trust.error().text);
        if (auto e = wire.secure(sent, **trust, place.is_address, {"http/1.1"})) return ended(e->id, e->text);
        a.secured = now_ns();
      }
    }
    // A peer that answers before it has read everything closes then: what it said counts.
    std::optional<WireError> lost = wire.write(sent, parent_ == 0 ? options_.before_last_byte : nullptr);
    a.written = now_ns();
    if (lost && lost->id != "connection-lost") return ended(lost->id, lost->text);
    std::string piece(kPiece, '\0');
    while (!parser.finished()) {
      size_t got = 0;
      if (auto e = wire.read(sent, piece.data(), piece.size(), &got)) {
        if (e->id != "connection-lost" || !parser.has_head()) return ended(wire.bytes_sent() > 0 && e->id == "connection-lost" ? "connection-lost-after-send" : e->id, e->text);
        // TLS has an end of its own: without it, what is read until the end may have been cut by anybody.
        if (wire.tls() && parser.framing() == ResponseParser::Framing::CLOSE) return ended("short", e->text);
        parser.end();
        break;
      }
      if (got == 0) {
        parser.end();
        break;
      }
      if (!a.first) a.first = now_ns();
      parser.feed({piece.data(), got}, body);
    }
    if (parser.wire_bytes() == 0) return ended("connection-lost-after-send", lost ? lost->text : "the peer closed the connection without an answer");
    switch (parser.state()) {
      case ResponseParser::State::DONE: return ended("complete", "");
      case ResponseParser::State::TUNNEL: return ended("tunnel", "");
      case ResponseParser::State::REFUSED: return ended("refused", parser.oddities().refusal() ? std::string(oddity_meaning(*parser.oddities().refusal())) : "");
      default: break;
    }
    return ended("short", "the connection ended before the answer did");
  }

  void keep_cookies(const Url& url, const ResponseHead& head, json::Value& facts) {
    std::vector<std::string_view> lines;
    for (size_t i = 0; i < head.fields.size() && lines.size() < kNames; i++)
      if (FieldView f = head.fields.field(i); syntax::same(f.name, "set-cookie")) lines.push_back(f.value);
    if (!lines.empty()) facts["jar"] = options_.cookies->store(url, lines);
  }

  sdk::Status keep(const Recorded& sent, const ResponseParser& parser, const AnswerBody& body, json::Value& facts) {
    json::Value kept = json::Object{};
    kept["request_head"] = H5I_SDK_TRY(host_.put(sent.intent().head));
    kept["request_body"] = H5I_SDK_TRY(host_.put(sent.intent().body));
    if (!parser.raw_head().empty()) kept["response_head"] = H5I_SDK_TRY(host_.put(parser.raw_head()));
    if (parser.has_head()) kept["response_body"] = H5I_SDK_TRY(host_.put(body.kept()));
    facts["kept"] = std::move(kept);
    return {};
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
  std::string method_;  // of the request that is being sent: how its answer is framed
  std::vector<std::string> dropped_;
};

}  // namespace

sdk::Result<Sends> send(const sdk::Host& host, Recorder& recorder, const Scope& scope, const std::string& url, Request request, const SendOptions& options) {
  return Sender(host, recorder, scope, options).run(url, std::move(request));
}

}  // namespace h5i::websec
