#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/digest/sha256.hpp"
#include "plugins/websec-http/engine/clock.hpp"
#include "plugins/websec-http/acts/identity.hpp"
#include "plugins/websec-http/engine/past.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/http/edit.hpp"
#include "plugins/websec-http/replay/spread.hpp"
#include "plugins/websec-http/text/show.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

constexpr int64_t kMostRace = 20, kMostRepeat = 1000, kMostSends = 1000;
constexpr int64_t kLongestHold = 5'000'000'000;
constexpr size_t kShownValue = 2048;

// Where threads meet before the last byte of each. Whoever ends without coming here is not waited for.
class Meeting {
 public:
  Meeting(size_t expected, int64_t hold_ns, const sdk::Host& host) : expected_(expected), host_(host), until_(std::chrono::steady_clock::now() + std::chrono::nanoseconds(hold_ns)) {}
  void arrive() {
    std::unique_lock lock(one_);
    if (++here_ >= expected_) return met_.notify_all();
    while (here_ < expected_ && std::chrono::steady_clock::now() < until_ && !host_.cancelled()) met_.wait_for(lock, std::chrono::milliseconds(50));
  }
  void leave(bool arrived) {
    std::lock_guard lock(one_);
    if (arrived) return;
    expected_--;
    met_.notify_all();
  }
  size_t here() const { return here_; }

 private:
  std::mutex one_;
  std::condition_variable met_;
  size_t expected_, here_ = 0;
  const sdk::Host& host_;
  std::chrono::steady_clock::time_point until_;
};

struct Again {
  std::string url;
  Request request;
  SendOptions options;
  std::string head;  // as we would write it
};

using Attempts = std::vector<sdk::Result<Sends>>;

Attempts race(const sdk::Host& host, Tools& tools, const Again& again, size_t times, size_t* together) {
  Meeting meeting(times, std::min(kLongestHold, again.options.timeout_ns / 2), host);
  std::vector<std::optional<sdk::Result<Sends>>> ended(times);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < times; i++)
    threads.emplace_back([&, i] {
      SendOptions options = again.options;
      bool arrived = false;
      options.before_last_byte = [&] {
        arrived = true;
        meeting.arrive();
      };
      try {
        ended[i].emplace(send(host, tools.recorder, tools.scope, again.url, again.request, options));
      } catch (const std::exception& e) {
        ended[i].emplace(sdk::failure(H5I_E_INTERNAL, e.what()));
      }
      meeting.leave(arrived);
    });
  for (std::thread& t : threads) t.join();
  *together = meeting.here();
  Attempts out;
  for (auto& e : ended) out.push_back(std::move(*e));
  return out;
}

Attempts repeat(const sdk::Host& host, Tools& tools, const Again& again, size_t times, Turns* turns) {
  Attempts out;
  int64_t sends = 0;
  SendOptions options = again.options;
  options.admit = [&] {
    if (sends >= kMostSends || (turns && !turns->wait())) return false;
    sends++;
    return true;
  };
  for (size_t i = 0; i < times && sends < kMostSends && !host.cancelled(); i++) {
    out.push_back(send(host, tools.recorder, tools.scope, again.url, again.request, options));
    if (!out.back().ok()) break;
  }
  return out;
}

json::Value shown_value(const std::optional<std::string>& value) {
  if (!value) return nullptr;
  return to_valid_utf8(std::string_view(*value).substr(0, kShownValue));
}

// The digest and the bytes of the head that was sent, from its line.
sdk::Result<std::string> sent_head(const sdk::Host& host, uint64_t seq) {
  return H5I_SDK_TRY(past_send(host, std::to_string(seq))).body["head_sha256"].string();
}

json::Value times_of(const std::vector<int64_t>& values) {
  const Spread s = spread(values);
  return json::Object{{"count", s.count}, {"least_us", s.least}, {"lower_us", s.lower}, {"median_us", s.median}, {"upper_us", s.upper}, {"most_us", s.most}};
}

std::string milliseconds(int64_t us) {
  std::string tenths = std::to_string((us + 50) / 100);
  if (tenths.size() < 2) tenths.insert(0, 2 - tenths.size(), '0');
  return tenths.substr(0, tenths.size() - 1) + "." + tenths.back();
}

