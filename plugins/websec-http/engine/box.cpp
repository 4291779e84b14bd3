#include "plugins/websec-http/engine/box.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "plugins/websec-http/engine/answer.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kMostWaiting = 2;    // messages of one send: it waits for each answer, so that more are a flood
constexpr size_t kMostForged = 100;
constexpr size_t kShown = 2000;       // bytes of what was said and may not be

int64_t realtime() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Placement placement_of(const json::Value& session) {
  Placement out;
  if (session["placement"]["box"].is_string()) {
    out.text = session["placement"]["text"].string();
    out.network = session["placement"]["network"].string();
  }
  return out;
}

Box::Box(int channel, Placement placement, const Scope& scope, const TlsContext::Options& trust, bool reuse) : channel_(channel), placement_(std::move(placement)), reader_([this] { read(); }) {
  (void)channel_.send({json::Object{{"op", "begin"}, {"scope", scope.text()}, {"verify", trust.verify}, {"ca_pem", trust.ca_pem}, {"reuse", reuse}}, {}});
}

Box::~Box() {
  channel_.end();
  reader_.join();
}

json::Value Box::forged() const {
  std::lock_guard lock(one_);
  return forged_;
}

std::string Box::why_over() const {
  std::lock_guard lock(one_);
  if (!forged_.array().empty()) return "the engine in the box said what it may not: it is not listened to any more";
  return broken_.empty() ? "the engine in the box ended" : "the engine in the box broke off: " + broken_;
}

void Box::forge(const std::string& what, const json::Value& said) {
  {
    std::lock_guard lock(one_);
    std::string text = json::canonical(said);
    if (forged_.array().size() < kMostForged) forged_.push(json::Object{{"what", what}, {"said", log_text(std::string_view(text).substr(0, kShown))}});
  }
  channel_.end();
}

void Box::read() {
  std::string broken;
  while (auto m = channel_.receive(&broken)) {
    const auto id = static_cast<uint64_t>(m->say["id"].integer());
    bool flood = false;
    {
      std::lock_guard lock(one_);
      auto it = waiting_.find(id);
      flood = it != waiting_.end() && it->second.size() >= kMostWaiting;
      if (it != waiting_.end() && !flood) it->second.push_back(std::move(*m));
    }
    if (flood) {
      broken = "more messages than answers";
      break;
    }
    came_.notify_all();
  }
  if (!broken.empty()) channel_.end();
  std::lock_guard lock(one_);
  over_ = true;
  broken_ = broken;
  came_.notify_all();
}

std::optional<Message> Box::next(uint64_t id) {
  std::unique_lock lock(one_);
  auto there = [&] { return over_ || !waiting_[id].empty(); };
  if (!came_.wait_for(lock, std::chrono::milliseconds(100), there)) return Message{};
  auto& queue = waiting_[id];
  if (queue.empty() || !forged_.array().empty()) return std::nullopt;
  Message m = std::move(queue.front());
  queue.pop_front();
  return m;
}

// One send: what the box asks while it makes it. Rows are made of what was recorded, not of what the box says at the end.
class Box::One {
 public:
  One(Box& box, const sdk::Host& host, Recorder& recorder, const Scope& scope, const Request& request, const SendOptions& options)
      : box_(box), host_(host), recorder_(recorder), scope_(scope), request_(request), options_(options) {
    std::lock_guard lock(box_.one_);
    id_ = ++box_.ids_;
    box_.waiting_[id_];
  }
  ~One() {
    std::lock_guard lock(box_.one_);
    box_.waiting_.erase(id_);
  }

