#include <algorithm>
#include <mutex>
#include <thread>

#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/engine/clock.hpp"
#include "plugins/websec-http/acts/identity.hpp"
#include "plugins/websec-http/engine/past.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/plan/plan.hpp"
#include "plugins/websec-http/plan/progress.hpp"
#include "plugins/websec-http/plan/uniform.hpp"
#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kPayload = size_t{64} << 20;
constexpr size_t kShownRows = 50;  // on a terminal; all of them are in the document
constexpr size_t kWholeLocation = 2000;

json::Value numbers(const std::vector<uint64_t>& list) {
  json::Value out = json::Array{};
  for (uint64_t n : list) out.push(n);
  return out;
}

// "3, 7-12": what is left, exactly.
json::Value ranges(const std::vector<uint64_t>& list, std::string* text) {
  json::Value out = json::Array{};
  for (size_t i = 0; i < list.size();) {
    size_t j = i;
    while (j + 1 < list.size() && list[j + 1] == list[j] + 1) j++;
    out.push(json::Object{{"from", list[i]}, {"to", list[j]}});
    *text += (text->empty() ? "" : ", ") + std::to_string(list[i]) + (i == j ? "" : "-" + std::to_string(list[j]));
    i = j + 1;
  }
  return out;
}

// What all inputs of a plan, or one row of a matrix, begin with.
struct Base {
  Request request;
  Url url;
  uint64_t replay_of = 0;
};

struct Target {
  std::string url;
  Request request;
};

class Experiment {
 public:
  Experiment(const sdk::Host& host, const json::Value& session, Plan plan, Tools& tools, const Identities& who) : host_(host), session_(session), plan_(std::move(plan)), tools_(tools), who_(who) {}

  // Every request of it is written once, so that a plan that cannot be sent is refused before anything is.
  sdk::Status prepare() {
    for (const std::string& name : plan_.as) {
      H5I_SDK_TRY(who_.check(name));
      if (name != kNobody) jars_[name] = H5I_SDK_TRY(CookieStore::open(name));
    }
    if (plan_.is_matrix())
      for (uint64_t n : plan_.matrix) bases_.push_back(H5I_SDK_TRY(base_of(n)));
    else if (plan_.replay != 0)
      bases_.push_back(H5I_SDK_TRY(base_of(plan_.replay)));
    else
      bases_.push_back(H5I_SDK_TRY(base_of(*plan_.request)));
    for (uint64_t i = 1; i <= plan_.size(); i++) {
      auto target = target_of(i);
      if (!target.ok()) return sdk::failure(target.error().code, (plan_.is_matrix() ? "cell " : "input ") + std::to_string(i) + ": " + target.error().text);
    }
    return {};
  }

  sdk::Status read_progress() {
    progress_.emplace(plan_.name, plan_.follow);
    past_.clear();
    auto line = [](const char* kind, uint64_t seq, const json::Value& body) { return json::Value(json::Object{{"lane", "engine-claimed"}, {"kind", kind}, {"seq", seq}, {"body", body}}); };
    H5I_SDK_TRY(each_send(host_, {.filters = {{Filter::Field::EXPERIMENT, plan_.name}}}, [&](Told& told) -> sdk::Result<bool> {
      if (!told.send.refused) progress_->record(line("send", told.send.seq, told.send.body));
      if (!told.send.outcome.is_null()) progress_->record(line("outcome", 0, told.send.outcome));
      past_.emplace(told.send.seq, std::move(told.send));
      return true;
    }));
    H5I_SDK_TRY(each_line(host_, {"experiment-refused"}, UINT64_MAX, [&](const json::Value& r) {
      progress_->record(r);
      return true;
    }));
    sends_ = progress_->sends();
    done_ = progress_->inputs();
    return {};
  }

