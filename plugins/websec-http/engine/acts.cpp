#include "plugins/websec-http/engine/acts.hpp"

#include <array>

#include "plugins/websec-http/engine/history.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/engine/send.hpp"
#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

using Answer = sdk::Websec::Answer;
constexpr size_t kShownBytes = 64 << 10;  // of each part of a message

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
  return Answer{json::Object{{"scope", json::Object{{"text", scope.text()}}}, {"lines", std::move(lines)}}, 0};
}

sdk::Result<std::string> unhex(const std::string& digits) {
  std::string out;
  auto value = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    int high = value(digits[i]), low = value(digits[i + 1]);
    if (high < 0 || low < 0) return sdk::failure(H5I_E_INVALID, "bytes that are no hexadecimal digits");
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

std::string line_of(const Row& row) {
  const json::Value& f = row.facts;
  std::string line = "#" + std::to_string(row.seq) + "  ";
  if (!row.sent) return line + "refused (" + f["why"].string() + ")  " + f["url"].string();
  line += f["method"].string() + " " + f["url"].string() + "  ";
  if (f["status"].is_int()) line += std::to_string(f["status"].integer()) + " " + f["reason"].string() + ", " + std::to_string(f["body_bytes"].integer()) + " bytes, ";
  if (f["ended"].string() != "complete") line += f["ended"].string() + ", ";
  return line + std::to_string(f["times"]["total_us"].integer() / 1000) + " ms";
}

sdk::Result<Answer> send_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  Scope scope = H5I_SDK_TRY(scope_of(session));
  Request request;
  SendOptions options;
  if (words["raw_hex"].is_string()) options.raw = H5I_SDK_TRY(unhex(words["raw_hex"].string()));
  if (words["body_hex"].is_string()) request.body = H5I_SDK_TRY(unhex(words["body_hex"].string()));
  request.method = words["method"].is_string() ? words["method"].string() : request.body ? "POST" : "GET";
  for (const json::Value& line : words["headers"].array())
    if (auto refused = request.headers.add_line(line.string())) return sdk::failure(H5I_E_INVALID, std::string(refused->id) + ": " + refused->what);
  options.follow = static_cast<int>(words["follow"].integer());
  options.timeout_ns = words["timeout_s"].integer(30) * 1'000'000'000;
  options.lenient = words["lenient"].boolean();
  options.expires_ns = session["expires_ns"].integer(INT64_MAX);
  options.capture = session["options"]["capture"].boolean();
  Recorder recorder(host);
  Sends sends = H5I_SDK_TRY(send(host, recorder, scope, words["url"].string(), std::move(request), options));
  json::Value rows = json::Array{}, lines = json::Array{};
  for (Row& row : sends.rows) {
    const json::Value& facts = row.facts;
    lines.push(line_of(row));
    if (!facts["text"].string().empty()) lines.push("    " + facts["text"].string());
    for (const json::Value& o : facts["facts"].array()) lines.push("    odd: " + o["id"].string());
    row.facts["number"] = row.seq;
    row.facts["sent"] = row.sent;
    rows.push(std::move(row.facts));
  }
  lines.push("not contained; h5i websec show " + session["name"].string() + " NUMBER");
  return Answer{json::Object{{"rows", std::move(rows)}, {"placement", "not contained"}, {"lines", std::move(lines)}}, sends.code};
}

std::string line_of(const PastSend& s) {
  std::string line = "#" + std::to_string(s.seq) + "  " + s.time + "  ";
  if (s.refused) return line + "refused (" + s.ended() + ")  " + s.body["url"].string();
  line += s.body["method"].string() + " " + s.body["url"].string() + "  ";
  if (s.status() != 0) line += std::to_string(s.status()) + ", " + std::to_string(s.outcome["body_bytes"].integer()) + " bytes, ";
  return line + s.ended();
}

json::Value json_of(const PastSend& s) {
  json::Value out = json::Object{{"number", s.seq}, {"time", s.time}, {"sent", !s.refused}, {"ended", s.ended()}, {"record", s.body}, {"outcome", s.outcome}};
  return out;
}