  sdk::Result<Sends> run(const std::string& url) {
    if (options_.proxy) return lost(url, "a proxy is not spoken to from a box: the box has a way out of its own", "proxy");
    Message ask = question(url);
    if (!box_.channel_.send(ask)) return lost(url, box_.why_over(), "box-ended");
    for (;;) {
      auto m = box_.next(id_);
      if (!m) return lost(url, box_.why_over(), "box-ended");
      if (m->say.is_null()) {
        if (!host_.cancelled()) continue;
        box_.channel_.end();
        return lost(url, "the act was cancelled", "cancelled");
      }
      const std::string& op = m->say["op"].string();
      if (op == "done") {
        if (H5I_SDK_TRY(is_over(*m))) return std::move(out_);
        return lost(url, box_.why_over(), "box-ended");
      }
      json::Value answer = json::Object{{"op", "answer"}, {"id", id_}};
      std::vector<std::string> bytes;
      if (auto s = serve(op, *m, answer, bytes); !s.ok()) {
        if (s.error().code == H5I_E_LOG_WRITE) {
          box_.channel_.end();
          return s.error();
        }
        answer["error"] = s.error().text;
        answer["code"] = static_cast<int64_t>(s.error().code);
      }
      if (forged_) return lost(url, box_.why_over(), "box-ended");
      (void)box_.channel_.send({std::move(answer), std::move(bytes)});
    }
  }

 private:
  Message question(const std::string& url) const {
    Message m;
    const Recorder::Left left = recorder_.left();
    json::Value asked = json::Object{{"op", "send"}, {"id", id_}, {"url", url}, {"method", request_.method}, {"form", static_cast<int64_t>(request_.form)}, {"minor", request_.minor},
                                     {"follow", options_.follow}, {"timeout_ns", options_.timeout_ns}, {"lenient", options_.lenient}, {"most_bytes", std::min(options_.most_bytes, left.wire)},
                                     {"most_decoded", std::min(options_.most_decoded, left.decoded)}, {"expires_ns", options_.expires_ns}, {"capture", options_.capture}, {"http2", options_.http2},
                                     {"credentials", options_.credentials}, {"listen_ns", options_.listen_ns}, {"cookies", options_.cookies != nullptr},
                                     {"asks_before", static_cast<bool>(options_.admit)}, {"holds", static_cast<bool>(options_.before_last_byte)}};
    if (options_.document) asked["document"] = options_.document->href();
    json::Value messages = json::Array{};
    for (const std::string& text : options_.messages) messages.push(text);
    asked["messages"] = std::move(messages);
    asked["raw"] = options_.raw.has_value();
    asked["body"] = request_.body.has_value();
    m.bytes.push_back(options_.raw.value_or(""));
    m.bytes.push_back(request_.body.value_or(""));
    for (const HeaderLine& h : request_.headers.lines()) m.bytes.push_back(h.line());
    m.say = std::move(asked);
    return m;
  }

  static json::Value nothing_more(const char* id, const std::string& why) {
    return json::Object{{"ended", id}, {"text", why}, {"sent_bytes", 0}, {"wire_bytes", 0}, {"times", json::Object{{"total_us", 0}}}, {"facts", json::Array{}}};
  }
  // Nothing more comes of it: what was recorded and has no outcome gets one, and what was not even recorded is a refusal.
  sdk::Result<Sends> lost(const std::string& url, const std::string& why, const char* id) {
    for (auto& [seq, sent] : sent_) {
      if (ended_.count(seq)) continue;
      H5I_SDK_TRY(told(seq, nothing_more(id, why)));
    }
    if (sent_.empty()) {
      auto parsed = Url::parse(url);
      json::Value facts = json::Object{{"url", parsed.ok() && !parsed->has_credentials() ? parsed->href_without_fragment() : log_url(url)}, {"why", id}, {"text", why}};
      uint64_t seq = H5I_SDK_TRY(recorder_.refusal(facts));
      out_.rows.push_back({seq, false, std::move(facts)});
    }
    out_.code = 2;
    return std::move(out_);
  }