  // The plan is a line before its first send.
  sdk::Status record_plan() {
    const std::string inputs = plan_inputs(plan_), document = json::canonical(plan_document(plan_));
    json::Value line = json::Object{{"name", plan_.name}, {"plan", H5I_SDK_TRY(host_.put(document))}, {"inputs", H5I_SDK_TRY(host_.put(inputs))}, {"count", plan_.size()}, {"follow", plan_.follow}, {"parallel", plan_.parallel}};
    if (plan_.replay != 0) line["replay"] = plan_.replay;
    if (plan_.is_matrix()) line["matrix"] = numbers(plan_.matrix);
    if (plan_.request) line["url"] = bases_[0].url.href_without_fragment();
    json::Value edits = json::Array{}, as = json::Array{};
    for (const std::string& e : plan_.edits) edits.push(edit_name(e));
    for (const std::string& a : plan_.as) as.push(a);
    line["edits"] = std::move(edits);
    line["as"] = std::move(as);
    if (!plan_.rate.empty()) line["rate"] = plan_.rate;
    if (plan_.max_errors > 0) line["max_errors"] = plan_.max_errors;
    if (plan_.stop_on_uniform) line["stop_on"] = json::Array{"uniform"};
    H5I_SDK_TRY(tools_.recorder.note("experiment", line));
    return {};
  }

