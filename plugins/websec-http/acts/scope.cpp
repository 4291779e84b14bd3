#include "plugins/websec-http/acts/list.hpp"

namespace h5i::websec {

sdk::Result<Scope> scope_of(const json::Value& session) { return Scope::parse(session["scope"]["text"].string()); }

void add_lines(const std::string& text, json::Value& lines) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push(text.substr(at, end - at));
    at = end + 1;
  }
}

sdk::Result<Answer> read_scope(const sdk::Host&, const json::Value&, const json::Value& words) {
  std::string text;
  for (const char* kind : {"allow", "deny"})
    for (const json::Value& rule : words[kind].array()) {
      if (rule.string().find('\n') != std::string::npos) return sdk::failure(H5I_E_INVALID, "a rule of a scope is one line");
      text += kind + (" " + rule.string()) + "\n";
    }
  Scope scope = H5I_SDK_TRY(Scope::parse(text));
  json::Value lines = json::Array{};
  add_lines(scope.text(), lines);
  SuffixList list = H5I_SDK_TRY(system_suffix_list());
  json::Value suffixes = json::Object{{"date", list.date()}, {"digest", list.digest()}};
  return Answer{json::Object{{"scope", json::Object{{"text", scope.text()}}}, {"suffix_list", std::move(suffixes)}, {"lines", std::move(lines)}}, 0};
}

sdk::Result<Answer> scope_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  Scope scope = H5I_SDK_TRY(scope_of(session));
  json::Value lines = json::Array{};
  if (!words["url"].is_string()) {
    add_lines(scope.text(), lines);
    json::Value out = json::Object{{"scope", scope.text()}};
    if (const json::Value& limits = session["options"]["budget"]; limits.is_object()) {
      const Budget budget(limits, H5I_SDK_TRY(spent_so_far(host)));
      out["budget"] = budget.value();
      lines.push("of its budget: " + budget.text());
    }
    out["lines"] = std::move(lines);
    return Answer{std::move(out), 0};
  }
  Url url = H5I_SDK_TRY(Url::parse(words["url"].string()));
  if (url.has_credentials()) return sdk::failure(H5I_E_INVALID, "a URL with a user or a password: leave them out");
  Decision decision = scope.decide(url);
  add_lines(scope.explain(url, decision).text(), lines);
  json::Value out = json::Object{{"scope", scope.text()}, {"url", url.href_without_fragment()}, {"allowed", decision.allowed}, {"reason", name(decision.reason)}};
  out["rule"] = scope.rule_text(decision);
  out["lines"] = std::move(lines);
  return Answer{std::move(out), decision.allowed ? 0 : 1};
}

}  // namespace h5i::websec
