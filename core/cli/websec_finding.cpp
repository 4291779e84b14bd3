// websec finding: what a tester says of sends that are in the log, and the report of it.
#include <algorithm>

#include "core/base/sha256.hpp"
#include "core/base/text.hpp"
#include "core/cli/output_file.hpp"
#include "core/cli/websec_verbs.hpp"
#include "core/evidence/log.hpp"

namespace h5i::cli {
namespace {

Error misused(std::string what, std::string evidence) { return make_error(Errc::USAGE, std::move(what), std::move(evidence), "h5i websec finding --help"); }

// A number of a line of the log; none, and it is no number.
std::optional<int64_t> line_number(const std::string& text) {
  const std::string digits = text.starts_with('#') ? text.substr(1) : text;
  if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return std::stoll(digits);
}

Result<void> only(const Parsed& words, const std::string& what, const std::vector<std::string>& options, size_t arguments) {
  for (const auto& [name, values] : words.options) {
    const bool common = name == "--json" || name == "--quiet" || name == "--verbose";
    if (!common && std::find(options.begin(), options.end(), name) == options.end()) return misused(name + " is not of finding " + what, options.empty() ? "it takes no option" : "it takes " + options[0] + " and what --help says");
  }
  if (words.arguments.size() != arguments) return misused("finding " + what + " takes " + (arguments == 3 ? "the number of a finding" : "no more words"), "h5i websec finding SESSION " + what);
  return {};
}

struct Done {
  Json document;
  std::string text, path;  // of a report
};

Result<Done> add(const Parsed& words) {
  H5I_TRY(only(words, "add", {"--title", "--severity", "--cite", "--note"}, 2));
  for (const char* needed : {"--title", "--severity", "--cite"})
    if (words.get(needed).empty()) return misused(std::string("a finding needs ") + needed, "--title TEXT --severity low --cite 12,15");
  const std::string severity = words.get("--severity");
  if (severity != "info" && severity != "low" && severity != "medium" && severity != "high") return misused("not a severity: " + printable(severity), "info, low, medium, high");
  for (const char* text : {"--title", "--note"})
    if (!valid_utf8(words.get(text))) return misused(std::string(text) + " is not UTF-8", printable(words.get(text), {.limit = 100}));
  Json cites = json::Array{};
  for (const std::string& list : words.options.at("--cite"))
    for (size_t at = 0; at <= list.size();) {
      const size_t end = std::min(list.find(',', at), list.size());
      auto number = line_number(list.substr(at, end - at));
      if (!number) return misused("not a number of a send: " + printable(list.substr(at, end - at), {.limit = 100}), "--cite 12,15");
      cites.push(*number);
      at = end + 1;
    }
  session::WebSession session = H5I_TRY(web_session(words.arguments[0]));
  Json asked = json::Object{{"title", words.get("--title")}, {"severity", severity}, {"note", words.get("--note")}, {"cites", std::move(cites)}};
  return Done{H5I_TRY(session::act_in_session(session, {.act = "finding-add", .words = std::move(asked), .timeout_ms = -1, .progress = {}})).document, "", ""};
}

Result<Done> withdraw(const Parsed& words) {
  H5I_TRY(only(words, "withdraw", {"--reason"}, 3));
  auto number = line_number(words.arguments[2]);
  if (!number) return misused("not a number of a finding: " + printable(words.arguments[2], {.limit = 100}), "h5i websec finding SESSION list");
  if (words.get("--reason").empty() || !valid_utf8(words.get("--reason"))) return misused("a finding is withdrawn for a reason", "--reason TEXT");
  session::WebSession session = H5I_TRY(web_session(words.arguments[0]));
  Json asked = json::Object{{"number", *number}, {"reason", words.get("--reason")}};
  return Done{H5I_TRY(session::act_in_session(session, {.act = "finding-withdraw", .words = std::move(asked), .timeout_ms = -1, .progress = {}})).document, "", ""};
}

Result<Done> list(const Parsed& words) {
  H5I_TRY(only(words, "list", {}, 2));
  session::WebSession session = H5I_TRY(web_session(words.arguments[0]));
  return Done{H5I_TRY(session::look_at_session(session, {.act = "finding-list", .words = json::Object{}, .timeout_ms = -1, .progress = {}})).document, "", ""};
}

Result<Done> report(Context& ctx, const Parsed& words) {
  H5I_TRY(only(words, "report", {"--format", "--out", "--force"}, 2));
  const std::string format = words.get("--format", "md");
  if (format != "md" && format != "html") return misused("not a format of a report: " + printable(format, {.limit = 100}), "md, html");
  if (words.has("--force") && !words.has("--out")) return misused("--force is of --out", "there is no file to replace");
  if (ctx.json && !words.has("--out")) return misused("--json tells about a file", "without --out the report itself goes to standard output");
  session::WebSession session = H5I_TRY(web_session(words.arguments[0]));
  std::optional<OutputFile> file;
  if (words.has("--out")) file.emplace(H5I_TRY(OutputFile::create(words.get("--out"), words.has("--force"))));
  const evidence::Head head = H5I_TRY(evidence::read_head(session.log()));
  Json asked = json::Object{{"format", format}, {"log", head.log_id}, {"records", head.count}, {"head_sha256", head.digest}};
  Done out{H5I_TRY(session::look_at_session(session, {.act = "finding-report", .words = asked, .timeout_ms = -1, .progress = {}})).document, "", ""};
  if (!unbase64(out.document["text"].string(), &out.text)) return make_error(Errc::PLUGIN_PROTOCOL, "the engine gave no report", "not base64");
  out.document.make_object().erase("text");
  if (file) {
    H5I_TRY(file->write(out.text));
    H5I_TRY(file->finish());
    out.path = file->path();
  } else {
    ctx.raw(out.text);
  }
  out.document["report"] = json::Object{{"format", format}, {"path", out.path}, {"bytes", out.text.size()}, {"sha256", sha256_hex(out.text)}, {"log", head.log_id}, {"records", head.count}, {"head_sha256", head.digest}};
  return out;
}

Result<Done> done(Context& ctx, const Parsed& words) {
  const std::string& what = words.arguments[1];
  if (what == "add") return add(words);
  if (what == "list") return list(words);
  if (what == "report") return report(ctx, words);
  if (what == "withdraw") return withdraw(words);
  return misused("finding does not know the word " + printable(what, {.limit = 100}), "add, list, report, withdraw");
}

}  // namespace

int websec_finding(Context& ctx, const Parsed& words) {
  auto answer = done(ctx, words);
  if (!answer) return refuse_web(ctx, answer.error());
  const std::string& what = words.arguments[1];
  Json out = std::move(answer->document), lines = out["lines"];
  out.make_object().erase("lines");
  out["schema"] = "h5i.websec-finding/1";
  out["session"] = words.arguments[0];
  out["did"] = what;
  ctx.result(out);
  if (ctx.json) return 0;
  if (what != "report") {
    for (const Json& line : lines.array()) ctx.line(line.string());
  } else if (!answer->path.empty()) {
    ctx.line(answer->path + "  " + std::to_string(out["findings"].array().size()) + " findings, " + std::to_string(answer->text.size()) + " bytes");
    ctx.line("  sha256  " + out["report"]["sha256"].string());
  }
  return 0;
}

}  // namespace h5i::cli
