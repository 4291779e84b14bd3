#include "plugins/websec-http/engine/exchange.hpp"

#include <time.h>

#include <algorithm>

#include "plugins/websec-http/engine/dialogue.hpp"
#include "plugins/websec-http/http/syntax.hpp"
#include "plugins/websec-http/tls/facts.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr size_t kCookieLines = 200;

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
int64_t micros(int64_t from, int64_t to) { return (to - from) / 1000; }

ResponseRules rules_of(const Asked& asked, const SendOptions& options) {
  ResponseRules rules;
  rules.strict = !options.lenient;
  rules.head = asked.method == "HEAD";
  rules.connect = asked.method == "CONNECT";
  rules.upgrade = asked.socket.has_value();
  rules.limits.bytes = options.most_bytes;
  return rules;
}

json::Value tls_facts(const TlsSession& tls, const std::string& name) {
  TlsPeer peer{.version = tls.version(), .cipher = tls.cipher(), .alpn = tls.alpn(), .verify = tls.verdict(), .name = name, .chain = tls.chain()};
  return tls_value(peer, read_tls(peer, time(nullptr)));
}

void add_oddities(const Oddities& from, json::Value& to) {
  for (const Oddity& o : from.list()) to.push(json::Object{{"id", oddity_id(o.id)}, {"offset", o.offset}, {"count", o.count}});
}

}  // namespace

Exchange::Exchange(Recorder& recorder, Transport& transport, const SendOptions& options, const Url& url, Recorded sent, Asked asked, std::unique_ptr<Wire> wire)
    : recorder_(recorder), transport_(transport), options_(options), url_(url), sent_(std::move(sent)), asked_(std::move(asked)), wire_(std::move(wire)), parser_(rules_of(asked_, options)) {}

void Exchange::end(std::string_view id, std::string why) {
  ended_ = id;
  why_ = std::move(why);
}

int Exchange::code() const {
  if (ended_ == "complete" || ended_ == "tunnel" || ended_ == "listened" || ended_ == "closed") return 0;
  return wire_bytes_ > 0 ? 1 : 2;
}

sdk::Result<json::Value> Exchange::run(const Peer& peer, bool first, int64_t dns_us) {
  events_ = std::make_unique<EventLines>(recorder_, sent_, options_.capture);
  body_ = std::make_unique<AnswerBody>(options_.capture, options_.most_decoded, [this]() -> const ResponseHead& { return asked_.stream ? h2_head_ : parser_.head(); }, events_.get());
  begun_ = now_ns();
  deadline_ = begun_ + options_.timeout_ns;
  wire_->begin(deadline_);
  if (connect(peer)) {
    if (asked_.stream) talk_h2(first);
    else talk(first);
  }
  const uint64_t sent_bytes = wire_->bytes_sent();
  done_ = now_ns();
  body_->finish();
  if (!events_->failed().ok()) return events_->failed().error();
  if (ended_ == "tunnel" && asked_.socket) H5I_SDK_TRY(converse_on());

  json::Value facts = json::Object{{"ended", ended_}, {"sent_bytes", sent_bytes}, {"wire_bytes", wire_bytes_}};
  if (!why_.empty()) facts["text"] = log_text(why_);
  if (reused_) facts["reused"] = true;
  json::Value times = json::Object{{"dns_us", dns_us}, {"total_us", micros(begun_, done_)}};
  if (connected_) times["connect_us"] = micros(begun_, connected_);
  if (secured_) times["tls_us"] = micros(begun_, secured_);
  if (written_) times["written_us"] = micros(begun_, written_);
  if (first_) times["first_byte_us"] = micros(begun_, first_);
  facts["times"] = std::move(times);
  if (events_->count() > 0) facts["events"] = events_->count();
  if (frames_.is_object()) facts["frames"] = std::move(frames_);
  if (close_code_ != 0) facts["close_code"] = close_code_;
  if (!goaway_.empty()) facts["goaway"] = goaway_;
  if (wire_->tls()) facts["tls"] = tls_facts(*wire_->tls(), sent_.intent().tls_name);
  describe(facts);
  facts["facts"] = std::move(odd_);
  if (options_.capture)
    if (auto kept = keep(facts); !kept.ok()) facts["kept_error"] = kept.error().text;
  const bool again = ended_ == "complete" && !sent_.intent().raw && (asked_.stream ? wire_->h2()->no_submit().empty() : parser_.no_reuse().empty());
  if (again) transport_.give(sent_.intent(), asked_.stream != 0, std::move(wire_));
  return facts;
}