sdk::Result<Again> again_of(SendOptions options, const json::Value& words, const PastSend& sent, const PastRequest& past, const Identities& who, std::vector<std::string>* dropped) {
  Again a;
  a.url = past.url.href_without_fragment();
  a.options = std::move(options);
  a.options.replay_of = sent.seq;
  const bool edited = !words["edits"].array().empty() || words["as"].is_string();
  if (words["raw_hex"].is_string()) {
    a.options.raw = H5I_SDK_TRY(unhex(words["raw_hex"].string()));
    a.head = split_raw(*a.options.raw).head;
    return a;
  }
  if (past.raw && !edited) {
    a.options.raw = past.head + past.body;
    a.head = past.head;
    return a;
  }
  a.request = H5I_SDK_TRY(structured(past));
  H5I_SDK_TRY(apply_words(a.request, words["edits"]));
  if (words["as"].is_string()) H5I_SDK_TRY(who.become(a.request, words["as"].string(), dropped));
  a.url = H5I_SDK_TRY(url_with(past.url, a.request)).href_without_fragment();
  Written written;
  if (auto no = write_request(a.request, &written)) return sdk::failure(H5I_E_INVALID, std::string(no->id) + ": " + no->what);
  a.head = written.head;
  return a;
}

}  // namespace

sdk::Status apply_words(Request& request, const json::Value& list) {
  std::vector<Edit> edits;
  for (const json::Value& word : list.array()) {
    Edit e;
    if (auto no = parse_edit(word["text"].string(), &e)) return sdk::failure(H5I_E_INVALID, "edit " + std::to_string(edits.size() + 1) + ": " + no->what);
    if (!e.file.empty()) {
      if (!word["file_hex"].is_string()) return sdk::failure(H5I_E_INVALID, "edit " + std::to_string(edits.size() + 1) + ": its file was not given");
      e.value = H5I_SDK_TRY(unhex(word["file_hex"].string()));
    }
    edits.push_back(std::move(e));
  }
  size_t at = 0;
  if (auto no = apply_edits(&request, edits, &at)) return sdk::failure(H5I_E_INVALID, "edit " + std::to_string(at + 1) + ": " + no->what);
  return {};
}

json::Value words_of_sender(const json::Value& words) {
  json::Value out = words;
  const bool somebody = words["as"].is_string() && words["as"].string() != kNobody;
  out["as"] = somebody ? words["as"].string() : std::string();
  out["cookies"] = somebody;
  return out;
}

