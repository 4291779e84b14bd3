#include "core/cli/record_line.hpp"

#include "core/base/text.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kSummary = 160;

std::string words_of(const Json& list) {
  std::string out;
  for (const Json& w : list.array()) out += (out.empty() ? "" : " ") + w.string();
  return out;
}

// What a person looks for first in a record of this kind; else the body itself, shortened.
std::string summary(const std::string& kind, const Json& body) {
  if (kind == "run-requested" && body["command"].is_array()) return words_of(body["command"]);
  if (kind == "receipt")
    return body["outcome"]["status"].string() + " " + std::to_string(body["outcome"]["code"].integer()) + ": " + words_of(body["command"]);
  if (kind == "run-refused") return body["id"].string() + ": " + body["what"].string();
  return json::canonical(body);
}

}  // namespace

std::string record_line(const Json& r) {
  std::string lane = r["lane"].string();
  std::string who = lane == "host-observed" ? r["observer"].string() : lane + " by " + r["observer"].string();
  return std::to_string(r["seq"].integer()) + "  " + r["time"].string() + "  " + r["kind"].string() + "  [" + who + "]  " +
         printable(summary(r["kind"].string(), r["body"]), {.limit = kSummary});
}

}  // namespace h5i::cli
