#include "plugins/websec-http/engine/send.hpp"

#include <openssl/evp.h>
#include <time.h>

#include <memory>

#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/engine/resolve.hpp"
#include "plugins/websec-http/engine/wire.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr uint64_t kLargestAnswer = 64u << 20;  // bytes on the wire
constexpr size_t kShown = 2048;                 // of a header's value in the log
constexpr size_t kNames = 200;                  // of headers or cookies in the log
constexpr size_t kName = 100;                   // bytes of each
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

// What an origin wrote, for a line of the log.
std::string text_of(std::string_view bytes) { return to_valid_utf8(bytes.substr(0, kShown)); }

// What is no URL may hold a password as well as one that is.
std::string url_of(std::string_view text) {
  return text.find('@') == std::string_view::npos ? text_of(text) : "(no URL, " + std::to_string(text.size()) + " bytes)";
}

// The name of a cookie; what has no name may be all value.
std::string cookie_name(std::string_view pair) {
  while (!pair.empty() && (pair.front() == ' ' || pair.front() == '\t')) pair.remove_prefix(1);
  size_t equals = pair.find('=');
  return equals == std::string_view::npos || equals == 0 ? "(nameless)" : to_valid_utf8(pair.substr(0, std::min(equals, kName)));
}

class Hash {
 public:
  Hash() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &size);
    std::string out;
    for (unsigned i = 0; i < size; i++) {
      out += "0123456789abcdef"[digest[i] >> 4];
      out += "0123456789abcdef"[digest[i] & 15];
    }
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

// The body of an answer: hashed, and kept when messages are.
class Body : public BodySink {
 public:
  explicit Body(bool keep) : keep_(keep) {}
  bool take(std::string_view bytes) override {
    hash_.add(bytes);
    if (keep_) kept.append(bytes);
    return true;
  }
  std::string digest() { return hash_.hex(); }
  std::string kept;

 private:
  bool keep_;
  Hash hash_;
};

struct Answer {
  std::string ended;  // "complete", or why not
  std::string why;
  int64_t connected = 0, written = 0, first = 0, done = 0;
  uint64_t sent_bytes = 0;
};

class Sender {
 public:
  Sender(const sdk::Host& host, Recorder& recorder, const Scope& scope, const SendOptions& options) : host_(host), recorder_(recorder), scope_(scope), options_(options) {}

