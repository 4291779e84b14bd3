#include <algorithm>

#include "plugins/websec-http/compare/lines.hpp"
#include "plugins/websec-http/compare/match.hpp"
#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/engine/past.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/replay/change.hpp"
#include "plugins/websec-http/text/show.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kShownLines = 500;  // of a difference of bodies
constexpr size_t kShownLine = 300;   // bytes of each
constexpr size_t kShownValue = 1000;
constexpr size_t kPatterns = 50;

bool is_hidden(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return is_credential(name) || lower == "set-cookie" || lower == "set-cookie2";
}

std::string text_of(const json::Value& v) { return v.is_null() ? "(none)" : v.is_string() ? v.string() : json::canonical(v); }

class Comparison {
 public:
  // A field of both lines; `counts`: a difference there makes the answers differ.
  void field(const std::string& name, const json::Value& a, const json::Value& b, bool counts) {
    if (!(a == b)) differ(name, a, b, counts);
  }
  // Of what is hidden both may look the same.
  void differ(const std::string& name, const json::Value& a, const json::Value& b, bool counts) {
    if (counts) differs = true;
    fields.push(json::Object{{"field", name}, {"a", a}, {"b", b}});
    lines.push("  " + name + "  " + show_field(text_of(a)) + "  |  " + show_field(text_of(b)));
  }
  // The first line of a request is its URL's and method's, which have fields of their own.
  void heads(const std::string& prefix, const std::string& a, const std::string& b, bool counts, const std::vector<std::string>& but = {}) {
    for (const Change& c : changes(a, b, is_hidden)) {
      if (std::find(but.begin(), but.end(), c.field) != but.end()) continue;
      auto value = [](const std::optional<std::string>& v) { return v ? json::Value(to_valid_utf8(std::string_view(*v).substr(0, kShownValue))) : json::Value(); };
      differ(prefix + to_valid_utf8(c.field), value(c.before), value(c.after), counts && c.field != "header.Date");
    }
  }
  json::Value fields = json::Array{}, lines = json::Array{};
  bool differs = false;
};

json::Value body_lines(const std::string& a, const std::string& b, json::Value& lines) {
  const LineDiff diff = diff_lines(a, b);
  switch (diff.kind) {
    case LineDiff::Kind::SAME: return json::Object{{"kind", "same"}};
    case LineDiff::Kind::BINARY: lines.push("  bodies: binary, they differ"); return json::Object{{"kind", "binary"}};
    case LineDiff::Kind::TOO_DIFFERENT: lines.push("  bodies: too long or too different to be laid side by side"); return json::Object{{"kind", "too-different"}};
    case LineDiff::Kind::TEXT: break;
  }
  json::Value hunks = json::Array{};
  size_t shown = 0, cut = 0;
  for (const Hunk& h : diff.hunks) {
    json::Value of_hunk = json::Array{};
    if (shown < kShownLines) lines.push("  @@ line " + std::to_string(h.a) + " | line " + std::to_string(h.b) + " @@");
    for (const DiffLine& l : h.lines) {
      if (shown >= kShownLines) {
        cut++;
        continue;
      }
      shown++;
      of_hunk.push(l.kind + to_valid_utf8(l.text.substr(0, kShownLine)));
      lines.push(std::string("  ") + l.kind + " " + show_field(l.text, kShownLine));
    }
    if (!of_hunk.array().empty()) hunks.push(json::Object{{"a", h.a}, {"b", h.b}, {"lines", std::move(of_hunk)}});
  }
  if (cut > 0) lines.push("  and " + std::to_string(cut) + " lines more");
  return json::Object{{"kind", "text"}, {"hunks", std::move(hunks)}, {"cut", cut}};
}

}  // namespace

