#include "core/base/text.hpp"
#include "core/cli/websec_verbs.hpp"
#include "core/os/fs.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kMostBytes = 4u << 20;  // of a body or a raw request: they travel in one document
constexpr int64_t kPatienceMs = 60'000;  // for names that are looked up, and a busy machine
constexpr int64_t kDefaultAnswer = 64 << 20, kLargestAnswer = 1 << 30;
constexpr int64_t kMostFollow = 20, kMostSeconds = 3600;

Result<int64_t> number(const Parsed& words, const char* option, int64_t fallback, int64_t least, int64_t most) {
  std::string text = words.get(option);
  if (text.empty() && !words.has(option)) return fallback;
  if (text.empty() || text.size() > 12 || text.find_first_not_of("0123456789") != std::string::npos || std::stoll(text) < least || std::stoll(text) > most)
    return make_error(Errc::USAGE, std::string(option) + " is not a number from " + std::to_string(least) + " to " + std::to_string(most), printable(text), "h5i websec send --help");
  return std::stoll(text);
}

Result<std::string> bytes_of(const std::string& path) { return os::read_file(path, kMostBytes); }

Result<Json> request_of(const Parsed& words) {
  if (words.has("--raw") && (words.has("--method") || words.has("--header") || words.has("--data") || words.has("--data-file")))
    return make_error(Errc::USAGE, "--raw is the whole request", "no --method, --header or body beside it", "h5i websec send --help");
  if (words.has("--data") && words.has("--data-file")) return make_error(Errc::USAGE, "--data and --data-file are both a body", "give one of them", "h5i websec send --help");
  Json out = json::Object{{"url", words.arguments[1]}};
  out["follow"] = H5I_TRY(number(words, "--follow", 0, 0, kMostFollow));
  out["timeout_s"] = H5I_TRY(number(words, "--timeout", 30, 1, kMostSeconds));
  out["lenient"] = words.has("--lenient");
  out["http2"] = words.has("--http2");
  out["insecure"] = words.has("--insecure");
  out["cookies"] = !words.has("--no-cookies");
  out["max_bytes"] = H5I_TRY(number(words, "--max-bytes", kDefaultAnswer, 1, kLargestAnswer));
  if (words.has("--as")) out["as"] = words.get("--as");
  if (words.has("--proxy")) out["proxy"] = words.get("--proxy");
  Json proxy_headers = json::Array{};
  if (auto it = words.options.find("--proxy-header"); it != words.options.end())
    for (const std::string& line : it->second) {
      if (!valid_utf8(line)) return make_error(Errc::USAGE, "a header for the proxy is not UTF-8", "", "h5i websec send --help");
      proxy_headers.push(line);
    }
  if (!proxy_headers.array().empty() && !words.has("--proxy")) return make_error(Errc::USAGE, "--proxy-header without --proxy", "there is no proxy to send it to", "h5i websec send --help");
  out["proxy_headers"] = std::move(proxy_headers);
  if (words.has("--document")) out["document"] = words.get("--document");
  if (words.has("--credentials") && !words.has("--document")) return make_error(Errc::USAGE, "--credentials without --document", "the tester has no origin that cookies could be withheld from", "h5i websec send --help");
  out["credentials"] = words.has("--credentials");
  if (words.has("--listen")) out["listen_s"] = H5I_TRY(number(words, "--listen", 0, 1, kMostSeconds));
  Json messages = json::Array{};
  if (auto it = words.options.find("--message"); it != words.options.end())
    for (const std::string& m : it->second) {
      if (!valid_utf8(m)) return make_error(Errc::USAGE, "a message is not UTF-8", printable(m.substr(0, 40)), "h5i websec send --help");
      messages.push(m);
    }
  out["messages"] = std::move(messages);
  if (words.has("--method")) out["method"] = words.get("--method");
  Json headers = json::Array{};
  if (auto it = words.options.find("--header"); it != words.options.end())
    for (const std::string& line : it->second) headers.push(line);
  out["headers"] = std::move(headers);
  auto hexadecimal = [](const std::string& bytes) { return hex(bytes.data(), bytes.size()); };
  if (words.has("--data")) out["body_hex"] = hexadecimal(words.get("--data"));
  if (words.has("--data-file")) out["body_hex"] = hexadecimal(H5I_TRY(bytes_of(words.get("--data-file"))));
  if (words.has("--raw")) out["raw_hex"] = hexadecimal(H5I_TRY(bytes_of(words.get("--raw"))));
  return out;
}

}  // namespace

int websec_send(Context& ctx, const Parsed& words) {
  auto request = request_of(words);
  if (!request) return refuse_web(ctx, request.error());
  for (const Json& line : (*request)["headers"].array())
    if (!valid_utf8(line.string())) return refuse_web(ctx, make_error(Errc::INVALID, "a header is not UTF-8", printable(line.string().substr(0, line.string().find(':'))), "--raw sends any bytes"));
  // Beyond what all its hops may take, an engine that says nothing is not waited for.
  const int64_t sends_a_hop = (words.has("--document") ? 2 : 1) * (words.has("--proxy") ? 2 : 1);  // a preflight, and a CONNECT for each
  const int64_t longest_ms = ((*request)["follow"].integer() + 1) * sends_a_hop * ((*request)["timeout_s"].integer() + (*request)["listen_s"].integer()) * 1000 + kPatienceMs;
  return act_and_print(ctx, words.arguments[0], "send", std::move(*request), false, longest_ms);
}

}  // namespace h5i::cli
