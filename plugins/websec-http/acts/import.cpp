// Candidates: what a file speaks of, as lines of the log. None is sent.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plugins/websec-http/candidates/candidates.hpp"
#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/digest/sha256.hpp"
#include "plugins/websec-http/engine/recorder.hpp"

namespace h5i::websec {
namespace {

constexpr const char* kFile = "state/import";  // the core puts it there and takes it away
constexpr size_t kListed = 20;                 // of those that were just made
constexpr size_t kMostRows = 1000, kMostBytes = size_t{6} << 20;  // of an answer

sdk::Result<std::string> read_file(size_t most) {
  int fd = ::open(kFile, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat st {};
  std::string out;
  bool good = fd >= 0 && ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (good && static_cast<uint64_t>(st.st_size) > most) {
    ::close(fd);
    return sdk::failure(H5I_E_TOO_LARGE, "a file of " + std::to_string(st.st_size) + " bytes, at most " + std::to_string(most));
  }
  if (good) out.resize(static_cast<size_t>(st.st_size));
  for (size_t at = 0; good && at < out.size();) {
    ssize_t n = ::read(fd, out.data() + at, out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) at += static_cast<size_t>(n);
  }
  const int err = errno;
  if (fd >= 0) ::close(fd);
  if (!good) return sdk::failure(H5I_E_SYSTEM, std::string("what is to be imported cannot be read: ") + strerror(err), err);
  return out;
}

std::string line_of(uint64_t number, const json::Value& c) {
  return "#" + std::to_string(number) + "  candidate  " + c["method"].string() + " " + c["url"].string() + (c["in_scope"].boolean() ? "" : "  not in the scope (" + c["reason"].string() + ")");
}

}  // namespace

sdk::Result<Answer> import_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  auto format = candidate_format(words["format"].string());
  if (!format) return sdk::failure(H5I_E_INVALID, "not a format of candidates: har, openapi, urls");
  const Scope scope = H5I_SDK_TRY(scope_of(session));
  const std::string file = H5I_SDK_TRY(read_file(CandidateLimits{}.bytes)), digest = sha256_hex(file);
  if (digest != words["sha256"].string()) return sdk::failure(H5I_E_CORRUPT, "what is to be imported is not the file that was given");
  Imported found = read_candidates(*format, file);
  if (!found.error.empty()) return sdk::failure(H5I_E_INVALID, "nothing is imported: " + found.error);
  Recorder recorder(host);
  json::Value left_out = json::Object{}, lines = json::Array{};
  uint64_t in_scope = 0, first = 0, last = 0;
  for (const Candidate& c : found.candidates) {
    Url url = H5I_SDK_TRY(Url::parse(c.url));
    Decision decision = scope.decide(url);
    json::Value headers = json::Array{};
    for (const std::string& name : c.headers) headers.push(name);
    json::Value body = json::Object{{"method", c.method}, {"url", c.url}, {"headers", std::move(headers)}, {"in_scope", decision.allowed}, {"reason", name(decision.reason)}, {"rule", scope.rule_text(decision)}, {"source", digest}, {"place", c.place}};
    last = H5I_SDK_TRY(recorder.note("candidate", body));
    if (first == 0) first = last;
    in_scope += decision.allowed;
    if (lines.array().size() < kListed) lines.push(line_of(last, body));
  }
  for (const auto& [why, count] : found.left_out) left_out[why] = count;
  const std::string lost = found.left_out.empty() ? "" : ", left out " + json::canonical(left_out);
  json::Value body = json::Object{{"source", digest}, {"bytes", file.size()}, {"format", words["format"]}, {"candidates", found.candidates.size()}, {"in_scope", in_scope}, {"left_out", std::move(left_out)}, {"cut", found.cut}};
  if (first != 0) body["first"] = first;
  H5I_SDK_TRY(recorder.note("imported", body));
  H5I_SDK_TRY(host.flush());
  if (found.candidates.size() > lines.array().size()) lines.push("... and " + std::to_string(found.candidates.size() - lines.array().size()) + " more: h5i websec import " + session["name"].string() + " --list");
  lines.push(std::to_string(found.candidates.size()) + " candidates, " + std::to_string(in_scope) + " in the scope; nothing was sent" + lost + (found.cut ? "; the file has more than is looked at" : ""));
  body["lines"] = std::move(lines);
  return Answer{std::move(body), 0};
}

// The last ones, as many as were asked for and an answer holds.
sdk::Result<Answer> candidates_act(const sdk::Host& host, const json::Value&, const json::Value& words) {
  const size_t most = std::min<size_t>(static_cast<size_t>(std::max<int64_t>(words["last"].integer(200), 0)), kMostRows);
  std::vector<json::Value> kept;
  uint64_t all = 0;
  H5I_SDK_TRY(each_line(host, {"candidate"}, UINT64_MAX, [&](const json::Value& r) {
    all++;
    kept.push_back(json::Object{{"number", r["seq"]}, {"time", r["time"]}, {"candidate", r["body"]}});
    if (kept.size() > 2 * kMostRows) kept.erase(kept.begin(), kept.end() - kMostRows);
    return true;
  }));
  if (kept.size() > most) kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(most));
  size_t bytes = 0, from = kept.size();
  while (from > 0 && (bytes += 2 * json::canonical(kept[from - 1]).size()) <= kMostBytes) from--;
  json::Value rows = json::Array{}, lines = json::Array{};
  for (size_t i = from; i < kept.size(); i++) {
    lines.push(line_of(static_cast<uint64_t>(kept[i]["number"].integer()), kept[i]["candidate"]));
    rows.push(std::move(kept[i]));
  }
  const uint64_t shown = rows.array().size();
  if (all == 0) lines.push("no candidate");
  else if (shown < all) lines.push("the last " + std::to_string(shown) + " of " + std::to_string(all));
  return Answer{json::Object{{"rows", std::move(rows)}, {"all", all}, {"lines", std::move(lines)}}, 0};
}

}  // namespace h5i::websec
