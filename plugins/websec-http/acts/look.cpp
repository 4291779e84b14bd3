#include <algorithm>
#include <optional>

#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/engine/past.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/export/message_text.hpp"
#include "plugins/websec-http/h2/request.hpp"
#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kShownBytes = 64 << 10;  // of each part of a message
constexpr uint64_t kLastSends = 1000;     // that hist lists when nothing is said
constexpr size_t kPieceOfHist = 4 << 20;  // of the log, that one answer of hist is made from: a document of rows is at most three times as large

// Of a send without an outcome nobody saw the end; where an act is at work, those of that act may still come to one.
std::string ended(const PastSend& s, const json::Value& session) {
  const std::string end = s.ended();
  const json::Value& since = session["at_work_since"];
  return end == "unknown-outcome" && since.is_int() && s.seq >= static_cast<uint64_t>(since.integer()) ? "under-way" : end;
}

}  // namespace

std::string line_of(const PastSend& s, const json::Value& session) {
  std::string line = "#" + std::to_string(s.seq) + "  " + s.time + "  ";
  if (s.refused) return line + "refused (" + s.ended() + ")  " + s.body["url"].string();
  line += s.body["method"].string() + " " + s.body["url"].string() + "  ";
  if (s.status() != 0) line += std::to_string(s.status()) + ", " + std::to_string(s.outcome["body_bytes"].integer()) + " bytes, ";
  return line + ended(s, session);
}

json::Value json_of(const PastSend& s, const json::Value& session) {
  json::Value out = json::Object{{"number", s.seq}, {"time", s.time}, {"sent", !s.refused}, {"ended", ended(s, session)}, {"record", s.body}, {"outcome", s.outcome}};
  return out;
}

// The last ones, as many as were asked for, in pieces that an answer holds: with "cursor" the next act goes on where this one ended.
sdk::Result<Answer> hist(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  Wanted wanted;
  for (const json::Value& f : words["filters"].array()) wanted.filters.push_back(H5I_SDK_TRY(parse_filter(f.string())));
  const std::string last = words["last"].string().empty() ? std::to_string(kLastSends) : words["last"].string();
  if (last != "all" && (last.size() > 9 || last.find_first_not_of("0123456789") != std::string::npos)) return sdk::failure(H5I_E_INVALID, "--last is neither a number nor all");
  bool cut = false;
  const bool begins = !words["cursor"].is_object();
  if (!begins) {
    wanted.from = static_cast<uint64_t>(std::max<int64_t>(words["cursor"]["from"].integer(), 0));
    wanted.until = static_cast<uint64_t>(std::max<int64_t>(words["cursor"]["until"].integer(), 0));
  } else if (last == "all") {
    wanted.until = H5I_SDK_TRY(last_line(host));
  } else {
    const Last found = H5I_SDK_TRY(last_sends(host, wanted.filters, std::stoull(last)));
    wanted.from = found.from;
    wanted.until = found.until;
    cut = found.cut;
  }
  json::Value rows = json::Array{}, lines = json::Array{};
  const bool for_people = words["lines"].boolean();
  size_t bytes = 0;
  std::optional<uint64_t> more;
  auto take = [&](Told& told) -> sdk::Result<bool> {
    if (bytes > 0 && bytes + told.bytes > kPieceOfHist) {
      more = told.send.seq;
      return false;
    }
    bytes += told.bytes;
    if (for_people) lines.push(line_of(told.send, session));
    else rows.push(json_of(told.send, session));
    return true;
  };
  if (wanted.from <= wanted.until) H5I_SDK_TRY(each_send(host, wanted, take));
  if (begins && bytes == 0 && for_people) lines.push("no send");
  json::Value out = json::Object{{"rows", std::move(rows)}, {"cut", cut}, {"lines", std::move(lines)}};
  if (more) out["cursor"] = json::Object{{"from", *more}, {"until", wanted.until}};
  return Answer{std::move(out), 0};
}

sdk::Result<Answer> show_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  const PastSend s = H5I_SDK_TRY(past_send(host, words["number"].string()));
  json::Value out = json_of(s, session), lines = json::Array{};
  lines.push(line_of(s, session));
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

}  // namespace h5i::websec
