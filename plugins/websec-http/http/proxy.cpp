#include "plugins/websec-http/http/proxy.hpp"

#include <algorithm>

#include "plugins/websec-http/http/request.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr std::string_view kForTheTarget[] = {"authorization", "cookie", "cookie2"};
constexpr std::string_view kOfABody[] = {"content-length", "transfer-encoding", "trailer", "expect", "upgrade"};

Refused no(std::string what) { return Refusal{"proxy-connect", std::move(what)}; }

// Host and port, each there: "a.test:443", "[2001:db8::1]:443".
bool whole_authority(std::string_view a) {
  size_t colon = a.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == a.size() || a.size() - colon > 6) return false;
  std::string_view host = a.substr(0, colon), port = a.substr(colon + 1);
  if (!syntax::all(port, syntax::kDigit)) return false;
  unsigned n = 0;
  for (char c : port) n = n * 10 + static_cast<unsigned>(c - '0');
  if (n == 0 || n > 65535) return false;
  bool brackets = host.front() == '[' && host.back() == ']' && host.size() > 2;
  for (char c : brackets ? host.substr(1, host.size() - 2) : host)
    if (c <= ' ' || c > '~' || std::string_view("/?#@[]\\").find(c) != std::string_view::npos || (c == ':' && !brackets)) return false;
  return true;
}

}  // namespace

Refused write_connect(std::string_view authority, const HeaderList& headers, ProxyAsk* out) {
  if (!whole_authority(authority)) return no("CONNECT takes a host and a port");
  ProxyAsk made;
  size_t hosts = 0;
  for (const HeaderLine& h : headers.lines()) {
    for (std::string_view name : kForTheTarget)
      if (syntax::same(h.name(), name)) return no(std::string(h.name()) + " is for the target and would be read by the proxy");
    for (std::string_view name : kOfABody)
      if (syntax::same(h.name(), name)) return no(std::string(h.name()) + " has no meaning on a CONNECT");
    if (syntax::same(h.name(), "host") && (++hosts > 1 || h.value() != authority)) return no("the Host of a CONNECT is its target");
    if (syntax::same(h.name(), "proxy-authorization")) made.credentials.emplace_back(h.name());
  }
  Request request;
  request.method = "CONNECT";
  request.form = TargetForm::AUTHORITY;
  request.authority = authority;
  request.target.clear();
  request.headers = headers;
  Written written;
  if (auto bad = write_request(request, &written)) return bad;
  made.head = std::move(written.head);
  made.computed = std::move(written.computed);
  *out = std::move(made);
  return std::nullopt;
}

ProxyAnswer judge_proxy(const ResponseParser& parser, std::string_view behind, bool strict) {
  ProxyAnswer answer;
  answer.oddities = Oddities(strict);
  if (!parser.has_head()) return answer;
  const ResponseHead& head = parser.head();
  answer.status = head.status;
  if (head.status == 407) {
    for (size_t i = 0; i < head.fields.size() && answer.schemes.size() < ProxyAnswer::kSchemes; i++) {
      FieldView f = head.fields.field(i);
      if (!syntax::same(f.name, "proxy-authenticate")) continue;
      std::string_view scheme = f.value.substr(0, f.value.find_first_of(" ,\t\r\n"));
      if (syntax::token(scheme) && std::find(answer.schemes.begin(), answer.schemes.end(), scheme) == answer.schemes.end()) answer.schemes.emplace_back(scheme);
    }
    answer.oddities.add(OddityId::PROXY_AUTHENTICATION, head.fields.offset());
    return answer;
  }
  if (head.status < 200 || head.status > 299) {
    answer.oddities.add(OddityId::PROXY_REFUSED, head.fields.offset(), std::to_string(head.status));
    return answer;
  }
  if (!behind.empty()) answer.oddities.add(OddityId::PROXY_EARLY_BYTES, parser.wire_bytes(), behind);
  answer.tunnel = parser.state() == ResponseParser::State::TUNNEL && !answer.oddities.refused();
  return answer;
}

}  // namespace h5i::websec