bool Exchange::connect(const Peer& peer) {
  const bool tunnelled = wire_->connected() && wire_->fresh();
  reused_ = wire_->connected() && !tunnelled;
  if (reused_) return true;
  auto failed = tunnelled ? std::nullopt : wire_->connect(sent_, peer.to);
  if (!failed) {
    connected_ = now_ns();
    if (peer.tls_name.empty()) return true;
    auto trust = transport_.trust();
    if (!trust.ok()) {
      end("tls-failed", trust.error().text);
      return false;
    }
    failed = wire_->secure(sent_, **trust, peer.is_address, {asked_.stream ? "h2" : "http/1.1"});
    if (!failed) {
      secured_ = now_ns();
      // The request is in the log in the form of one protocol: it is not said in that of another.
      if (!asked_.stream || wire_->tls()->alpn() == "h2") return true;
      end("alpn-refused", "the peer does not speak HTTP/2 here: leave --http2 out");
      return false;
    }
  }
  end(failed->id, failed->text);
  return false;
}

std::unique_ptr<Wire> Exchange::tunnel() {
  if (ended_ != "tunnel" || !wire_ || !wire_->tunnel(sent_)) return nullptr;
  return std::move(wire_);
}

void Exchange::listen() {
  if (options_.listen_ns <= 0 || listening_ || !is_event_stream()) return;
  listening_ = true;
  wire_->begin(std::min(deadline_, now_ns() + options_.listen_ns), wire_->bytes_sent());
}

bool Exchange::is_event_stream() const {
  const ResponseHead* head = asked_.stream ? head_ : parser_.has_head() ? &parser_.head() : nullptr;
  auto type = head ? head->fields.first("content-type") : std::nullopt;
  return type && syntax::same(syntax::trimmed(type->value.substr(0, type->value.find(';'))), "text/event-stream");
}

void Exchange::talk(bool first) {
  // A peer that answers before it has read everything closes then: what it said counts.
  std::optional<WireError> lost = wire_->write(sent_, first ? options_.before_last_byte : nullptr);
  written_ = now_ns();
  if (lost && lost->id != "connection-lost") return end(lost->id, lost->text);
  std::string piece(kPiece, '\0');
  std::optional<WireError> stopped;
  while (!parser_.finished()) {
    size_t got = 0;
    stopped = wire_->read(sent_, piece.data(), piece.size(), &got);
    if (stopped) break;
    if (got == 0) {
      parser_.end();
      break;
    }
    if (!first_) first_ = now_ns();
    const size_t used = parser_.feed({piece.data(), got}, *body_);
    if (parser_.state() == ResponseParser::State::TUNNEL) rest_.assign(piece, used, got - used);
    listen();
  }
  if (parser_.has_head()) head_ = &parser_.head();
  wire_bytes_ = parser_.wire_bytes();
  body_bytes_ = parser_.body_bytes();
  ambiguous_ = parser_.oddities().ambiguous();
  if (stopped) {
    // Events have no end of their own: who listens for a time has heard what there was.
    if (stopped->id == "timeout" && listening_) return end("listened");
    if (stopped->id != "connection-lost") return end(stopped->id, stopped->text);
    if (!parser_.has_head()) return end(wire_->bytes_sent() > 0 ? "connection-lost-after-send" : stopped->id, stopped->text);
    // TLS has an end of its own: without it, what is read until the end may have been cut by anybody.
    if (wire_->tls() && parser_.framing() == ResponseParser::Framing::CLOSE) return end("short", stopped->text);
    parser_.end();
  }
  if (wire_bytes_ == 0) return end("connection-lost-after-send", lost ? lost->text : "the peer closed the connection without an answer");
  switch (parser_.state()) {
    case ResponseParser::State::DONE: return end("complete");
    case ResponseParser::State::TUNNEL: return end("tunnel");
    case ResponseParser::State::REFUSED: return end("refused", parser_.oddities().refusal() ? std::string(oddity_meaning(*parser_.oddities().refusal())) : "");
    default: return end("short", "the connection ended before the answer did");
  }
}

void Exchange::talk_h2(bool first) {
  H2Connection& h2 = *wire_->h2();
  wire_before_ = h2.wire_bytes();
  std::optional<WireError> lost = wire_->write(sent_, first ? options_.before_last_byte : nullptr);
  written_ = now_ns();
  if (lost && lost->id != "connection-lost") return end(lost->id, lost->text);
  std::string piece(kPiece, '\0');
  std::optional<WireError> stopped;
  while (!h2_end_) {
    size_t got = 0;
    stopped = wire_->read(sent_, piece.data(), piece.size(), &got);
    if (stopped) break;
    if (got == 0) {
      h2.end(*this);
      break;
    }
    if (!first_) first_ = now_ns();
    h2.feed({piece.data(), got}, *this);
    if (auto e = wire_->pump(sent_); e && !h2_end_) lost = e;
    listen();
    if (body_bytes_ > options_.most_bytes && !h2_end_) {
      h2.cancel(asked_.stream, *this);
      (void)wire_->pump(sent_);
      wire_bytes_ = h2.wire_bytes() - wire_before_;
      return end("refused", "a body beyond the limit");
    }
    if (h2.dead()) break;
  }
  wire_bytes_ = h2.wire_bytes() - wire_before_;
  add_oddities(h2.oddities(), odd_);
  if (h2_end_) add_oddities(h2_end_->oddities, odd_);
  ambiguous_ = h2.oddities().ambiguous() || (h2_end_ && h2_end_->oddities.ambiguous());
  if (stopped && !h2_end_) {
    if (stopped->id == "timeout" && listening_) {
      h2.cancel(asked_.stream, *this);
      (void)wire_->pump(sent_);
      return end("listened");
    }
    if (stopped->id != "connection-lost") return end(stopped->id, stopped->text);
    return end(head_ ? "short" : "connection-lost-after-send", stopped->text);
  }
  if (!h2_end_) return end(wire_bytes_ == 0 ? "connection-lost-after-send" : "refused", wire_bytes_ == 0 ? "the peer closed the connection without an answer" : "the connection was given up");
  switch (h2_end_->why) {
    case H2End::Why::WHOLE: return end("complete");
    case H2End::Why::RESET: return end("reset", "the peer reset the stream: " + std::string(h2_end_->code_name));
    case H2End::Why::UNPROCESSED: return end("unprocessed", "the peer says that it did nothing with this request");
    case H2End::Why::CUT: return end(head_ ? "short" : "connection-lost-after-send", "the connection ended before the answer did");
    case H2End::Why::CANCELLED: return end("cancelled", "the act was cancelled");
    default: break;
  }
  const Oddities& by = h2_end_->oddities.refusal() ? h2_end_->oddities : h2.oddities();
  end("refused", by.refusal() ? std::string(oddity_meaning(*by.refusal())) : "");
}

