// websec export: the engine makes the document, piece by piece; this process writes it, since the engine may write to its session alone.
#include <unistd.h>

#include <optional>

#include "core/base/sha256.hpp"
#include "core/base/text.hpp"
#include "core/cli/output_file.hpp"
#include "core/cli/websec_verbs.hpp"

namespace h5i::cli {
namespace {

Error misused(std::string what, std::string evidence) { return make_error(Errc::USAGE, std::move(what), std::move(evidence), "h5i websec export --help"); }

struct Written {
  Sha256 digest;
  uint64_t bytes = 0;
  Json last;  // the engine's last answer
  std::string path;
};

Result<Written> export_session(Context& ctx, const Parsed& words) {
  const std::string format = words.get("--format");
  if (!words.has("--format")) return misused("no format is given", "--format har, jsonl, warc or curl");
  if (format != "har" && format != "jsonl" && format != "warc" && format != "curl") return misused("not a format: " + printable(format), "har, jsonl, warc, curl");
  if (words.has("--force") && !words.has("--out")) return misused("--force is of --out", "there is no file to replace");
  if (ctx.json && !words.has("--out")) return misused("--json tells about a file", "without --out the document itself goes to standard output");
  if (format == "warc" && !words.has("--out") && ::isatty(STDOUT_FILENO)) return misused("WARC is bytes and no text", "standard output is a terminal: give --out");
  session::WebSession session = H5I_TRY(web_session(words.arguments[0]));
  Json asked = json::Object{{"format", format}, {"filters", json::Array{}}};
  for (size_t i = 1; i < words.arguments.size(); i++) asked["filters"].push(words.arguments[i]);
  std::optional<OutputFile> file;
  if (words.has("--out")) file.emplace(H5I_TRY(OutputFile::create(words.get("--out"), words.has("--force"))));
  if (words.has("--with-credentials")) asked["noted"] = H5I_TRY(session::act_in_session(session, {.act = "export-note", .words = asked, .timeout_ms = -1, .progress = {}})).document["noted"];
  Written out;
  for (;;) {
    auto answer = H5I_TRY(session::look_at_session(session, {.act = "export", .words = asked, .timeout_ms = -1, .progress = {}}));
    std::string piece;
    if (!unbase64(answer.document["piece"].string(), &piece)) return make_error(Errc::PLUGIN_PROTOCOL, "the engine gave no piece of a document", "not base64");
    out.digest.update(piece);
    out.bytes += piece.size();
    if (file) H5I_TRY(file->write(piece));
    else ctx.raw(piece);
    out.last = std::move(answer.document);
    if (!out.last["cursor"].is_object() || ctx.output_errno() != 0) break;
    if (out.last["cursor"] == asked["cursor"]) return make_error(Errc::PLUGIN_PROTOCOL, "the engine gave the same piece of a document twice");
    asked["cursor"] = out.last["cursor"];
    ctx.detail(std::to_string(out.bytes) + " bytes, " + std::to_string(out.last["sends"].integer()) + " sends");
  }
  if (file) {
    H5I_TRY(file->finish());
    out.path = file->path();
  }
  return out;
}

}  // namespace

int websec_export(Context& ctx, const Parsed& words) {
  auto written = export_session(ctx, words);
  if (!written) return refuse_web(ctx, written.error());
  const Digest digest = written->digest.finish();
  const std::string text = hex(digest.data(), digest.size()), sends = std::to_string(written->last["sends"].integer());
  ctx.result(json::Object{{"schema", "h5i.websec-export/1"},
                          {"session", words.arguments[0]},
                          {"format", words.get("--format")},
                          {"path", written->path},
                          {"bytes", written->bytes},
                          {"sha256", text},
                          {"sends", written->last["sends"]},
                          {"left_out", written->last["left_out"]},
                          {"until", written->last["until"]},
                          {"placement", written->last["placement"]},
                          {"with_credentials", words.has("--with-credentials")}});
  const int64_t left_out = written->last["left_out"].integer();
  if (left_out > 0) ctx.note(std::to_string(left_out) + (left_out == 1 ? " refusal was" : " refusals were") + " not sent and left out");
  if (ctx.json || written->path.empty()) return 0;
  ctx.line(written->path + "  " + sends + " sends, " + std::to_string(written->bytes) + " bytes");
  ctx.line("  sha256  " + text);
  return 0;
}

}  // namespace h5i::cli