  sdk::Status run() {
    for (uint64_t i = 1; i <= plan_.size(); i++) {
      auto found = done_.find(i);
      if (found == done_.end() || found->second.kind == InputState::Kind::OPEN || found->second.kind == InputState::Kind::STARTED) todo_.push_back(i);
    }
    if (!plan_.rate.empty()) turns_.emplace(H5I_SDK_TRY(parse_rate(plan_.rate)), machine_clock(), [this] { return stopped(); });
    std::vector<std::thread> threads;
    const size_t wanted = std::min(static_cast<size_t>(plan_.parallel), todo_.size());
    for (size_t i = 1; i < wanted; i++) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& t : threads) t.join();
    for (auto& [name, jar] : jars_) H5I_SDK_TRY(jar->save());
    if (failed_) return *failed_;
    if (reason_.empty()) reason_ = host_.cancelled() ? "cancelled" : "complete";
    return {};
  }

  sdk::Result<Answer> report(bool resumed) {
    H5I_SDK_TRY(read_progress());
    json::Value rows = json::Array{}, lines = json::Array{};
    std::vector<uint64_t> open, started, unknown, throttled;
    size_t complete = 0, refused = 0;
    std::vector<json::Value> row_of(plan_.size() + 1);
    for (uint64_t i = 1; i <= plan_.size(); i++) {
      auto found = done_.find(i);
      if (found == done_.end() || found->second.kind == InputState::Kind::OPEN) {
        open.push_back(i);
        continue;
      }
      const InputState& s = found->second;
      const json::Value row = row_from(i, s);
      if (row["throttled"].boolean()) throttled.push_back(i);
      if (s.kind == InputState::Kind::STARTED) started.push_back(i);
      if (s.kind == InputState::Kind::UNKNOWN) unknown.push_back(i);
      complete += s.kind == InputState::Kind::COMPLETE;
      refused += s.kind == InputState::Kind::REFUSED;
      row_of[i] = row;
      rows.push(row);
    }
    if (reason_ == "complete" && (!open.empty() || !started.empty())) reason_ = "started-left";
    std::string rest;
    json::Value left = ranges(open, &rest);
    json::Value ended = json::Object{{"name", plan_.name}, {"reason", reason_}, {"sends", sends_}, {"complete", complete}, {"facts", facts_}};
    H5I_SDK_TRY(tools_.recorder.note("experiment-ended", ended));

    lines.push("experiment " + plan_.name + (resumed ? ", resumed" : "") + ": " + std::to_string(complete) + " of " + std::to_string(plan_.size()) + " complete, " + std::to_string(sends_) + " sends; " + reason_text());
    if (!plan_.is_matrix())
      for (size_t i = 0; i < rows.array().size() && i < kShownRows; i++) lines.push("  " + row_text(rows.array()[i]));
    if (!plan_.is_matrix() && rows.array().size() > kShownRows) lines.push("  and " + std::to_string(rows.array().size() - kShownRows) + " more: --json, or h5i websec hist");
    json::Value out = json::Object{{"name", plan_.name}, {"placement", tools_.placement.text}, {"reason", reason_}, {"count", plan_.size()}, {"sends", sends_}, {"complete", complete}, {"refused", refused}, {"rows", std::move(rows)}, {"rest", std::move(left)},
                                   {"started", numbers(started)}, {"unknown", numbers(unknown)}, {"throttled", numbers(throttled)}, {"facts", facts_}};
    if (plan_.is_matrix()) out["matrix"] = table(row_of, lines);
    for (const json::Value& f : facts_.array()) lines.push("  " + f["id"].string() + ": the last " + std::to_string(f["count"].integer()) + " answers cannot be told apart (status " + std::to_string(f["status"].integer()) + ")");
    const std::pair<const char*, const std::vector<uint64_t>*> groups[] = {{"throttled", &throttled}, {"unknown-outcome, and not sent again", &unknown}, {"started, their next hop not sent", &started}};
    for (const auto& [name, list] : groups) {
      std::string text;
      ranges(*list, &text);
      if (!list->empty()) lines.push(std::string("  ") + name + ": " + text);
    }
    if (!rest.empty()) lines.push("  not sent: " + rest);
    if ((!open.empty() || !started.empty()) && sends_ < kMostSends) lines.push("next: h5i websec experiment " + session_["name"].string() + " --resume " + plan_.name);
    lines.push(tools_.placement.text + "; h5i websec show " + session_["name"].string() + " NUMBER");
    out["lines"] = std::move(lines);
    add_budget(tools_, out);
    add_forged(tools_, out);
    return Answer{who_.hidden(std::move(out)), complete == plan_.size() ? 0 : 1};
  }

 private:
  sdk::Result<Base> base_of(uint64_t number) {
    const PastSend sent = H5I_SDK_TRY(past_send(host_, std::to_string(number)));
    const PastRequest past = H5I_SDK_TRY(past_request(host_, sent));
    return Base{H5I_SDK_TRY(structured(past)), past.url, number};
  }

  sdk::Result<Base> base_of(const WrittenRequest& written) {
    Url url = H5I_SDK_TRY(Url::parse(written.url));
    if (url.has_credentials()) return sdk::failure(H5I_E_INVALID, "a URL with a user or a password would be in every log: give a header instead");
    Base b{{}, url, 0};
    b.request.method = written.method;
    b.request.body = written.body;
    for (const std::string& line : written.headers)
      if (auto no = b.request.headers.add_line(line)) return sdk::failure(H5I_E_INVALID, "a header of the request: " + std::string(no->id));
    b.request.scheme = url.scheme();
    b.request.authority = url.host_and_port();
    b.request.target = url.path() + (url.query() ? "?" + *url.query() : "");
    return b;
  }

  const Base& base(uint64_t input) const { return plan_.is_matrix() ? bases_[(input - 1) / plan_.as.size()] : bases_[0]; }
  std::string identity(uint64_t input) const { return plan_.as.empty() ? "" : plan_.as[plan_.is_matrix() ? (input - 1) % plan_.as.size() : 0]; }

  sdk::Result<Target> target_of(uint64_t input) const {
    const Base& from = base(input);
    Target t{"", from.request};
    std::vector<std::string> dropped;
    if (const std::string as = identity(input); !as.empty()) H5I_SDK_TRY(who_.become(t.request, as, &dropped));
    const std::vector<Edit> edits = H5I_SDK_TRY(edits_with(plan_, plan_.is_matrix() ? std::string_view() : std::string_view(plan_.inputs[input - 1])));
    size_t at = 0;
    if (auto no = apply_edits(&t.request, edits, &at)) return sdk::failure(H5I_E_INVALID, "edit " + edit_name(plan_.edits[at]) + ": " + no->what);
    t.url = H5I_SDK_TRY(url_with(from.url, t.request)).href_without_fragment();
    Written written;
    if (auto no = write_request(t.request, &written)) return sdk::failure(H5I_E_INVALID, std::string(no->id) + ": " + no->what);
    return t;
  }

  bool stopped() {
    std::lock_guard lock(one_);
    return !reason_.empty() || failed_ || host_.cancelled();
  }
  void stop(const char* reason) {
    if (reason_.empty()) reason_ = reason;
  }

  void work() {
    try {
      for (;;) {
        uint64_t input = 0;
        {
          std::lock_guard lock(one_);
          if (next_ >= todo_.size()) return;
        }
        // With a rate one thread waits for its turn with a request in its hands; the others stand before it with none, so that a stop leaves no more than
        // one line of what was not sent.
        std::unique_lock first(first_, std::defer_lock);
        if (turns_) first.lock();
        if (stopped()) return;
        {
          std::lock_guard lock(one_);
          if (next_ >= todo_.size()) return;
          input = todo_[next_++];
        }
        one(input, first);
      }
    } catch (const std::exception& e) {
      std::lock_guard lock(one_);
      failed_ = sdk::failure(H5I_E_INTERNAL, e.what());
    }
  }

  void one(uint64_t input, std::unique_lock<std::mutex>& first) {
    auto target = target_of(input);
    if (!target.ok()) {
      std::lock_guard lock(one_);
      failed_ = target.error();
      return;
    }
    json::Value words = json::Object{{"follow", plan_.follow}, {"timeout_s", plan_.timeout_s}, {"lenient", plan_.lenient}};
    SendOptions options = options_of(session_, words, tools_);
    const std::string as = identity(input);
    options.identity = as == kNobody ? "" : as;
    options.cookies = jars_.contains(as) ? jars_.at(as).get() : nullptr;
    options.replay_of = base(input).replay_of;
    options.experiment = plan_.name;
    options.input = input;
    options.admit = [&] {
      const bool turn = !turns_ || turns_->wait();
      if (first.owns_lock()) first.unlock();
      std::lock_guard lock(one_);
      if (!turn || !reason_.empty() || failed_ || host_.cancelled()) return false;
      if (sends_ >= kMostSends) {
        stop("cap");
        return false;
      }
      sends_++;
      return true;
    };
    if (auto begun = done_.find(input); begun != done_.end() && !begun->second.hops.empty() && !go_on(begun->second, *target, options)) return;
    auto sent = send(host_, tools_.recorder, tools_.scope, target->url, std::move(target->request), options);
    if (first.owns_lock()) first.unlock();
    std::lock_guard lock(one_);
    if (!sent.ok()) {
      failed_ = sent.error();
      return;
    }
    judge(input, *sent);
  }

  // The request of the hop that was not sent, as the answers before it have it. False: they do not say it exactly enough.
  static bool go_on(const InputState& state, Target& target, SendOptions& options) {
    auto at = Url::parse(target.url);
    for (const Hop& h : state.hops) {
      const std::string& location = h.outcome["location"].string();
      if (!at.ok() || h.outcome["hidden"].boolean() || location.size() >= kWholeLocation || location.starts_with("(no URL") || location.find("\xef\xbf\xbd") != std::string::npos) return false;
      auto next = Url::parse(location, &*at);
      if (!next.ok() || is_downgrade(*at, *next)) return false;
      std::vector<std::string> dropped;
      redirected(target.request, static_cast<int>(h.outcome["status"].integer()), *at, *next, &dropped);
      at = std::move(next);
    }
    target.url = at->href_without_fragment();
    options.follow -= static_cast<int>(state.hops.size());
    return true;
  }

  // What an ended input means for those that are left.
  void judge(uint64_t input, const Sends& sent) {
    for (const Row& row : sent.rows) {
      if (!row.sent) {
        const std::string& why = row.facts["why"].string();
        if (why == "expired" || why == "budget") stop(why == "expired" ? "expired" : "budget");
        if (why == "cancelled" || why == "expired" || why == "budget") continue;
        auto noted = tools_.recorder.note("experiment-refused", json::Object{{"experiment", plan_.name}, {"input", input}, {"refused", row.seq}, {"why", why}});
        if (!noted.ok()) failed_ = noted.error();
        continue;
      }
      const int64_t status = row.facts["status"].integer();
      if (status == 429 || row.facts["retry_after"].is_string()) stop("throttled");
      if (uniform_.add(static_cast<int>(status), row.facts["body_sha256"].string())) {
        facts_.push(json::Object{{"id", "uniform-response"}, {"status", status}, {"count", uniform_.count()}, {"input", input}});
        if (plan_.stop_on_uniform) stop("uniform");
      }
    }
    if (sent.code != 0 && !sent.rows.empty() && sent.rows.back().facts["why"].string() != "cancelled" && ++errors_ == plan_.max_errors) stop("errors");
  }

  json::Value row_from(uint64_t input, const InputState& s) const {
    static constexpr const char* kStates[] = {"open", "started", "complete", "refused", "unknown-outcome"};
    json::Value row = json::Object{{"input", input}, {"state", kStates[static_cast<size_t>(s.kind)]}, {"hops", s.hops.size()}};
    if (const std::string as = identity(input); !as.empty()) row["identity"] = as;
    if (plan_.is_matrix()) row["request"] = base(input).replay_of;
    if (!s.why.empty()) row["why"] = s.why;
    if (s.hops.empty()) return row;
    row["number"] = s.hops[0].seq;
    if (auto first = past_.find(s.hops[0].seq); first != past_.end()) row["url"] = first->second.body["url"];
    const json::Value& outcome = s.hops.back().outcome;
    row["ended"] = outcome.is_null() ? json::Value("unknown-outcome") : outcome["ended"];
    int64_t total = 0;
    bool throttled = false;
    for (const Hop& h : s.hops) {
      total += h.outcome["times"]["total_us"].integer();
      throttled = throttled || h.outcome["status"].integer() == 429 || h.outcome["retry_after"].is_string();
      if (h.outcome["retry_after"].is_string()) row["retry_after"] = h.outcome["retry_after"];
    }
    row["total_us"] = total;
    if (throttled) row["throttled"] = true;
    for (const char* name : {"status", "body_bytes", "body_sha256"})
      if (!outcome[name].is_null()) row[name] = outcome[name];
    return row;
  }

  static std::string row_text(const json::Value& row) {
    std::string line = std::to_string(row["input"].integer()) + "  ";
    if (row["number"].is_int()) line += "#" + std::to_string(row["number"].integer()) + "  ";
    if (row["status"].is_int()) line += std::to_string(row["status"].integer()) + ", " + std::to_string(row["body_bytes"].integer()) + " bytes, " + std::to_string(row["total_us"].integer() / 1000) + " ms";
    else line += row["state"].string() + (row["why"].is_string() ? " (" + row["why"].string() + ")" : "");
    if (row["state"].string() == "complete" && row["ended"].string() != "complete") line += ", " + row["ended"].string();
    if (row["throttled"].boolean()) line += ", throttled" + (row["retry_after"].is_string() ? ", retry after " + show_field(row["retry_after"].string(), 60) : "");
    return line + "  " + show_field(row["url"].string());
  }

  json::Value table(const std::vector<json::Value>& row_of, json::Value& lines) const {
    json::Value out = json::Array{};
    for (size_t r = 0; r < plan_.matrix.size(); r++) {
      json::Value cells = json::Array{};
      const json::Value* first = nullptr;
      bool same = true;
      std::string text;
      for (size_t a = 0; a < plan_.as.size(); a++) {
        const json::Value& row = row_of[r * plan_.as.size() + a + 1];
        json::Value cell = json::Object{{"identity", plan_.as[a]}, {"state", row["state"].is_string() ? row["state"] : json::Value("open")}};
        for (const char* name : {"number", "status", "body_bytes", "body_sha256"})
          if (!row[name].is_null()) cell[name] = row[name];
        text += "  " + plan_.as[a] + " " + (row["status"].is_int() ? std::to_string(row["status"].integer()) + "/" + std::to_string(row["body_bytes"].integer()) : cell["state"].string());
        if (first && !(row["status"] == (*first)["status"] && row["body_sha256"] == (*first)["body_sha256"] && row["state"] == (*first)["state"])) same = false;
        if (!first) first = &row;
        cells.push(std::move(cell));
      }
      lines.push("  #" + std::to_string(plan_.matrix[r]) + "  " + bases_[r].request.method + " " + bases_[r].url.href_without_fragment());
      lines.push("  " + text + "  " + (same ? "the same" : "differs"));
      out.push(json::Object{{"request", plan_.matrix[r]}, {"method", bases_[r].request.method}, {"url", bases_[r].url.href_without_fragment()}, {"same", same}, {"cells", std::move(cells)}});
    }
    return out;
  }

  std::string reason_text() const {
    if (reason_ == "complete") return "all of it";
    if (reason_ == "cap") return "it stopped at " + std::to_string(kMostSends) + " sends, the most of one experiment";
    if (reason_ == "errors") return "it stopped at " + std::to_string(plan_.max_errors) + " errors";
    if (reason_ == "uniform") return "it stopped: the target answers the same to everything";
    if (reason_ == "throttled") return "it pauses: the target asks for less (nothing is sent again)";
    if (reason_ == "expired") return "the session ended meanwhile";
    if (reason_ == "budget") return "the session has used up its budget";
    if (reason_ == "started-left") return "what is started cannot be gone on with: its answers do not say exactly enough where they lead";
    return "it was stopped";
  }

  const sdk::Host& host_;
  const json::Value& session_;
  const Plan plan_;
  Tools& tools_;
  const Identities& who_;
  std::vector<Base> bases_;
  std::map<std::string, std::unique_ptr<CookieStore>> jars_;
  std::optional<Progress> progress_;
  std::map<uint64_t, InputState> done_;
  std::vector<uint64_t> todo_;
  std::optional<Turns> turns_;
  std::mutex first_;

  std::mutex one_;  // of everything below
  size_t next_ = 0;
  int64_t sends_ = 0, errors_ = 0;
  std::map<uint64_t, PastSend> past_;  // the experiment's own, as they were when they were last read
  std::string reason_;
  std::optional<sdk::Failure> failed_;
  Uniform uniform_;
  json::Value facts_ = json::Array{};
};