void Exchange::interim(int32_t, const H2Head&) {}
void Exchange::head(int32_t stream, const H2Head& head) {
  if (stream != asked_.stream) return;
  h2_head_ = head.as_lines();
  head_ = &h2_head_;
}
BodySink& Exchange::body(int32_t) { return *body_; }
void Exchange::trailers(int32_t, const H2Fields&) {}
void Exchange::ended(int32_t stream, const H2End& end) {
  if (stream != asked_.stream) return;
  body_bytes_ = end.body_bytes;
  h2_end_ = end;
}
void Exchange::goaway(const H2Goaway& g) { goaway_ = std::string(g.code_name) + (g.debug.empty() ? "" : ": " + log_text(g.debug)); }

sdk::Status Exchange::converse_on() {
  WsAnswer answer = judge_websocket(parser_.head(), *asked_.socket, !options_.lenient);
  add_oddities(answer.oddities, odd_);
  if (!answer.open) {
    end("refused", answer.oddities.refusal() ? std::string(oddity_meaning(*answer.oddities.refusal())) : "the handshake was not answered as one");
    return {};
  }
  Dialogue wanted{.messages = options_.messages, .most_bytes = options_.most_bytes, .lenient = options_.lenient, .capture = options_.capture};
  if (options_.listen_ns > 0) wanted.listen_ns = options_.listen_ns;
  DialogueEnd dialogue = H5I_SDK_TRY(converse(recorder_, sent_, *wire_, rest_, wanted));
  end(dialogue.ended, dialogue.why);
  done_ = now_ns();
  frames_ = json::Object{{"sent", dialogue.frames_sent}, {"received", dialogue.frames_received}, {"bytes", dialogue.bytes_received}, {"sent_bytes", dialogue.bytes_sent}};
  close_code_ = dialogue.close_code;
  for (json::Value& o : dialogue.facts.make_array()) odd_.push(std::move(o));
  return {};
}

void Exchange::describe(json::Value& facts) {
  if (!asked_.stream) add_oddities(parser_.oddities(), odd_);
  if (!head_) return;
  describe_head(*head_, facts);
  facts["body_bytes"] = body_bytes_;
  body_->describe(facts, odd_);
  const bool readable = !sent_.intent().raw && !asked_.stream;
  json::Value passive = passive_lines(url_, readable ? std::string_view(sent_.intent().head) : std::string_view(), *head_, body_->decoded_start());
  if (!passive.array().empty()) facts["passive"] = std::move(passive);
  if (!options_.cookies) return;
  std::vector<std::string_view> lines;
  for (size_t i = 0; i < head_->fields.size() && lines.size() < kCookieLines; i++)
    if (FieldView f = head_->fields.field(i); syntax::same(f.name, "set-cookie")) lines.push_back(f.value);
  if (!lines.empty()) facts["jar"] = options_.cookies->store(url_, lines);
}

sdk::Status Exchange::keep(json::Value& facts) {
  json::Value kept = json::Object{};
  const std::string_view raw_head = asked_.stream ? std::string_view(h2_head_.fields.bytes()) : std::string_view(parser_.raw_head());
  kept["request_head"] = H5I_SDK_TRY(recorder_.keep(sent_.intent().head));
  kept["request_body"] = H5I_SDK_TRY(recorder_.keep(sent_.intent().body));
  if (!raw_head.empty()) kept["response_head"] = H5I_SDK_TRY(recorder_.keep(raw_head));
  if (head_) kept["response_body"] = H5I_SDK_TRY(recorder_.keep(body_->kept()));
  facts["kept"] = std::move(kept);
  return {};
}

}  // namespace h5i::websec