  sdk::Result<bool> is_over(const Message& m) {
    if (m.say["error"].is_string()) {
      for (auto& [seq, sent] : sent_)
        if (!ended_.count(seq)) H5I_SDK_TRY(told(seq, nothing_more("box-ended", log_text(m.say["error"].string()))));
      return sdk::failure(m.say["code"].integer() == H5I_E_INVALID ? H5I_E_INVALID : H5I_E_SYSTEM, "in the box: " + log_text(m.say["error"].string()));
    }
    for (const auto& [seq, sent] : sent_)
      if (!ended_.count(seq)) {
        box_.forge("an end without an outcome", m.say);
        return false;
      }
    if (out_.rows.empty()) {
      box_.forge("an end without a line", m.say);
      return false;
    }
    out_.code = std::max(out_.code, static_cast<int>(std::clamp<int64_t>(m.say["code"].integer(2), 0, 2)));
    if (refused_by_box_) out_.code = 1;
    return true;
  }

  sdk::Status serve(const std::string& op, Message& m, json::Value& answer, std::vector<std::string>& bytes) {
    const json::Value& say = m.say;
    if (op == "intent") return intent(m, answer);
    if (op == "admit") {
      const bool go = !options_.admit || options_.admit();
      if (go) admitted_++;
      answer["go"] = go;
      return {};
    }
    if (op == "hold") {
      if (options_.before_last_byte && !held_) options_.before_last_byte();
      held_ = true;
      return {};
    }
    if (op == "refused") {
      json::Value facts = say["facts"];
      if (!facts["url"].is_string() || !facts["why"].is_string()) return no("a refusal without a URL", say);
      if (facts["why"].string() == "dns-failed" && box_.placement_.network == "none") {
        refused_by_box_ = true;
        facts["text"] = by_box(facts["text"].string());
        facts["why"] = "refused-by-box";
      }
      uint64_t seq = H5I_SDK_TRY(recorder_.refusal(facts));
      answer["seq"] = seq;
      out_.rows.push_back({seq, false, std::move(facts)});
      return {};
    }
    if (op == "keep") {
      if (!options_.capture || m.bytes.size() != 1) return no("a payload that nobody asked for", say);
      answer["sha256"] = H5I_SDK_TRY(recorder_.keep(m.bytes[0]));
      return {};
    }
    if (op == "cookies") return cookies(say, answer, bytes);
    if (op == "set-cookies") {
      auto url = Url::parse(say["url"].string());
      if (!options_.cookies || !url.ok() || !scope_.decide(*url).allowed) return no("cookies of what was not asked", say);
      std::vector<std::string_view> lines(m.bytes.begin(), m.bytes.end());
      answer["kept"] = options_.cookies->store(*url, lines);
      return {};
    }
    auto it = sent_.find(static_cast<uint64_t>(say["of"].integer(say["facts"]["of"].integer())));
    if (it == sent_.end()) return no("a line about a send that is not its own", say);
    if (ended_.count(it->first)) return no("a line about a send that has ended", say);
    if (op == "outcome") return told(it->first, say["facts"]);
    if (op == "note" && say["kind"].string() == "event") {
      answer["seq"] = H5I_SDK_TRY(recorder_.note("event", say["facts"]));
      return {};
    }
    if (op == "frame" && m.bytes.size() == 1) {
      Frame f{.to_peer = say["to_peer"].boolean(), .opcode = static_cast<uint8_t>(say["opcode"].integer() & 15), .final = say["final"].boolean(), .payload = m.bytes[0], .kept = say["kept"].string()};
      if (!f.to_peer) return recorder_.received(it->second, f);
      auto token = recorder_.frame(it->second, f, {});
      return token.ok() ? sdk::Status() : sdk::Status(token.error());
    }
    return no("a word that is none", say);
  }

