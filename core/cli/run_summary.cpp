#include "core/cli/run_summary.hpp"

namespace h5i::cli {

Json run_summary(const std::optional<session::LastRun>& run) {
  if (!run) return {};
  bool receipt = run->kind == "receipt";
  const Json& outcome = run->body["outcome"];
  return json::Object{{"session", run->session.value},
                      {"time", run->time},
                      {"status", receipt ? outcome["status"].string() : std::string(run->kind == "attested" ? "unfinished" : "refused")},
                      {"exit_status", receipt ? run->body["exit_status"].integer() : 125},
                      {"reason", receipt ? outcome["reason"].string() : run->body["id"].string()}};
}

std::string run_words(const std::optional<session::LastRun>& run) {
  if (!run) return "-";
  Json s = run_summary(run);
  std::string out = s["status"].string();
  if (out == "exited" || out == "signaled") out += " " + std::to_string(run->body["outcome"]["code"].integer());
  if (!s["reason"].string().empty()) out += " (" + s["reason"].string() + ")";
  return out + ", " + s["time"].string();
}

}  // namespace h5i::cli
