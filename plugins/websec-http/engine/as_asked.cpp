// What a half in a box is about to send, against what it was asked for.
#include "plugins/websec-http/engine/box.hpp"
#include "plugins/websec-http/engine/resolve.hpp"
#include "plugins/websec-http/h2/request.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

std::string target_of(const Url& url) { return url.path() + (url.query() ? "?" + *url.query() : ""); }

// "203.0.113.7:443", "[2001:db8::1]:80": an address, and it is spelt as we spell it.
std::optional<std::pair<Address, uint16_t>> peer_of(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || text.size() - colon > 6) return std::nullopt;
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  auto address = parse_address(host);
  const int port = std::atoi(text.c_str() + colon + 1);
  if (!address || port <= 0 || port > 65535 || endpoint(*address, static_cast<uint16_t>(port)).text() != text) return std::nullopt;
  return std::make_pair(*address, static_cast<uint16_t>(port));
}

std::string line_not_of(const Url& url, const Intent& i, const Request& asked) {
  const bool own_host = asked.headers.find("host") != nullptr;
  if (i.protocol == "h2") {
    H2Fields fields;
    if (!read_h2_request_head(i.head, &fields)) return "its head cannot be read";
    size_t known = 0;
    for (const H2Field& f : fields) {
      if (f.name == ":method" && f.value != i.method) return "its method is another";
      if (f.name == ":path" && f.value != target_of(url)) return "it asks for another target than its URL";
      if (f.name == ":authority" && !own_host && f.value != url.host_and_port()) return "it names another host than its URL";
      known += f.name == ":method" || f.name == ":path" || f.name == ":authority";
    }
    return known == 3 ? "" : "its head does not say once what it asks for";
  }
  const std::string_view head = i.head;
  const size_t end = head.find("\r\n");
  if (end == std::string_view::npos || !head.ends_with("\r\n\r\n")) return "its head is cut";
  const std::string_view line = head.substr(0, end);
  const std::string origin = i.method + " " + target_of(url) + " HTTP/1.", absolute = i.method + " " + url.href_without_fragment() + " HTTP/1.";
  if (line.size() != origin.size() + 1 && line.size() != absolute.size() + 1) return "it asks for another target than its URL";
  if (!line.starts_with(origin) && !line.starts_with(absolute)) return "it asks for another target than its URL";
  size_t hosts = 0;
  for (size_t at = end + 2; at < head.size() - 2;) {
    const size_t stop = head.find("\r\n", at);
    const std::string_view field = head.substr(at, stop - at);
    const size_t colon = field.find(':');
    if (field.empty()) return "its head ends before its end";
    if (colon == std::string_view::npos) return "a line of its head is no header";
    if (syntax::same(field.substr(0, colon), "host")) {
      hosts++;
      if (!own_host && syntax::trimmed(field.substr(colon + 1)) != url.host_and_port()) return "it names another host than its URL";
    }
    at = stop + 2;
  }
  return hosts == 1 || own_host ? "" : "it does not name its host once";
}

}  // namespace

std::string not_as_asked(const Scope& scope, const SendOptions& options, const Request& asked, const Intent& i) {
  auto url = Url::parse(i.url);
  if (!url.ok() || url->href_without_fragment() != i.url || url->has_credentials()) return "its URL is none that could be asked for";
  const Decision decision = scope.decide(*url);
  if (!decision.allowed) return "its URL is outside the scope";
  if (!i.via.empty() || !i.tunnel_to.empty() || i.method == "CONNECT") return "it goes through a proxy";
  auto peer = peer_of(i.peer);
  if (!peer || peer->second != *url->effective_port()) return "its peer is not that of its URL";
  if (!choose_address(scope, decision, *url, {peer->first}).pinned) return "its address may not be dialled";
  const bool secure = url->scheme() == "https" || url->scheme() == "wss";
  std::string name = url->hostname();
  if (name.size() > 2 && name.front() == '[') name = name.substr(1, name.size() - 2);
  if (i.tls_name != (secure ? name : "")) return "its name in TLS is not that of its URL";
  if (i.document.empty() == options.document.has_value()) return "another asks than was said";
  if (i.preflight && (!options.document || i.method != "OPTIONS")) return "a preflight that nobody needs";
  if (i.raw || (options.raw && i.parent == 0)) {
    if (!options.raw || i.head + i.body != *options.raw) return "its bytes are not those that were given";
    for (const Rule& r : scope.rules())
      if (!r.path.empty() && r.matches_origin(*url, *url->host()) == Rule::Match::YES) return "raw bytes where the scope names paths";
    return "";
  }
  if (i.protocol != (options.http2 && url->scheme() != "ws" && url->scheme() != "wss" ? "h2" : "")) return "another protocol than was asked for";
  return line_not_of(*url, i, asked);
}

}  // namespace h5i::websec
