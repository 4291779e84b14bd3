#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/engine/clock.hpp"
#include "plugins/websec-http/acts/identity.hpp"
#include "plugins/websec-http/engine/past.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/plan/sequence.hpp"

namespace h5i::websec {
namespace {

struct Base {
  Request request;
  Url url;
  uint64_t replay_of = 0;
};

sdk::Result<Base> base_of(const sdk::Host& host, const Step& step) {
  if (step.replay != 0) {
    const PastSend sent = H5I_SDK_TRY(past_send(host, std::to_string(step.replay)));
    const PastRequest past = H5I_SDK_TRY(past_request(host, sent));
    return Base{H5I_SDK_TRY(structured(past)), past.url, step.replay};
  }
  Url url = H5I_SDK_TRY(Url::parse(step.request->url));
  if (url.has_credentials()) return sdk::failure(H5I_E_INVALID, "a URL with a user or a password would be in every log: give a header instead");
  Base b{{}, url, 0};
  b.request.method = step.request->method;
  b.request.body = step.request->body;
  for (const std::string& line : step.request->headers)
    if (auto no = b.request.headers.add_line(line)) return sdk::failure(H5I_E_INVALID, "a header of the request: " + std::string(no->id));
  b.request.scheme = url.scheme();
  b.request.authority = url.host_and_port();
  b.request.target = url.path() + (url.query() ? "?" + *url.query() : "");
  return b;
}

sdk::Result<std::string> free_name(const sdk::Host& host, const std::string& wanted) {
  std::map<std::string, bool> used;
  H5I_SDK_TRY(each_line(host, {"experiment", "sequence"}, UINT64_MAX, [&](const json::Value& r) {
    used[r["body"]["name"].string()] = true;
    return true;
  }));
  if (!wanted.empty() && used.contains(wanted)) return sdk::failure(H5I_E_EXISTS, "the session has a plan " + wanted + " already: another name");
  std::string name = wanted;
  for (size_t n = 1; name.empty() || used.contains(name); n++) name = "s" + std::to_string(n);
  return name;
}

// What a step's answer must be and gives. The failure says why the sequence ends here.
sdk::Status judge(const sdk::Host& host, const Step& step, const Row& last, Taken& taken, Secrets& secrets, json::Value& names) {
  PastSend past;
  past.seq = last.seq;
  past.outcome = last.facts;
  auto answer = H5I_SDK_TRY(past_answer(host, past));
  if (!answer) return sdk::failure(H5I_E_NOT_FOUND, "its answer was not kept");
  AnswerFacts facts;
  facts.status = past.status();
  facts.body_bytes = past.outcome["body_bytes"].integer();
  facts.total_us = past.outcome["times"]["total_us"].integer();
  facts.ended = past.outcome["ended"].string();
  facts.content_type = past.outcome["content_type"].string();
  for (const json::Value& n : past.outcome["headers"].array()) facts.names.push_back(n.string());
  facts.head = answer->head;
  facts.body = answer->body;
  for (const std::string& expected : step.expect) {
    const Matcher m = H5I_SDK_TRY(Matcher::parse(expected));
    std::string where;
    if (m.judge(facts, &where) != Verdict::HELD) return sdk::failure(H5I_E_NOT_FOUND, "its answer is not as expected: " + expected);
  }
  for (const Take& t : step.take) {
    std::string value = H5I_SDK_TRY(take_from(t, answer->head, answer->body));
    names.push(json::Object{{"name", t.name}, {"bytes", value.size()}, {"secret", t.secret}});
    if (t.secret) secrets["{{" + t.name + "}}"] = value;
    taken[t.name] = std::move(value);
  }
  return {};
}

}  // namespace

sdk::Result<Answer> sequence_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  const Sequence plan = H5I_SDK_TRY(parse_sequence(words["plan"].string(), is_credential));
  if (!session["options"]["capture"].boolean()) return sdk::failure(H5I_E_NOT_FOUND, "a sequence reads answers, and this session keeps none: open one with --capture");
  const Identities who = H5I_SDK_TRY(Identities::of(host, words));
  if (!plan.as.empty()) H5I_SDK_TRY(who.check(plan.as));
  std::vector<Base> bases;
  for (size_t i = 0; i < plan.steps.size(); i++) {
    auto base = base_of(host, plan.steps[i]);
    if (!base.ok()) return sdk::failure(base.error().code, "step " + std::to_string(i + 1) + ": " + base.error().text);
    bases.push_back(*std::move(base));
  }
  const std::string name = H5I_SDK_TRY(free_name(host, plan.name));
  const bool somebody = !plan.as.empty() && plan.as != kNobody;
  const json::Value sending = json::Object{{"as", somebody ? plan.as : std::string()}, {"cookies", plan.as != kNobody}, {"insecure", plan.insecure}, {"timeout_s", plan.timeout_s}, {"lenient", plan.lenient}};
  auto tools = H5I_SDK_TRY(tools_of(host, session, sending));
  std::optional<Turns> turns;
  if (!plan.rate.empty()) turns.emplace(H5I_SDK_TRY(parse_rate(plan.rate)), machine_clock(), [&] { return host.cancelled(); });