sdk::Result<Answer> diff_act(const sdk::Host& host, const json::Value&, const json::Value& words) {
  const PastSend a = H5I_SDK_TRY(past_send(host, words["a"].string())), b = H5I_SDK_TRY(past_send(host, words["b"].string()));
  Comparison c;
  c.lines.push("a  " + line_of(a));
  c.lines.push("b  " + line_of(b));
  for (const char* name : {"url", "method", "identity", "peer", "rule", "raw", "cookies", "credentials", "computed"}) c.field(std::string("request.") + name, a.body[name], b.body[name], false);
  auto request_a = past_request(host, a), request_b = past_request(host, b);
  if (request_a.ok() && request_b.ok()) c.heads("request.", request_a->head, request_b->head, false, {"line"});
  else c.field("request.head_sha256", a.body["head_sha256"], b.body["head_sha256"], false);
  c.field("request.body_bytes", a.body["body_bytes"], b.body["body_bytes"], false);
  c.field("request.body_sha256", a.body["body_sha256"], b.body["body_sha256"], false);

  c.field("ended", a.ended(), b.ended(), true);
  for (const char* name : {"status", "reason", "headers", "set_cookie", "content_type", "location", "body_bytes", "body_sha256"}) c.field(name, a.outcome[name], b.outcome[name], std::string_view(name) != "reason");
  json::Value body;
  const auto answer_a = H5I_SDK_TRY(past_answer(host, a)), answer_b = H5I_SDK_TRY(past_answer(host, b));
  if (answer_a && answer_b) {
    c.heads("", answer_a->head, answer_b->head, true, {"line", "header.Content-Type", "header.Location"});
    body = body_lines(answer_a->body, answer_b->body, c.lines);
    if (!answer_a->whole || !answer_b->whole) c.lines.push("  bodies: not all of their codings came off");
  } else {
    body = json::Object{{"kind", "not-kept"}};
    if (!(a.outcome["body_sha256"] == b.outcome["body_sha256"])) c.lines.push("  bodies: they differ; a session keeps them when it is opened with --capture");
  }
  json::Value times = json::Object{};
  for (const char* name : {"first_byte_us", "total_us"}) {
    const json::Value &x = a.outcome["times"][name], &y = b.outcome["times"][name];
    times[name] = json::Object{{"a", x}, {"b", y}};
    if (x.is_int() && y.is_int()) c.lines.push(std::string("  ") + (std::string_view(name) == "total_us" ? "total" : "first byte") + "  " + std::to_string(x.integer()) + " us  |  " + std::to_string(y.integer()) + " us");
  }
  c.lines.push(c.differs ? "the answers differ" : "the answers are the same");
  return Answer{json::Object{{"a", a.seq}, {"b", b.seq}, {"same", !c.differs}, {"fields", std::move(c.fields)}, {"times", std::move(times)}, {"body", std::move(body)}, {"lines", std::move(c.lines)}}, c.differs ? 1 : 0};
}

sdk::Result<Answer> match_act(const sdk::Host& host, const json::Value&, const json::Value& words) {
  std::vector<Matcher> matchers;
  for (const json::Value& p : words["patterns"].array()) matchers.push_back(H5I_SDK_TRY(Matcher::parse(p.string())));
  if (matchers.empty() || matchers.size() > kPatterns) return sdk::failure(H5I_E_INVALID, "1 to " + std::to_string(kPatterns) + " patterns");
  const PastSend sent = H5I_SDK_TRY(past_send(host, words["number"].string()));
  AnswerFacts facts;
  facts.status = sent.status();
  facts.body_bytes = sent.outcome["body_bytes"].integer();
  facts.total_us = sent.outcome["times"]["total_us"].integer();
  facts.ended = sent.ended();
  facts.content_type = sent.outcome["content_type"].string();
  for (const json::Value& n : sent.outcome["headers"].array()) facts.names.push_back(n.string());
  bool whole = true;
  if (auto answer = H5I_SDK_TRY(past_answer(host, sent))) {
    facts.head = std::move(answer->head);
    facts.body = std::move(answer->body);
    whole = answer->whole;
  }
  json::Value results = json::Array{}, lines = json::Array{};
  lines.push(line_of(sent));
  bool failed = false, unknown = false;
  for (const Matcher& m : matchers) {
    std::string where;
    const Verdict v = m.judge(facts, &where);
    failed = failed || v == Verdict::DID_NOT;
    unknown = unknown || v == Verdict::UNKNOWN;
    const char* said = v == Verdict::HELD ? "held" : v == Verdict::DID_NOT ? "did not" : "not known";
    json::Value one = json::Object{{"pattern", m.text()}, {"verdict", v == Verdict::HELD ? "held" : v == Verdict::DID_NOT ? "did-not" : "unknown"}};
    if (!where.empty()) one["where"] = where;
    results.push(std::move(one));
    lines.push(std::string("  ") + said + "  " + show_field(m.text()) + (where.empty() ? "" : "  " + where));
  }
  if (!whole) lines.push("  not all codings of the body came off: patterns saw what did");
  if (unknown) lines.push("  what was not kept cannot be looked at: a session keeps it when it is opened with --capture");
  return Answer{json::Object{{"number", sent.seq}, {"results", std::move(results)}, {"whole", whole}, {"lines", std::move(lines)}}, failed ? 1 : unknown ? 2 : 0};
}

}  // namespace h5i::websec
