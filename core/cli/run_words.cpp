#include "core/cli/run_words.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/evidence/denial_words.hpp"
#include "core/evidence/log.hpp"
#include "core/session/receipt.hpp"

namespace h5i::cli {
namespace {

constexpr uint64_t kExcerpt = 4096;        // bytes of each stream in the JSON form: the end, where errors are
constexpr uint64_t kBlobLimit = 1u << 30;  // resources.output has the last word; this only bounds memory

Result<int> status_fd(const Parsed& words) {
  if (!words.has("--status-fd")) return -1;
  std::string text = words.get("--status-fd");
  int fd = -1;
  auto r = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || fd < 0)
    return make_error(Errc::USAGE, "not a descriptor: " + text, "--status-fd N", "h5i box run --help");
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
    return make_error(Errc::USAGE, "descriptor " + text + " cannot be written", flags < 0 ? "it is not open" : "it is open for reading",
                      "h5i box run --status-fd 3 BOX -- COMMAND 3>status.json");
  if (fd > 2) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

void write_status(int fd, const Json& status) {
  if (fd < 0) return;
  std::string text = json::canonical(status) + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // its reader is gone; the exit status still says it
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

Json error_json(const Error& e) {
  return json::Object{{"id", e.id()}, {"code", static_cast<int>(e.code)}, {"what", e.what}, {"evidence", e.evidence}, {"next", e.remedy()}};
}

// An outcome that is not the command's own end, as the error that a person reads.
std::optional<Error> error_of(const session::BoxEntry& box, const Json& receipt) {
  const Json& outcome = receipt["outcome"];
  const std::string& status = outcome["status"].string();
  if (status == "exited" || status == "signaled") return std::nullopt;
  Errc code = errc_from_id(outcome["reason"].string());
  std::string what = status == "timeout"        ? "the deadline passed and every process of the box was ended"
                     : status == "violation"    ? "the box was killed because it broke its confinement"
                     : status == "setup-failed" ? "the command did not start"
                     : status == "cancelled"    ? "the run was cancelled"
                                                : "the host process was lost and the box was killed";
  // The table's remedies are for what never started; here something may have run.
  std::string next;
  if (code == Errc::RUN_DEADLINE && outcome["detail"].string() == "resources.cpu") next = "raise resources.cpu in the profile";
  else if (status == "host-lost") next = "h5i box inspect " + box.name.str() + " says how far it came";
  return make_error(code, what + " in " + box.name.str(), outcome["detail"].string(), next);
}

// "Operation not permitted" is all that the program could say. Calls with the same meaning share a line.
void note_denials(Context& ctx, const session::BoxEntry& box, const Json& denials) {
  std::vector<std::pair<std::string_view, std::string>> lines;
  for (const Json& d : denials.array()) {
    const std::string& name = d["syscall"].string();
    std::string_view words = evidence::denial_words(name);
    if (words.empty()) continue;
    auto same = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == words; });
    if (same == lines.end())
      lines.emplace_back(words, name);
    else
      same->second += ", " + name;
  }
  for (const auto& [words, names] : lines) ctx.note("refused in the box: " + names + ": " + std::string(words));
  if (!lines.empty()) ctx.note("  see: h5i box inspect " + box.name.str());
}

// The last bytes of a captured stream. They were redacted before they were stored.
Json stream_json(const session::BoxEntry& box, const Json& stream) {
  Json out = json::Object{{"bytes", stream["bytes"]}, {"captured", stream["captured"]}, {"sha256", stream["sha256"]},
                          {"truncated", stream["truncated"]}, {"excerpt", Json()}};
  if (!stream["blob"].boolean()) return out;
  auto bytes = evidence::get_blob(box.paths.blobs(), stream["sha256"].string(), kBlobLimit);
  if (!bytes) return out;
  size_t from = bytes->size() > kExcerpt ? bytes->size() - kExcerpt : 0;
  while (from < bytes->size() && from > 0 && (static_cast<unsigned char>((*bytes)[from]) & 0xC0) == 0x80) from++;
  out["excerpt"] = bytes->substr(from);
  return out;
}

}  // namespace

Result<session::RunOptions> run_options(const Context& ctx, const Parsed& words) {
  session::RunOptions options;
  options.status_fd = H5I_TRY(status_fd(words));
  options.cwd = words.get("--cwd");
  options.argv = words.rest;
  options.quiet = ctx.quiet;
  options.json = ctx.json;
  return options;
}

int refuse_run(Context& ctx, const Error& e, int status_fd) {
  int status = session::exit_status_of(e);
  ctx.refuse(e);
  write_status(status_fd, json::Object{{"schema", "h5i.status/1"}, {"exit_status", status}, {"origin", "h5i"}, {"error", error_json(e)}});
  return status;
}

int run_and_report(Context& ctx, const session::BoxEntry& box, const session::RunOptions& options) {
  auto report = session::run_in_box(box, options);
  if (!report) return refuse_run(ctx, report.error(), options.status_fd);
  const Json& receipt = report->receipt;
  std::optional<Error> error = error_of(box, receipt);
  if (ctx.json) {
    Json out = json::Object{{"schema", "h5i.box-" + std::string(options.shell ? "shell" : "run") + "/1"},
                            {"box", box.name.str()},
                            {"exit_status", report->exit_status},
                            {"origin", error ? "h5i" : "command"},
                            {"receipt", receipt},
                            {"receipt_record", report->receipt_record},
                            {"stdout", stream_json(box, receipt["output"]["stdout"])},
                            {"stderr", stream_json(box, receipt["output"]["stderr"])}};
    if (error) out["error"] = error_json(*error);
    ctx.result(out);
  } else {
    note_denials(ctx, box, receipt["denials"]);
    if (error) ctx.refuse(*error);
  }
  ctx.detail("session " + receipt["session"].string() + ", receipt " + report->receipt_record);
  Json status = json::Object{{"schema", "h5i.status/1"},
                             {"exit_status", report->exit_status},
                             {"origin", error ? "h5i" : "command"},
                             {"session", receipt["session"]},
                             {"receipt_record", report->receipt_record},
                             {"outcome", receipt["outcome"]}};
  if (error) status["error"] = error_json(*error);
  write_status(options.status_fd, status);
  return report->exit_status;
}

}  // namespace h5i::cli
