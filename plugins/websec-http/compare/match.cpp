#include "plugins/websec-http/compare/match.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {

bool same(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) { return lower(x) == lower(y); });
}

std::optional<int64_t> number(std::string_view text) {
  if (text.empty() || text.size() > 15 || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::stoll(std::string(text));
}

Verdict verdict(bool held) { return held ? Verdict::HELD : Verdict::DID_NOT; }

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

using Test = std::function<Verdict(const AnswerFacts&, std::string*)>;

Test in_bytes(std::optional<std::string> AnswerFacts::*part, const char* what, std::shared_ptr<Pattern> pattern) {
  return [=](const AnswerFacts& a, std::string* where) {
    if (!(a.*part)) return Verdict::UNKNOWN;
    auto found = pattern->find(*(a.*part));
    if (found) *where = std::to_string(found->size) + " bytes at " + std::to_string(found->offset) + " of the " + what;
    return verdict(found.has_value());
  };
}

}  // namespace

std::vector<std::string_view> header_values(std::string_view head, std::string_view name) {
  std::vector<std::string_view> out;
  std::string_view rest = head;
  for (bool first = true; !rest.empty(); first = false) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    const size_t colon = line.find(':');
    if (!first && colon != std::string_view::npos && same(trimmed(line.substr(0, colon)), name)) out.push_back(trimmed(line.substr(colon + 1, line.size() - colon - 1 - line.ends_with('\n'))));
  }
  return out;
}

sdk::Result<Matcher> Matcher::parse(const std::string& text) {
  auto bad = [&](const std::string& why) {
    return sdk::failure(H5I_E_INVALID, "match " + text.substr(0, 60) + ": " + why + "; status:404 status:4xx ended:TEXT type:TEXT size:N size>N size<N time>MS time<MS header.NAME header.NAME~RE head~RE body~RE, ! in front negates");
  };
  Matcher m;
  m.text_ = text;
  m.negated_ = text.starts_with('!');
  const std::string rest = text.substr(m.negated_ ? 1 : 0);
  const size_t at = rest.find_first_of(":><~");
  const std::string field = rest.substr(0, at), value = at == std::string::npos ? "" : rest.substr(at + 1);
  const char op = at == std::string::npos ? '\0' : rest[at];
  if (op == '~') {
    auto pattern = std::make_shared<Pattern>(H5I_SDK_TRY(Pattern::compile(value)));
    if (field == "head") m.test_ = in_bytes(&AnswerFacts::head, "head", pattern);
    else if (field == "body") m.test_ = in_bytes(&AnswerFacts::body, "body", pattern);
    else if (field.starts_with("header.") && field.size() > 7)
      m.test_ = [pattern, name = field.substr(7)](const AnswerFacts& a, std::string*) {
        if (!a.head) return Verdict::UNKNOWN;
        for (std::string_view v : header_values(*a.head, name))
          if (pattern->find(v)) return Verdict::HELD;
        return Verdict::DID_NOT;
      };
    else return bad("no such field");
    return m;
  }
  if (op == '\0') {
    if (!field.starts_with("header.") || field.size() == 7) return bad("no such field");
    m.test_ = [name = field.substr(7)](const AnswerFacts& a, std::string*) { return verdict(std::any_of(a.names.begin(), a.names.end(), [&](const std::string& n) { return same(n, name); })); };
    return m;
  }
  if (value.empty()) return bad("nothing to compare with");
  if (field == "size" || (field == "time" && op != ':')) {
    auto n = number(value);
    if (!n) return bad("not a number");
    const bool time = field == "time";
    m.test_ = [time, op, n = time ? *n * 1000 : *n](const AnswerFacts& a, std::string*) {
      const int64_t is = time ? a.total_us : a.body_bytes;
      return verdict(op == '>' ? is > n : op == '<' ? is < n : is == n);
    };
    return m;
  }
  if (op != ':') return bad("only size and time are compared");
  if (field == "status") {
    const bool kind = value.size() == 3 && value[0] >= '1' && value[0] <= '9' && value.substr(1) == "xx";
    if (!kind && (value.size() != 3 || !number(value))) return bad("not a status");
    m.test_ = [kind, value](const AnswerFacts& a, std::string*) {
      const std::string status = std::to_string(a.status);
      return verdict(a.status != 0 && (kind ? status.size() == 3 && status[0] == value[0] : status == value));
    };
    return m;
  }
  if (field == "ended") m.test_ = [value](const AnswerFacts& a, std::string*) { return verdict(a.ended == value); };
  else if (field == "type") m.test_ = [value](const AnswerFacts& a, std::string*) { return verdict(a.content_type.find(value) != std::string::npos); };
  else return bad("no such field");
  return m;
}

Verdict Matcher::judge(const AnswerFacts& answer, std::string* where) const {
  where->clear();
  const Verdict v = test_(answer, where);
  if (!negated_ || v == Verdict::UNKNOWN) return v;
  return v == Verdict::HELD ? Verdict::DID_NOT : Verdict::HELD;
}

}  // namespace h5i::websec
