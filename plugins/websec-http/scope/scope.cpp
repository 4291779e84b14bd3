#include "plugins/websec-http/scope/scope.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {

using Verdict = Decision::Verdict;

bool is_http(std::string_view scheme) { return scheme == "http" || scheme == "https" || scheme == "ws" || scheme == "wss"; }

Verdict verdict_of(Rule::Match match) {
  switch (match) {
    case Rule::Match::YES: return Verdict::MATCHES;
    case Rule::Match::OTHER_HOST: return Verdict::OTHER_HOST;
    case Rule::Match::OTHER_SCHEME: return Verdict::OTHER_SCHEME;
    case Rule::Match::OTHER_PORT: return Verdict::OTHER_PORT;
  }
  return Verdict::OTHER_HOST;
}

std::string_view words(Verdict verdict) {
  switch (verdict) {
    case Verdict::NOT_LOOKED_AT: return "not looked at";
    case Verdict::OTHER_HOST: return "another host";
    case Verdict::OTHER_SCHEME: return "this host, another scheme";
    case Verdict::OTHER_PORT: return "this host, another port";
    case Verdict::OTHER_PATH: return "this host, another path";
    case Verdict::MATCHES: return "matches";
  }
  return "";
}

std::string shown(const Url& url) {
  if (!url.host()) return url.protocol();
  return url.scheme() + "://" + url.host_and_port() + url.path();
}

void write(const Explanation& e, size_t depth, std::string& out) {
  out.append(depth * 2, ' ');
  out += e.line + "\n";
  for (const Explanation& b : e.below) write(b, depth + 1, out);
}

}  // namespace

std::string_view name(Reason reason) {
  switch (reason) {
    case Reason::ALLOWED: return "allowed";
    case Reason::SCHEME: return "scheme";
    case Reason::DENY_RULE: return "deny-rule";
    case Reason::NO_ALLOW: return "no-allow";
    case Reason::DENY_PATH: return "deny-path";
    case Reason::OTHER_PATH: return "other-path";
  }
  return "";
}

std::string Explanation::text() const {
  std::string out;
  write(*this, 0, out);
  return out;
}

sdk::Result<Scope> Scope::parse(std::string_view text) {
  Scope scope;
  size_t number = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    number++;
    auto around = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!line.empty() && around(line.front())) line.remove_prefix(1);
    while (!line.empty() && around(line.back())) line.remove_suffix(1);
    if (line.empty() || line[0] == '#') continue;
    if (scope.rules_.size() == kMaxRules) return sdk::failure(H5I_E_TOO_LARGE, "scope: more than " + std::to_string(kMaxRules) + " rules");
    auto rule = parse_rule(line);
    if (!rule) return sdk::failure(rule.error().code, "line " + std::to_string(number) + ": " + rule.error().text);
    scope.rules_.push_back(*std::move(rule));
  }
  std::vector<std::pair<std::string, Rule>> sorted;
  for (Rule& rule : scope.rules_) sorted.emplace_back(rule.text(), std::move(rule));
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });  // "allow" before "deny"
  sorted.erase(std::unique(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first == b.first; }), sorted.end());
  scope.rules_.clear();
  for (auto& [canonical, rule] : sorted) scope.rules_.push_back(std::move(rule));
  if (scope.rules_.empty()) return sdk::failure(H5I_E_INVALID, "scope: no rule, so nothing could be sent; add an allow");
  if (!scope.rules_.front().allow)
    return sdk::failure(H5I_E_INVALID, "scope: only denies, so nothing could be sent: a deny takes away from what an allow gives; add an allow");
  return scope;
}

std::string Scope::text() const {
  std::string out;
  for (const Rule& rule : rules_) out += rule.text() + "\n";
  return out;
}

Decision Scope::decide(const Url& url) const {
  Decision d;
  d.verdicts.assign(rules_.size(), Verdict::NOT_LOOKED_AT);
  if (!is_http(url.scheme()) || !url.host()) {
    d.reason = Reason::SCHEME;
    return d;
  }
  auto deny = [&](size_t rule, Reason reason) {
    d.reason = reason;
    d.by = {rule};
    return d;
  };
  for (size_t i = 0; i < rules_.size(); i++) {
    if (rules_[i].allow || !rules_[i].path.empty()) continue;
    d.verdicts[i] = verdict_of(rules_[i].matches_origin(url, *url.host()));
    if (d.verdicts[i] == Verdict::MATCHES) return deny(i, Reason::DENY_RULE);
  }
  std::vector<size_t> exact, wild;
  for (size_t i = 0; i < rules_.size() && rules_[i].allow; i++) {
    d.verdicts[i] = verdict_of(rules_[i].matches_origin(url, *url.host()));
    if (d.verdicts[i] == Verdict::MATCHES) (rules_[i].wildcard ? wild : exact).push_back(i);
  }
  if (exact.empty() && wild.empty()) return d;
  PathReadings readings(url.path());
  for (size_t i = 0; i < rules_.size(); i++) {
    if (rules_[i].allow || rules_[i].path.empty()) continue;
    d.verdicts[i] = verdict_of(rules_[i].matches_origin(url, *url.host()));
    if (d.verdicts[i] != Verdict::MATCHES) continue;
    if (rules_[i].matches_path(readings)) return deny(i, Reason::DENY_PATH);
    d.verdicts[i] = Verdict::OTHER_PATH;
  }
  for (const auto& candidates : {exact, wild})
    for (size_t i : candidates) {
      if (rules_[i].matches_path(readings)) d.by.push_back(i);
      else d.verdicts[i] = Verdict::OTHER_PATH;
    }
  d.allowed = !d.by.empty();
  d.reason = d.allowed ? Reason::ALLOWED : Reason::OTHER_PATH;
  return d;
}

Explanation Scope::explain(const Url& url, const Decision& d) const {
  Explanation root;
  std::string rule = rule_text(d);
  switch (d.reason) {
    case Reason::ALLOWED: root.line = "allowed by \"" + rule + "\""; break;
    case Reason::SCHEME: root.line = "denied: only http, https, ws and wss are sent"; break;
    case Reason::DENY_RULE:
    case Reason::DENY_PATH: root.line = "denied by \"" + rule + "\""; break;
    case Reason::NO_ALLOW: root.line = "denied: no rule allows this scheme, host and port"; break;
    case Reason::OTHER_PATH: root.line = "denied: the host is allowed, this path is not"; break;
  }
  root.line = shown(url) + ": " + root.line;
  if (d.reason == Reason::SCHEME) return root;
  Explanation denies{"1. hosts that are denied", {}}, allows{"2. hosts that are allowed", {}}, paths{"3. paths that are denied", {}};
  for (size_t i = 0; i < rules_.size() && i < d.verdicts.size(); i++) {
    Explanation& stage = rules_[i].allow ? allows : rules_[i].path.empty() ? denies : paths;
    stage.below.push_back({rules_[i].text() + ": " + std::string(words(d.verdicts[i])), {}});
  }
  for (Explanation* stage : {&denies, &allows, &paths}) {
    if (stage->below.empty()) stage->line += ": none";
    root.below.push_back(std::move(*stage));
  }
  return root;
}

}  // namespace h5i::websec