  json::Value line = json::Object{{"name", name}, {"plan", H5I_SDK_TRY(host.put(words["plan"].string()))}, {"count", plan.steps.size()}};
  if (!plan.as.empty()) line["as"] = plan.as;
  who.keep_out_of(tools->recorder);
  H5I_SDK_TRY(tools->recorder.note("sequence", line));

  Taken taken;
  Secrets secrets = who.secrets();
  json::Value steps = json::Array{}, lines = json::Array{};
  bool held = true;
  for (size_t i = 0; i < plan.steps.size(); i++) {
    const Step& step = plan.steps[i];
    json::Value out = json::Object{{"step", i + 1}, {"state", "not-run"}, {"rows", json::Array{}}, {"taken", json::Array{}}};
    if (!step.name.empty()) out["name"] = step.name;
    const std::string title = "step " + std::to_string(i + 1) + (step.name.empty() ? "" : " " + step.name);
    if (!held) {
      lines.push(title + ": not run");
      steps.push(std::move(out));
      continue;
    }
    auto run = [&]() -> sdk::Status {
      Request request = bases[i].request;
      std::vector<std::string> dropped;
      if (!plan.as.empty()) H5I_SDK_TRY(who.become(request, plan.as, &dropped));
      const std::vector<Edit> edits = H5I_SDK_TRY(edits_with(step, taken));
      size_t at = 0;
      if (auto no = apply_edits(&request, edits, &at)) return sdk::failure(H5I_E_INVALID, "edit " + edit_name(step.edits[at]) + ": " + std::string(no->id));
      const Url url = H5I_SDK_TRY(url_with(bases[i].url, request));
      SendOptions options = options_of(session, sending, *tools);
      options.follow = static_cast<int>(step.follow);
      options.replay_of = bases[i].replay_of;
      options.experiment = name;
      options.input = i + 1;
      if (turns) options.admit = [&] { return turns->wait(); };
      Sends sent = H5I_SDK_TRY(send(host, tools->recorder, tools->scope, url.href_without_fragment(), std::move(request), options));
      const Row last = sent.rows.back();
      const int code = sent.code;
      add_rows(std::move(sent), out["rows"], lines);
      if (!last.sent || code != 0) return sdk::failure(H5I_E_NOT_FOUND, "no answer came, or a bad one");
      return judge(host, step, last, taken, secrets, out["taken"]);
    };
    lines.push(title);
    if (auto ran = run(); ran.ok()) {
      out["state"] = "complete";
      for (const json::Value& t : out["taken"].array()) lines.push("    taken: " + t["name"].string() + ", " + std::to_string(t["bytes"].integer()) + " bytes");
    } else {
      // Without its line nothing may be sent: that is no step that failed.
      if (ran.error().code == H5I_E_LOG_WRITE) return ran.error();
      held = false;
      out["state"] = "failed";
      out["why"] = ran.error().text;
      lines.push("    it ends here: " + ran.error().text);
    }
    steps.push(std::move(out));
  }
  if (tools->cookies) H5I_SDK_TRY(tools->cookies->save());
  H5I_SDK_TRY(tools->recorder.note("sequence-ended", json::Object{{"name", name}, {"complete", held}}));
  lines.push("sequence " + name + (held ? ": all of it" : ": not all of it") + "; " + tools->placement.text);
  json::Value document = json::Object{{"name", name}, {"placement", tools->placement.text}, {"complete", held}, {"steps", std::move(steps)}, {"lines", std::move(lines)}};
  add_forged(*tools, document);
  return Answer{hidden(std::move(document), secrets), held ? 0 : 1};
}

}  // namespace h5i::websec