  sdk::Result<Sends> run(const std::string& url, Request request) {
    auto parsed = Url::parse(url);
    if (!parsed.ok()) {
      H5I_SDK_TRY(refuse(url_of(url), "url", parsed.error().text, 1));
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
      H5I_SDK_TRY(refuse(text_of(text), "url-too-long", std::to_string(text.size()) + " bytes, at most " + std::to_string(kLongestUrl), 1));
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
    if (url.scheme() != "http") {
      H5I_SDK_TRY(refuse(text, "scheme", "this engine does not speak " + url.scheme() + " yet", 2));
      return std::optional<Url>();
    }
    Found found = look_up(*url.host());
    if (found.addresses.empty()) {
      H5I_SDK_TRY(refuse(text, "dns-failed", url.hostname() + ": " + found.error, 2));
      return std::optional<Url>();
    }
    Dial dial = choose_address(scope_, decision, url, found.addresses);
    if (!dial.pinned) {
      H5I_SDK_TRY(refuse(text, "address", dial.refusal, 1, scope_.rule_text(decision)));
      return std::optional<Url>();
    }
    Intent intent;
    Written written;  // borrows from the request
    if (options_.raw) {
      RawSplit split = split_raw(*options_.raw);
      intent.method = "(raw)";
      method_ = split.method;
      intent.head = split.head;
      intent.body = split.body;
      intent.raw = true;
    } else if (auto refused = write_request(request, &written)) {
      H5I_SDK_TRY(refuse(text, "request", std::string(refused->id) + ": " + refused->what, 1));
      return std::optional<Url>();
    } else {
      intent.method = method_ = request.method;
      intent.head = written.head;
      intent.body = written.body;
      intent.computed = written.computed;
      for (const HeaderLine& h : request.headers.lines()) {
        if (!is_credential(h.name())) continue;
        if (intent.credentials.size() < kNames) intent.credentials.push_back(to_valid_utf8(h.name().substr(0, kName)));
        if (h.name().size() == 6) cookie_names(h.value(), &intent.cookies);
      }
    }
    Endpoint to = endpoint(*dial.pinned, *url.effective_port());
    intent.url = text;
    intent.peer = to.text();
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
    return exchange(url, H5I_SDK_TRY(recorder_.intent(std::move(intent))), to);
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
  sdk::Result<std::optional<Url>> exchange(const Url& url, const Recorded& sent, const Endpoint& to) {
    const int64_t begun = now_ns();
    ResponseRules rules;
    rules.strict = !options_.lenient;
    rules.head = method_ == "HEAD";
    rules.connect = method_ == "CONNECT";
    rules.limits.bytes = kLargestAnswer;
    ResponseParser parser(rules);
    Body body(options_.capture);
    Answer answer = talk(sent, to, begun + options_.timeout_ns, parser, body);

    json::Value facts = json::Object{{"ended", answer.ended}, {"sent_bytes", answer.sent_bytes}, {"wire_bytes", parser.wire_bytes()}};
    if (!answer.why.empty()) facts["text"] = text_of(answer.why);
    json::Value times = json::Object{{"total_us", micros(begun, answer.done)}};
    if (answer.connected) times["connect_us"] = micros(begun, answer.connected);
    if (answer.written) times["written_us"] = micros(begun, answer.written);
    if (answer.first) times["first_byte_us"] = micros(begun, answer.first);
    facts["times"] = std::move(times);
    std::optional<Url> next;
    status_ = 0;
    const std::string digest = body.digest();
    if (parser.has_head()) next = describe(url, parser, digest, facts);
    if (next && (answer.ended != "complete" || parser.oddities().ambiguous() || parser.head().fields.count("location") > 1)) {
      facts["location_error"] = "not followed: the answer can be read in more than one way, or is not whole";
      next.reset();
    }
    json::Value odd = json::Array{};
    for (const Oddity& o : parser.oddities().list()) odd.push(json::Object{{"id", oddity_id(o.id)}, {"offset", o.offset}, {"count", o.count}});
    facts["facts"] = std::move(odd);
    if (options_.capture)
      if (auto kept = keep(sent, parser, body, facts); !kept.ok()) facts["kept_error"] = kept.error().text;

    parent_ = sent.seq();
    auto recorded = recorder_.outcome(sent, facts);
    facts["url"] = sent.intent().url;
    facts["method"] = sent.intent().method;
    facts["peer"] = sent.intent().peer;
    out_.rows.push_back({sent.seq(), true, std::move(facts)});
    out_.code = answer.ended == "complete" || answer.ended == "tunnel" ? 0 : parser.wire_bytes() > 0 ? 1 : 2;
    if (!recorded.ok()) return recorded.error();
    return next;
  }

  Answer talk(const Recorded& sent, const Endpoint& to, int64_t deadline, ResponseParser& parser, Body& body) {
    Answer a;
    Wire wire(host_, deadline);
    auto ended = [&](std::string_view id, std::string why) {
      a.ended = id;
      a.why = std::move(why);
      a.sent_bytes = wire.bytes_sent();
      a.done = now_ns();
      return a;
    };
    if (auto e = wire.connect(sent, to)) return ended(e->id, e->text);
    a.connected = now_ns();
    // A peer that answers before it has read everything closes then: what it said counts.
    std::optional<WireError> lost = wire.write(sent, parent_ == 0 ? options_.before_last_byte : nullptr);
    a.written = now_ns();
    if (lost && lost->id != "connection-lost") return ended(lost->id, lost->text);
    std::string piece(kPiece, '\0');
    while (!parser.finished()) {
      size_t got = 0;
      if (auto e = wire.read(piece.data(), piece.size(), &got)) {
        if (e->id != "connection-lost" || !parser.has_head()) return ended(wire.bytes_sent() > 0 && e->id == "connection-lost" ? "connection-lost-after-send" : e->id, e->text);
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

  // What the head says. Values that may be keys are not in it.
  std::optional<Url> describe(const Url& url, const ResponseParser& parser, const std::string& digest, json::Value& facts) {
    const ResponseHead& head = parser.head();
    status_ = head.status;
    facts["status"] = head.status;
    facts["reason"] = text_of(head.reason().substr(0, std::min(head.reason().find('\r'), kName)));
    facts["head_bytes"] = head.fields.bytes().size();
    facts["head_sha256"] = sha256_hex(head.fields.bytes());
    facts["body_bytes"] = parser.body_bytes();
    facts["body_sha256"] = digest;
    json::Value names = json::Array{}, cookies = json::Array{};
    for (size_t i = 0; i < head.fields.size(); i++) {
      FieldView f = head.fields.field(i);
      if (i < kNames) names.push(to_valid_utf8(f.name.substr(0, kName)));
    }
    for (size_t i = 0; i < head.fields.size(); i++) {
      FieldView f = head.fields.field(i);
      if (equal(f.name, "set-cookie") && cookies.array().size() < kNames) cookies.push(cookie_name(f.value.substr(0, std::min(f.value.find(';'), f.value.size()))));
    }
    facts["headers"] = std::move(names);
    if (!cookies.array().empty()) facts["set_cookie"] = std::move(cookies);
    if (auto type = head.fields.first("content-type")) facts["content_type"] = text_of(type->value);
    auto location = head.fields.first("location");
    if (!location || !is_redirect(head.status)) return std::nullopt;
    facts["location"] = url_of(location->value);
    auto to = Url::parse(location->value, &url);
    if (!to.ok()) {
      facts["location_error"] = to.error().text;
      return std::nullopt;
    }
    return *to;
  }

  static bool equal(std::string_view a, std::string_view lower) {
    if (a.size() != lower.size()) return false;
    for (size_t i = 0; i < a.size(); i++)
      if ((a[i] >= 'A' && a[i] <= 'Z' ? a[i] - 'A' + 'a' : a[i]) != lower[i]) return false;
    return true;
  }

  sdk::Status keep(const Recorded& sent, const ResponseParser& parser, const Body& body, json::Value& facts) {
    json::Value kept = json::Object{};
    kept["request_head"] = H5I_SDK_TRY(host_.put(sent.intent().head));
    kept["request_body"] = H5I_SDK_TRY(host_.put(sent.intent().body));
    if (!parser.raw_head().empty()) kept["response_head"] = H5I_SDK_TRY(host_.put(parser.raw_head()));
    if (parser.has_head()) kept["response_body"] = H5I_SDK_TRY(host_.put(body.kept));
    facts["kept"] = std::move(kept);
    return {};
  }

  const sdk::Host& host_;
  Recorder& recorder_;
  const Scope& scope_;
  SendOptions options_;
  Sends out_;
  uint64_t parent_ = 0;
  int status_ = 0;
  std::string method_;  // of the request that is being sent: how its answer is framed
  std::vector<std::string> dropped_;
};

}  // namespace

sdk::Result<Sends> send(const sdk::Host& host, Recorder& recorder, const Scope& scope, const std::string& url, Request request, const SendOptions& options) {
  return Sender(host, recorder, scope, options).run(url, std::move(request));
}

}  // namespace h5i::websec
