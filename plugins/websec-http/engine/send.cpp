#include "plugins/websec-http/engine/send.hpp"

#include <time.h>

#include <algorithm>

#include "plugins/websec-http/engine/box.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/engine/resolve.hpp"
#include "plugins/websec-http/engine/sender.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kLongestUrl = 16 << 10;

int64_t now_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// As a certificate has it: an IPv6 address without its brackets.
std::string bare_host(const Url& url) {
  std::string host = url.hostname();
  return host.size() > 2 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
}

bool is_secure(const Url& url) { return url.scheme() == "https" || url.scheme() == "wss"; }
bool is_socket(const Url& url) { return url.scheme() == "ws" || url.scheme() == "wss"; }

}  // namespace

sdk::Result<Sends> Sender::run(const std::string& url, Request request) {
  auto parsed = Url::parse(url);
  if (!parsed.ok()) {
    H5I_SDK_TRY(refuse(log_url(url), "url", parsed.error().text, 1));
    return std::move(out_);
  }
  Url at = *parsed;
  request.scheme = at.scheme();
  request.authority = at.host_and_port();
  request.target = at.path() + (at.query() ? "?" + *at.query() : "");
  for (;; hops_++) {
    if (options_.document && !H5I_SDK_TRY(document_may(at, request))) return std::move(out_);
    std::optional<Url> next = H5I_SDK_TRY(one(at, request));
    if (!next || hops_ >= options_.follow) return std::move(out_);
    if (is_downgrade(at, *next)) {
      H5I_SDK_TRY(refuse(next->href_without_fragment(), "downgrade", "from https to " + next->scheme(), 1));
      return std::move(out_);
    }
    if (options_.document && !at.origin().same(next->origin()) && !at.origin().same(options_.document->origin())) tainted_ = true;
    dropped_.clear();
    redirected(request, status_, at, *next, &dropped_);
    options_.raw.reset();
    at = std::move(*next);
  }
}

sdk::Status Sender::refuse(const std::string& url, const char* why, const std::string& text, int code, const std::string& rule) {
  json::Value facts = json::Object{{"url", url}, {"why", why}, {"text", text}};
  if (!rule.empty()) facts["rule"] = rule;
  if (parent_ != 0) facts["parent"] = parent_;
  uint64_t seq = H5I_SDK_TRY(recorder_.refusal(facts));
  out_.rows.push_back({seq, false, std::move(facts)});
  out_.code = code;
  return {};
}

bool Sender::has_paths(const Url& url) const {
  for (const Rule& r : scope_.rules())
    if (!r.path.empty() && r.matches_origin(url, *url.host()) == Rule::Match::YES) return true;
  return false;
}

sdk::Result<std::optional<Decision>> Sender::in_scope(const Url& url) {
  const std::string text = url.href_without_fragment();
  auto no = [&](const std::string& shown, const char* why, const std::string& because, const std::string& rule = {}) -> sdk::Result<std::optional<Decision>> {
    H5I_SDK_TRY(refuse(shown, why, because, 1, rule));
    return std::optional<Decision>();
  };
  if (url.has_credentials()) return no(url.origin().text() + "/", "url-credentials", "a URL with a user or a password would be in every log: give a header instead");
  if (text.size() > kLongestUrl) return no(log_text(text), "url-too-long", std::to_string(text.size()) + " bytes, at most " + std::to_string(kLongestUrl));
  if (now_of(CLOCK_REALTIME) >= options_.expires_ns) return no(text, "expired", "the session ended meanwhile");
  Decision decision = scope_.decide(url);
  if (!decision.allowed) return no(text, "scope", scope_.explain(url, decision).line, scope_.rule_text(decision));
  // Which path raw bytes ask for, and how often, is for the server to say.
  if (options_.raw && has_paths(url)) return no(text, "raw-path", "the scope names paths of this origin, which raw bytes cannot be held to", scope_.rule_text(decision));
  return std::optional<Decision>(std::move(decision));
}

sdk::Result<std::optional<Sender::Way>> Sender::way_to(const Url& url, Decision decision) {
  const std::string text = url.href_without_fragment();
  const int64_t asked = now_of(CLOCK_MONOTONIC);
  Found found = look_up(*url.host(), options_.timeout_ns);
  dns_us_ = (now_of(CLOCK_MONOTONIC) - asked) / 1000;
  if (found.addresses.empty()) {
    H5I_SDK_TRY(refuse(text, "dns-failed", url.hostname() + ": " + found.error, 2));
    return std::optional<Way>();
  }
  Dial dial = choose_address(scope_, decision, url, found.addresses);
  if (!dial.pinned) {
    H5I_SDK_TRY(refuse(text, "address", dial.refusal, 1, scope_.rule_text(decision)));
    return std::optional<Way>();
  }
  Peer peer{endpoint(*dial.pinned, *url.effective_port()), is_secure(url) ? bare_host(url) : "", address_of(*url.host()).has_value()};
  return std::optional<Way>(Way{std::move(decision), *dial.pinned, std::move(peer)});
}