// The lines of plans in the log, by name.
sdk::Result<std::map<std::string, json::Value>> plans_of(const sdk::Host& host) {
  std::map<std::string, json::Value> out;
  H5I_SDK_TRY(each_line(host, {"experiment"}, UINT64_MAX, [&](const json::Value& r) {
    out[r["body"]["name"].string()] = r["body"];
    return true;
  }));
  return out;
}

sdk::Result<Plan> kept_plan(const sdk::Host& host, const json::Value& line) {
  const std::string text = H5I_SDK_TRY(host.get(line["plan"].string(), kPayload));
  const std::string lines = H5I_SDK_TRY(host.get(line["inputs"].string(), kPayload));
  std::vector<std::string> inputs = H5I_SDK_TRY(read_inputs(lines));
  // Inputs may be any bytes, which a JSON document has no place for.
  std::string placeholder(inputs.empty() ? "" : "-");
  Plan plan = H5I_SDK_TRY(parse_plan(text, inputs.empty() ? std::nullopt : std::optional<std::string>(placeholder)));
  plan.inputs = std::move(inputs);
  plan.name = line["name"].string();
  return plan;
}

}  // namespace

sdk::Result<Answer> experiment_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  const auto plans = H5I_SDK_TRY(plans_of(host));
  const std::string& resume = words["resume"].string();
  auto known = [&](const std::string& name) -> sdk::Result<json::Value> {
    auto found = plans.find(name);
    if (found == plans.end()) return sdk::failure(H5I_E_NOT_FOUND, plain_name(name) ? "the session has no experiment " + name : "that is no experiment's name");
    return found->second;
  };
  // Whose values an act would need.
  if (words["about"].is_string()) {
    const json::Value line = H5I_SDK_TRY(known(words["about"].string()));
    return Answer{json::Object{{"as", line["as"]}, {"lines", json::Array{}}}, 0};
  }
  Plan plan;
  if (words["resume"].is_string()) {
    const json::Value line = H5I_SDK_TRY(known(resume));
    plan = H5I_SDK_TRY(kept_plan(host, line));
  } else {
    std::optional<std::string> inputs;
    if (words["inputs_hex"].is_string()) inputs = H5I_SDK_TRY(unhex(words["inputs_hex"].string()));
    plan = H5I_SDK_TRY(parse_plan(words["plan"].string(), inputs));
    if (plan.name.empty())
      for (size_t n = plans.size() + 1; plan.name.empty() || plans.contains(plan.name); n++) plan.name = "e" + std::to_string(n);
    if (plans.contains(plan.name)) return sdk::failure(H5I_E_EXISTS, "the session has an experiment " + plan.name + " already: --resume " + plan.name + ", or another name");
  }
  const json::Value sending = json::Object{{"cookies", false}, {"insecure", plan.insecure}, {"reuse", plan.reuse}};
  auto tools = H5I_SDK_TRY(tools_of(host, session, sending));
  const Identities who = H5I_SDK_TRY(Identities::of(host, words));
  who.keep_out_of(tools->recorder);
  Experiment experiment(host, session, std::move(plan), *tools, who);
  H5I_SDK_TRY(experiment.prepare());
  if (!words["resume"].is_string()) H5I_SDK_TRY(experiment.record_plan());
  H5I_SDK_TRY(experiment.read_progress());
  H5I_SDK_TRY(experiment.run());
  return experiment.report(words["resume"].is_string());
}

}  // namespace h5i::websec
