// The bytes of a request, final before it is recorded.
#include <sys/random.h>

#include <array>

#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/engine/sender.hpp"
#include "plugins/websec-http/http/syntax.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kNames = 200;  // of headers or cookies in the log
constexpr size_t kName = 100;   // bytes of each

void cookie_names(std::string_view value, std::vector<std::string>* names) {
  while (!value.empty() && names->size() < kNames) {
    size_t end = std::min(value.find(';'), value.size());
    names->push_back(cookie_name(value.substr(0, end)));
    value.remove_prefix(std::min(end + 1, value.size()));
  }
}

}  // namespace

Refused Sender::write_bytes(const Url& url, const Request& request, Wire& wire, bool h2, Asked& how, Intent& intent) {
  if (options_.raw) {
    RawSplit split = split_raw(*options_.raw);
    intent.method = "(raw)";
    how.method = split.method;
    intent.head = split.head;
    intent.body = split.body;
    intent.raw = true;
    return std::nullopt;
  }
  Request whole = request;
  std::vector<std::string> added;
  if (options_.document) {
    CorsPlan plan = plan_cors(as_document(url, request));
    if (!plan.origin.empty() && !whole.headers.find("origin")) {
      if (auto refused = whole.headers.add_line("Origin: " + plan.origin)) return refused;
      added.push_back("Origin: " + plan.origin);
    }
  }
  if (std::string cookies = choose_cookies(url, whole, intent); !cookies.empty()) added.push_back(cookies);
  auto refused = h2 ? write_h2(whole, wire, how, intent) : write_h1(whole, url.scheme() == "ws" || url.scheme() == "wss", how, intent);
  if (refused) return refused;
  intent.method = how.method = request.method;
  intent.computed.insert(intent.computed.end(), added.begin(), added.end());
  for (const HeaderLine& h : whole.headers.lines()) {
    if (!is_credential(h.name())) continue;
    if (intent.credentials.size() < kNames) intent.credentials.push_back(to_valid_utf8(h.name().substr(0, kName)));
    if (syntax::same(h.name(), "cookie")) cookie_names(h.value(), &intent.cookies);
  }
  return std::nullopt;
}

Refused Sender::write_h1(Request& request, bool socket, Asked& how, Intent& intent) {
  if (socket) {
    std::array<uint8_t, 16> random{};
    if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return Refusal{"websocket-handshake", "no random bytes for a key"};
    if (auto refused = open_websocket(&request, random, {}, &how.socket.emplace())) return refused;
    intent.computed = how.socket->computed;
  }
  Written written;  // borrows from the request
  if (auto refused = write_request(request, &written)) return refused;
  intent.head = written.head;
  intent.body = written.body;
  intent.computed.insert(intent.computed.begin(), written.computed.begin(), written.computed.end());
  return std::nullopt;
}

Refused Sender::write_h2(const Request& request, Wire& wire, Asked& how, Intent& intent) {
  H2Limits limits;
  limits.body_bytes = options_.most_bytes;
  H2Submitted made;
  if (auto refused = wire.h2(!options_.lenient, limits).submit(request, {.end_apart = options_.before_last_byte && hops_ == 0}, &made)) return refused;
  how.stream = made.stream;
  intent.protocol = "h2";
  intent.head = made.head;
  intent.body = request.body.value_or("");
  intent.framed_body = made.data;
  intent.last_piece = made.last_frame;
  intent.computed = made.fields.computed;
  for (const std::string& name : made.fields.dropped) intent.left_out.push_back(to_valid_utf8(std::string_view(name).substr(0, kName)));
  return std::nullopt;
}

// The jar's cookies for this URL, as a header of this hop alone. A Cookie header that was given stands as it is. What is told of it has no value.
std::string Sender::choose_cookies(const Url& url, Request& request, Intent& intent) {
  if (!options_.cookies || request.headers.find("cookie")) return {};
  // A document's script sends cookies to other origins only where it asked to.
  if (options_.document && !options_.credentials && !url.origin().same(options_.document->origin())) return {};
  Selection chosen = options_.cookies->select(url, requester(url, request.method));
  for (const CookieVerdict& v : chosen.verdicts)
    if (v.reason != CookieReason::SENT && intent.withheld.size() < kNames)
      intent.withheld.push_back(to_valid_utf8(std::string_view(v.cookie_name).substr(0, kName)) + ": " + std::string(name(v.reason)));
  if (chosen.header.empty() || request.headers.add_line("Cookie: " + chosen.header)) return {};
  return "Cookie: (of the jar)";
}

Requester Sender::requester(const Url& url, const std::string& method) const {
  if (!options_.document) return {};
  const bool safe = method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
  return Requester{.same_site = !tainted_ && options_.cookies && options_.cookies->same_site(url, *options_.document), .navigation = false, .safe_method = safe};
}

}  // namespace h5i::websec