// The next hop, when the answer names one.
sdk::Result<std::optional<Url>> Sender::one(const Url& url, const Request& request) {
  const std::string text = url.href_without_fragment();
  auto decision = H5I_SDK_TRY(in_scope(url));
  if (!decision) return std::optional<Url>();
  auto way = H5I_SDK_TRY(way_to(url, std::move(*decision)));
  if (!way) return std::optional<Url>();
  Intent intent;
  intent.url = text;
  intent.peer = way->peer.to.text();
  intent.tls_name = way->peer.tls_name;
  intent.rule = scope_.rule_text(way->decision);
  intent.dropped = dropped_;
  const bool h2 = options_.http2 && !is_socket(url) && !options_.raw;
  std::unique_ptr<Wire> wire = H5I_SDK_TRY(wire_for(url, *way, intent, h2));
  if (!wire) return std::optional<Url>();
  Asked how;
  if (auto refused = write_bytes(url, request, *wire, h2, how, intent)) {
    H5I_SDK_TRY(refuse(text, "request", std::string(refused->id) + ": " + refused->what, 1));
    return std::optional<Url>();
  }
  auto made = H5I_SDK_TRY(make(url, std::move(intent), way->peer, std::move(how), std::move(wire)));
  if (!made) return std::optional<Url>();
  std::optional<Url> next;
  status_ = 0;
  if (const ResponseHead* head = made->exchange->head()) {
    status_ = head->status;
    next = next_hop(url, *head, made->facts);
    if (options_.document) judge_for_document(url, request, *head, made->facts);
    if (next && (!made->exchange->one_reading() || head->fields.count("location") > 1)) {
      made->facts["location_error"] = "not followed: the answer can be read in more than one way, or is not whole";
      next.reset();
    }
  }
  H5I_SDK_TRY(told(made->exchange->sent(), *made));
  return next;
}

sdk::Result<std::optional<Sender::Made>> Sender::make(const Url& url, Intent intent, const Peer& peer, Asked asked, std::unique_ptr<Wire> wire) {
  intent.parent = parent_;
  intent.replay_of = options_.replay_of;
  intent.identity = options_.identity;
  intent.experiment = options_.experiment;
  intent.input = options_.input;
  if (options_.document) intent.document = tainted_ ? "null" : options_.document->origin().text();
  if (options_.admit && !options_.admit()) {
    H5I_SDK_TRY(refuse(intent.url, "cancelled", "its turn did not come", 2));
    return std::optional<Made>();
  }
  // All hops together have what one answer may have.
  auto within = [](uint64_t most, uint64_t used) { return most > used ? most - used : 0; };
  const Recorder::Left left = recorder_.left();
  options_.most_bytes = std::min(within(most_bytes_, used_wire_), left.wire);
  options_.most_decoded = std::min(within(most_decoded_, used_decoded_), left.decoded);
  if (parent_ != 0 && (used_wire_ >= most_bytes_ || used_decoded_ >= most_decoded_)) {
    H5I_SDK_TRY(refuse(intent.url, "navigation-budget", "the hops before had as many bytes as an answer may have", 1));
    return std::optional<Made>();
  }
  const std::string url_text = intent.url;
  auto sent = recorder_.intent(std::move(intent));
  if (!sent.ok() && sent.error().code == H5I_E_WEB_BUDGET) {
    H5I_SDK_TRY(refuse(url_text, "budget", sent.error().text, 1));
    return std::optional<Made>();
  }
  if (!sent.ok()) return sent.error();
  Made made;
  made.exchange = std::make_unique<Exchange>(recorder_, transport_, options_, url, *std::move(sent), std::move(asked), std::move(wire));
  made.facts = H5I_SDK_TRY(made.exchange->run(peer, hops_ == 0, dns_us_));
  return std::optional<Made>(std::move(made));
}

sdk::Status Sender::told(const Recorded& sent, Made& made) {
  parent_ = sent.seq();
  const Amounts used = amounts_of(made.facts);
  used_wire_ += static_cast<uint64_t>(std::max<int64_t>(0, made.facts["wire_bytes"].integer()));
  used_decoded_ += used.decoded;
  auto recorded = recorder_.outcome(sent, made.facts);
  made.facts["url"] = sent.intent().url;
  made.facts["method"] = sent.intent().method;
  made.facts["peer"] = sent.intent().peer;
  out_.rows.push_back({sent.seq(), true, std::move(made.facts)});
  out_.code = made.exchange->code();
  return recorded;
}

sdk::Result<Sends> send(const sdk::Host& host, Recorder& recorder, const Scope& scope, const std::string& url, Request request, const SendOptions& options) {
  if (options.box) return options.box->send(host, recorder, scope, url, std::move(request), options);
  return Sender(host, recorder, scope, options).run(url, std::move(request));
}

}  // namespace h5i::websec
