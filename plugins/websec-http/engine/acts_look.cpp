#include "plugins/websec-http/engine/act_list.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/export/message_text.hpp"
#include "plugins/websec-http/h2/request.hpp"
#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kShownBytes = 64 << 10;  // of each part of a message

}  // namespace

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
        // Frames are no lines: what cannot be read as some cannot be masked, and is not shown.
        if (std::string_view(name) == "request_head" && s.body["protocol"].string() == "h2") bytes = h2_request_lines(bytes).value_or("[" + std::to_string(bytes.size()) + " bytes]");
        if (std::string_view(name).ends_with("head")) bytes = masked_head(bytes, {.with_credentials = false, .is_credential = is_credential});
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

}  // namespace h5i::websec