sdk::Result<Answer> hist(const sdk::Host& host, const json::Value&, const json::Value& words) {
  std::vector<Filter> filters;
  for (const json::Value& f : words["filters"].array()) filters.push_back(H5I_SDK_TRY(parse_filter(f.string())));
  const std::string& last = words["last"].string();
  if (last.size() > 9 || last.find_first_not_of("0123456789") != std::string::npos) return sdk::failure(H5I_E_INVALID, "--last is not a number");
  std::vector<PastSend> kept;
  for (PastSend& s : H5I_SDK_TRY(history(host))) {
    bool all = true;
    for (const Filter& f : filters) all = all && f(s);
    if (all) kept.push_back(std::move(s));
  }
  if (!last.empty() && kept.size() > std::stoull(last)) kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(std::stoull(last)));
  json::Value rows = json::Array{}, lines = json::Array{};
  for (const PastSend& s : kept) {
    rows.push(json_of(s));
    lines.push(line_of(s));
  }
  if (kept.empty()) lines.push("no send");
  return Answer{json::Object{{"rows", std::move(rows)}, {"lines", std::move(lines)}}, 0};
}

bool is_set_cookie(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name == "set-cookie" || name == "set-cookie2";
}

// A head as people may see it: values of headers that say who asks, and of cookies that are set, are a number of bytes. A bare CR ends a line here
// as well, and a line that begins with a blank goes on with the one before.
std::string masked(const std::string& head) {
  std::string out;
  bool hide = false;
  for (size_t at = 0; at < head.size();) {
    size_t end = head.find_first_of("\r\n", at);
    size_t next = end == std::string::npos ? head.size() : head.find_first_not_of("\r\n", end);
    if (end == std::string::npos) end = head.size();
    if (next == std::string::npos) next = head.size();
    const std::string line = head.substr(at, end - at), ending = head.substr(end, next - end);
    size_t value = 0;
    if (line.empty() || (line[0] != ' ' && line[0] != '\t')) {
      size_t colon = line.find(':');
      std::string name = line.substr(0, std::min(colon, line.size()));
      while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.pop_back();
      hide = colon != std::string::npos && (is_credential(name) || is_set_cookie(name));
      value = colon == std::string::npos ? 0 : line.find_first_not_of(" \t", colon + 1);
    } else {
      value = line.find_first_not_of(" \t");
    }
    if (hide && value != std::string::npos) out += line.substr(0, value) + "[" + std::to_string(line.size() - value) + " bytes]";
    else out += line;
    out += ending;
    at = next;
  }
  return out;
}

sdk::Result<Answer> show_act(const sdk::Host& host, const json::Value&, const json::Value& words) {
  Filter wanted = H5I_SDK_TRY(parse_filter("seq:" + words["number"].string()));
  for (const PastSend& s : H5I_SDK_TRY(history(host))) {
    if (!wanted(s)) continue;
    json::Value out = json_of(s), lines = json::Array{};
    lines.push(line_of(s));
    for (const json::Value* part : {&s.body, &s.outcome})
      for (const auto& [key, value] : part->object())
        if (key != "url" && key != "method" && key != "of" && key != "kept") lines.push("  " + key + "  " + (value.is_string() ? value.string() : json::canonical(value)));
    const json::Value& kept = s.outcome["kept"];
    if (words["bytes"].boolean()) {
      if (kept.is_null()) return sdk::failure(H5I_E_NOT_FOUND, "the messages of #" + words["number"].string() + " were not kept: the session was opened without --capture");
      for (const char* name : {"request_head", "request_body", "response_head", "response_body"}) {
        if (!kept[name].is_string()) continue;
        std::string bytes = H5I_SDK_TRY(host.get(kept[name].string(), size_t{64} << 20));
        if (std::string_view(name).ends_with("head")) bytes = masked(bytes);
        Shown shown = websec::show(bytes, {.lines = true, .cap = kShownBytes});
        lines.push(std::string("-- ") + name + (shown.cut ? ", its first " + std::to_string(shown.used) + " of " + std::to_string(bytes.size()) + " bytes" : ""));
        add_lines(shown.text, lines);
      }
    }
    out["lines"] = std::move(lines);
    return Answer{std::move(out), 0};
  }
  return sdk::failure(H5I_E_NOT_FOUND, "the session has no send #" + words["number"].string());
}

sdk::Result<Answer> scope_act(const sdk::Host&, const json::Value& session, const json::Value& words) {
  Scope scope = H5I_SDK_TRY(scope_of(session));
  json::Value lines = json::Array{};
  if (!words["url"].is_string()) {
    add_lines(scope.text(), lines);
    return Answer{json::Object{{"scope", scope.text()}, {"lines", std::move(lines)}}, 0};
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

struct Named {
  std::string_view name;
  Act act;
};
constexpr std::array<Named, 5> kActs = {{{"read-scope", read_scope}, {"send", send_act}, {"hist", hist}, {"show", show_act}, {"scope", scope_act}}};

}  // namespace

Act act_named(std::string_view name) {
  for (const Named& n : kActs)
    if (n.name == name) return n.act;
  return nullptr;
}

}  // namespace h5i::websec
