#include "plugins/websec-http/engine/redirect.hpp"

#include <algorithm>
#include <array>

namespace h5i::websec {
namespace {

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

template <size_t N>
bool among(const std::array<std::string_view, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), lower(name)) != list.end();
}

constexpr std::array<std::string_view, 5> kOfBody = {"content-type", "content-length", "content-encoding", "content-language", "content-location"};
// Fetch's no-CORS safelist, and what says how an answer is to be sent. Everything else may be a key by another name.
constexpr std::array<std::string_view, 20> kHarmless = {"accept",        "accept-charset", "accept-encoding", "accept-language", "accept-ranges",     "cache-control",  "connection",
                                                        "content-type",  "content-length", "content-encoding", "content-language", "if-modified-since", "if-none-match", "pragma",
                                                        "range",         "te",             "transfer-encoding", "upgrade-insecure-requests", "user-agent", "dnt"};

}  // namespace

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

bool is_credential(std::string_view name) {
  const std::string n = lower(name);
  for (std::string_view exact : {"authorization", "proxy-authorization", "cookie", "cookie2", "x-csrf-token", "x-xsrf-token"})
    if (n == exact) return true;
  for (std::string_view part : {"api-key", "apikey", "token", "secret", "session", "auth", "password", "signature", "credential"})
    if (n.find(part) != std::string::npos) return true;
  return false;
}

void redirected(Request& request, int status, const Url& from, const Url& to, std::vector<std::string>* dropped) {
  const bool becomes_get = (status == 303 && request.method != "GET" && request.method != "HEAD") || ((status == 301 || status == 302) && request.method == "POST");
  const bool other_origin = !from.origin().same(to.origin());
  if (becomes_get) {
    request.method = "GET";
    request.body.reset();
  }
  std::vector<HeaderLine> kept;
  for (HeaderLine& line : request.headers.lines()) {
    const bool host = lower(line.name()) == "host";
    const bool of_body = becomes_get && (among(kOfBody, line.name()) || lower(line.name()) == "transfer-encoding");
    if (of_body) continue;
    if (other_origin && (host || !among(kHarmless, line.name()))) {
      std::string name(line.name());
      if (std::find(dropped->begin(), dropped->end(), name) == dropped->end()) dropped->push_back(name);
      continue;
    }
    kept.push_back(std::move(line));
  }
  request.headers.lines() = std::move(kept);
  request.scheme = to.scheme();
  request.authority = to.host_and_port();
  request.target = to.path() + (to.query() ? "?" + *to.query() : "");
}

bool is_downgrade(const Url& from, const Url& to) { return from.scheme() == "https" && to.scheme() != "https"; }

}  // namespace h5i::websec
