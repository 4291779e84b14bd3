// Findings: what a tester says of sends that are in the log. Lines are added and never changed.
#include <algorithm>
#include <map>
#include <set>

#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/engine/history.hpp"
#include "plugins/websec-http/engine/recorder.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/export/message_text.hpp"
#include "plugins/websec-http/report/report.hpp"

namespace h5i::websec {
namespace {

constexpr std::string_view kFinding = "finding", kWithdrawn = "finding-withdrawn";
constexpr size_t kMostTitle = 200, kMostNote = 16 << 10, kMostCites = 100;  // bytes, bytes, sends
constexpr size_t kLargestReport = size_t{10} << 20;                          // in base64 an answer holds it
constexpr size_t kLargestHead = size_t{1} << 20;

uint64_t number_of(const json::Value& v) { return static_cast<uint64_t>(std::max<int64_t>(v.integer(), 0)); }

Filter numbered(uint64_t n) { return {Filter::Field::SEQ, {}, static_cast<int64_t>(n), static_cast<int64_t>(n)}; }

// Of the log's first `most` records.
sdk::Result<std::vector<Finding>> findings(const sdk::Host& host, uint64_t most) {
  std::vector<Finding> out;
  if (most == 0) return out;
  H5I_SDK_TRY(each_line(host, {std::string(kFinding), std::string(kWithdrawn)}, most - 1, [&](const json::Value& r) {
    const uint64_t number = number_of(r["seq"]);
    const json::Value& b = r["body"];
    if (r["kind"].string() == kFinding) {
      Finding f{number, r["time"].string(), b["title"].string(), b["severity"].string(), b["note"].string(), {}, {}};
      for (const json::Value& c : b["cites"].array()) f.cites.push_back(number_of(c));
      out.push_back(std::move(f));
    } else if (r["kind"].string() == kWithdrawn) {
      for (Finding& f : out)
        if (f.number == number_of(b["of"])) f.withdrawn = Withdrawal{number, r["time"].string(), b["reason"].string()};
    }
    return true;
  }));
  return out;
}

json::Value json_of(const Finding& f) {
  json::Value cites = json::Array{};
  for (uint64_t n : f.cites) cites.push(n);
  json::Value out = json::Object{{"number", f.number}, {"time", f.time}, {"title", f.title}, {"severity", f.severity}, {"note", f.note}, {"cites", std::move(cites)}};
  out["withdrawn"] = f.withdrawn ? json::Value(json::Object{{"number", f.withdrawn->number}, {"time", f.withdrawn->time}, {"reason", f.withdrawn->reason}}) : json::Value();
  return out;
}

std::string line_of(const Finding& f) {
  std::string line = "#" + std::to_string(f.number) + "  " + f.severity + "  " + f.title + "  cites";
  for (uint64_t n : f.cites) line += " #" + std::to_string(n);
  if (f.withdrawn) line += "  withdrawn by #" + std::to_string(f.withdrawn->number) + ": " + f.withdrawn->reason;
  return line;
}

Answer answer_with(const std::vector<Finding>& list) {
  json::Value rows = json::Array{}, lines = json::Array{};
  for (const Finding& f : list) {
    rows.push(json_of(f));
    lines.push(line_of(f));
  }
  if (list.empty()) lines.push("no finding");
  return {json::Object{{"findings", std::move(rows)}, {"lines", std::move(lines)}}, 0};
}

sdk::Result<std::string> words_of(const json::Value& words, const char* name, size_t most, bool lines) {
  const std::string& text = words[name].string();
  if (text.size() > most) return sdk::failure(H5I_E_INVALID, std::string(name) + " is longer than " + std::to_string(most) + " bytes");
  if (!lines && text.find_first_of("\r\n") != std::string::npos) return sdk::failure(H5I_E_INVALID, std::string(name) + " is more than one line");
  return text;
}

}  // namespace

sdk::Result<Answer> finding_add(const sdk::Host& host, const json::Value&, const json::Value& words) {
  const std::string title = H5I_SDK_TRY(words_of(words, "title", kMostTitle, false)), note = H5I_SDK_TRY(words_of(words, "note", kMostNote, true));
  if (title.empty()) return sdk::failure(H5I_E_INVALID, "a finding has a title");
  if (severity_rank(words["severity"].string()) < 0) return sdk::failure(H5I_E_INVALID, "not a severity: info, low, medium, high");
  std::set<uint64_t> cited;
  for (const json::Value& c : words["cites"].array()) cited.insert(number_of(c));
  if (cited.empty() || cited.size() > kMostCites) return sdk::failure(H5I_E_INVALID, "a finding cites from 1 to " + std::to_string(kMostCites) + " sends");
  for (uint64_t n : cited) {
    bool found = false;
    H5I_SDK_TRY(each_send(host, {.filters = {numbered(n)}}, [&](Told& told) -> sdk::Result<bool> {
      found = !told.send.refused;
      return false;
    }));
    if (!found) return sdk::failure(H5I_E_NOT_FOUND, "the session has no send #" + std::to_string(n));
  }
  json::Value cites = json::Array{};
  for (uint64_t n : cited) cites.push(n);
  json::Value body = json::Object{{"title", title}, {"severity", words["severity"]}, {"cites", std::move(cites)}};
  if (!note.empty()) body["note"] = note;
  Recorder recorder(host);
  const uint64_t number = H5I_SDK_TRY(recorder.note(kFinding, body));
  H5I_SDK_TRY(host.flush());
  std::vector<Finding> all = H5I_SDK_TRY(findings(host, UINT64_MAX));
  std::erase_if(all, [&](const Finding& f) { return f.number != number; });
  return answer_with(all);
}

sdk::Result<Answer> finding_withdraw(const sdk::Host& host, const json::Value&, const json::Value& words) {
  const uint64_t number = number_of(words["number"]);
  const std::string reason = H5I_SDK_TRY(words_of(words, "reason", kMostNote, false));
  if (reason.empty()) return sdk::failure(H5I_E_INVALID, "a finding is withdrawn for a reason");
  auto is_other = [&](const Finding& f) { return f.number != number; };
  std::vector<Finding> found = H5I_SDK_TRY(findings(host, UINT64_MAX));
  std::erase_if(found, is_other);
  if (found.empty()) return sdk::failure(H5I_E_NOT_FOUND, "the session has no finding #" + std::to_string(number));
  if (found[0].withdrawn) return sdk::failure(H5I_E_EXISTS, "the finding #" + std::to_string(number) + " is withdrawn already, by #" + std::to_string(found[0].withdrawn->number));
  Recorder recorder(host);
  H5I_SDK_TRY(recorder.note(kWithdrawn, json::Object{{"of", number}, {"reason", reason}}));
  H5I_SDK_TRY(host.flush());
  found = H5I_SDK_TRY(findings(host, UINT64_MAX));
  std::erase_if(found, is_other);
  return answer_with(found);
}

sdk::Result<Answer> finding_list(const sdk::Host& host, const json::Value&, const json::Value&) { return answer_with(H5I_SDK_TRY(findings(host, UINT64_MAX))); }

// The head of the log is the core's word: it read the log before this act.
sdk::Result<Answer> finding_report(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  const std::string& format = words["format"].string();
  if (format != "md" && format != "html") return sdk::failure(H5I_E_INVALID, "not a format of a report: md, html");
  Report report;
  report.session = session["name"].string();
  report.id = session["id"].string();
  report.created = session["created"].string();
  report.engine = session["engine"]["id"].string() + " " + session["engine"]["version"].string() + " " + session["engine"]["digest"].string();
  report.scope = session["scope"]["text"].string();
  report.log = words["log"].string();
  report.records = number_of(words["records"]);
  report.head_sha256 = words["head_sha256"].string();
  report.findings = H5I_SDK_TRY(findings(host, report.records));
  std::set<uint64_t> cited;
  for (const Finding& f : report.findings)
    if (!f.withdrawn) cited.insert(f.cites.begin(), f.cites.end());
  const ExportRules rules{false, is_credential};
  size_t heads = 0;
  auto take = [&](Told& told) -> sdk::Result<bool> {
    if (told.send.refused) return true;
    const json::Value &b = told.send.body, &o = told.send.outcome;
    CitedSend s{told.send.seq, told.send.time, b["method"].string(), b["url"].string(), b["peer"].string(), told.send.ended(), b["identity"].string(), told.send.status(),
                b["head_sha256"].string(), b["body_sha256"].string(), o["head_sha256"].string(), o["body_sha256"].string(), {}, {}};
    for (const auto& [name, into] : {std::pair<const char*, std::optional<std::string>*>{"request_head", &s.request_head}, {"response_head", &s.response_head}})
      if (o["kept"][name].is_string() && (into == &s.response_head || b["protocol"].string().empty())) *into = masked_head(H5I_SDK_TRY(host.get(o["kept"][name].string(), kLargestHead)), rules);
    heads += s.request_head.value_or("").size() + s.response_head.value_or("").size();
    if (heads > kLargestReport) return sdk::failure(H5I_E_TOO_LARGE, "the heads of what is cited are more than a report holds");
    report.sends.push_back(std::move(s));
    return true;
  };
  for (uint64_t n : cited)
    if (n < report.records) H5I_SDK_TRY(each_send(host, {.filters = {numbered(n)}, .until = report.records - 1}, take));
  const std::string text = format == "md" ? report_markdown(report) : report_html(report);
  if (text.size() > kLargestReport) return sdk::failure(H5I_E_TOO_LARGE, "the report is " + std::to_string(text.size()) + " bytes, at most " + std::to_string(kLargestReport));
  Answer out = answer_with(report.findings);
  out.document["text"] = base64(text);
  return out;
}

}  // namespace h5i::websec