sdk::Result<Answer> replay_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  const int64_t racing = words["race"].integer(), repeated = words["repeat"].integer();
  if (racing < 0 || racing > kMostRace || repeated < 0 || repeated > kMostRepeat || (racing > 0 && repeated > 0)) return sdk::failure(H5I_E_INVALID, "--race is at most 20, --repeat at most 1000, and not both");
  std::optional<Rate> rate;
  if (words["rate"].is_string()) rate = H5I_SDK_TRY(parse_rate(words["rate"].string()));
  const PastSend sent = H5I_SDK_TRY(past_send(host, words["number"].string()));
  const PastRequest past = H5I_SDK_TRY(past_request(host, sent));
  const Identities who = H5I_SDK_TRY(Identities::of(host, words));
  std::vector<std::string> dropped;
  const json::Value sending = words_of_sender(words);
  auto tools = H5I_SDK_TRY(tools_of(host, session, sending));
  who.keep_out_of(tools->recorder);
  const Again again = H5I_SDK_TRY(again_of(options_of(session, sending, *tools), words, sent, past, who, &dropped));

  size_t together = 0;
  Attempts attempts;
  if (racing > 0) {
    attempts = race(host, *tools, again, static_cast<size_t>(racing), &together);
  } else {
    std::optional<Turns> turns;
    if (rate) turns.emplace(*rate, machine_clock(), [&] { return host.cancelled(); });
    attempts = repeat(host, *tools, again, static_cast<size_t>(std::max<int64_t>(repeated, 1)), turns ? &*turns : nullptr);
  }

  if (tools->cookies) H5I_SDK_TRY(tools->cookies->save());
  json::Value out = json::Object{{"replay_of", sent.seq}, {"placement", tools->placement.text}, {"source", words["raw_hex"].is_string() ? "given" : past.rebuilt ? "rebuilt" : "kept"}};
  json::Value lines = json::Array{}, tries = json::Array{}, differences = json::Array{};
  std::vector<int64_t> totals, firsts;
  uint64_t first_seq = 0;
  int code = 0;
  for (auto& attempt : attempts) {
    Sends sends = H5I_SDK_TRY(std::move(attempt));
    code = std::max(code, sends.code);
    int64_t total = 0;
    for (const Row& row : sends.rows) {
      if (row.sent && first_seq == 0) first_seq = row.seq;
      total += row.facts["times"]["total_us"].integer();
    }
    if (sends.code == 0) {
      totals.push_back(total);
      firsts.push_back(sends.rows[0].facts["times"]["first_byte_us"].integer());
    }
    json::Value rows = json::Array{};
    add_rows(std::move(sends), rows, lines);
    tries.push(json::Object{{"rows", std::move(rows)}});
  }

  lines.push("replay of #" + std::to_string(sent.seq) + (past.rebuilt ? ", whose bytes were rebuilt: the digest is that of its line" : ""));
  std::string head = again.head;
  json::Value digests = json::Object{{"before", sent.body["head_sha256"]}};
  lines.push("  head before  " + sent.body["head_sha256"].string());
  if (first_seq != 0) {
    const std::string digest = H5I_SDK_TRY(sent_head(host, first_seq));
    digests["after"] = digest;
    lines.push("  head after   " + digest);
    // What the engine added on its own, as cookies of a jar, is in the bytes that were kept alone.
    if (digest != sha256_hex(head))
      if (auto kept = host.get(digest, kShownValue << 10); kept.ok()) head = *std::move(kept);
  }
  for (const Change& c : changes(past.head, head, is_credential)) {
    differences.push(json::Object{{"field", to_valid_utf8(c.field)}, {"before", shown_value(c.before)}, {"after", shown_value(c.after)}});
    lines.push("  " + show_field(c.field) + "  " + (c.before ? show_field(*c.before) : "(none)") + "  ->  " + (c.after ? show_field(*c.after) : "(none)"));
  }
  std::string body = again.options.raw ? std::string(split_raw(*again.options.raw).body) : std::string();
  if (!again.options.raw) {
    Written written;
    if (!write_request(again.request, &written)) body = written.body;
  }
  if (body != past.body) {
    auto said = [](const std::string& bytes) { return std::to_string(bytes.size()) + " bytes, " + sha256_hex(bytes); };
    differences.push(json::Object{{"field", "body"}, {"before", said(past.body)}, {"after", said(body)}});
    lines.push("  body  " + said(past.body) + "  ->  " + said(body));
  }
  if (differences.array().empty()) lines.push("  nothing was changed");
  json::Value gone = json::Array{};
  for (const std::string& name : dropped) gone.push(name);
  if (!dropped.empty()) {
    std::string line = "  dropped:";
    for (const std::string& name : dropped) line += " " + show_field(name);
    lines.push(line);
  }
  out["heads"] = std::move(digests);
  out["changes"] = std::move(differences);
  out["dropped"] = std::move(gone);
  if (words["as"].is_string()) out["identity"] = words["as"];
  if (racing > 0) {
    out["together"] = together;
    lines.push("  " + std::to_string(together) + " of " + std::to_string(racing) + " had all but their last byte at the peer before any had the last");
  }
  if (repeated > 0 && !totals.empty()) {
    out["times"] = json::Object{{"total", times_of(totals)}, {"first_byte", times_of(firsts)}};
    for (const auto& [what, values] : {std::pair{"total", &totals}, std::pair{"first byte", &firsts}}) {
      const Spread s = spread(*values);
      lines.push(std::string("  ") + what + ": median " + milliseconds(s.median) + " ms, half of them from " + milliseconds(s.lower) + " to " + milliseconds(s.upper) + ", all from " + milliseconds(s.least) + " to " + milliseconds(s.most) + ", of " + std::to_string(s.count));
    }
  }
  lines.push(tools->placement.text + "; h5i websec show " + session["name"].string() + " NUMBER");
  out["attempts"] = std::move(tries);
  out["lines"] = std::move(lines);
  add_forged(*tools, out);
  return Answer{who.hidden(std::move(out)), code};
}

}  // namespace h5i::websec