  sdk::Status intent(Message& m, json::Value& answer) {
    if (m.bytes.size() != 2 || !m.say["facts"].is_object()) return no("a send without its bytes", m.say);
    Intent i = intent_of(m.say["facts"]);
    i.head = std::move(m.bytes[0]);
    i.body = std::move(m.bytes[1]);
    std::string wrong = not_as_asked(scope_, options_, request_, i);
    if (wrong.empty() && i.parent != 0 && !sent_.count(i.parent)) wrong = "it follows a send that is not its own";
    if (wrong.empty() && i.raw && !sent_.empty()) wrong = "raw bytes a second time";
    if (wrong.empty() && sent_.size() >= static_cast<size_t>(options_.follow + 1) * (options_.document ? 2 : 1)) wrong = "more sends than were asked for";
    if (wrong.empty() && options_.admit && admitted_ == 0) wrong = "its turn was not waited for";
    if (!wrong.empty()) return no("a send: " + wrong, m.say["facts"]);
    if (realtime() >= options_.expires_ns) return sdk::failure(H5I_E_CANCELLED, "the session ended meanwhile");
    if (options_.admit) admitted_--;
    auto url = Url::parse(i.url);
    i.rule = scope_.rule_text(scope_.decide(*url));
    i.replay_of = options_.replay_of;
    i.identity = options_.identity;
    i.experiment = options_.experiment;
    i.input = options_.input;
    Recorded sent = H5I_SDK_TRY(recorder_.intent(std::move(i)));
    answer["seq"] = sent.seq();
    const uint64_t seq = sent.seq();
    sent_.emplace(seq, std::move(sent));
    return {};
  }

  sdk::Status told(uint64_t seq, json::Value facts) {
    if (!facts.is_object() || !facts["ended"].is_string()) return no("an outcome that is none", facts);
    const Recorded& sent = sent_.at(seq);
    const std::string ended = facts["ended"].string();
    // A box without a network lets nothing out: that no connection came about says nothing of the origin.
    if (box_.placement_.network == "none" && facts["wire_bytes"].integer() == 0 && (ended == "connect-failed" || ended == "timeout")) {
      refused_by_box_ = true;
      facts["ended"] = "refused-by-box";
      facts["text"] = by_box(facts["text"].string());
    }
    ended_.insert(seq);
    auto recorded = recorder_.outcome(sent, facts);
    facts["url"] = sent.intent().url;
    facts["method"] = sent.intent().method;
    facts["peer"] = sent.intent().peer;
    out_.rows.push_back({seq, true, std::move(facts)});
    return recorded;
  }

  sdk::Status cookies(const json::Value& say, json::Value& answer, std::vector<std::string>& bytes) {
    auto url = Url::parse(say["url"].string());
    if (!options_.cookies || !url.ok() || !scope_.decide(*url).allowed) return no("cookies for what was not asked", say);
    Selection chosen = options_.cookies->select(*url, Requester{say["same_site"].boolean(), say["navigation"].boolean(), say["safe_method"].boolean()});
    json::Value verdicts = json::Array{};
    for (const CookieVerdict& v : chosen.verdicts) verdicts.push(json::Object{{"name", log_text(v.cookie_name)}, {"reason", static_cast<int64_t>(v.reason)}});
    answer["verdicts"] = std::move(verdicts);
    bytes.push_back(std::move(chosen.header));
    return {};
  }

  std::string by_box(const std::string& text) const { return "refused by the box, which has no network; the target was not asked" + (text.empty() ? "" : " (" + text + ")"); }

  sdk::Status no(const std::string& what, const json::Value& said) {
    forged_ = true;
    box_.forge(what, said);
    return sdk::failure(H5I_E_DENIED, what);
  }

  Box& box_;
  const sdk::Host& host_;
  Recorder& recorder_;
  const Scope& scope_;
  const Request& request_;
  const SendOptions& options_;
  uint64_t id_ = 0;
  std::map<uint64_t, Recorded> sent_;
  std::set<uint64_t> ended_;
  int64_t admitted_ = 0;
  bool held_ = false, forged_ = false, refused_by_box_ = false;
  Sends out_;
};

sdk::Result<Sends> Box::send(const sdk::Host& host, Recorder& recorder, const Scope& scope, const std::string& url, Request request, const SendOptions& options) {
  return One(*this, host, recorder, scope, request, options).run(url);
}

}  // namespace h5i::websec
